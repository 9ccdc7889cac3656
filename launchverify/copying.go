//go:build unix

package launchverify

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
)

// Files of a cached tree are copied by several goroutines. Each takes a few neighbours at a time, which mostly lie in one
// folder, and holds one buffer.
const (
	maxCopiers = 4
	neighbours = 16
	copyBuffer = 256 << 10
	// From largeFile on a file gets its size before its bytes, so that the file system can lay it out in large pages, and its
	// bytes are written out of a view of the cache's file, a window at a time.
	largeFile = 1 << 20
	window    = 4 << 20
)

// writeTo copies the files below root. Nothing may stand there yet. Files are 0444 or 0555, folders 0755 until they
// are sealed. replace holds bytes that are written in place of a file's own.
func (s *source) writeTo(root *os.Root, replace map[string][]byte) error {
	if err := s.makeFolders(root); err != nil {
		return err
	}
	into, err := root.OpenRoot(s.into)
	if err != nil {
		return err
	}
	defer into.Close()
	copiers := 1
	if s.root != nil {
		copiers = min(runtime.GOMAXPROCS(0), maxCopiers, (len(s.files)+neighbours-1)/neighbours)
	}
	errs := make([]error, copiers)
	var next atomic.Int64
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() {
			c := copier{source: s, in: folders{root: s.root}, out: folders{root: into}, replace: replace, buf: copyBuffers.Get().(*[copyBuffer]byte)}
			defer c.close()
			for errs[i] == nil {
				from := int(next.Add(neighbours)) - neighbours
				if from >= len(s.files) {
					return
				}
				errs[i] = c.copyAll(s.files[from:min(from+neighbours, len(s.files))])
			}
		})
	}
	all.Wait()
	return cmp.Or(errs...)
}

// makeFolders makes every folder that the files need.
func (s *source) makeFolders(root *os.Root) error {
	made := map[string]bool{}
	need := func(dir string) error {
		if made[dir] {
			return nil
		}
		made[dir] = true
		return root.MkdirAll(dir, 0o755)
	}
	if err := need(path.Clean(s.into)); err != nil {
		return err
	}
	for _, f := range s.files {
		if err := need(path.Dir(path.Join(s.into, f.path))); err != nil {
			return err
		}
	}
	return nil
}

// copier copies files of a source one after another.
type copier struct {
	*source
	in, out folders
	replace map[string][]byte
	buf     *[copyBuffer]byte
}

var copyBuffers = sync.Pool{New: func() any { return new([copyBuffer]byte) }}

func (c *copier) close() {
	c.in.close()
	c.out.close()
	copyBuffers.Put(c.buf)
}

func (c *copier) copyAll(files []sourceFile) error {
	for _, f := range files {
		if err := c.copy(f); err != nil {
			return fmt.Errorf("copy %q: %w", path.Join(c.into, f.path), err)
		}
	}
	return nil
}

func (c *copier) copy(f sourceFile) error {
	mode := fs.FileMode(0o444)
	if f.executable {
		mode = 0o555
	}
	// Not blocking, as the runtime wants it: else it asks the kernel four times to find out.
	out, err := c.out.file(f.path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NONBLOCK, mode)
	if err != nil {
		return err
	}
	if b, ok := c.replace[f.path]; ok {
		_, err = out.Write(b)
	} else {
		err = c.fill(out, f)
	}
	return errors.Join(err, out.Close())
}

// fill writes a file's bytes.
func (c *copier) fill(out *os.File, f sourceFile) (err error) {
	var in io.ReadCloser
	if c.root != nil {
		in, err = c.in.file(f.path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	} else {
		in, err = c.open(f.path)
	}
	if err != nil {
		return err
	}
	defer in.Close()
	var done int64
	if f.size >= largeFile {
		if err := out.Truncate(f.size); err != nil {
			return err
		}
		if done, err = written(in, out, f.size); err != nil {
			return err
		}
	}
	// One byte above the size shows a file that grew since it was listed; gate 3 then refuses it. So does a shorter one.
	rest, err := io.CopyBuffer(struct{ io.Writer }{out}, struct{ io.Reader }{io.LimitReader(in, f.size+1-done)}, c.buf[:])
	if err == nil && f.size >= largeFile && done+rest < f.size {
		err = out.Truncate(done + rest)
	}
	return err
}

// written writes a file's bytes straight out of the system's own pages, as far as that goes: where a file can't be viewed
// so, or has become shorter, the rest is left to be read. This process never touches the view, so that whoever
// shortens the file harms nobody. The next view is made, and the last one given up, while one is written.
func written(in io.ReadCloser, out *os.File, size int64) (done int64, err error) {
	file, ok := in.(*os.File)
	if !ok {
		return 0, nil
	}
	views, spent := make(chan []byte, 1), make(chan []byte, 1)
	go viewAll(file, size, views)
	var unmapping sync.WaitGroup
	unmapping.Go(func() {
		for v := range spent {
			syscall.Munmap(v)
		}
	})
	for v := range views {
		if err == nil {
			var n int
			n, err = out.Write(v)
			done += int64(n)
		}
		spent <- v
	}
	close(spent)
	unmapping.Wait()
	if err != nil && !errors.Is(err, syscall.EFAULT) {
		return done, err
	}
	// The last page of a view goes on with zeros where the file has ended.
	info, err := file.Stat()
	if err != nil {
		return done, err
	}
	return file.Seek(min(done, info.Size()), io.SeekStart)
}

// viewAll gives a file's bytes a window at a time, up to the first that can't be viewed.
func viewAll(file *os.File, size int64, views chan<- []byte) {
	defer close(views)
	for from := int64(0); from < size; from += window {
		view, err := syscall.Mmap(int(file.Fd()), from, int(min(window, size-from)), syscall.PROT_READ, syscall.MAP_SHARED|mapNow)
		if err != nil {
			return
		}
		views <- view
	}
}

// folders opens files below a root one after another. Those of one folder cost one walk to it: os.Root opens every element of
// a path.
type folders struct {
	root *os.Root
	path string   // of the folder that is open
	open *os.Root // nil: none
}

func (f *folders) file(name string, flag int, mode fs.FileMode) (*os.File, error) {
	dir, base := path.Split(name)
	if dir == "" {
		return f.root.OpenFile(name, flag, mode)
	}
	if f.open == nil || f.path != dir {
		f.close()
		below, err := f.root.OpenRoot(dir[:len(dir)-1])
		if err != nil {
			return nil, err
		}
		f.path, f.open = dir, below
	}
	return f.open.OpenFile(base, flag, mode)
}

func (f *folders) close() {
	if f.open != nil {
		f.open.Close()
		f.open = nil
	}
}
