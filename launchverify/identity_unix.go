//go:build unix

package launchverify

import (
	"fmt"
	"os"
	"slices"
	"syscall"
)

// identity is who the command runs as, and on whose behalf the job directory is read.
type identity struct {
	User
	// other says that the agent is root and the job is not: then the job's files are read with the job's rights.
	other bool
}

// identify settles who the job runs as. Only root may name somebody else than itself; whoever launches for itself does so with the
// groups that it has.
func identify(user *User) (identity, error) {
	groups, err := os.Getgroups()
	if err != nil {
		return identity{}, fmt.Errorf("list groups: %w", err)
	}
	if user == nil {
		user = &User{UID: os.Getuid(), GID: os.Getegid(), Groups: groups}
	}
	who := identity{User: *user, other: os.Geteuid() == 0 && user.UID != 0}
	switch {
	case who.other:
	case user.UID != os.Geteuid():
		return identity{}, usagef("only root may launch as uid %d (the agent has %d)", user.UID, os.Geteuid())
	case user.GID != os.Getegid():
		return identity{}, usagef("uid %d launches for itself with the group that it has, %d, not with %d", user.UID, os.Getegid(), user.GID)
	default:
		who.Groups = groups
	}
	return who, nil
}

// do runs f with the job's rights to files. All threads of the process change: nothing else may be under way that
// needs the agent's own.
func (who identity) do(f func() error) (err error) {
	if !who.other {
		return f()
	}
	groups, err := os.Getgroups()
	if err != nil {
		return fmt.Errorf("list groups: %w", err)
	}
	gid := os.Getegid()
	defer func() {
		if back := restore(gid, groups); back != nil && err == nil {
			err = back
		}
	}()
	if err := syscall.Setgroups(slices.Clone(who.Groups)); err != nil {
		return fmt.Errorf("take the job's groups: %w", err)
	}
	if err := syscall.Setregid(-1, who.GID); err != nil {
		return fmt.Errorf("take the job's group: %w", err)
	}
	if err := setEUID(who.UID); err != nil {
		return fmt.Errorf("take the job's uid: %w", err)
	}
	return f()
}

func restore(gid int, groups []int) error {
	if err := setEUID(0); err != nil {
		return fmt.Errorf("return to root: %w", err)
	}
	if err := syscall.Setregid(-1, gid); err != nil {
		return fmt.Errorf("return to the agent's group: %w", err)
	}
	return syscall.Setgroups(groups)
}
