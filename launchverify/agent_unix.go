//go:build unix

package launchverify

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// stage starts the current executable again where the plan says and follows its reports to the end.
func (l *launch) stage(ctx context.Context, p *plan) (why string, err error) {
	toStage, in, err := pipe()
	if err != nil {
		return "", err
	}
	defer in.Close()
	defer toStage.Close()
	fromStage, out, err := reversed(pipe())
	if err != nil {
		return "", err
	}
	defer fromStage.Close()
	defer out.Close()
	p.Foreground = hasTerminal(l.o.Stdin)
	cmd, err := stageCommand(p, in, out)
	if err != nil {
		return "", err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = l.o.Stdin, l.o.Stdout, l.o.Stderr

	// Signals that come from here on are the stage's business, even before it has started the command.
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, append(ending, personal...)...)
	defer signal.Stop(signals)
	if err := cmd.Start(); err != nil {
		if p.Mode != ModePrivateCopy && unavailable(err) {
			return fmt.Sprintf("start in new namespaces: %v", err), nil
		}
		return "", fmt.Errorf("start the stage: %w", err)
	}
	in.Close()
	out.Close()
	ended := make(chan struct{})
	defer close(ended)
	go passOn(signals, cmd.Process, ended)
	if p.Foreground {
		defer takeTerminal(l.o.Stdin)
	}
	if err := p.send(toStage); err != nil {
		err = fmt.Errorf("tell the stage: %w", err)
		return "", errors.Join(err, toStage.Close(), cmd.Wait())
	}
	return l.follow(ctx, cmd, fromStage)
}

// stageEnv is the stage's environment.
var stageEnv = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}

// stageCommand is the stage's process. Its pipes keep their numbers, so that a descriptor which the caller left open
// for the command is not overlaid. It gets nothing of the job's environment.
func stageCommand(p *plan, in, out *os.File) (*exec.Cmd, error) {
	self, err := executable()
	if err != nil {
		return nil, err
	}
	args := []string{stageVerb}
	for _, f := range []*os.File{in, out} {
		if err := inheritable(f); err != nil {
			return nil, err
		}
		args = append(args, strconv.Itoa(int(f.Fd())))
	}
	cmd := exec.Command(self, args...)
	cmd.Env = stageEnv
	cmd.Dir = "/"
	cmd.SysProcAttr = namespaces(p)
	return cmd, nil
}

// follow reads what the stage has to say and waits for its end. When ctx ends before the command runs, the stage goes.
func (l *launch) follow(ctx context.Context, cmd *exec.Cmd, from *os.File) (why string, err error) {
	var last report
	stop := context.AfterFunc(ctx, func() { cmd.Process.Kill() })
	defer stop()
	readErr := reports(from, func(m report) {
		switch {
		case m.Prepared != nil:
			l.rec.Binds = m.Prepared.Binds
			l.rec.Recipes = append(slices.Clone(l.rcp.Recipes), m.Prepared.Recipes...)
		case m.Decision != nil:
			l.rec.Decision = m.Decision
		case m.Exec != nil:
			stop()
			if m.Exec.Error == "" {
				l.started()
			}
		}
		last = m
	})
	waitErr := cmd.Wait()
	switch {
	case last.Unavailable != "":
		return last.Unavailable, nil
	case last.Error != "":
		return "", errors.New(last.Error)
	case last.Interrupted:
		return "", errInterrupted
	case last.Exit != nil:
		l.ended(*last.Exit)
		return "", nil
	case last.Exec != nil && last.Exec.Error != "":
		return "", &commandError{errors.New(last.Exec.Error), last.Exec.Code}
	case last.Decision != nil && !last.Decision.Allowed:
		return "", last.Decision.Err()
	case last.Decision != nil && l.o.CheckOnly:
		return "", nil
	case ctx.Err() != nil && !l.rec.Started:
		return "", ctx.Err()
	}
	return "", fmt.Errorf("the stage ended without a word: %w", errors.Join(readErr, waitErr))
}

func (l *launch) started() {
	l.rec.Started, l.rec.StartedAt = true, time.Now().UTC()
	if l.o.Started != nil {
		go l.o.Started(l.rec.clone())
	}
}

func (l *launch) ended(e exit) {
	l.rec.ExitCode, l.rec.Signal, l.rec.Killed = e.Code, e.Signal, e.Killed
	l.rec.ChildSeen, l.rec.Changed, l.rec.EndedAt = e.ChildSeen, e.Changed, time.Now().UTC()
}

// passOn gives the agent's signals to the stage, which gives them to the command.
func passOn(signals <-chan os.Signal, stage *os.Process, ended <-chan struct{}) {
	for {
		select {
		case sig := <-signals:
			stage.Signal(sig) // it may have ended meanwhile
		case <-ended:
			return
		}
	}
}

func pipe() (write, read *os.File, err error) {
	read, write, err = os.Pipe()
	return write, read, err
}

func reversed(a, b *os.File, err error) (*os.File, *os.File, error) { return b, a, err }

// inheritable lets a descriptor pass through the next exec.
func inheritable(f *os.File) error {
	if _, err := unix.FcntlInt(f.Fd(), unix.F_SETFD, 0); err != nil {
		return os.NewSyscallError("fcntl", err)
	}
	return nil
}

// ownImage is the running program on Linux, by way of the process.
const ownImage = "/proc/self/exe"

// executable is the running program's own file, even when another has taken its name.
func executable() (string, error) {
	if _, err := os.Stat(ownImage); err == nil {
		return ownImage, nil
	}
	return os.Executable()
}

// hasTerminal reports whether f is a terminal that the agent's process group may read from.
func hasTerminal(f *os.File) bool {
	group, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// takeTerminal takes the terminal back that was lent to the command.
func takeTerminal(f *os.File) {
	signal.Ignore(syscall.SIGTTOU)
	defer signal.Reset(syscall.SIGTTOU)
	unix.IoctlSetPointerInt(int(f.Fd()), unix.TIOCSPGRP, unix.Getpgrp())
}
