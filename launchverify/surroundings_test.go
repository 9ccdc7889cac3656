//go:build linux

package launchverify

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
)

// agentFile writes what an agent of its own is to launch.
func (r *rig) agentFile(o Options) string {
	r.t.Helper()
	trust, err := o.Trust.Encode()
	if err != nil {
		r.t.Fatal(err)
	}
	trustFile, file := filepath.Join(r.base, "trust.json"), filepath.Join(r.base, "agent.json")
	src, err := json.Marshal(agentOptions{JobSpec: o.JobSpec, Trust: trustFile, Cache: o.CacheDir, Command: o.Command, Env: o.Env, Mode: o.modes[0], Grace: o.Grace})
	if err == nil {
		err = errors.Join(os.WriteFile(trustFile, trust, 0o644), os.WriteFile(file, src, 0o644))
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return file
}

// surroundings runs a shell script that ends in an agent, $AGENT $VERB $FILE, where it may mount what it likes.
func (r *rig) surroundings(script string, o Options) (code int, stderr string) {
	r.t.Helper()
	cmd := exec.Command("/bin/sh", "-c", script)
	self, err := os.Executable()
	if err != nil {
		r.t.Fatal(err)
	}
	cmd.Env = []string{noWait, "PATH=" + os.Getenv("PATH"), "BASE=" + r.base, "JOB=" + r.job, "AGENT=" + self, "VERB=" + agentVerb, "FILE=" + r.agentFile(o)}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
	var text bytes.Buffer
	cmd.Stderr = &text
	err = cmd.Run()
	if _, ended := errors.AsType[*exec.ExitError](err); err != nil && !ended {
		r.t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), text.String()
}

// private makes what a script mounts its own.
const private = "mount --make-rprivate / && "

// A launch goes on without what it does not need, and ends in one line and a code of its own without what it does.
func TestSurroundings(t *testing.T) {
	const agent = `"$AGENT" $VERB "$FILE"`
	for name, c := range map[string]struct {
		script string
		spoil  func(o *Options)
		code   int
		says   string
	}{
		"an empty environment":     {`exec env -i GORACE=atexit_sleep_ms=0 ` + agent, nil, 0, ""},
		"a removed directory":      {`mkdir "$BASE/gone" && cd "$BASE/gone" && rmdir "$BASE/gone" && exec ` + agent, nil, 0, ""},
		"no standard input":        {`exec ` + agent + ` <&-`, nil, 0, ""},
		"no standard descriptors":  {`exec ` + agent + ` <&- >&- 2>&-`, nil, 0, ""},
		"a read-only home":         {private + `mkdir "$BASE/ro" && mount -t tmpfs -o ro none "$BASE/ro" && HOME="$BASE/ro" exec ` + agent, nil, 0, ""},
		"the job on another mount": {private + `cp -r "$JOB" "$BASE/copy" && mount -t tmpfs none "$JOB" && cp -r "$BASE/copy/." "$JOB/" && exec ` + agent, nil, 0, ""},
		"the experiment on one":    {private + `mount -t tmpfs none "$JOB/experiments" && mkdir "$JOB/experiments/demo" && exec ` + agent, nil, 0, ""},
		"a read-only cache":        {private + `mkdir "$BASE/ro" && mount -t tmpfs -o ro none "$BASE/ro" && exec ` + agent, func(o *Options) { o.CacheDir = filepath.Join(filepath.Dir(o.CacheDir), "ro", "cache") }, 0, ""},
		"a cache below a file":     {`: >"$BASE/file" && exec ` + agent, func(o *Options) { o.CacheDir = filepath.Join(filepath.Dir(o.CacheDir), "file", "cache") }, 0, ""},
		"a full cache":             {private + `mkdir "$BASE/small" && mount -t tmpfs -o size=4k none "$BASE/small" && exec ` + agent, func(o *Options) { o.CacheDir = filepath.Join(filepath.Dir(o.CacheDir), "small") }, 3, "launch.room"},
		"no /proc":                 {private + `mount -t tmpfs none /proc && exec ` + agent, nil, 1, "/proc"},
		"a removed directory, which the spec is relative to": {`mkdir "$BASE/gone" && cd "$BASE/gone" && rmdir "$BASE/gone" && exec ` + agent, func(o *Options) { o.JobSpec = "job/.starforge/jobspec.json" }, 1, "getwd"},
	} {
		for _, mode := range modes(t) {
			r := newRig(t, dialect.Forge)
			r.spec()
			r.sign()
			o := r.options()
			o.modes = []Mode{mode}
			if c.spoil != nil {
				c.spoil(&o)
			}
			if c.says == "launch.room" && mode != ModePrivateCopy {
				continue // the root is not there
			}
			code, stderr := r.surroundings(c.script, o)
			_, ran := r.saw()
			if code != c.code || ran != (c.code == 0) || !strings.Contains(stderr, c.says) {
				t.Errorf("%s, %s: exit code %d, ran %v, %q; expected %d and %q", name, mode, code, ran, stderr, c.code, c.says)
			}
			if c.code != 0 && strings.Count(stderr, "\n") != 1 {
				t.Errorf("%s, %s: not one line: %q", name, mode, stderr)
			}
		}
	}
}
