//go:build unix

package launchverify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/jobspec"
	"github.com/gatehouse-registry/gatehouse/launchverify/nodecache"
)

// RunProbe tries every mode for real: it starts a stage that builds and seals a root and runs a command in it that does
// nothing, and leaves again. What the kernel allows is not guessed from its settings; those are told beside. Nothing is left
// behind. Like Run it works with the rights and signals of the whole process. The error is a *UsageError, or says why nothing
// could be tried.
func RunProbe(ctx context.Context, o ProbeOptions) (found Probe, err error) {
	who, err := identify(o.User)
	if err != nil {
		return Probe{}, err
	}
	if o.CacheDir == "" {
		return Probe{}, usagef("a probe needs a cache directory")
	}
	p := probing{o: o, who: who, found: Probe{Schema: ProbeSchema, Kernel: kernel(), User: who.User, Modes: []ProbedMode{}}}
	scratch, usable := p.cache()
	if scratch != "" {
		made := scratch
		defer func() { err = errors.Join(err, removeTree(made)) }()
	}
	if !usable {
		scratch = o.CacheDir // a launch makes do with what it has
	}
	p.mountPoint()
	for _, mode := range []Mode{ModeRoot, ModeUser, ModePrivateCopy} {
		if err := ctx.Err(); err != nil {
			return p.found, err
		}
		p.mode(ctx, mode, scratch)
	}
	p.found.Facts = append(p.found.Facts, kernelFacts()...)
	return p.found, nil
}

func kernel() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return err.Error()
	}
	return unix.ByteSliceToString(u.Sysname[:]) + " " + unix.ByteSliceToString(u.Release[:])
}

// probing is one probe.
type probing struct {
	o     ProbeOptions
	who   identity
	found Probe
	owned *Record // of mode root, where it keeps out no more than mode user (ownedRoot)
}

func (p *probing) fact(name string, ok bool, format string, args ...any) {
	p.found.Facts = append(p.found.Facts, ProbedFact{name, ok, oneLine(fmt.Sprintf(format, args...))})
}

// cache makes a folder where the cache is, or would be, and writes to it. The caller removes the folder.
func (p *probing) cache() (scratch string, usable bool) {
	at, err := filepath.Abs(p.o.CacheDir)
	if err != nil {
		p.fact("cache", false, "%v", err)
		return "", false
	}
	for {
		if _, err := os.Stat(at); !errors.Is(err, fs.ErrNotExist) || at == filepath.Dir(at) {
			break
		}
		at = filepath.Dir(at) // a launch makes what is missing
	}
	scratch, err = os.MkdirTemp(at, "gatehouse-probe-*")
	if err == nil {
		err = os.WriteFile(filepath.Join(scratch, "file"), make([]byte, 4096), 0o600)
	}
	if err != nil {
		p.fact("cache", false, "%s: %v", p.o.CacheDir, err)
		return scratch, false
	}
	var st unix.Statfs_t
	if err := unix.Statfs(scratch, &st); err != nil {
		p.fact("cache", false, "%s: %v", p.o.CacheDir, err)
		return scratch, false
	}
	p.fact("cache", true, "%s can be written to; free: %d MiB", p.o.CacheDir, uint64(st.Bavail)*uint64(st.Bsize)>>20)
	return scratch, true
}

// mountPoint looks for the place of the root.
func (p *probing) mountPoint() {
	mode := ModeUser
	if os.Geteuid() == 0 {
		mode = ModeRoot
	}
	undo := keepingMountPoint()
	defer undo()
	if at, err := mountPoint(mode, p.o.MountPoint); err != nil {
		p.fact("mount point", false, "%v", err)
	} else {
		p.fact("mount point", true, "%s", at)
	}
}

// mode tries one mode, in its better form first.
func (p *probing) mode(ctx context.Context, mode Mode, scratch string) {
	out := ProbedMode{Mode: mode, Asked: mode == ModePrivateCopy}
	defer func() {
		p.found.Modes = append(p.found.Modes, out)
		if p.found.Mode == "" && out.Available && (!out.Asked || p.o.AllowPrivateCopy) {
			p.found.Mode = mode
		}
	}()
	if mode == ModeRoot && os.Geteuid() != 0 {
		out.Why = fmt.Sprintf("the agent is not root (uid %d)", os.Geteuid())
		return
	}
	if mode == ModeUser && p.owned != nil { // a launch tries no further
		out.Available, out.Root, out.Tracking = true, p.owned.Root, p.owned.Tracking
		return
	}
	undo := keepingMountPoint()
	defer undo()
	var reasons []string
	for _, pidNamespace := range []bool{true, false} {
		if pidNamespace && mode == ModePrivateCopy {
			continue
		}
		rec, why := p.attempt(ctx, mode, pidNamespace, scratch)
		if pidNamespace {
			p.fact("process namespace in mode "+string(mode), why == "", "%s", cmp.Or(why, "the job gets one"))
		}
		if why == "" && rec.Mode != mode {
			p.owned, out.Why = &rec, rec.Unavailable[mode]
			return
		}
		if why == "" {
			out.Available, out.Root, out.Tracking = true, rec.Root, rec.Tracking
			if mode == ModePrivateCopy {
				out.Root = ""
			}
			return
		}
		reasons = append(reasons, why)
	}
	out.Why = oneLine(strings.Join(reasons, "; without a process namespace: "))
}

// attempt starts a stage as a launch does. why is "" when the command ran and ended as it should.
func (p *probing) attempt(ctx context.Context, mode Mode, pidNamespace bool, scratch string) (rec Record, why string) {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return rec, err.Error()
	}
	defer null.Close()
	rec = Record{Unavailable: map[Mode]string{}}
	l := launch{
		o: Options{
			Command: []string{"true"}, Env: stageEnv, Grace: time.Second, MountPoint: p.o.MountPoint, Stdin: null, Stdout: null, Stderr: null,
		},
		rec: &rec, who: p.who, job: &job{dir: "/", dialect: dialect.Forge, spec: &jobspec.Spec{}},
	}
	var store *nodecache.Cache
	if mode == ModePrivateCopy {
		if store, err = nodecache.Open(scratch, nodecache.Options{}); err != nil {
			return rec, err.Error()
		}
		defer store.Close()
	}
	plan := &plan{
		Probe: true, Mode: mode, PIDNamespace: pidNamespace, User: identityPlan{p.who.User, p.who.other}, JobDir: l.job.dir, Dialect: l.job.dialect,
		Command: l.o.Command, Grace: l.o.Grace,
	}
	why, err = l.attempt(ctx, plan, store)
	_, noCommand := errors.AsType[*commandError](err)
	switch {
	case why != "":
	case err != nil && !noCommand:
		why = err.Error()
	case err == nil && rec.ExitCode != 0:
		why = fmt.Sprintf("a command that does nothing ended with exit code %d", rec.ExitCode)
	}
	return rec, why
}

// keepingMountPoint gives what removes the folder of the root again, if it was not there before.
func keepingMountPoint() func() {
	if _, err := os.Lstat(runMountPoint); !errors.Is(err, fs.ErrNotExist) {
		return func() {}
	}
	return func() { os.Remove(runMountPoint) } // it is empty, or another launch is in it
}

// probe is run in place of all that a launch does between its plan and its command: an empty root is made, written to and
// sealed, and the command runs in it.
func (s *stage) probe(gone chan struct{}, umask int) (err error) {
	private, err := s.enter(nil)
	if err != nil {
		s.tell(report{Unavailable: err.Error()})
		return nil
	}
	defer func() { err = errors.Join(err, private.remove()) }()
	root, err := os.OpenRoot(s.plan.Root)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := writeFile(root, "file", []byte("x"), 0o444); err != nil {
		return err
	}
	if err := private.seal(); err != nil {
		return err
	}
	if s.plan.Mode != ModePrivateCopy {
		if err := writeFile(root, "another", nil, 0o444); !errors.Is(err, unix.EROFS) {
			return fmt.Errorf("the sealed root could be written to (%v)", err)
		}
	}
	return s.execute(gone, umask)
}
