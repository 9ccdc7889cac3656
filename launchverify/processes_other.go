//go:build unix && !linux

package launchverify

import (
	"io/fs"
	"os"
	"syscall"
)

// Systems other than Linux have no namespaces and no adoption of orphans: the job is the command's process group.

func adopt() error { return nil }

func (s *supervisor) start(umask int) (int, error) {
	p := s.plan
	attr := &syscall.SysProcAttr{Setpgid: true}
	if p.Foreground {
		attr.Foreground, attr.Ctty = true, int(os.Stdin.Fd())
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

func children(int) []int { return nil }
func offspring() []int   { return nil }

func signalRest(pid int, sig syscall.Signal) { syscall.Kill(-pid, sig) }
func killRest(pid int)                       { syscall.Kill(-pid, syscall.SIGKILL) }
