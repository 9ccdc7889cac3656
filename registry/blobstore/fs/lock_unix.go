//go:build unix

package fs

import (
	"os"
	"syscall"
)

// tryLock locks the open file for this process, or fails at once when another holds it. The lock ends with the file
// or the process, however that dies.
func tryLock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }
