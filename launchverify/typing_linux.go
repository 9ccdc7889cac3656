package launchverify

import (
	"encoding/binary"
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// atTerminal reports whether this process's session has a terminal. Doubt counts as one.
func atTerminal() bool { return readStat(os.Getpid()).number(statTerminal) != 0 }

// forbidTyping takes from the calling thread, and from whatever it starts, the two requests by which a process types into the
// terminal of its session: where root launches for somebody else that is the terminal of root's own shell, which would
// read what the job typed as soon as the job is over. It needs no_new_privs.
func forbidTyping() error {
	const (
		place  = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		equal  = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		jump   = unix.BPF_JMP | unix.BPF_JA
		answer = unix.BPF_RET | unix.BPF_K

		// Where the kernel's description of a system call has its number, its architecture, and its second argument.
		number, arch, second = 0, 4, 24
		compat               = 54               // ioctl of 32-bit programs on amd64 and arm64
		x32                  = 0x40000000 | 514 // ioctl of amd64's third kind of programs
	)
	request := uint32(second) // of which the kernel reads 32 bits, the lower ones
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		request += 4
	}
	program := []unix.SockFilter{
		0:  {Code: place, K: arch},
		1:  {Code: equal, K: unix.AUDIT_ARCH_I386, Jt: 2},
		2:  {Code: equal, K: unix.AUDIT_ARCH_ARM, Jt: 1},
		3:  {Code: jump, K: 2},
		4:  {Code: place, K: number},
		5:  {Code: equal, K: compat, Jt: 3, Jf: 7},
		6:  {Code: place, K: number},
		7:  {Code: equal, K: unix.SYS_IOCTL, Jt: 1},
		8:  {Code: equal, K: x32, Jf: 4},
		9:  {Code: place, K: request},
		10: {Code: equal, K: unix.TIOCSTI, Jt: 1},
		11: {Code: equal, K: unix.TIOCLINUX, Jf: 1},
		12: {Code: answer, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
		13: {Code: answer, K: unix.SECCOMP_RET_ALLOW},
	}
	filter := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	_, _, err := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_SPEC_ALLOW, uintptr(unsafe.Pointer(&filter)))
	runtime.KeepAlive(program)
	if err != 0 {
		return fmt.Errorf("keep the job from typing into the terminal: %w", err)
	}
	return nil
}
