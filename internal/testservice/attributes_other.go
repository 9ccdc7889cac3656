//go:build !linux

package testservice

// keepsAttributes is false where we can't find out.
func keepsAttributes(string) bool { return false }
