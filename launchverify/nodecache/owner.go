package nodecache

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// owner is one use of the cache by one process.
type owner struct {
	node  string // 16 hex digits; a place in which a process id means one process, since it was started
	pid   int
	start uint64 // when the process was started, in the kernel's own unit; 0 is unknown
	nonce string // 8 hex digits
}

// self is this process, under a name that no other use has.
func self() (owner, error) {
	var nonce [4]byte
	rand.Read(nonce[:])
	o := owner{node: nodeName(), pid: os.Getpid(), nonce: hex.EncodeToString(nonce[:])}
	o.start, _ = started(o.pid)
	return o, nil
}

// nodeName tells apart the places in which a process id means one process. Where that can't be known every process is a
// place of its own, whose life shows by its heartbeat alone.
func nodeName() string {
	place := processSpace()
	if place == "" {
		place = rand.Text()
	}
	sum := sha256.Sum256([]byte(place))
	return hex.EncodeToString(sum[:8])
}

func (o owner) String() string { return fmt.Sprintf("%s.%d.%d.%s", o.node, o.pid, o.start, o.nonce) }

// parseOwner reads the name of an owner; rest is what follows it after a dot.
func parseOwner(name string) (o owner, rest string, ok bool) {
	if len(name) > 128 {
		return owner{}, "", false
	}
	parts := strings.SplitN(name, ".", 5)
	if len(parts) < 4 || !isHex(parts[0], 16) || !isHex(parts[3], 8) {
		return owner{}, "", false
	}
	pid, err := strconv.Atoi(parts[1])
	if err != nil || pid <= 0 {
		return owner{}, "", false
	}
	start, err := strconv.ParseUint(parts[2], 10, 64)
	if err != nil {
		return owner{}, "", false
	}
	if len(parts) == 5 {
		rest = parts[4]
	}
	return owner{parts[0], pid, start, parts[3]}, rest, true
}

func isHex(s string, n int) bool {
	return len(s) == n && strings.Trim(s, "0123456789abcdef") == ""
}

// dead reports whether a process of this node has ended. Doubt counts as life.
func (o owner) dead() bool {
	if !alive(o.pid) {
		return true
	}
	now, known := started(o.pid)
	return known && o.start != 0 && now != o.start
}
