package jobpackage

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"

	"github.com/gatehouse-registry/gatehouse/admission/limit"
)

// walk lists the files below the folders that travel, without what skippedFolders, skippedFiles and neverSent name. Links to
// folders are not followed and not listed, as the client does.
func (f *finder) walk() ([]listed, error) {
	var names []listed
	for _, folder := range f.project.folders() {
		err := fs.WalkDir(f.root.FS(), folder, func(name string, d fs.DirEntry, err error) error {
			switch {
			case errors.Is(err, fs.ErrNotExist) && name == folder:
				return nil
			case err != nil:
				return fmt.Errorf("%s: %w", name, cause(err))
			case d.IsDir():
				if name != folder && slices.Contains(skippedFolders, path.Base(name)) {
					return fs.SkipDir
				}
				return nil
			case name == folder || matchesAny(path.Base(name), skippedFiles) || neverSent(name):
				return nil
			case d.Type()&fs.ModeSymlink != 0 && f.isFolder(name):
				return nil
			}
			if names = append(names, listed{path: name}); len(names) > limit.JobFiles+maxFaults {
				return fmt.Errorf("more than %d files lie in %s: run git init, so that .gitignore keeps out what does not belong to the project", limit.JobFiles, folder)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return names, nil
}

func (f *finder) isFolder(name string) bool {
	info, err := f.root.Stat(filepath.FromSlash(name))
	return err == nil && info.IsDir()
}
