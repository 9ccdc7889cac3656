//go:build unix

package moving

import "syscall"

// What a disk says that has no room.
const (
	errNoSpace = syscall.ENOSPC
	errTooBig  = syscall.EFBIG
	errQuota   = syscall.EDQUOT
)
