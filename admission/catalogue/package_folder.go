package catalogue

import (
	"fmt"
	"io"
	"io/fs"
	"path"

	"github.com/gatehouse-registry/gatehouse/digest/tree"
)

// folder is a folder of an installed package, hashed as the clients hash it.
type folder struct {
	fsys    fs.FS
	listing *tree.Listing
}

// Listing implements tree.Tree.
func (f *folder) Listing() *tree.Listing { return f.listing }

// Open implements tree.Tree.
func (f *folder) Open(name string) (io.ReadCloser, error) {
	e, ok := f.listing.Lookup(name)
	if !ok || e.Kind != tree.Counted {
		return nil, fmt.Errorf("%q is not a counted file: %w", name, fs.ErrNotExist)
	}
	file, err := f.fsys.Open(name)
	if err != nil {
		return nil, err
	}
	return tree.Verify(e, file), nil
}

// readFolder hashes the files of a folder, but for those that no digest counts. A link or a special file is an error: no
// client ships one.
func readFolder(fsys fs.FS, dir string) (tree.Tree, error) {
	below, err := fs.Sub(fsys, dir)
	if err != nil {
		return nil, err
	}
	h := tree.NewHasher()
	defer h.Close()
	files, bytes := 0, int64(0)
	err = fs.WalkDir(below, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && tree.IsExcludedFolder(path.Base(name)):
			return fs.SkipDir
		case d.IsDir() || tree.IsExcluded(name):
			return nil
		case !d.Type().IsRegular():
			return fmt.Errorf("%s is no regular file", path.Join(dir, name))
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		files, bytes = files+1, bytes+info.Size()
		if files > maxPackageFiles || bytes > maxPackageBytes {
			return fmt.Errorf("%s holds more than %d files or %d bytes", dir, maxPackageFiles, maxPackageBytes)
		}
		return addFile(h, below, name, info)
	})
	if err != nil {
		return nil, err
	}
	f := &folder{fsys: below}
	f.listing, err = h.Finish(func(name string) (io.ReadCloser, error) { return below.Open(name) })
	return f, err
}

// addFile hashes a file of at most the size that it was listed with.
func addFile(h *tree.Hasher, fsys fs.FS, name string, info fs.FileInfo) error {
	file, err := fsys.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	return h.Add(name, info.Mode()&0o111 != 0, io.LimitReader(file, info.Size()+1))
}
