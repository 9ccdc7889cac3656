//go:build unix

package launchverify

import (
	"os"
	"syscall"
)

// ownerOf is the uid that a file belongs to; -1 when it can't be known.
func ownerOf(path string) int {
	info, err := os.Stat(path)
	if err != nil {
		return -1
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Uid)
	}
	return -1
}

// noFollow opens no link as the last element, and blocks on no FIFO.
const noFollow = syscall.O_NOFOLLOW | syscall.O_NONBLOCK
