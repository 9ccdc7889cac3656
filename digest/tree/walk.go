package tree

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"syscall"
)

// Limits bounds what reading a directory may cost. A zero field bounds nothing.
type Limits struct {
	Files int   // counted files; folders, links and what is left out may be ten times as many
	Bytes int64 // the sum of the counted files' sizes
	Path  int   // bytes of a path; folders are not descended into beyond four times as many
}

// A LimitError says that a directory is above one of its Limits.
type LimitError struct {
	What  string // "files", "entries", "bytes" or "path"
	Path  string // where the limit was passed
	Limit int64
	Found int64 // at least so much
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("%.200q: at least %d %s, at most %d allowed", e.Path, e.Found, e.What, e.Limit)
}

// openFlags open a file so that no FIFO or device blocks the open.
const openFlags = os.O_RDONLY | syscall.O_NONBLOCK

// walker lists what lies below a root, without reading any file.
type walker struct {
	root    *os.Root
	lim     Limits
	entries []Entry
	counted int
}

// walk lists everything below the root; folders that the digest excludes are listed, not entered. Links have
// no verdict yet.
func (w *walker) walk() error {
	folders := []string{"."}
	for len(folders) > 0 {
		dir := folders[len(folders)-1]
		folders = folders[:len(folders)-1]
		below, err := w.folder(dir)
		if err != nil {
			return err
		}
		folders = append(folders, below...)
	}
	return nil
}

// folder lists one folder and returns the folders in it that are to be walked.
func (w *walker) folder(dir string) (below []string, err error) {
	f, err := w.root.OpenFile(dir, openFlags, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for {
		// In batches, so that a folder of a million names ends at the limit rather than in memory.
		list, err := f.ReadDir(512)
		for _, d := range list {
			e, err := w.entry(dir, d)
			if err != nil {
				return nil, err
			}
			if e.Kind == Folder {
				below = append(below, e.Path)
			}
		}
		if errors.Is(err, io.EOF) {
			return below, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

func (w *walker) entry(dir string, d fs.DirEntry) (Entry, error) {
	e := Entry{Path: d.Name()}
	if dir != "." {
		e.Path = dir + "/" + e.Path
	}
	kind := d.Type()
	switch {
	case kind.IsDir() && IsExcludedFolder(d.Name()):
		e.Kind = Excluded
	case kind.IsDir():
		e.Kind = Folder
	case kind.IsRegular() || kind&fs.ModeSymlink != 0:
		e.Kind = Counted
		if IsExcluded(d.Name()) {
			e.Kind = Excluded
		}
	default:
		e.Kind = Special
	}
	if kind&fs.ModeSymlink != 0 {
		text, err := w.root.Readlink(e.Path)
		if err != nil {
			return e, err
		}
		e.Link = text
	}
	w.entries = append(w.entries, e)
	if e.Kind == Counted {
		w.counted++
	}
	return e, w.check(e)
}

func (w *walker) check(e Entry) error {
	over := func(what string, limit, found int) error {
		return &LimitError{What: what, Path: e.Path, Limit: int64(limit), Found: int64(found)}
	}
	switch {
	case w.lim.Files > 0 && w.counted > w.lim.Files:
		return over("files", w.lim.Files, w.counted)
	case w.lim.Files > 0 && len(w.entries) > 10*w.lim.Files:
		return over("entries", 10*w.lim.Files, len(w.entries))
	case w.lim.Path > 0 && e.Kind == Folder && len(e.Path) > 4*w.lim.Path:
		return over("path", w.lim.Path, len(e.Path))
	}
	return nil
}

// resolve gives every link its verdict. The result maps counted links to the files that they lead to.
func (w *walker) resolve() map[string]string {
	targets := make(map[string]string)
	if !slices.ContainsFunc(w.entries, func(e Entry) bool { return e.Link != "" }) {
		return targets
	}
	nodes := make(map[string]*Entry, len(w.entries))
	for i := range w.entries {
		nodes[w.entries[i].Path] = &w.entries[i]
	}
	look := func(path string) (Node, string) {
		if e, ok := nodes[path]; ok {
			return w.node(e)
		}
		return w.lstat(path) // below an excluded folder
	}
	for i := range w.entries {
		e := &w.entries[i]
		if e.Link == "" || e.Kind == Excluded {
			continue
		}
		target, kind := ResolveLink(e.Path, e.Link, look)
		if e.Kind = kind; kind == Counted {
			targets[e.Path] = target
		}
	}
	return targets
}

func (w *walker) node(e *Entry) (Node, string) {
	switch {
	case e.Link != "":
		return LinkNode, e.Link
	case e.Kind == Folder:
		return FolderNode, ""
	case e.Kind == Special:
		return SpecialNode, ""
	case e.Kind == Excluded: // a folder or a file
		return w.lstat(e.Path)
	}
	return FileNode, ""
}

func (w *walker) lstat(path string) (Node, string) {
	info, err := w.root.Lstat(path)
	switch {
	case err != nil:
		return NoNode, ""
	case info.IsDir():
		return FolderNode, ""
	case info.Mode().IsRegular():
		return FileNode, ""
	case info.Mode()&fs.ModeSymlink != 0:
		text, err := w.root.Readlink(path)
		if err != nil {
			return NoNode, ""
		}
		return LinkNode, text
	}
	return SpecialNode, ""
}
