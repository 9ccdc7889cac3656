package launchverify

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/gatehouse-registry/gatehouse/internal/walk"
)

func (m *mountRoot) placeOutputs(root *os.Root, at, _ string) error { return root.MkdirAll(at, 0o755) }

// The folder is opened as the job would open it: the links of /proc that lead to what this process has open, the node's cache among
// it, are no way for the job.
func (m *mountRoot) showOutputs(p *plan, at, outputs string) error {
	var fd int
	err := p.User.identity().do(func() (err error) {
		if err = os.MkdirAll(outputs, 0o755); err == nil {
			fd, err = walked(outputs)
		}
		return err
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

// walked opens a folder, O_PATH, and follows links as what they say.
func walked(dir string) (fd int, err error) {
	f, err := walk.Open(dir, nil)
	if err != nil {
		return -1, err
	}
	defer f.Close()
	return unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 3)
}
