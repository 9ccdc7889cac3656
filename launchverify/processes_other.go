//go:build unix && !linux

package launchverify

import (
	"io/fs"
	"syscall"
)

// Systems other than Linux have no namespaces and no adoption of orphans: the job is the command's process group.

const keeperVerb = "__launch-keeper"

func setEUID(uid int) error { return syscall.Setreuid(-1, uid) }

// entryWatch watches nothing here.
type entryWatch struct{ file string }

func (*stage) watchEntry() entryWatch { return entryWatch{} }
func (entryWatch) never() bool        { return false }

func adopt() error                      { return nil }
func hide()                             {}
func dieWithAgent()                     {}
func keeping(*plan) bool                { return false }
func keeperEnv(*plan) []string          { return stageEnv }
func keep([]string) int                 { return exitError }
func orphaned(int) bool                 { return false }
func (cgroup) remove() bool             { return true }
func endOffspring(map[int]bool, cgroup) {}

func track(*plan, bool) (spared map[int]bool, done func()) { return nil, func() {} }

const trackingByParents = TrackingProcessGroup

func (s *supervisor) start(umask int) (int, error) {
	p := s.plan
	attr := &syscall.SysProcAttr{Setpgid: true}
	if p.Foreground {
		attr.Foreground, attr.Ctty = true, p.Terminal
	}
	if p.User.Other {
		groups := make([]uint32, len(p.User.Groups))
		for i, g := range p.User.Groups {
			groups[i] = uint32(g)
		}
		attr.Credential = &syscall.Credential{Uid: uint32(p.User.UID), Gid: uint32(p.User.GID), Groups: groups}
	}
	path, err := lookPath(p.Command[0], p.Env)
	if err != nil {
		return 0, err
	}
	syscall.Umask(umask)
	pid, err := syscall.ForkExec(path, p.Command, &syscall.ProcAttr{Dir: p.Root, Env: p.Env, Files: []uintptr{0, 1, 2}, Sys: attr})
	if err != nil {
		return 0, &fs.PathError{Op: "execute", Path: path, Err: err}
	}
	return pid, nil
}

// reap waits for every process that ends. Orphans don't come to us here.
func (s *supervisor) reap(command int) {
	defer close(s.ended)
	for {
		r := reaped{unknown: true}
		pid, err := syscall.Wait4(-1, &r.status, syscall.WUNTRACED, nil)
		if err == syscall.EINTR {
			continue
		}
		if err != nil { // ECHILD: nothing is left
			return
		}
		if pid == command {
			s.ended <- r
		}
	}
}

func children(int) []int           { return nil }
func offspring(map[int]bool) []int { return nil }

func signalRest(pid int, sig syscall.Signal) { syscall.Kill(-pid, sig) }
func killRest(pid int, _ cgroup)             { syscall.Kill(-pid, syscall.SIGKILL) }
