//go:build unix

package launchverify

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"sync"
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
	t := terminalOf(l.o.Stdin, l.o.Stdout, l.o.Stderr)
	p.Terminal, p.Foreground = t.fd(), t.ours()
	spared, done := track(p, !slices.Contains(l.o.without, TrackingCgroup))
	defer done()
	cmd, err := stageCommand(p, in, out)
	if err != nil {
		return "", err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = l.o.Stdin, l.o.Stdout, l.o.Stderr

	// Signals that come from here on are the stage's business, even before it has started the command.
	signals := listen()
	defer signal.Stop(signals)
	ended := make(chan struct{})
	defer close(ended)
	if err := startLasting(cmd, ended); err != nil {
		if p.Mode != ModePrivateCopy && unavailable(err) {
			return "start in new namespaces: " + whyUnavailable(err), nil
		}
		return "", fmt.Errorf("start the stage: %w", err)
	}
	in.Close()
	out.Close()
	go passOn(signals, cmd.Process.Pid, ended)
	go t.watch(signals, ended)
	t.lent = p.Foreground
	defer t.takeBack()
	if err := p.send(toStage); err != nil {
		err = fmt.Errorf("tell the stage: %w", err)
		return "", errors.Join(err, toStage.Close(), cmd.Wait())
	}
	f := following{launch: l, plan: p, stage: cmd, terminal: t, toStage: json.NewEncoder(toStage), spared: spared}
	return f.follow(ctx, fromStage)
}

// startLasting starts cmd from a thread that stays until ended is closed: the stage of a job with a process namespace
// dies with the thread that started it.
func startLasting(cmd *exec.Cmd, ended <-chan struct{}) error {
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		started <- cmd.Start()
		<-ended
	}()
	return <-started
}

// stageEnv is the stage's environment. It lives on a few megabytes, and collecting garbage would cost it a tenth of its
// time: that begins at a limit.
var stageEnv = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "GOGC=off", "GOMEMLIMIT=64MiB"}

// stageCommand is the stage's process. Its pipes keep their numbers, so that a descriptor which the caller left open
// for the command is not overlaid. It gets nothing of the job's environment.
func stageCommand(p *plan, in, out *os.File) (*exec.Cmd, error) {
	self, err := executable()
	if err != nil {
		return nil, err
	}
	args, env := []string{stageVerb}, stageEnv
	if keeping(p) {
		args[0], env = keeperVerb, keeperEnv(p)
	}
	for _, f := range []*os.File{in, out} {
		if err := inheritable(f); err != nil {
			return nil, err
		}
		args = append(args, strconv.Itoa(int(f.Fd())))
	}
	cmd := exec.Command(self, args...)
	cmd.Env = env
	cmd.Dir = "/"
	cmd.SysProcAttr = namespaces(p)
	return cmd, nil
}

// following is a stage that was started.
type following struct {
	*launch
	plan     *plan
	stage    *exec.Cmd // or its keeper; both are in its process group
	terminal *terminal
	toStage  *json.Encoder
	spared   map[int]bool // children of this process that are none of the job
}

// follow reads what the stage has to say and waits for its end. When ctx ends before the command runs, the stage goes.
func (f *following) follow(ctx context.Context, from *os.File) (why string, err error) {
	var last report
	executed := make(chan struct{}) // closed when the command was executed, or is over
	sayExecuted := sync.OnceFunc(func() { close(executed) })
	defer sayExecuted()
	defer context.AfterFunc(ctx, func() { f.giveUp(executed) })()
	readErr := reports(from, func(m report) {
		switch {
		case m.Prepared != nil:
			f.rec.Binds, f.rec.Hidden = m.Prepared.Binds, m.Prepared.Hidden
			f.rec.Recipes = append(slices.Clone(f.rcp.Recipes), m.Prepared.Recipes...)
		case m.Decision != nil:
			f.rec.Decision = m.Decision
		case m.Exec != nil:
			sayExecuted()
			if m.Exec.Error == "" {
				f.rec.Tracking = m.Exec.Tracking
				f.started()
			}
		case m.Stopped != 0:
			if r, goOn := f.terminal.suspended(syscall.Signal(m.Stopped)); goOn {
				f.toStage.Encode(r) // a stage that is gone needs it no more
			}
			return
		}
		last = m
	})
	waitErr := f.stage.Wait()
	if keeping(f.plan) && f.stage.ProcessState.ExitCode() < 0 {
		endOffspring(f.spared, f.plan.Cgroup) // the keeper was killed
	}
	return f.outcome(ctx, last, errors.Join(readErr, waitErr))
}

// giveUpTime is how long a stage has to end by itself when the launch is given up.
const giveUpTime = 2 * time.Second

// giveUp ends a stage whose launch is given up, unless the command runs by then. What ended the launch may be a signal that the
// stage has heard too, and the command with it when it was just executed: then the stage has more to say.
func (f *following) giveUp(executed <-chan struct{}) {
	after := giveUpTime
	if f.o.hurry {
		after = 0
	}
	select {
	case <-executed:
	case <-time.After(after):
		syscall.Kill(-f.stage.Process.Pid, syscall.SIGKILL)
	}
}

// outcome is what the stage's last word amounts to.
func (f *following) outcome(ctx context.Context, last report, failed error) (why string, err error) {
	switch {
	case last.Unavailable != "":
		return last.Unavailable, nil
	case last.Error != "":
		return "", errors.New(last.Error)
	case last.Interrupted:
		return "", errInterrupted
	case last.Exit != nil:
		f.ended(*last.Exit)
		return "", nil
	case last.Exec != nil && last.Exec.Error != "":
		return "", &commandError{errors.New(last.Exec.Error), last.Exec.Code}
	case last.Decision != nil && !last.Decision.Allowed:
		return "", last.Decision.Err()
	case last.Decision != nil && f.o.CheckOnly:
		return "", nil
	case ctx.Err() != nil && !f.rec.Started:
		return "", ctx.Err()
	case f.rec.Started || last.Starting:
		if !f.rec.Started { // it may have run, and that is what must not be missed
			f.rec.Started, f.rec.StartedAt = true, time.Now().UTC()
		}
		f.rec.EndedAt = time.Now().UTC()
		return "", fmt.Errorf("the stage was killed, and the job with it: %w", cmp.Or(failed, errors.New("it said nothing")))
	}
	return "", fmt.Errorf("the stage ended without a word: %w", cmp.Or(failed, errors.New("nor an error")))
}

func (l *launch) started() {
	l.rec.Started, l.rec.StartedAt = true, time.Now().UTC()
	if l.o.Started != nil {
		go l.o.Started(l.rec.clone())
	}
}

func (l *launch) ended(e exit) {
	l.rec.ExitCode, l.rec.Signal, l.rec.Killed = e.Code, e.Signal, e.Killed
	l.rec.Training, l.rec.Changed, l.rec.EndedAt = e.Training, e.Changed, time.Now().UTC()
}

// passOn gives the agent's signals to the stage's process group; the stage gives them to the command.
func passOn(signals <-chan os.Signal, group int, ended <-chan struct{}) {
	for {
		select {
		case sig := <-signals:
			syscall.Kill(-group, sig.(syscall.Signal)) // it may have ended meanwhile
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
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("a launch needs /proc, which is not mounted: %w", err)
	}
	return self, nil
}
