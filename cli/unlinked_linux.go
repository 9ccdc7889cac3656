package cli

import (
	"fmt"
	"os"

	"github.com/gatehouse-registry/gatehouse/internal/walk"
)

// openUnlinked opens a folder, and follows only links that are root's own.
func openUnlinked(dir string) (*os.Root, error) {
	f, err := walk.Open(dir, func(owner int) error {
		if owner != 0 {
			return fmt.Errorf("root follows no link of uid %d", owner)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return os.OpenRoot(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
}
