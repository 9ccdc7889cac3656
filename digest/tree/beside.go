package tree

import (
	"bytes"
	"io"
	"os"
	"sync/atomic"
)

// Beside is what OpenDirBeside found of the second directory. Err says that it could not be read, or is above its limits.
type Beside struct {
	Dir *Dir // nil with Err
	Err error
}

// OpenDirBeside is OpenDir of root, and of other within lim, with the same outcome but for less work: the bytes of other are
// compared with those of root while these are hashed. Equal bytes have equal digests, so other is only hashed when it
// differs. The error is root's; then other has no outcome.
func OpenDirBeside(root, other *os.Root, lim Limits) (*Dir, Beside, error) {
	d, entries, err := listDir(root, Limits{})
	if err != nil {
		return nil, Beside{}, err
	}
	o, listed, failed := listDir(other, lim)
	if failed != nil {
		if err := d.complete(entries, 0); err != nil {
			return nil, Beside{}, err
		}
		return d, Beside{Err: failed}, nil
	}
	beside := newCompanion(o, listed)
	files := counted(entries)
	if !beside.samePaths(files) {
		if err := d.complete(entries, 0); err != nil {
			return nil, Beside{}, err
		}
		return d, besideOf(o, o.complete(listed, lim.Bytes)), nil
	}
	r := newReading(d, files, 0)
	r.companion = beside
	content, err := r.content()
	if err != nil {
		return nil, Beside{}, err
	}
	d.listing = newListing(entries, content)
	if beside.differs.Load() || lim.Bytes > 0 && d.listing.Bytes > lim.Bytes {
		return d, besideOf(o, o.complete(listed, lim.Bytes)), nil
	}
	for i, e := range files {
		same := beside.files[i]
		same.Size, same.SHA256, same.Head = e.Size, e.SHA256, e.Head
	}
	o.listing = newListing(listed, content)
	return d, Beside{Dir: o}, nil
}

func besideOf(d *Dir, err error) Beside {
	if err != nil {
		return Beside{Err: err}
	}
	return Beside{Dir: d}
}

// companion compares a directory's files with those that are read beside them.
type companion struct {
	dir     *Dir
	files   []*Entry // the counted ones in path order
	differs atomic.Bool
}

func newCompanion(d *Dir, entries []Entry) *companion {
	return &companion{dir: d, files: counted(entries)}
}

// samePaths reports whether the files have the same paths as others.
func (c *companion) samePaths(others []*Entry) bool {
	if len(c.files) != len(others) {
		return false
	}
	for i, e := range c.files {
		if e.Path != others[i].Path {
			return false
		}
	}
	return true
}

// follow compares what reader k of r reads. It takes every piece, so that the reader never waits in vain; after the first
// difference it only lets them go.
func (c *companion) follow(r *reading, k int) {
	f := &r.readers[k]
	one := comparison{companion: c, folders: folders{root: c.dir.root}, next: k, step: len(r.readers), buf: pieces.Get().(*[pieceSize]byte)}
	defer pieces.Put(one.buf)
	defer one.folders.close()
	defer one.close()
	for p := range f.compare {
		if p.err == nil && !c.differs.Load() && !one.equal(p) {
			c.differs.Store(true)
		}
		f.release(p.buffer)
	}
}

// comparison is how far a companion of one reader has come.
type comparison struct {
	*companion
	folders    folders
	next, step int
	file       *os.File // nil between two files
	buf        *[pieceSize]byte
}

// equal reports whether the next bytes of the files are those of p.
func (c *comparison) equal(p piece) bool {
	if c.file == nil {
		e := c.files[c.next]
		file, info, err := c.dir.open(&c.folders, *e)
		if err != nil {
			return false
		}
		c.file, e.Executable = file, info.Mode()&0o111 != 0
		c.next += c.step
	}
	same := c.buf[:len(p.data)]
	if _, err := io.ReadFull(c.file, same); err != nil || !bytes.Equal(same, p.data) {
		return false
	}
	if !p.end {
		return true
	}
	n, err := c.file.Read(c.buf[:1])
	c.close()
	return n == 0 && err == io.EOF
}

// close closes the file that is open.
func (c *comparison) close() {
	if c.file != nil {
		c.file.Close()
		c.file = nil
	}
}
