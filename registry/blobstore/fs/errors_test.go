package fs

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
	"testing"

	"github.com/gatehouse-registry/gatehouse/registry"
)

func TestClassify(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		err  error
		want registry.Code
	}{
		{nil, ""},
		{syscall.ENOSPC, registry.Unavailable},
		{syscall.EDQUOT, registry.Unavailable},
		{syscall.EFBIG, registry.TooLarge},
		{syscall.EIO, registry.Internal},
		{fs.ErrNotExist, registry.Internal},
	} {
		err := test.err
		if err != nil {
			err = &os.PathError{Op: "write", Path: "tmp/x", Err: err}
		}
		got := classify(err)
		if registry.CodeOf(got) != test.want {
			t.Errorf("classify(%v): got code %q, want %q", err, registry.CodeOf(got), test.want)
		}
		if !errors.Is(got, test.err) {
			t.Errorf("classify(%v) lost the cause: %v", err, got)
		}
	}
}
