//go:build linux

package launchverify

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// kills is how many launches TestKilledAtRandom kills.
func kills(t *testing.T) int {
	t.Helper()
	text := os.Getenv("GATEHOUSE_KILLS")
	if text == "" {
		return 25
	}
	n, err := strconv.Atoi(text)
	if err != nil || n <= 0 {
		t.Fatalf("GATEHOUSE_KILLS is %q, expected a number", text)
	}
	return n
}

// Wherever a SIGKILL meets a launch, with a cold cache or a warm one, whether it hits the agent, the stage, the keeper or
// two of them at once: no process, no mount, no control group and no half entry is left, nothing lies outside the cache, and
// the next launch is right and leaves nothing below the cache's folders for what is temporary.
func TestKilledAtRandom(t *testing.T) {
	ways := trackings(t)
	for i, how := range ways {
		t.Run(fmt.Sprintf("%s %s", how.mode, how.want), func(t *testing.T) {
			k := newKilling(t, how)
			for range (kills(t) + i) / len(ways) {
				k.once(t)
			}
			k.next(t)
			t.Logf("reached: %v", k.reached)
		})
	}
}

// killing is a job that is launched and killed again and again.
type killing struct {
	*rig
	o         Options
	archives  string
	published map[string]string
	within    time.Duration // how long a launch takes that nobody kills
	n         int
	reached   map[string]int // how far the launches had come
}

func newKilling(t *testing.T, how tracked) *killing {
	t.Helper()
	r, o := shell(t, how.mode, `echo up > $BASE/up; (while :; do sleep 0.01; done) & sleep 0.02; exit 0`)
	pin := r.shelf.pins["lab/alpha@1.0.0"]
	o.Env, o.without, o.Grace = append(o.Env, marker(r)), how.without, 100*time.Millisecond
	k := &killing{rig: r, o: o, archives: filepath.Join(r.base, "archives"), reached: map[string]int{}}
	k.published = sums(t, filepath.Join(r.base, "published", "lab", "alpha"))
	r.mkdir(k.archives)
	if err := os.WriteFile(filepath.Join(k.archives, pin.Manifest.Hex()), r.shelf.archives[pin.Manifest], 0o644); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	cmd := r.startCold(o, k.archives)
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	k.within = time.Since(start)
	return k
}

// once launches, kills after a moment of any length, and looks at what is left.
func (k *killing) once(t *testing.T) {
	t.Helper()
	if k.n++; k.n%3 == 0 {
		if err := removeTree(filepath.Join(k.base, "cache")); err != nil {
			t.Fatal(err)
		}
	}
	os.Remove(filepath.Join(k.base, "up"))
	cmd := k.startCold(k.o, k.archives)
	time.Sleep(time.Duration(float64(k.within) * rand.Float64() * rand.Float64())) // more often early
	keeper, stage := familyOf(cmd.Process.Pid)
	family := slices.DeleteFunc([]int{cmd.Process.Pid, keeper, stage}, func(pid int) bool { return pid == 0 })
	victims := family
	switch spared := rand.IntN(len(family) + 1); {
	case len(family) == 1:
	case len(family) == 2: // a process namespace: one of them, or both
		if spared < 2 {
			victims = slices.Delete(slices.Clone(family), spared, spared+1)
		}
	default: // one of three is left
		spared %= 3
		victims = slices.Delete(slices.Clone(family), spared, spared+1)
	}
	k.reached[k.stageOf(family)]++
	for _, pid := range victims {
		syscall.Kill(pid, syscall.SIGKILL)
	}
	cmd.Wait()
	waitEnded(t, k.rig)
	for _, pid := range family {
		waitDead(t, pid)
	}
	k.entries(t)
	if k.n%8 == 0 {
		k.next(t)
	}
}

// stageOf says how far a launch has come.
func (k *killing) stageOf(family []int) string {
	switch _, err := os.Stat(filepath.Join(k.base, "up")); {
	case err == nil:
		return "command"
	case len(family) > 1:
		return "stage"
	}
	return "agent"
}

// entries fails when the cache shows a pack that is not whole.
func (k *killing) entries(t *testing.T) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(k.base, "cache", "trees", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range found {
		if diff := cmp.Diff(k.published, sums(t, dir)); diff != "" {
			t.Errorf("half an entry (-published +cached):\n%s", diff)
		}
	}
}

// next fails unless the next launch runs, sees what it should, and leaves nothing.
func (k *killing) next(t *testing.T) {
	t.Helper()
	look := filepath.Join(k.base, "look.json")
	os.Remove(look)
	o := k.o
	o.Command = []string{os.Args[0], standIn, look}
	rec, err := k.launch(o)
	saw, ran := k.saw()
	if err != nil || !ran || rec.ExitCode != 0 {
		t.Fatalf("the next launch: exit code %d, %v", rec.ExitCode, err)
	}
	for name, sum := range k.published {
		if saw.Files["forge_plugins/alpha/"+name] != sum {
			t.Errorf("the next launch saw another %s", name)
		}
	}
	nothingLeft(t, k.rig)
	noGroups(t)
	entries, err := os.ReadDir(k.base)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		known := []string{"agent.json", "archives", "cache", "home", "job", "job.receipt.json", "keys", "look.json", "published", "trust.json", "up"}
		if !slices.Contains(known, e.Name()) && !strings.HasPrefix(e.Name(), "look") {
			t.Errorf("%s is left beside the cache", e.Name())
		}
	}
}
