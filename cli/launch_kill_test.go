package cli

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// kill-launches ARG... starts sf launch with the arguments GATEHOUSE_KILLS times (15 without it), with an empty cache every third
// time, and kills the agent, the process it started, or both at a moment of its own. After each no process of the job may be
// left, no mount, no file in the temporary folder, and no entry in the cache that sf cache verify finds damaged.
func killLaunches(ts *testscript.TestScript, _ bool, args []string) {
	n := 15
	if text := os.Getenv("GATEHOUSE_KILLS"); text != "" {
		var err error
		n, err = strconv.Atoi(text)
		ts.Check(err)
	}
	sf, err := exec.LookPath("sf")
	ts.Check(err)
	work := ts.Getenv("WORK")
	mark := "GATEHOUSE_TEST_MARK=" + work
	env := []string{mark, "GORACE=atexit_sleep_ms=0"}
	for _, name := range []string{"PATH", "HOME", "GATEHOUSE_HOME", "GATEHOUSE_CACHE", "GATEHOUSE_TRUST", "TMPDIR"} {
		env = append(env, name+"="+ts.Getenv(name))
	}
	run := func() *exec.Cmd {
		cmd := exec.Command(sf, append([]string{"launch"}, args...)...)
		cmd.Dir, cmd.Env = work, env
		ts.Check(cmd.Start())
		return cmd
	}
	start := time.Now()
	ts.Check(run().Wait())
	within := time.Since(start)
	killed := 0
	for i := range n {
		if i%3 == 0 {
			ts.Check(os.RemoveAll(ts.Getenv("GATEHOUSE_CACHE")))
		}
		cmd := run()
		time.Sleep(time.Duration(float64(within) * rand.Float64() * rand.Float64())) // more often early
		family := append([]int{cmd.Process.Pid}, startedBy(cmd.Process.Pid)...)
		victims := family
		if spared := rand.IntN(len(family) + 1); len(family) > 1 && spared < len(family) {
			victims = slices.Delete(slices.Clone(family), spared, spared+1)
		}
		for _, pid := range victims {
			syscall.Kill(pid, syscall.SIGKILL)
		}
		if cmd.Wait() != nil {
			killed++
		}
		goneWithin(ts, mark)
		if i%5 == 0 {
			ts.Check(ts.Exec("sf", "cache", "verify"))
		}
	}
	if killed == 0 {
		ts.Fatalf("of %d launches none was killed", n)
	}
	ts.Logf("%d of %d launches were killed before they ended", killed, n)
	ts.Check(run().Wait())
	noTraces(ts)
}

// startedBy lists a process's children.
func startedBy(pid int) (pids []int) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, list := range lists {
		b, _ := os.ReadFile(list) // the thread may have ended
		for _, field := range strings.Fields(string(b)) {
			if child, err := strconv.Atoi(field); err == nil {
				pids = append(pids, child)
			}
		}
	}
	return pids
}

// goneWithin waits until no process has the variable in its environment.
func goneWithin(ts *testscript.TestScript, mark string) {
	var left []string
	for range 2000 {
		left = nil
		files, _ := filepath.Glob("/proc/[0-9]*/environ")
		for _, file := range files {
			if b, err := os.ReadFile(file); err == nil && slices.Contains(strings.Split(string(b), "\x00"), mark) {
				left = append(left, file)
			}
		}
		if len(left) == 0 {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	ts.Fatalf("processes of a launch that was killed are left: %v", left)
}

// noTraces fails when a launch left something outside its cache, or in the cache's folders for what is temporary.
func noTraces(ts *testscript.TestScript) {
	mounts, err := os.ReadFile("/proc/self/mounts")
	ts.Check(err)
	if strings.Contains(string(mounts), "gatehouse ") {
		ts.Fatalf("a mount is left:\n%s", mounts)
	}
	for _, dir := range []string{ts.Getenv("TMPDIR"), filepath.Join(ts.Getenv("GATEHOUSE_CACHE"), "tmp"), filepath.Join(ts.Getenv("GATEHOUSE_CACHE"), "roots")} {
		entries, err := os.ReadDir(dir)
		if len(entries) > 0 || err != nil && !os.IsNotExist(err) {
			ts.Fatalf("left in %s: %v, %v", dir, entries, err)
		}
	}
}
