package tree

import (
	"fmt"
	"io"
	"os"
)

// Dir is a hashed directory. It reads through the os.Root it was opened with, which must stay open.
type Dir struct {
	root    *os.Root
	listing *Listing
	targets map[string]string // of a counted link, the path of the file it leads to
}

// OpenDir lists and hashes everything below root. Links inside the tree count with the bytes they lead to;
// folder links, dangling links and special files are listed and not counted, and no FIFO blocks. A tree with a
// link that leads outside, or with a counted name that is not UTF-8, has zero digests: the listing says where.
// An error means that the directory could not be read. A few MiB of memory are used however large the files.
func OpenDir(root *os.Root) (*Dir, error) { return OpenDirWithin(root, Limits{}) }

// OpenDirWithin is OpenDir with bounds: a directory above one of them is a *LimitError, found before more than
// that is read.
func OpenDirWithin(root *os.Root, lim Limits) (*Dir, error) {
	d, entries, err := listDir(root, lim)
	if err == nil {
		err = d.complete(entries, lim.Bytes)
	}
	if err != nil {
		return nil, err
	}
	return d, nil
}

// listDir lists what lies below root, sorted by path. Nothing is read yet.
func listDir(root *os.Root, lim Limits) (*Dir, []Entry, error) {
	w := walker{root: root, lim: lim}
	if err := w.walk(); err != nil {
		return nil, nil, err
	}
	d := &Dir{root: root, targets: w.resolve()}
	sortEntries(w.entries)
	return d, w.entries, nil
}

// complete reads and hashes what was listed.
func (d *Dir) complete(entries []Entry, limit int64) error {
	content, err := newReading(d, counted(entries), limit).content()
	if err == nil {
		d.listing = newListing(entries, content)
	}
	return err
}

// counted are the counted ones of entries.
func counted(entries []Entry) []*Entry {
	files := make([]*Entry, 0, len(entries))
	for i := range entries {
		if entries[i].Kind == Counted {
			files = append(files, &entries[i])
		}
	}
	return files
}

// Listing is what hashing the directory found.
func (d *Dir) Listing() *Listing { return d.listing }

// Open opens a counted file. Reading it ends in a *digest.MismatchError when its bytes are no longer those
// that were hashed.
func (d *Dir) Open(path string) (io.ReadCloser, error) {
	e, ok := d.listing.Lookup(path)
	if !ok || e.Kind != Counted {
		return nil, fmt.Errorf("%q is not a counted file: %w", path, os.ErrNotExist)
	}
	f, _, err := d.open(&folders{root: d.root}, e)
	if err != nil {
		return nil, err
	}
	return Verify(e, f), nil
}

// open opens the file behind a counted entry and makes sure that it is still a regular file.
func (d *Dir) open(at *folders, e Entry) (*os.File, os.FileInfo, error) {
	path := e.Path
	if target, ok := d.targets[path]; ok {
		path = target
	}
	f, err := at.file(path)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%q became another kind of file while the directory was read", path)
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}
