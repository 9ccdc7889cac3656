package launchverify

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// endedProcess waits for a process that has ended, or was stopped, and leaves it in place, so that its account can still be
// read. The error is ECHILD when there is no process to wait for.
func endedProcess() (pid int, stopped bool, err error) {
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WSTOPPED|unix.WNOWAIT, nil)
		if err == unix.EINTR {
			continue
		}
		// After signal number, errno and code, aligned for pointers, comes the process id.
		const at = (3*unsafe.Sizeof(int32(0)) + unsafe.Alignof(uintptr(0)) - 1) / unsafe.Alignof(uintptr(0)) * unsafe.Alignof(uintptr(0))
		pid := *(*int32)(unsafe.Add(unsafe.Pointer(&info), at))
		return int(pid), info.Code == cldStopped || info.Code == cldTrapped, err
	}
}

// Codes of a child's signal (sigaction(2)).
const (
	cldTrapped = 4
	cldStopped = 5
)

// waitedFor reports whether a process that has ended, and that nobody has waited for yet, had itself waited for children
// that ran: the kernel adds up their page faults, and no program runs without one. known is false where that can't be
// read.
func waitedFor(pid int) (waited, known bool) {
	faults := readStat(pid).number(statChildrenFaults)
	return faults > 0, faults >= 0
}
