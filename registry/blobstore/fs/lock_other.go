//go:build !unix

package fs

import (
	"errors"
	"os"
)

// tryLock refuses: without a lock that dies with its process, and without a sync of folders, the promises of this
// package can't be kept, so the folder store runs on Unix only.
func tryLock(*os.File) error { return errors.ErrUnsupported }

func unlock(*os.File) error { return nil }
