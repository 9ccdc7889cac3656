package nodecache

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// processSpace tells apart the places in which a process id means one process: a boot of a machine, and there a process
// namespace. Host names would not do: containers and clones share them. "" is unknown.
func processSpace() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	space, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return ""
	}
	return string(boot) + space
}

// started is when the process was started, in clock ticks since the boot; false when the kernel does not say.
func started(pid int) (uint64, bool) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, false
	}
	// pid (name) state ppid …; the name may hold anything.
	fields := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(fields) < 20 {
		return 0, false
	}
	at, err := strconv.ParseUint(string(fields[19]), 10, 64)
	return at, err == nil
}

// uptime is the node's own clock: it never goes back and goes on while the node sleeps.
func uptime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return time.Duration(time.Now().UnixNano())
	}
	return time.Duration(ts.Nano())
}

// touch gives the thing called name in the folder the file server's present as its time, and follows no link. That it
// may fail says only that the cache can't be written to.
func touch(folder *os.File, name string) {
	now := unix.Timespec{Nsec: unix.UTIME_NOW}
	_ = unix.UtimesNanoAt(int(folder.Fd()), name, []unix.Timespec{now, now}, unix.AT_SYMLINK_NOFOLLOW)
}
