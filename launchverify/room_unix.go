//go:build unix

package launchverify

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// checkRoom refuses a root that would not fit into memory, before any of it is made: the kernel would end the stage, or
// another process, in its middle.
func (s *stage) checkRoom(need int64) error {
	if s.plan.Mode == ModePrivateCopy {
		return nil
	}
	if free, by := memoryLeft(); need > free {
		return refusal("launch.room", s.subject(), "the job's root needs %d bytes of memory, %d are free, limited by %s", need, free, by)
	}
	return nil
}

// roomError words the end of the room while the root is written; other errors pass.
func (s *stage) roomError(err error) error {
	if !errors.Is(err, unix.ENOSPC) && !errors.Is(err, unix.EDQUOT) && !errors.Is(err, unix.ENOMEM) {
		return err
	}
	limited := "what limits it is not known"
	var st unix.Statfs_t
	if unix.Statfs(s.plan.Root, &st) == nil {
		limited = fmt.Sprintf("its file system has %d bytes, %d of them free", uint64(st.Blocks)*uint64(st.Bsize), uint64(st.Bavail)*uint64(st.Bsize))
	}
	if s.plan.Mode != ModePrivateCopy {
		free, by := memoryLeft()
		limited += fmt.Sprintf("; of memory %d bytes are free, limited by %s", free, by)
	}
	return refusal("launch.room", s.subject(), "the job's root at %q needs %d bytes, and %s: %v", s.plan.Root, s.need, limited, err)
}

// exhausted reports whether the node had too little of something just then, which says nothing about what was read.
func exhausted(err error) bool {
	for _, lack := range []error{unix.EMFILE, unix.ENFILE, unix.ENOMEM, unix.EAGAIN} {
		if errors.Is(err, lack) {
			return true
		}
	}
	return false
}
