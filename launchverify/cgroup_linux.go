package launchverify

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// cgroupPrefix begins the name of every group that an agent makes: gatehouse-<process namespace>-<pid>-<start>.
const cgroupPrefix = "gatehouse-"

// newCgroup makes a group below the agent's own, where the agent may: as root, or where a subtree was delegated to its
// user. It also ends and removes groups of agents that are no more.
func newCgroup() (cgroup, error) {
	own, err := ownCgroup()
	if err != nil {
		return "", err
	}
	sweepCgroups(own)
	start := readStat(os.Getpid())
	if start == nil {
		return "", fmt.Errorf("no /proc/%d/stat", os.Getpid())
	}
	name := fmt.Sprintf("%s%s-%d-%s", cgroupPrefix, processSpace(), os.Getpid(), start[statStart])
	group := cgroup(filepath.Join(own, name))
	if err := os.Mkdir(string(group), 0o755); err != nil {
		return "", err
	}
	if _, err := os.Stat(group.file("cgroup.kill")); err != nil { // kernels before 5.14
		os.Remove(string(group))
		return "", err
	}
	return group, nil
}

func (g cgroup) file(name string) string { return filepath.Join(string(g), name) }

// ownCgroup is the folder of the group that this process is in.
func ownCgroup() (string, error) {
	b, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(b)) {
		if path, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::"); ok {
			mount, err := cgroupMount()
			return filepath.Join(mount, path), err
		}
	}
	return "", fmt.Errorf("the node has no cgroup v2")
}

// cgroupMount finds where the version 2 hierarchy is mounted.
func cgroupMount() (string, error) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return "", err
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		// id parent device root mount-point options… - type source options
		before, after, _ := strings.Cut(lines.Text(), " - ")
		fields := strings.Fields(before)
		if strings.HasPrefix(after, "cgroup2 ") && len(fields) > 4 && fields[3] == "/" {
			return fields[4], nil
		}
	}
	return "", fmt.Errorf("cgroup v2 is not mounted whole")
}

// open gives the descriptor with which a process is started in the group.
func (g cgroup) open() (int, error) {
	return unix.Open(string(g), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
}

// kill kills every process of the group at once.
func (g cgroup) kill() {
	if g != "" {
		os.WriteFile(g.file("cgroup.kill"), []byte("1"), 0)
	}
}

// remove removes the group, and groups that were made below it, when they are empty. It reports whether the group is gone.
func (g cgroup) remove() bool {
	if g == "" {
		return true
	}
	var folders []string
	filepath.WalkDir(string(g), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			folders = append(folders, path)
		}
		return nil
	})
	for _, folder := range slices.Backward(folders) {
		os.Remove(folder)
	}
	_, err := os.Lstat(string(g))
	return errors.Is(err, fs.ErrNotExist)
}

// sweepCgroups ends the groups of agents that were killed together with everything that would have ended them.
func sweepCgroups(own string) {
	groups, _ := filepath.Glob(filepath.Join(own, cgroupPrefix+processSpace()+"-*"))
	for _, path := range groups {
		parts := strings.Split(path, "-")
		pid, err := strconv.Atoi(parts[len(parts)-2])
		if stat := readStat(pid); err != nil || stat != nil && stat[statStart] == parts[len(parts)-1] {
			continue
		}
		for range 50 { // the kernel takes a moment
			cgroup(path).kill()
			if cgroup(path).remove() {
				break
			}
			time.Sleep(2 * time.Millisecond)
		}
	}
}
