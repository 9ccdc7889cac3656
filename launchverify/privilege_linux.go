package launchverify

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// lockedBits are the securebits (capabilities(7)) under which being root gives no capabilities, for good: NOROOT,
// NO_SETUID_FIXUP and NO_CAP_AMBIENT_RAISE set, each and KEEP_CAPS locked.
const lockedBits = 1<<0 | 1<<1 | 1<<2 | 1<<3 | 1<<5 | 1<<6 | 1<<7

// renounce takes from the calling thread, and from whatever it starts, every way to gain rights: no_new_privs, an empty
// bounding set, no ambient capabilities, root without powers. Unless keepEffective it gives up what the thread has
// too. The goroutine must be locked to its thread and must not go back to other work.
func renounce(keepEffective bool) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set no_new_privs: %w", err)
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("clear the ambient capabilities: %w", err)
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var caps [2]unix.CapUserData
	if err := unix.Capget(&header, &caps[0]); err != nil {
		return fmt.Errorf("read the capabilities: %w", err)
	}
	if caps[0].Effective&(1<<unix.CAP_SETPCAP) != 0 {
		if err := renounceFuture(); err != nil {
			return err
		}
	}
	if keepEffective {
		return nil
	}
	caps = [2]unix.CapUserData{}
	if err := unix.Capset(&header, &caps[0]); err != nil {
		return fmt.Errorf("drop the capabilities: %w", err)
	}
	return nil
}

// renounceFuture empties the bounding set and locks the securebits. It needs CAP_SETPCAP; a thread without that
// capability has none of the others either, and no_new_privs keeps it so.
func renounceFuture() error {
	for capability := uintptr(0); ; capability++ {
		switch err := unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0); err {
		case nil:
		case unix.EINVAL: // beyond the last capability that the kernel knows
			if err := unix.Prctl(unix.PR_SET_SECUREBITS, lockedBits, 0, 0, 0); err != nil {
				return fmt.Errorf("lock the securebits: %w", err)
			}
			return nil
		default:
			return fmt.Errorf("drop capability %d: %w", capability, err)
		}
	}
}
