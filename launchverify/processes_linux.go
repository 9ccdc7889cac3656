package launchverify

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// adopt makes orphans of the job come to this process, which in a process namespace of its own they do anyway.
func adopt() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("adopt the job's orphans: %w", err)
	}
	return nil
}

// start executes the command: in a process group of its own, without privileges, and where root launches for
// somebody else in a user namespace that root owns. The thread that starts it has given up what it could;
// it stays until the supervisor is done, because the command dies with it.
func (s *supervisor) start(umask int) (pid int, err error) {
	forked := make(chan struct{})
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread is of no further use
		pid, err = s.fork(umask)
		close(forked)
		<-s.done
	}()
	<-forked
	return pid, err
}

func (s *supervisor) fork(umask int) (int, error) {
	p := s.plan
	attr := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if p.Foreground {
		attr.Foreground, attr.Ctty = true, int(os.Stdin.Fd())
	}
	if p.User.Other {
		attr.Credential = &syscall.Credential{Uid: uint32(p.User.UID), Gid: uint32(p.User.GID), NoSetGroups: true}
		if err := syscall.Setgroups(p.User.Groups); err != nil {
			return 0, fmt.Errorf("take the job's groups: %w", err)
		}
	}
	if p.User.Other && p.Mode == ModeRoot {
		attr.Cloneflags = unix.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: p.User.UID, HostID: p.User.UID, Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: p.User.GID, HostID: p.User.GID, Size: 1}}
	}
	// Root needs its capabilities until the child has become the job's user: they end with the exec.
	if err := renounce(p.User.Other); err != nil {
		return 0, err
	}
	path, err := lookPath(p.Command[0], p.Env)
	if err != nil {
		return 0, err
	}
	syscall.Umask(umask)
	pid, err := syscall.ForkExec(path, p.Command, &syscall.ProcAttr{
		Dir: p.Root, Env: p.Env, Files: []uintptr{0, 1, 2}, Sys: attr,
	})
	if err != nil {
		return 0, &fs.PathError{Op: "execute", Path: path, Err: err}
	}
	return pid, nil
}

// children lists the processes that pid started and that are alive, in our process namespace.
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
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil
	}
	var pids []int
	for _, stat := range stats {
		b, err := os.ReadFile(stat)
		if err != nil {
			continue
		}
		// pid (name) state ppid …; the name may hold anything.
		_, rest, _ := strings.Cut(string(b[strings.LastIndexByte(string(b), ')')+1:]), " ")
		fields := strings.Fields(rest)
		child, err := strconv.Atoi(filepath.Base(filepath.Dir(stat)))
		if err == nil && len(fields) > 1 && fields[1] == strconv.Itoa(pid) {
			pids = append(pids, child)
		}
	}
	return pids
}

// offspring lists all that descends from this process.
func offspring() []int {
	var all []int
	for next := []int{os.Getpid()}; len(next) > 0; {
		found := children(next[0])
		all, next = append(all, found...), append(next[1:], found...)
	}
	return all
}

// signalRest signals everything that the command left behind.
func signalRest(pid int, sig syscall.Signal) {
	if os.Getpid() == 1 {
		syscall.Kill(-1, sig)
		return
	}
	for _, p := range offspring() {
		syscall.Kill(p, sig)
	}
}

// killRest kills the command and everything that came of it.
func killRest(pid int) {
	syscall.Kill(-pid, syscall.SIGKILL)
	signalRest(pid, syscall.SIGKILL)
}
