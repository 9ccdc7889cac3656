package launchverify

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

func (m *mountRoot) placeOutputs(root *os.Root, at, _ string) error { return root.MkdirAll(at, 0o755) }

func (m *mountRoot) showOutputs(p *plan, at, outputs string) error {
	var fd int
	err := p.User.identity().do(func() (err error) {
		if err = os.MkdirAll(outputs, 0o755); err != nil {
			return err
		}
		if fd, err = unix.Open(outputs, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err != nil {
			return &fs.PathError{Op: "open", Path: outputs, Err: err}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("make the folder of the outputs: %w", err)
	}
	m.binds = []bind{{at, fd}}
	if err := m.attach(); err != nil {
		return fmt.Errorf("the outputs in %q: %w", filepath.Join(m.path, at), err)
	}
	return nil
}
