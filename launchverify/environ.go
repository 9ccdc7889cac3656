package launchverify

import (
	"iter"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
)

// environment is what the command gets, and what was changed on the way (design.md 6, item 4).
type environment struct {
	vars    []string
	removed []string
	set     []string
	passed  []string // of the variables that steer, those that are passed on
}

// steering are the variables that decide which code Python loads, or what becomes of its exit code; they are not passed on:
// they mostly come along by accident, from a shell or a module of the site, and turn what was checked into something else.
// With a dialect's prefix in front: whether a capsule counts as verified, where recipes come from, and which archive stands for the
// platform's own package in the process that trains; the capsule's runner sets that for itself.
var (
	steering = []string{
		"PYTHONPATH", "PYTHONPYCACHEPREFIX", "PYTHONHOME", "PYTHONPLATLIBDIR",
		"PYTHONSTARTUP", "PYTHONBREAKPOINT", "PYTHONINSPECT", // the last one makes a failed script end with 0
	}
	steeringPrefixed = []string{"CAPSULE_VERIFIED", "RECIPE_PATH", "RUNNER_PEX"}
)

// passed are variables that decide what is loaded too, and are passed on: accelerators, MPI and the modules of clusters do
// not work without them. Who writes the environment writes the command line as well, and is not kept out (design.md 6);
// the record says which were there.
var passed = []string{"LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "BASH_ENV", "ENV", "PYTHONUSERBASE", "PYTHONWARNINGS"}

// pythonSwitches keep Python from writing byte code beside sources and from loading the user's own site-packages.
var pythonSwitches = []string{"PYTHONDONTWRITEBYTECODE", "PYTHONNOUSERSITE"}

// jobEnvironment derives the command's environment. Of the steering variables and of Python's switches those that keep
// names stay as they are; where the job's directory is can't be kept. root is where the job sees that
// directory; outputs is where its outputs go. user, unless nil, is somebody else than the variables are of.
func jobEnvironment(env []string, d dialect.Dialect, root, outputs string, user *User, keep []string) environment {
	prefix := d.Names().EnvPrefix
	drop := slices.Clone(steering)
	for _, other := range dialect.All {
		for _, name := range steeringPrefixed {
			drop = append(drop, other.Names().EnvPrefix+name)
		}
	}
	e := environment{set: []string{prefix + "WORK_DIR=" + root, "PWD=" + root}}
	if out, _ := lookup(env, prefix+"OUT_DIR"); out != outputs {
		e.set = append(e.set, prefix+"OUT_DIR="+outputs)
	}
	for _, name := range pythonSwitches {
		if !slices.Contains(keep, name) {
			e.set = append(e.set, name+"=1")
		}
	}
	for name, value := range user.environment() {
		if have, _ := lookup(env, name); have != value && !slices.Contains(keep, name) {
			e.set = append(e.set, name+"="+value)
		}
	}
	for _, entry := range env {
		name, _, _ := strings.Cut(entry, "=")
		switch {
		case slices.Contains(drop, name) && !slices.Contains(keep, name):
			if !slices.Contains(e.removed, name) {
				e.removed = append(e.removed, name)
			}
		case !slices.ContainsFunc(e.set, func(s string) bool { return strings.HasPrefix(s, name+"=") }):
			e.vars = append(e.vars, entry)
			if (slices.Contains(drop, name) || slices.Contains(passed, name)) && !slices.Contains(e.passed, name) {
				e.passed = append(e.passed, name)
			}
		}
	}
	slices.Sort(e.removed)
	slices.Sort(e.passed)
	e.vars = append(e.vars, e.set...)
	return e
}

// environment gives the variables that say whose environment it is.
func (u *User) environment() iter.Seq2[string, string] {
	return func(yield func(name, value string) bool) {
		if u == nil || u.Name == "" {
			return
		}
		_ = yield("HOME", u.Home) && yield("LOGNAME", u.Name) && yield("USER", u.Name)
	}
}

// lookup finds a variable's value as the C library does: the first entry counts.
func lookup(env []string, name string) (string, bool) {
	for _, entry := range env {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value, true
		}
	}
	return "", false
}

// outputs is where the job's outputs go: where its environment says, else <exp>/outputs in the job directory, where the
// launchers put them when nobody says. It is absolute: the job has another current directory than we do.
func (l *launch) outputs() string {
	out, _ := lookup(l.o.Env, l.job.names().EnvPrefix+"OUT_DIR")
	if abs, err := filepath.Abs(out); out != "" && err == nil {
		return abs
	}
	return filepath.Join(l.job.dir, filepath.FromSlash(l.job.spec.Source.Exp), "outputs")
}
