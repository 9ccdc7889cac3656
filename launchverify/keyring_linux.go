package launchverify

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// leaveKeyring gives the calling thread, and whatever it starts, a session keyring of its own. Keys are open to whoever possesses the
// keyring that they are in, whatever its uid: where root launches for somebody else the one of root's session holds root's keys. A
// node that forbids the call forbids it to the job too.
func leaveKeyring() error {
	_, _, err := unix.Syscall(unix.SYS_KEYCTL, unix.KEYCTL_JOIN_SESSION_KEYRING, 0, 0) // one without a name
	if err != 0 && err != unix.ENOSYS && err != unix.EPERM {
		return fmt.Errorf("leave the session's keyring: %w", err)
	}
	return nil
}
