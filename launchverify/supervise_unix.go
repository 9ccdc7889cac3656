//go:build unix

package launchverify

import (
	"errors"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/gatehouse-registry/gatehouse/admission/runrecord"
)

const (
	// lingering is how long processes that outlive a command which ended by itself have to end too, at most.
	lingering = 2 * time.Second
	// reaping bounds the wait for processes that were killed and don't go away.
	reaping = 10 * time.Second
	// again is how often what must be gone is killed once more, when new processes may have come of it.
	again = 20 * time.Millisecond
)

// ending are the signals that ask the whole job to end; they go to the command's process group, so that training
// gets them even when the launcher does not pass them on. The others are the command's own business.
var (
	ending   = []os.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT}
	personal = []os.Signal{syscall.SIGUSR1, syscall.SIGUSR2}
)

// listen takes the signals that are passed on, but for those that whoever started this process had ignored, as nohup
// does: the job ignores them too then.
func listen() chan os.Signal {
	c := make(chan os.Signal, 16)
	for _, sig := range append(append([]os.Signal{}, ending...), personal...) {
		if !signal.Ignored(sig) {
			signal.Notify(c, sig)
		}
	}
	return c
}

// supervisor starts the command and stays until nothing of it is left.
type supervisor struct {
	plan    *plan
	agent   <-chan struct{} // closed when the agent is gone
	signals <-chan os.Signal
	resumed <-chan resumption
	ended   chan reaped   // what became of the command; closed when no process of the job is left
	orphans atomic.Int64  // processes that came to us and ended
	done    chan struct{} // closed when the command's thread may end
	tell    func(report)
	group   cgroup // "" unless the command was started in it
}

// reaped is the command that was stopped, or has ended.
type reaped struct {
	status  syscall.WaitStatus
	waited  bool // it had waited for children that ran
	unknown bool // whether it had can't be told
}

// supervise runs the command to its end. It says when the command was executed, or was not.
func supervise(st *stage, agent <-chan struct{}, umask int) (exit, error) {
	s := &supervisor{
		plan: &st.plan, agent: agent, signals: st.signals, resumed: st.resumed, tell: st.tell,
		ended: make(chan reaped, 1), done: make(chan struct{}),
	}
	defer close(s.done)
	if err := adopt(); err != nil {
		return exit{}, err
	}
	s.tell(report{Starting: true})
	pid, err := s.start(umask)
	if err != nil {
		s.tell(report{Exec: failedExecution(err)})
		return exit{}, err
	}
	s.tell(report{Exec: &execution{Tracking: s.tracking()}})
	go s.reap(pid)
	result := s.watch(pid)
	s.group.remove()
	return result, nil
}

// tracking says by what the job's processes are known.
func (s *supervisor) tracking() Tracking {
	switch {
	case s.plan.PIDNamespace:
		return TrackingPIDNamespace
	case s.group != "":
		return TrackingCgroup
	}
	return trackingByParents
}

// failedExecution gives the exit codes that shells have for a command that can't be executed.
func failedExecution(err error) *execution {
	code := exitNoExec
	if errors.Is(err, os.ErrNotExist) {
		code = exitNoCommand
	}
	return &execution{Error: err.Error(), Code: code}
}

// watch passes signals on until the command and everything it started have ended.
func (s *supervisor) watch(pid int) exit {
	w := watching{s: s, pid: pid, grace: s.plan.Grace, deadline: time.NewTimer(0), again: time.NewTicker(time.Hour)}
	<-w.deadline.C
	defer w.again.Stop()
	look := time.NewTimer(firstLook)
	defer look.Stop()
	for {
		select {
		case r, ok := <-s.ended:
			if !ok {
				return w.result()
			}
			w.reaped(r)
		case sig := <-s.signals:
			w.signal(sig.(syscall.Signal))
		case r := <-s.resumed:
			resume(pid, s.plan.Terminal, r)
		case <-s.agent:
			s.agent = nil
			w.kill()
		case <-w.deadline.C:
			if w.killed {
				return w.result() // what is left can't be killed: it waits for the kernel
			}
			w.kill()
		case <-w.again.C:
			killRest(pid, s.group)
		case <-look.C:
			if !w.ended && w.how == "" {
				if len(children(pid)) > 0 {
					w.how = runrecord.HowChild
				}
				look.Reset(nextLook)
			}
		}
	}
}

// watching is how far a command's end has come.
type watching struct {
	s        *supervisor
	pid      int
	grace    time.Duration
	deadline *time.Timer  // when everything that is left gets killed
	again    *time.Ticker // when what was killed is looked for again
	asked    bool         // a signal asked the job to end
	ended    bool         // the command itself has ended
	killed   bool         // everything was sent SIGKILL
	how      string       // how another process than the command was seen
	unknown  bool         // the command's account could not be read
	exit     exit
}

func (w *watching) reaped(r reaped) {
	if r.status.Stopped() {
		w.s.tell(report{Stopped: int(r.status.StopSignal())})
		return
	}
	w.ended, w.unknown = true, r.unknown
	if r.waited {
		w.saw(runrecord.HowWaited)
	}
	w.exit.Code, w.exit.Signal = decode(r.status)
	if !w.asked && !w.killed {
		signalRest(w.pid, syscall.SIGTERM)
		signalRest(w.pid, syscall.SIGCONT)
		w.deadline.Reset(min(lingering, w.grace))
	}
}

// saw keeps how a process of the job was first seen.
func (w *watching) saw(how string) {
	if w.how == "" {
		w.how = how
	}
}

func (w *watching) result() exit {
	if w.s.orphans.Load() > 0 {
		w.saw(runrecord.HowOrphan)
	}
	w.exit.Training = runrecord.Training{Seen: w.how != "", How: w.how, Unknown: w.how == "" && w.unknown}
	return w.exit
}

func (w *watching) signal(sig syscall.Signal) {
	if sig == syscall.SIGUSR1 || sig == syscall.SIGUSR2 {
		if !w.ended {
			syscall.Kill(w.pid, sig)
		}
		return
	}
	syscall.Kill(-w.pid, sig)
	syscall.Kill(-w.pid, syscall.SIGCONT) // whoever is stopped hears it too
	if !w.asked && !w.ended {
		w.deadline.Reset(w.grace)
	}
	w.asked = true
}

func (w *watching) kill() {
	if w.ended {
		left := len(offspring(nil))
		if left > 0 {
			w.saw(runrecord.HowOrphan)
		}
		w.exit.Killed += left
	} else {
		w.exit.Code, w.exit.Signal = 128+int(syscall.SIGKILL), int(syscall.SIGKILL)
	}
	w.killed = true
	killRest(w.pid, w.s.group)
	w.again.Reset(again)
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
