package launchverify

import (
	"os"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// firstUserNamespace is the number that every kernel gives to the user namespace that it starts with.
const firstUserNamespace = 0xEFFFFFFD

// ownedRoot says why being root here keeps the job's user on the node out no more than being that user would; "" when it does.
// Root of a user namespace that one of the namespace's own users made, as root-less containers have it, is as good as that
// user: outside the container that user may enter, and has all rights there. Who made it the kernel tells as the namespace's
// users are counted; somebody who is none of them, as the root of a node is in a pod with a user namespace, has no number.
func ownedRoot() string {
	f, err := os.Open("/proc/self/ns/user")
	if err != nil {
		return "" // without /proc nothing is launched
	}
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil || st.Ino == firstUserNamespace {
		return ""
	}
	var owner uint32
	if _, _, err := unix.Syscall(unix.SYS_IOCTL, f.Fd(), unix.NS_GET_OWNER_UID, uintptr(unsafe.Pointer(&owner))); err != 0 || owner == overflowID() {
		return ""
	}
	return "the agent is root of a user namespace that uid " + strconv.Itoa(int(owner)) + " of the same namespace made, who may enter it from outside"
}

// overflowID is the uid that the kernel shows for everybody who has none in this namespace.
func overflowID() uint32 {
	const usual = 65534
	b, err := os.ReadFile("/proc/sys/kernel/overflowuid")
	if err != nil {
		return usual
	}
	n, err := strconv.ParseUint(strings.TrimSpace(string(b)), 10, 32)
	if err != nil {
		return usual
	}
	return uint32(n)
}
