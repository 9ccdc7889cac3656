package launchverify

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// adopt makes orphans of the job come to this process, which in a process namespace of its own they do anyway.
func adopt() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("adopt the job's orphans: %w", err)
	}
	return nil
}

// disown ends what adopt began.
func disown() { unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0) }

// processStat are the fields of /proc/PID/stat from the third on: the state is the first (proc(5)).
type processStat []string

// Places in a processStat.
const (
	statState          = 0
	statParent         = 1
	statGroup          = 2
	statSession        = 3
	statTerminal       = 4  // 0 without one
	statChildrenFaults = 8  // minor page faults of children that were waited for
	statStart          = 19 // in clock ticks since the machine started
)

// readStat reads a process's stat; nil when there is none.
func readStat(pid int) processStat {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	// pid (name) state …; the name may hold anything.
	fields := processStat(strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:])))
	if len(fields) <= statStart {
		return nil
	}
	return fields
}

func (s processStat) number(field int) int {
	if s == nil {
		return -1
	}
	n, err := strconv.Atoi(s[field])
	if err != nil {
		return -1
	}
	return n
}

// running lists the processes of our process namespace.
func running() []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var pids []int
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// children lists the processes that pid started, or adopted, and that nobody has waited for yet.
func children(pid int) []int {
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil || len(lists) == 0 {
		return childrenByParent(pid)
	}
	var pids []int
	for _, list := range lists {
		b, err := os.ReadFile(list)
		if err != nil {
			continue // the thread has ended
		}
		for _, field := range strings.Fields(string(b)) {
			if child, err := strconv.Atoi(field); err == nil {
				pids = append(pids, child)
			}
		}
	}
	return pids
}

// childrenByParent is children for kernels that keep no lists of them.
func childrenByParent(pid int) []int {
	return slices.DeleteFunc(running(), func(other int) bool { return readStat(other).number(statParent) != pid })
}

// offspring lists all that descends from this process, but for the children in spared and what descends from them.
func offspring(spared map[int]bool) []int {
	var all []int
	for next := []int{os.Getpid()}; len(next) > 0; next = next[1:] {
		for _, child := range children(next[0]) {
			if !spared[child] {
				all, next = append(all, child), append(next, child)
			}
		}
	}
	return all
}

// maxRounds bounds how often killOffspring looks again: a process may be started faster than others are found.
const maxRounds = 200

// killOffspring kills all that descends from this process, but for spared. Each is stopped first: what is stopped starts
// nothing while the rest is looked for.
func killOffspring(spared map[int]bool) {
	seen := map[int]bool{}
	for range maxRounds {
		found := slices.DeleteFunc(offspring(spared), func(pid int) bool { return seen[pid] })
		if len(found) == 0 {
			break
		}
		for _, pid := range found {
			syscall.Kill(pid, syscall.SIGSTOP)
			seen[pid] = true
		}
	}
	for pid := range maps.Keys(seen) {
		syscall.Kill(pid, syscall.SIGKILL)
	}
}

// endOffspring kills all that descends from this process, but for the children in spared, and waits until it is gone. It
// gives up after reaping: what is left then can't be killed.
func endOffspring(spared map[int]bool, group cgroup) {
	for deadline := time.Now().Add(reaping); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		group.kill()
		killOffspring(spared)
		left := slices.DeleteFunc(children(os.Getpid()), func(pid int) bool { return spared[pid] })
		for _, pid := range left {
			var status syscall.WaitStatus
			syscall.Wait4(pid, &status, syscall.WNOHANG, nil)
		}
		if len(left) == 0 {
			return
		}
	}
}

// processSpace tells process namespaces apart, in which one number means different processes.
func processSpace() string {
	link, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return ""
	}
	return strings.Trim(link, "pid:[]")
}

// orphaned reports whether no shell watches over a process group: none of its members has a parent in the same session
// outside the group.
func orphaned(group int) bool {
	for _, pid := range running() {
		stat := readStat(pid)
		if stat.number(statGroup) != group {
			continue
		}
		parent := readStat(stat.number(statParent))
		if parent != nil && parent.number(statSession) == stat.number(statSession) && parent.number(statGroup) != group {
			return false
		}
	}
	return true
}
