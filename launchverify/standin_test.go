//go:build linux

package launchverify

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gatehouse-registry/gatehouse/digest"
)

// seen is what the stand-in for a launcher saw.
type seen struct {
	Dir         string            // current directory
	Env         map[string]string //
	Files       map[string]string // of its directory, path to sha256; binds by "name/"
	Writable    []string          // what it could write to or remove
	Descriptors []string          // open, beyond the first three
	Caps        string            // effective capabilities
	Bounding    string
	NoNewPrivs  string
	Latin       []byte // the variable LATIN
	LastArg     []byte
	UID         int
	PID         int
}

// look is the stand-in: it writes down what it sees.
func look(path string) int {
	dir, err := os.Getwd()
	if err != nil {
		return 90
	}
	s := seen{Dir: dir, Env: map[string]string{}, Files: map[string]string{}, UID: os.Getuid(), PID: os.Getpid()}
	for _, entry := range os.Environ() {
		name, value, _ := strings.Cut(entry, "=")
		s.Env[name] = value
	}
	s.Descriptors = descriptors()
	s.Latin, s.LastArg = []byte(os.Getenv("LATIN")), []byte(os.Args[len(os.Args)-1])
	filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(dir, p)
		if err != nil || rel == "." {
			return nil
		}
		if d.IsDir() || d.Type()&fs.ModeSymlink != 0 {
			if !strings.Contains(rel, "/") && !strings.HasPrefix(rel, ".") && !strings.HasSuffix(rel, "_plugins") && !strings.HasSuffix(rel, "_recipes") {
				s.Files[rel+"/"] = ""
				if d.IsDir() {
					return fs.SkipDir
				}
				return nil
			}
			if os.WriteFile(filepath.Join(p, "new"), nil, 0o644) == nil {
				s.Writable = append(s.Writable, rel)
			}
			return nil
		}
		b, err := os.ReadFile(p)
		if err != nil {
			s.Files[rel] = err.Error()
			return nil
		}
		sum := digest.FromBytes(b)
		s.Files[rel] = sum.Hex()
		if f, err := os.OpenFile(p, os.O_WRONLY, 0); err == nil {
			f.Close()
			s.Writable = append(s.Writable, rel)
		}
		return nil
	})
	status, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":\t")
		switch name {
		case "CapEff":
			s.Caps = value
		case "CapBnd":
			s.Bounding = value
		case "NoNewPrivs":
			s.NoNewPrivs = value
		}
	}
	b, err := json.Marshal(s)
	if err != nil || os.WriteFile(path, b, 0o666) != nil {
		return 91
	}
	return 0
}

// descriptors lists what is open beyond the first three, but for what the Go runtime opens for itself.
func descriptors() []string {
	open := []string{}
	entries, _ := os.ReadDir("/proc/self/fd")
	for _, e := range entries {
		target, err := os.Readlink("/proc/self/fd/" + e.Name())
		if err != nil || len(e.Name()) == 1 && e.Name() < "3" {
			continue
		}
		fd, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		// What this program opened itself is closed on exec; what it got from whoever started it is not.
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			open = append(open, e.Name()+" "+target)
		}
	}
	return open
}

// saw reads what the stand-in wrote down; false when it never ran.
func (r *rig) saw() (seen, bool) {
	r.t.Helper()
	b, err := os.ReadFile(filepath.Join(r.base, "look.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return seen{}, false
	}
	var s seen
	if err == nil {
		err = json.Unmarshal(b, &s)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return s, true
}
