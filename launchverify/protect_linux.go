package launchverify

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// runMountPoint is where the private root is mounted as root, and as a user where an administrator made it.
const runMountPoint = "/run/gatehouse"

// userMountPoints are tried in turn by an agent that is not root: a user may mount, in a namespace of its own, over an
// existing folder only, and the folder must be one that nobody but root can rename or remove.
var userMountPoints = []string{runMountPoint, "/mnt", "/media", "/srv"}

// protections lists the modes that the agent's user may hope for, best first.
func protections() []Mode {
	if os.Geteuid() == 0 {
		return []Mode{ModeRoot, ModeUser}
	}
	return []Mode{ModeUser}
}

// mountPoint finds where the private root of a mode goes. The error says why there is no such place.
func mountPoint(mode Mode, wanted string) (string, error) {
	if wanted != "" {
		if !filepath.IsAbs(wanted) {
			return "", fmt.Errorf("mount point %.200q is not absolute", wanted)
		}
		return filepath.Clean(wanted), checkMountPoint(filepath.Clean(wanted))
	}
	if mode == ModeRoot {
		if err := os.Mkdir(runMountPoint, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return "", err
		}
		return runMountPoint, checkMountPoint(runMountPoint)
	}
	var errs []string
	for _, candidate := range userMountPoints {
		err := checkMountPoint(candidate)
		if err == nil {
			return candidate, nil
		}
		errs = append(errs, err.Error())
	}
	return "", fmt.Errorf("no place for the root (%s); an administrator can make the folder %s", strings.Join(errs, "; "), runMountPoint)
}

// checkMountPoint makes sure that path is an empty folder and that no user can rename or remove any part of it: with
// a folder that is mounted upon, the mount goes too.
func checkMountPoint(path string) error {
	for at := path; ; at = filepath.Dir(at) {
		info, err := os.Lstat(at)
		if err != nil {
			return err
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		if !ok || !info.IsDir() || st.Uid != 0 || info.Mode()&0o022 != 0 {
			return fmt.Errorf("%q is no folder that root alone may change", at)
		}
		if at == "/" {
			break
		}
	}
	entries, err := os.ReadDir(path)
	if err == nil && len(entries) > 0 {
		err = fmt.Errorf("%q is not empty", path)
	}
	return err
}

// namespaces are the clone flags and mappings that put the stage where a mode needs it.
func namespaces(p *plan) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true}
	if p.Mode == ModePrivateCopy {
		return attr
	}
	attr.Cloneflags = unix.CLONE_NEWNS
	if p.PIDNamespace {
		attr.Cloneflags |= unix.CLONE_NEWPID
		attr.Pdeathsig = syscall.SIGKILL
	}
	if p.Mode == ModeUser {
		attr.Cloneflags |= unix.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}
		// The stage needs these across its own exec: to mount, and to give up everything before the command.
		attr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SETPCAP}
	}
	return attr
}

// unavailable reports whether starting the stage failed because the kernel or the container does not allow its
// namespaces.
func unavailable(err error) bool {
	return errors.Is(err, unix.EPERM) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) ||
		errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.EUSERS) || errors.Is(err, fs.ErrNotExist)
}

// whyUnavailable words such a failure. The kernel's own word for a limit on namespaces is that no space is left on a device.
func whyUnavailable(err error) string {
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EUSERS) {
		return fmt.Sprintf("the kernel gives out no more of them (%s): raise the limit that is reached", settingsNow())
	}
	return err.Error()
}

// mountRoot is the private root of the modes with a mount namespace.
type mountRoot struct {
	path   string
	binds  []bind
	hidden []string
}

// bind is a folder or file of the job directory, held open until it is mounted.
type bind struct {
	name string
	fd   int
}

// protect mounts the private root, an empty tmpfs of at most size bytes. Nothing that is mounted here is seen
// outside the stage's mount namespace, and it ends with it.
func protect(p *plan, size int64) (privateRoot, error) {
	if err := unix.Mount("", "/", "", unix.MS_SLAVE|unix.MS_REC, ""); err != nil {
		return nil, fmt.Errorf("make the mounts private: %w", err)
	}
	if p.PIDNamespace {
		if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
			return nil, fmt.Errorf("mount /proc for the job's processes: %w", err)
		}
	}
	options := fmt.Sprintf("mode=0755,size=%d", size)
	err := unix.Mount("gatehouse", p.Root, "tmpfs", rootFlags, options+largePages)
	if errors.Is(err, unix.EINVAL) { // a kernel without them
		err = unix.Mount("gatehouse", p.Root, "tmpfs", rootFlags, options)
	}
	if err != nil {
		return nil, fmt.Errorf("mount a tmpfs at %q: %w", p.Root, err)
	}
	m := &mountRoot{path: p.Root}
	return m, m.hide(p.Hidden)
}

// hide mounts an empty folder, which nobody can write to, over each of the folders that are there. The job has no right to
// take it away.
func (m *mountRoot) hide(folders []string) error {
	for _, folder := range folders {
		err := unix.Mount("gatehouse", folder, "tmpfs", rootFlags|unix.MS_RDONLY|unix.MS_NOEXEC, "mode=0,size=4096")
		if errors.Is(err, unix.ENOENT) {
			continue
		}
		if err != nil {
			return fmt.Errorf("hide %q from the job: %w", folder, err)
		}
		m.hidden = append(m.hidden, folder)
	}
	return nil
}

func (m *mountRoot) hides() []string { return m.hidden }

const (
	rootFlags = unix.MS_NOSUID | unix.MS_NODEV
	// largePages lets large files lie in large pages, as far as they fill them: copying and hashing costs half.
	largePages = ",huge=within_size"
)

// place opens the names of the job directory that the job may see, with the job's rights, and makes a place for each.
func (m *mountRoot) place(p *plan, names []string, root *os.Root) error {
	err := p.User.identity().do(func() error {
		dir, err := walked(p.JobDir)
		if err != nil {
			return err
		}
		defer unix.Close(dir)
		for _, name := range names {
			fd, err := unix.Openat(dir, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
			if err != nil {
				return &fs.PathError{Op: "open", Path: filepath.Join(p.JobDir, name), Err: err}
			}
			m.binds = append(m.binds, bind{name, fd})
		}
		return nil
	})
	for _, b := range m.binds {
		if err != nil {
			break
		}
		err = placeOf(b, root)
	}
	return err
}

// placeOf makes the folder or file that b will be mounted upon.
func placeOf(b bind, root *os.Root) error {
	var st unix.Stat_t
	if err := unix.Fstat(b.fd, &st); err != nil {
		return err
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return root.Mkdir(b.name, 0o755)
	case unix.S_IFREG:
		return writeFile(root, b.name, nil, 0o444)
	}
	return fmt.Errorf("%.200q: %w", b.name, errOddFile)
}

// seal makes the root read-only for everyone, in the file system itself: no descriptor that could still write to it
// survives, the kernel refuses while there is one. Only then is it worth hashing.
func (m *mountRoot) seal() error {
	err := unix.Mount("", m.path, "", unix.MS_REMOUNT|unix.MS_RDONLY|rootFlags, "")
	if errors.Is(err, unix.EBUSY) {
		return fmt.Errorf("somebody holds a file in the job's root open for writing: %w", err)
	}
	if err != nil {
		return fmt.Errorf("make the job's root read-only: %w", err)
	}
	return nil
}

// attach mounts what place opened. The places lie in the sealed root; what is mounted there stays as it is.
func (m *mountRoot) attach() error {
	defer m.release()
	for _, b := range m.binds {
		at := filepath.Join(m.path, b.name)
		if err := unix.Mount(fmt.Sprintf("/proc/self/fd/%d", b.fd), at, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return fmt.Errorf("show %q to the job: %w", b.name, err)
		}
	}
	return nil
}

// release closes what is held open.
func (m *mountRoot) release() {
	for _, b := range m.binds {
		unix.Close(b.fd)
	}
	m.binds = nil
}

// remove has nothing to do: the root ends with the namespace.
func (m *mountRoot) remove() error {
	m.release()
	return nil
}
