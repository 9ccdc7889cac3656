//go:build unix

package nodecache

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

const (
	// nonBlocking opens a FIFO without waiting for whoever writes to it.
	nonBlocking = syscall.O_NONBLOCK
	// errStale is how a file fails that another node removed.
	errStale = syscall.ESTALE
	// errNotFolder is how renaming a folder onto a file fails, and errFolder a file onto a folder.
	errNotFolder = syscall.ENOTDIR
	errFolder    = syscall.EISDIR
)

// occupied reports whether renaming a folder failed because there is one already.
func occupied(err error) bool {
	return errors.Is(err, fs.ErrExist) || errors.Is(err, syscall.ENOTEMPTY)
}

// full reports whether there was no room.
func full(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// ownFile reports whether a file belongs to the account that we are.
func ownFile(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int64(stat.Uid) == int64(os.Geteuid())
}

// keepsOthersOut reports whether no account but ours and root's can rename or replace what is ours in a folder.
func keepsOthersOut(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && (stat.Uid == 0 || ownFile(info)) && (info.Mode()&0o022 == 0 || info.Mode()&fs.ModeSticky != 0)
}

// alive reports whether a process of this node has the id. Doubt counts as life.
func alive(pid int) bool { return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }
