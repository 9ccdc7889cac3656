//go:build unix

package launchverify

import "syscall"

// noFollow opens no link as the last element, and blocks on no FIFO.
const noFollow = syscall.O_NOFOLLOW | syscall.O_NONBLOCK
