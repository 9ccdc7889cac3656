//go:build linux

package launchverify

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/receipt"
)

// Attacks that race with a launch: somebody changes what the agent reads while it reads it. Each is carried out this often.
const races = 8

// racing is a job whose plugin takes a while to copy, and what it must look like in any job that is started.
type racing struct {
	*rig
	o    Options
	want map[string]string // the plugin's files
}

func newRacing(t *testing.T, mode Mode) *racing {
	t.Helper()
	r := newRig(t, dialect.Forge)
	files := map[string]string{"zz_pad.bin": strings.Repeat("0123456789abcdef", 1<<17)}
	for i := range 40 {
		files[fmt.Sprintf("part_%02d.py", i)] = "x = 1\n"
	}
	r.spec(r.plugin("lab/alpha", true, files))
	r.sign()
	o := r.options()
	o.modes = []Mode{mode}
	return &racing{r, o, sums(t, filepath.Join(r.base, "published", "lab", "alpha"))}
}

// race launches again and again while attack runs, and calls restore after each. A launch may be refused or run; a job that
// runs sees its plugin as published, and no launch takes longer than the bound.
func (r *racing) race(t *testing.T, attack func(stop <-chan struct{}), restore func()) (started, refused int) {
	t.Helper()
	for range races {
		os.Remove(filepath.Join(r.base, "look.json"))
		stop := make(chan struct{})
		var attacking sync.WaitGroup
		attacking.Go(func() { attack(stop) })
		done := make(chan struct{})
		var rec Record
		var err error
		go func() {
			defer close(done)
			rec, err = r.launch(r.o)
		}()
		select {
		case <-done:
		case <-time.After(time.Minute):
			t.Fatal("the attack makes the launch hang")
		}
		close(stop)
		attacking.Wait()
		restore()
		saw, ran := r.saw()
		if rec.Started != ran {
			t.Fatalf("started %v, ran %v, %v", rec.Started, ran, err)
		}
		if !ran {
			refused++
			continue
		}
		started++
		got := map[string]string{}
		for path, sum := range saw.Files {
			if name, ok := strings.CutPrefix(path, "forge_plugins/alpha/"); ok {
				got[name] = sum
			}
		}
		if !maps.Equal(got, r.want) {
			t.Errorf("the job saw another plugin than was published: %v", got)
		}
	}
	return started, refused
}

// until calls f again and again.
func until(stop <-chan struct{}, f func()) {
	for {
		select {
		case <-stop:
			return
		default:
			f()
		}
	}
}

// A cache whose file server, or whose other users of the same account, swap files for others while they are copied: other
// bytes, links to what only the agent may read, pipes that nobody writes to, files without an end.
func TestAttackByHostileCache(t *testing.T) {
	eachMode(t, func(t *testing.T, mode Mode) {
		r := newRacing(t, mode)
		if _, err := r.launch(r.o); err != nil {
			t.Fatal(err)
		}
		entries, err := filepath.Glob(filepath.Join(r.base, "cache", "trees", "*"))
		if err != nil || len(entries) != 1 {
			t.Fatal(entries, err)
		}
		secret := filepath.Join(r.base, "secret")
		if err := os.WriteFile(secret, []byte("the agent's own"), 0o600); err != nil {
			t.Fatal(err)
		}
		n := 0
		swap := func() {
			time.Sleep(rand.N(40 * time.Millisecond)) // so that some launches come through
			n++
			os.Chmod(entries[0], 0o755)
			victim := filepath.Join(entries[0], fmt.Sprintf("part_%02d.py", rand.IntN(40)))
			other := filepath.Join(r.base, "other")
			os.Remove(other)
			switch n % 5 {
			case 0:
				os.WriteFile(other, []byte("x = 2\n"), 0o644)
			case 1:
				os.Symlink(secret, other)
			case 2:
				syscall.Mkfifo(other, 0o644)
			case 3:
				os.WriteFile(other, nil, 0o644)
				os.Truncate(other, 1<<40)
			case 4:
				os.Link(secret, other)
			}
			os.Rename(other, victim)
		}
		started, refused := r.race(t, func(<-chan struct{}) {
			for range 1 + rand.IntN(4) {
				swap()
			}
		}, func() {})
		t.Logf("%d swaps, %d launches started, %d were refused", n, started, refused)
	})
}

// The receipt and the spec are swapped for others between any two reads: for a receipt of somebody else's key, for one of
// another spec, for a spec that pins something else. And the plugin in the job directory with them.
func TestAttackBySwappedReceipt(t *testing.T) {
	eachMode(t, func(t *testing.T, mode Mode) {
		r := newRacing(t, mode)
		goodSpec, err := os.ReadFile(r.specPath())
		if err != nil {
			t.Fatal(err)
		}
		goodReceipt, err := os.ReadFile(r.job + receipt.Suffix)
		if err != nil {
			t.Fatal(err)
		}
		mallory := newRig(t, dialect.Forge)
		mallory.spec(mallory.plugin("lab/alpha", true, map[string]string{"part_00.py": evil}))
		mallory.sign()
		evilSpec, err := os.ReadFile(mallory.specPath())
		if err != nil {
			t.Fatal(err)
		}
		evilReceipt, err := os.ReadFile(mallory.job + receipt.Suffix)
		if err != nil {
			t.Fatal(err)
		}
		put := func(path string, b []byte) {
			tmp := filepath.Join(r.base, "swap")
			if os.WriteFile(tmp, b, 0o644) == nil {
				os.Rename(tmp, path)
			}
		}
		swaps := 0
		attack := func(stop <-chan struct{}) {
			until(stop, func() {
				swaps++
				spec, rcp := goodSpec, goodReceipt
				if rand.IntN(2) == 0 {
					spec = evilSpec
				}
				if rand.IntN(2) == 0 {
					rcp = evilReceipt
				}
				put(r.specPath(), spec)
				put(r.job+receipt.Suffix, rcp)
				put(filepath.Join(r.job, "forge_plugins/alpha/part_00.py"), []byte(evil))
				put(filepath.Join(r.job, "forge_plugins/alpha/part_00.py"), []byte("x = 1\n"))
			})
		}
		started, refused := r.race(t, attack, func() { // the moment decides whether it is refused
			put(r.specPath(), goodSpec)
			put(r.job+receipt.Suffix, goodReceipt)
			put(filepath.Join(r.job, "forge_plugins/alpha/part_00.py"), []byte("x = 1\n"))
		})
		t.Logf("%d swaps, %d launches started, %d were refused", swaps, started, refused)
		// Both of the other's at once are refused too: the key is not trusted.
		put(r.specPath(), evilSpec)
		put(r.job+receipt.Suffix, evilReceipt)
		if rec, err := r.launch(r.o); err == nil || rec.Started || ExitCode(rec, err) != 7 {
			t.Errorf("somebody else's job: %v", err)
		}
	})
}

// A folder that is bound is swapped for a link to where the job's user has no business while the launch looks at it: it is bound
// as the folder it was, or the launch is refused.
func TestAttackByLinkedBind(t *testing.T) {
	for _, mode := range modes(t) {
		if mode == ModePrivateCopy {
			continue // there binds are links, and where they lead is the user's to say
		}
		r := newRacing(t, mode)
		outside := filepath.Join(r.base, "outside")
		r.mkdir(outside)
		for path, text := range map[string]string{filepath.Join(outside, "note"): "outside", filepath.Join(r.job, "common", "note"): "common"} {
			r.mkdir(filepath.Dir(path))
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		r.o.Command = []string{"sh", "-c", "cat common/note > $BASE/note; exit 0"}
		r.o.Env = append(r.o.Env, "BASE="+r.base)
		common, away, link := filepath.Join(r.job, "common"), filepath.Join(r.base, "away"), filepath.Join(r.base, "link")
		for range races {
			stop := make(chan struct{})
			var attacking sync.WaitGroup
			attacking.Go(func() {
				until(stop, func() {
					os.Symlink(outside, link)
					os.Rename(common, away)
					os.Rename(link, common)
					os.Remove(common)
					os.Rename(away, common)
				})
			})
			os.Remove(filepath.Join(r.base, "note"))
			r.launch(r.o) // refused or not: what it saw is what counts
			close(stop)
			attacking.Wait()
			if b, _ := os.ReadFile(filepath.Join(r.base, "note")); string(b) == "outside" {
				t.Errorf("%s: the job's root shows what lies outside the job directory", mode)
			}
		}
	}
}

// hammerVerb makes the test program a process of the job's user that looks for stages and, before their root is read-only, writes
// to it through /proc or holds a file there open for writing, as a descriptor does that somebody passed over a socket.
const hammerVerb = "hammer"

func hammer(victim, hits string) int {
	for parent := os.Getppid(); os.Getppid() == parent; {
		for _, pid := range running() {
			b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			if !strings.Contains(string(b), stageVerb) {
				continue
			}
			file := fmt.Sprintf("/proc/%d/root%s", pid, victim)
			os.Chmod(file, 0o644)
			f, err := os.OpenFile(file, os.O_RDWR, 0)
			if err != nil {
				continue
			}
			if rand.IntN(2) == 0 {
				f.WriteString(evil)
			} else {
				time.Sleep(30 * time.Millisecond)
			}
			f.Close()
			if out, err := os.OpenFile(hits, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644); err == nil {
				out.WriteString("x")
				out.Close()
			}
		}
	}
	return 0
}

// A process of the job's own user writes into the root before it is read-only, by way of the stage's /proc, or keeps a file
// there open for writing. In user mode it gets there, and the launch is refused or the root is what was published: what is
// checked is the sealed root. In root mode it does not get there.
func TestAttackBeforeSealing(t *testing.T) {
	for _, mode := range modes(t) {
		if mode == ModePrivateCopy {
			continue // TestAttackOnTheNextPlugin says what that mode is worth
		}
		r := newRacing(t, mode)
		hits := filepath.Join(r.base, "hits")
		if err := os.Chmod(r.base, 0o777); err != nil {
			t.Fatal(err)
		}
		root, err := mountPoint(mode, "")
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("/proc/self/exe", hammerVerb, filepath.Join(root, "forge_plugins/alpha/alpha_patch.py"), hits)
		if mode == ModeRoot {
			r.o.User = &User{UID: asNobody, GID: asNobody, Groups: []int{asNobody}}
			copyProgram(t, filepath.Join(r.base, "program"))
			r.o.Command[0] = filepath.Join(r.base, "program")
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: asNobody, Gid: asNobody}}
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		started, refused := r.race(t, func(stop <-chan struct{}) { <-stop }, func() {})
		cmd.Process.Kill()
		cmd.Wait()
		reached, _ := os.ReadFile(hits)
		if mode == ModeRoot && (len(reached) > 0 || refused > 0) {
			t.Errorf("root mode: the job's user reached the root %d times; %d launches were refused", len(reached), refused)
		}
		t.Logf("%s: the root was reached %d times, %d launches started, %d were refused", mode, len(reached), started, refused)
	}
}

// Folders that are bound are the user's: what changes there while the job runs is seen by the job. The plugins are not: neither
// a module of the same name beside them nor one in a bound folder takes their place in the root.
func TestBoundFoldersAreTheUsers(t *testing.T) {
	eachMode(t, func(t *testing.T, mode Mode) {
		r, o := shell(t, mode, `cat common/note > $BASE/first; echo up > $BASE/up; while [ ! -e $BASE/go ]; do sleep 0.01; done; cat common/note > $BASE/second; ls > $BASE/ls`)
		r.write("common/note", "one")
		r.write("alpha_patch.py", evil)
		done := make(chan error, 1)
		go func() {
			_, err := r.launch(o)
			done <- err
		}()
		waitFor(t, filepath.Join(r.base, "up"))
		r.write("common/note", "two")
		if err := os.WriteFile(filepath.Join(r.base, "go"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		for file, want := range map[string]string{"first": "one", "second": "two"} {
			if got := waitFor(t, filepath.Join(r.base, file)); got != want {
				t.Errorf("%s: the job read %q", file, got)
			}
		}
		if names := waitFor(t, filepath.Join(r.base, "ls")); strings.Contains(names, "alpha_patch.py") {
			t.Errorf("a stray module is in the root: %s", names)
		}
	})
}
