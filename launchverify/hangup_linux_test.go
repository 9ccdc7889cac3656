package launchverify

import (
	"fmt"
	"os"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestHangup closes the far side of a terminal: the agent hears of it although it is neither the session's leader nor in the
// foreground.
func TestHangup(t *testing.T) {
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	signals, ended, returned := make(chan os.Signal), make(chan struct{}), make(chan struct{})
	go func() {
		(&terminal{file: file}).watch(signals, ended)
		close(returned)
	}()
	master.Close()
	if sig := <-signals; sig != syscall.SIGHUP {
		t.Errorf("the end of the terminal was signal %v", sig)
	}
	<-returned
	close(ended)
	(&terminal{file: file}).watch(signals, ended) // a launch that has ended is told nothing
}
