package metastore

import (
	"strings"
	"syscall"
)

// tcpUserTimeout is Linux's TCP_USER_TIMEOUT, which package syscall does not name: how many milliseconds sent bytes may
// stay unacknowledged. Keep-alives alone say nothing while bytes are on their way.
const tcpUserTimeout = 18

// limitUnanswered sets the limit on a socket that is about to connect.
func limitUnanswered(network, _ string, raw syscall.RawConn) error {
	if !strings.HasPrefix(network, "tcp") {
		return nil
	}
	var failed error
	err := raw.Control(func(fd uintptr) {
		failed = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout, int(unansweredLimit.Milliseconds()))
	})
	if err != nil {
		return err
	}
	return failed
}
