package cli

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

// openUnlinked opens a folder and follows only links that are root's own, each looked at and read by the descriptor that was
// opened: nobody can put another in its place.
func openUnlinked(dir string) (*os.Root, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	at, err := openRootFolder()
	if err != nil {
		return nil, err
	}
	defer func() { unix.Close(at) }()
	links := 0
	for rest := strings.Split(abs, "/"); len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		if name == "" || name == "." {
			continue
		}
		next, err := unix.Openat(at, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			return nil, &fs.PathError{Op: "open", Path: dir, Err: err}
		}
		target, link, err := rootsLink(next)
		if link {
			unix.Close(next)
			if links++; err == nil && links > maxLinks {
				err = syscall.ELOOP
			}
			if err != nil {
				return nil, &fs.PathError{Op: "open", Path: dir, Err: fmt.Errorf("%.200q: %w", name, err)}
			}
			rest = append(strings.Split(target, "/"), rest...)
			if !filepath.IsAbs(target) {
				continue
			}
			if next, err = openRootFolder(); err != nil {
				return nil, err
			}
		}
		unix.Close(at)
		at = next
	}
	return os.OpenRoot(fmt.Sprintf("/proc/self/fd/%d", at))
}

func openRootFolder() (int, error) {
	return unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
}

// rootsLink reads what was opened, when that is a link. The error says that it is somebody else's than root's.
func rootsLink(fd int) (target string, link bool, err error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFLNK {
		return "", false, nil
	}
	if st.Uid != 0 {
		return "", true, fmt.Errorf("root follows no link of uid %d", st.Uid)
	}
	b := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(fd, "", b)
	if err != nil {
		return "", true, err
	}
	return string(b[:n]), true, nil
}
