//go:build unix

package launchverify

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// terminal is the terminal that controls the agent's session, if one of the agent's first three descriptors is it. The
// agent lends it to the command while the command is in the foreground, so that what is typed there, Ctrl-C and Ctrl-Z
// included, is the command's, and takes it back when the command stops or ends.
type terminal struct {
	file *os.File // nil without a terminal
	at   int      // its number for the command: 0, 1 or 2
	lent bool
}

// terminalOf finds the terminal among the files that the command gets as its first three descriptors.
func terminalOf(files ...*os.File) *terminal {
	for at, f := range files {
		if _, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPGRP); err == nil {
			return &terminal{file: f, at: at}
		}
	}
	return &terminal{at: -1}
}

// fd is the terminal's descriptor in the command, -1 without one.
func (t *terminal) fd() int { return t.at }

// ours reports whether the agent's process group is the one that may read from the terminal.
func (t *terminal) ours() bool {
	if t.file == nil {
		return false
	}
	group, err := unix.IoctlGetInt(int(t.file.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// takeBack makes the agent's process group the foreground one again, when the terminal was lent.
func (t *terminal) takeBack() {
	if t.lent {
		giveTerminal(int(t.file.Fd()), unix.Getpgrp())
		t.lent = false
	}
}

// giveTerminal makes a process group the foreground one.
func giveTerminal(fd, group int) {
	signal.Ignore(syscall.SIGTTOU) // which stops whoever does so in the background
	defer signal.Reset(syscall.SIGTTOU)
	unix.IoctlSetPointerInt(fd, unix.TIOCSPGRP, group)
}

// suspended is called when the command was stopped. When the terminal did it, the agent stops too, with all of its process
// group, as if it had been asked itself; it returns when the shell lets it go on. goOn says that the command is to.
func (t *terminal) suspended(sig syscall.Signal) (r resumption, goOn bool) {
	switch sig {
	case syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU:
	default:
		return r, false // somebody's SIGSTOP is somebody's business
	}
	if t.file == nil {
		return r, false
	}
	t.takeBack()
	if sig == syscall.SIGTSTP || !t.ours() {
		if orphaned(unix.Getpgrp()) {
			return r, sig == syscall.SIGTSTP // no shell would let us go on
		}
		continued := make(chan os.Signal, 1)
		signal.Notify(continued, syscall.SIGCONT)
		syscall.Kill(0, syscall.SIGSTOP)
		<-continued
		signal.Stop(continued)
	}
	t.lent = t.ours()
	return resumption{Foreground: t.lent}, true
}

// resume lets a command go on that was stopped, with the terminal if it is to be in the foreground.
func resume(pid, terminal int, r resumption) {
	if r.Foreground && terminal >= 0 {
		giveTerminal(terminal, pid)
	}
	syscall.Kill(-pid, syscall.SIGCONT)
}
