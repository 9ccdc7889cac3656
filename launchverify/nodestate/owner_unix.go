//go:build unix

package nodestate

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

const noFollow = syscall.O_NOFOLLOW | syscall.O_NONBLOCK

// owner refuses what others than its owner may use, and what belongs to neither root nor us; it says whether root owns it.
func owner(path string, info fs.FileInfo) (root bool, err error) {
	if loose := info.Mode().Perm() & 0o077; loose != 0 {
		want := fs.FileMode(0o600)
		if info.IsDir() {
			want = 0o700
		}
		return false, fmt.Errorf("%s has mode %#o: others may use it (chmod %#o it, and join again with a new key if they might have)", path, info.Mode().Perm(), want)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return false, fmt.Errorf("%s: its owner is not to be had", path)
	}
	if uid := int(stat.Uid); uid != 0 && uid != os.Geteuid() {
		return false, fmt.Errorf("%s belongs to uid %d, expected root or uid %d", path, uid, os.Geteuid())
	}
	return stat.Uid == 0, nil
}
