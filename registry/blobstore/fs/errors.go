package fs

import (
	"errors"
	"syscall"

	"github.com/gatehouse-registry/gatehouse/registry"
)

// classify gives the errors of a disk that a client should hear of their public code; others stay as they are.
func classify(err error) error {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return &registry.Error{Code: registry.Unavailable, Message: "the disk of the blob store is full", Err: err}
	case errors.Is(err, syscall.EFBIG):
		return &registry.Error{Code: registry.TooLarge, Message: "the file system of the blob store takes no file of this size", Err: err}
	}
	return err
}
