package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gatehouse-registry/gatehouse/internal/durable"
	"github.com/gatehouse-registry/gatehouse/launchverify"
)

// recordFile is the file that the record of a launch goes to; "" is none. An agent that is root follows no link of somebody
// else's on the way there: the folder may be the job's user's, who would have root write where only root may.
type recordFile string

// folder opens the folder that the record goes to.
func (r recordFile) folder() (*os.Root, error) {
	dir := filepath.Dir(filepath.Clean(string(r)))
	if os.Geteuid() == 0 {
		return openUnlinked(dir)
	}
	return os.OpenRoot(dir)
}

func (r recordFile) name() string { return filepath.Base(string(r)) }

// check refuses, before anything is launched, what no record can be written to. A device or a pipe would not be written to but
// replaced.
func (r recordFile) check() error {
	if r == "" {
		return nil
	}
	dir, err := r.folder()
	if err != nil {
		return usagef("--record: %w", err)
	}
	defer dir.Close()
	return r.regular(dir)
}

func (r recordFile) regular(dir *os.Root) error {
	info, err := dir.Lstat(r.name())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return usagef("--record: %w", err)
	case !info.Mode().IsRegular():
		return usagef("--record: %.200q is there, and is no regular file", string(r))
	}
	return nil
}

// save writes the record in place of what is there.
func (r recordFile) save(record launchverify.Record) error {
	text, err := json.MarshalIndent(record, "", "  ")
	if err != nil {
		return err
	}
	dir, err := r.folder()
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := r.regular(dir); err != nil {
		return err
	}
	if err := durable.ReplaceIn(dir, r.name(), append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("%s: %w", string(r), err)
	}
	return nil
}
