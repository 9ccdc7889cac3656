package launchverify

import (
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// trackingByParents is what is left of Tracking when there is nothing better.
const trackingByParents = TrackingDescendants

// setEUID changes the effective uid of all threads and leaves the saved one as it is, so that nobody else comes to be
// allowed to signal this process.
func setEUID(uid int) error { return syscall.Setresuid(-1, uid, -1) }

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
		attr.Foreground, attr.Ctty = true, p.Terminal
	}
	if p.User.Other {
		attr.Credential = &syscall.Credential{Uid: uint32(p.User.UID), Gid: uint32(p.User.GID), NoSetGroups: true}
		if err := syscall.Setgroups(p.User.Groups); err != nil {
			return 0, fmt.Errorf("take the job's groups: %w", err)
		}
		if err := leaveKeyring(); err != nil {
			return 0, err
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
	if p.User.Other && atTerminal() {
		if err := forbidTyping(); err != nil {
			return 0, err
		}
	}
	path, err := lookPath(p.Command[0], p.Env)
	if err != nil {
		return 0, err
	}
	syscall.Umask(umask)
	proc := syscall.ProcAttr{Dir: p.Root, Env: p.Env, Files: []uintptr{0, 1, 2}, Sys: attr}
	if group, err := p.Cgroup.open(); err == nil {
		defer unix.Close(group)
		attr.UseCgroupFD, attr.CgroupFD = true, group
		if pid, err := syscall.ForkExec(path, p.Command, &proc); err == nil {
			s.group = p.Cgroup
			return pid, nil
		}
		attr.UseCgroupFD = false // the node may not allow it
	}
	pid, err := syscall.ForkExec(path, p.Command, &proc)
	if err != nil {
		return 0, &fs.PathError{Op: "execute", Path: path, Err: err}
	}
	return pid, nil
}

// reap waits for every process that ends: the command, and orphans, which come to us.
func (s *supervisor) reap(command int) {
	defer close(s.ended)
	for {
		pid, stopped, err := endedProcess()
		if err != nil { // ECHILD: nothing is left
			return
		}
		var r reaped
		if pid == command && !stopped {
			waited, known := waitedFor(pid)
			r.waited, r.unknown = waited, !known
		}
		if got, err := syscall.Wait4(pid, &r.status, syscall.WNOHANG|syscall.WUNTRACED, nil); got != pid || err != nil {
			continue
		}
		switch {
		case pid == command:
			s.ended <- r
		case !stopped:
			s.orphans.Add(1)
		}
	}
}

// signalRest signals everything that the command left behind.
func signalRest(pid int, sig syscall.Signal) {
	if os.Getpid() == 1 {
		syscall.Kill(-1, sig)
		return
	}
	for _, p := range offspring(nil) {
		syscall.Kill(p, sig)
	}
}

// killRest kills the command and everything that came of it.
func killRest(pid int, group cgroup) {
	if os.Getpid() == 1 {
		syscall.Kill(-1, syscall.SIGKILL) // all of the namespace, at once
		return
	}
	group.kill()
	syscall.Kill(-pid, syscall.SIGKILL)
	killOffspring(nil)
}

// track prepares for a job without a process namespace: a control group where one can be made, and this process as
// the one that orphans come to when stage and keeper are both gone. spared are its children that are none of the job.
func track(p *plan, groups bool) (spared map[int]bool, done func()) {
	p.Cgroup = ""
	if p.PIDNamespace {
		return nil, func() {}
	}
	if groups {
		p.Cgroup, _ = newCgroup() // what comes instead is said in the record
	}
	spared = map[int]bool{}
	for _, pid := range children(os.Getpid()) {
		spared[pid] = true
	}
	adopt()
	return spared, func() {
		p.Cgroup.remove()
		disown()
	}
}
