//go:build unix

package fs

import (
	"os"
	"syscall"
)

// tryLock locks the open file for this process, or fails at once when another holds it. The lock ends with the file
// or the process, however that dies.
func tryLock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }

// unlock gives the lock free at once: a process that is being started at this moment may still hold a copy of the file.
func unlock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }
