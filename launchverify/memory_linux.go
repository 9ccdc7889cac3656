package launchverify

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// memoryLeft estimates how many bytes a root may take, which lies in memory, and says what limits it: the node, or the least
// of the control groups that this process is in.
func memoryLeft() (bytes int64, by string) {
	bytes, by = math.MaxInt64, "nothing that is known"
	if n, ok := memAvailable(); ok {
		bytes, by = n, "the node's memory"
	}
	for _, group := range memoryGroups() {
		if left, most, ok := group.left(); ok && left < bytes {
			bytes, by = left, fmt.Sprintf("%s (%d bytes)", filepath.Join(group.dir, group.limit), most)
		}
	}
	return bytes, by
}

func memAvailable() (int64, bool) {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0, false
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if fields := strings.Fields(lines.Text()); len(fields) > 1 && fields[0] == "MemAvailable:" {
			n, err := strconv.ParseInt(fields[1], 10, 64)
			return n << 10, err == nil
		}
	}
	return 0, false
}

// memoryGroup is a control group that limits memory, in either version.
type memoryGroup struct{ dir, limit, usage string }

// memoryGroups lists the groups that this process is in, with those above them.
func memoryGroups() []memoryGroup {
	b, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil
	}
	var groups []memoryGroup
	for line := range strings.Lines(string(b)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		for path := parts[2]; ; path = filepath.Dir(path) {
			switch {
			case parts[1] == "":
				groups = append(groups, memoryGroup{filepath.Join("/sys/fs/cgroup", path), "memory.max", "memory.current"})
			case strings.Contains(","+parts[1]+",", ",memory,"):
				groups = append(groups, memoryGroup{filepath.Join("/sys/fs/cgroup/memory", path), "memory.limit_in_bytes", "memory.usage_in_bytes"})
			}
			if path == "/" || path == "." {
				break
			}
		}
	}
	return groups
}

// left is what a group still gives, of most; ok is false when it limits nothing.
func (g memoryGroup) left() (left, most int64, ok bool) {
	if most, ok = readCount(filepath.Join(g.dir, g.limit)); !ok {
		return 0, 0, false
	}
	used, _ := readCount(filepath.Join(g.dir, g.usage))
	return max(0, most-used+reclaimable(g.dir)), most, true
}

// readCount reads a number; "max" and what is as good as that are none.
func readCount(file string) (int64, bool) {
	b, err := os.ReadFile(file)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	return n, err == nil && n < math.MaxInt64>>1
}

// reclaimable is how much of a group's memory the kernel takes back when it is wanted: cached files.
func reclaimable(dir string) int64 {
	b, err := os.ReadFile(filepath.Join(dir, "memory.stat"))
	if err != nil {
		return 0
	}
	var n int64
	for line := range strings.Lines(string(b)) {
		fields := strings.Fields(line)
		if len(fields) == 2 && (fields[0] == "inactive_file" || fields[0] == "active_file") {
			one, _ := strconv.ParseInt(fields[1], 10, 64)
			n += one
		}
	}
	return n
}
