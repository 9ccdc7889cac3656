package launchverify

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/digest/tree"
)

// source is a set of files that goes into the root below one folder.
type source struct {
	into    string // slash-separated, relative to the root
	files   []sourceFile
	size    int64                                    // of the files of a cached tree
	root    *os.Root                                 // of a cached tree: its files are opened below it, several at a time
	open    func(path string) (io.ReadCloser, error) // of a folder in the job directory: one after another
	close   func() error
	content digest.Digest // both digests, of a folder in the job directory
	tree    digest.Digest
}

type sourceFile struct {
	path       string
	size       int64
	executable bool
}

// cachedSource takes every file of an unpacked tree in the node's cache. Such a tree holds folders and regular files, no
// more of either than a pack may; neither it nor the cache's folder of trees may be a link.
func cachedSource(dir, into string) (*source, error) {
	trees := filepath.Dir(dir)
	root, err := openBelow(filepath.Dir(trees), filepath.Base(trees)+"/"+filepath.Base(dir))
	if err != nil {
		return nil, err
	}
	s := &source{into: into, close: root.Close, root: root}
	if err := s.list(root, ""); err != nil {
		return nil, errors.Join(fmt.Errorf("%q in the node's cache: %w", dir, err), root.Close())
	}
	return s, nil
}

// list adds the files below a folder, whose path is prefix.
func (s *source) list(folder *os.Root, prefix string) error {
	below, err := s.listFiles(folder, prefix)
	if err != nil {
		return err
	}
	for _, name := range below {
		if len(prefix)+len(name) > limit.Path {
			return fmt.Errorf("%.200q is deeper than the paths of packs", prefix+name)
		}
		next, err := folder.OpenRoot(name)
		if err != nil {
			return err
		}
		err = s.list(next, prefix+name+"/")
		next.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// listFiles adds the files of one folder and gives the names of the folders in it.
func (s *source) listFiles(folder *os.Root, prefix string) (below []string, err error) {
	f, err := folder.Open(".")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for {
		entries, err := f.ReadDir(512)
		for _, d := range entries {
			if d.IsDir() {
				below = append(below, d.Name())
				continue
			}
			info, err := d.Info() // of the folder that is open, whatever its name leads to by now
			if err != nil {
				return nil, err
			}
			if !info.Mode().IsRegular() {
				return nil, fmt.Errorf("%.200q is no regular file", prefix+d.Name())
			}
			if s.size += info.Size(); s.size > limit.Unpacked {
				return nil, fmt.Errorf("more than %d bytes", int64(limit.Unpacked))
			}
			s.files = append(s.files, sourceFile{prefix + d.Name(), info.Size(), info.Mode()&0o111 != 0})
		}
		if len(s.files)+len(below) > limit.Files {
			return nil, fmt.Errorf("more than %d files", limit.Files)
		}
		if errors.Is(err, io.EOF) {
			return below, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

var (
	// errOddFile says that something can't be taken into the job's root as it is.
	errOddFile = errors.New("only regular files and folders can be taken into the job's root")
	// errLink is the errOddFile of a symbolic link where a folder should be.
	errLink = fmt.Errorf("a symbolic link: %w", errOddFile)
)

// jobSource takes the regular files of a folder in the job directory, read with the job's rights, to the same place in
// the root. A folder that is a link, or holds a link or a special file, is an error that wraps errOddFile.
func jobSource(who identity, jobDir, into string) (*source, error) {
	var (
		root *os.Root
		t    *tree.Dir
	)
	err := who.do(func() (err error) {
		if root, err = openBelow(jobDir, into); err == nil {
			t, err = tree.OpenDirWithin(root, jobLimits)
		}
		return err
	})
	if err != nil {
		if root != nil {
			err = errors.Join(err, root.Close())
		}
		return nil, err
	}
	s := &source{into: into, close: root.Close, content: t.Listing().Content, tree: t.Listing().Tree}
	s.open = func(p string) (f io.ReadCloser, err error) {
		err = who.do(func() error {
			f, err = t.Open(p)
			return err
		})
		return f, err
	}
	for _, e := range t.Listing().Entries {
		switch {
		case e.Kind == tree.Folder || e.Kind == tree.Excluded:
		case e.Kind == tree.Counted && e.Link == "":
			s.files = append(s.files, sourceFile{e.Path, e.Size, e.Executable})
		default:
			return nil, errors.Join(fmt.Errorf("%.200q: %w", path.Join(into, e.Path), errOddFile), root.Close())
		}
	}
	return s, nil
}

// jobLimits bounds what is read of one folder of a job directory: the spec folder with its capsule, or an injected
// pack.
var jobLimits = tree.Limits{Files: limit.Files, Bytes: limit.JobPackage, Path: limit.Path}

// openBelow opens a folder of the job directory. None of the elements below dir may be a link.
func openBelow(dir, folder string) (*os.Root, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	for _, name := range strings.Split(folder, "/") {
		next, err := openFolder(root, name)
		root.Close()
		if err != nil {
			return nil, err
		}
		root = next
	}
	return root, nil
}

// openFolder opens the folder called name, which may be no link.
func openFolder(parent *os.Root, name string) (*os.Root, error) {
	info, err := parent.Lstat(name)
	switch {
	case err != nil:
		return nil, err
	case info.Mode()&fs.ModeSymlink != 0:
		return nil, fmt.Errorf("%.200q is %w", name, errLink)
	case !info.IsDir():
		return nil, fmt.Errorf("%.200q is a file: %w", name, syscall.ENOTDIR)
	}
	root, err := parent.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	// What was opened must be what was looked at: a link put there in between leads elsewhere.
	if opened, err := root.Stat("."); err != nil || !os.SameFile(info, opened) {
		return nil, errors.Join(fmt.Errorf("%.200q changed while it was opened: %w", name, errLink), err, root.Close())
	}
	return root, nil
}

// bytes is how much the files need in the root, in whole pages, with one for each folder and file.
func (s *source) bytes() int64 {
	const page = 4096
	var n int64
	folders := map[string]bool{}
	for _, f := range s.files {
		n += page + (f.size+page-1)/page*page
		for dir := path.Dir(path.Join(s.into, f.path)); !folders[dir]; dir = path.Dir(dir) {
			folders[dir] = true
		}
	}
	return n + int64(len(folders))*page
}

func writeFile(root *os.Root, name string, b []byte, mode fs.FileMode) error {
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Close())
}
