//go:build unix

package launchverify

import (
	"errors"
	"os"
	"syscall"
	"time"
)

const (
	// lingering is how long processes that outlive a command which ended by itself have to end too, at most.
	lingering = 2 * time.Second
	// reaping bounds the wait for processes that were killed and don't go away.
	reaping = 10 * time.Second
)

// ending are the signals that ask the whole job to end; they go to the command's process group, so that training
// gets them even when the launcher does not pass them on. The others are the command's own business.
var (
	ending   = []os.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT}
	personal = []os.Signal{syscall.SIGUSR1, syscall.SIGUSR2}
)

// supervisor starts the command and stays until nothing of it is left.
type supervisor struct {
	plan    *plan
	agent   <-chan struct{} // closed when the agent is gone
	signals <-chan os.Signal
	ended   chan reaped
	done    chan struct{} // closed when the command's thread may end
}

type reaped struct {
	pid    int
	status syscall.WaitStatus
}

// supervise runs the command to its end. started is called once it was executed, or was not.
func supervise(st *stage, agent <-chan struct{}, umask int, started func(execution)) (exit, error) {
	s := &supervisor{plan: &st.plan, agent: agent, signals: st.signals, ended: make(chan reaped, 64), done: make(chan struct{})}
	defer close(s.done)
	if err := adopt(); err != nil {
		return exit{}, err
	}
	pid, err := s.start(umask)
	if err != nil {
		started(failedExecution(err))
		return exit{}, err
	}
	started(execution{})
	go s.reap()
	return s.watch(pid), nil
}

// failedExecution gives the exit codes that shells have for a command that can't be executed.
func failedExecution(err error) execution {
	code := exitNoExec
	if errors.Is(err, os.ErrNotExist) {
		code = exitNoCommand
	}
	return execution{Error: err.Error(), Code: code}
}

// reap collects every process that ends: the command, and orphans, which come to us.
func (s *supervisor) reap() {
	defer close(s.ended)
	for {
		var r reaped
		pid, err := syscall.Wait4(-1, &r.status, 0, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil { // ECHILD: nothing is left
			return
		}
		r.pid = pid
		s.ended <- r
	}
}

// watch passes signals on until the command and everything it started have ended.
func (s *supervisor) watch(pid int) exit {
	w := watching{pid: pid, grace: s.plan.Grace, deadline: time.NewTimer(0)}
	<-w.deadline.C
	look := time.NewTimer(firstLook)
	defer look.Stop()
	for {
		select {
		case r, ok := <-s.ended:
			if !ok {
				return w.exit
			}
			w.reaped(r)
		case sig := <-s.signals:
			w.signal(sig.(syscall.Signal))
		case <-s.agent:
			s.agent = nil
			w.kill()
		case <-w.deadline.C:
			if w.killed {
				return w.exit // what is left can't be killed: it waits for the kernel
			}
			w.kill()
		case <-look.C:
			if !w.ended && !w.exit.ChildSeen {
				w.exit.ChildSeen = len(children(pid)) > 0
				look.Reset(nextLook)
			}
		}
	}
}

// watching is how far a command's end has come.
type watching struct {
	pid      int
	grace    time.Duration
	deadline *time.Timer // when everything that is left gets killed
	asked    bool        // a signal asked the job to end
	ended    bool        // the command itself has ended
	killed   bool        // everything was sent SIGKILL
	exit     exit
}

func (w *watching) reaped(r reaped) {
	if r.pid != w.pid {
		if w.killed {
			killRest(w.pid) // its own children have come to us
		}
		return
	}
	w.ended = true
	w.exit.Code, w.exit.Signal = decode(r.status)
	if !w.asked && !w.killed {
		signalRest(w.pid, syscall.SIGTERM)
		w.deadline.Reset(min(lingering, w.grace))
	}
}

func (w *watching) signal(sig syscall.Signal) {
	if sig == syscall.SIGUSR1 || sig == syscall.SIGUSR2 {
		if !w.ended {
			syscall.Kill(w.pid, sig)
		}
		return
	}
	syscall.Kill(-w.pid, sig)
	if !w.asked && !w.ended {
		w.deadline.Reset(w.grace)
	}
	w.asked = true
}

func (w *watching) kill() {
	if w.ended {
		w.exit.Killed += len(offspring())
	} else {
		w.exit.Code, w.exit.Signal = 128+int(syscall.SIGKILL), int(syscall.SIGKILL)
	}
	w.killed = true
	killRest(w.pid)
	w.deadline.Reset(reaping)
}

// How often the command is looked at for a child process.
const (
	firstLook = 20 * time.Millisecond
	nextLook  = 100 * time.Millisecond
)

// decode turns a wait status into an exit code, 128+s for signal s.
func decode(status syscall.WaitStatus) (code, sig int) {
	if status.Signaled() {
		return 128 + int(status.Signal()), int(status.Signal())
	}
	return status.ExitStatus(), 0
}
