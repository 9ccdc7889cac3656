package cli

import (
	"os"
	"os/signal"
	"strconv"
	"syscall"
)

// fileLimit is the variable that makes the test program, as sf, run on a disk on which files can't grow beyond so many bytes.
const fileLimit = "GATEHOUSE_TEST_FILE_LIMIT"

// limitFiles does what fileLimit says.
func limitFiles() error {
	text := os.Getenv(fileLimit)
	if text == "" {
		return nil
	}
	most, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return err
	}
	signal.Ignore(syscall.SIGXFSZ)
	return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: most, Max: most})
}
