//go:build unix

package launchverify

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// hangupEvery is how often the agent looks whether its terminal is still there.
const hangupEvery = time.Second

// watch turns the end of the terminal, as when an ssh connection is lost, into a SIGHUP among signals; it returns when ended is
// closed. The kernel tells only the session's leader and the foreground processes, and while the agent lends the terminal to the
// command it is neither: a command that ignores SIGHUP would stay for ever. An agent that was told to ignore hang-ups does.
func (t *terminal) watch(signals chan<- os.Signal, ended <-chan struct{}) {
	if t.file == nil || signal.Ignored(syscall.SIGHUP) {
		return
	}
	tick := time.NewTicker(hangupEvery)
	defer tick.Stop()
	for {
		select {
		case <-ended:
			return
		case <-tick.C:
		}
		state := []unix.PollFd{{Fd: int32(t.file.Fd())}}
		if n, err := unix.Poll(state, 0); err == nil && n > 0 && state[0].Revents&unix.POLLHUP != 0 {
			select {
			case signals <- syscall.SIGHUP:
			case <-ended:
			}
			return
		}
	}
}
