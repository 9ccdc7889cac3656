package testservice

import "syscall"

// keepsAttributes reports whether files in the folder may have extended attributes, where versitygw keeps what it knows
// of an object.
func keepsAttributes(folder string) bool {
	return syscall.Setxattr(folder, "user.gatehouse", []byte("x"), 0) == nil
}
