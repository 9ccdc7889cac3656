// Package walk opens folders without the ways that only the process has which opens them.
package walk

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// maxLinks is how many links the kernel follows on one path.
const maxLinks = 40

// Open opens a folder (O_PATH) element by element, each with the rights of the calling thread. Links are followed as what they say,
// read by the descriptor that was opened, so that nobody can put another in their place: those of /proc, which lead to what
// this process has open wherever that lies, lead no further than their text. follow is asked about the owner of each link, and
// refuses it with an error; nil follows all.
func Open(dir string, follow func(owner int) error) (*os.File, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	at, err := top()
	if err != nil {
		return nil, err
	}
	fail := func(err error) (*os.File, error) {
		unix.Close(at)
		return nil, &fs.PathError{Op: "open", Path: dir, Err: err}
	}
	links := 0
	for rest := strings.Split(abs, "/"); len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		if name == "" || name == "." {
			continue
		}
		next, err := open(at, name)
		if err != nil {
			return fail(err)
		}
		target, link, err := read(next, follow)
		if link {
			unix.Close(next)
			if links++; err == nil && links > maxLinks {
				err = syscall.ELOOP
			}
			if err != nil {
				return fail(fmt.Errorf("%.200q: %w", name, err))
			}
			rest = append(strings.Split(target, "/"), rest...)
			if !filepath.IsAbs(target) {
				continue
			}
			if next, err = top(); err != nil {
				return fail(err)
			}
		}
		unix.Close(at)
		at = next
	}
	var st unix.Stat_t
	if err := unix.Fstat(at, &st); err != nil {
		return fail(err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return fail(syscall.ENOTDIR)
	}
	return os.NewFile(uintptr(at), dir), nil
}

// open opens a folder, or else what has its name: asked for a folder the kernel mounts what is mounted when it is wanted.
func open(at int, name string) (int, error) {
	const path = unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := unix.Openat(at, name, path|unix.O_DIRECTORY, 0)
	if err == unix.ENOTDIR || err == unix.ELOOP {
		fd, err = unix.Openat(at, name, path, 0)
	}
	return fd, err
}

func top() (int, error) {
	return unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
}

// read reads what was opened, when that is a link.
func read(fd int, follow func(owner int) error) (target string, link bool, err error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFLNK {
		return "", false, nil
	}
	if follow != nil {
		if err := follow(int(st.Uid)); err != nil {
			return "", true, err
		}
	}
	b := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(fd, "", b)
	if err != nil {
		return "", true, err
	}
	return string(b[:n]), true, nil
}
