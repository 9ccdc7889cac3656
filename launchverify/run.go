package launchverify

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-registry/gatehouse/admission"
	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/receipt"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/launchverify/nodecache"
)

// Run launches a job: it checks everything, starts the command, and returns when nothing of it is left. The record
// says what happened however it ends. The error is nil when the command ran to its end, whatever its exit code; a
// *rule.Denied when gate 3 refused; a *UsageError for options that can't be followed. ExitCode turns both into the
// code of the process. An error's text is one line. When ctx is cancelled before the command starts, Run gives up;
// afterwards only signals end the command.
//
// One Run at a time: it works with the rights and signals of the whole process.
func Run(ctx context.Context, o Options) (Record, error) {
	rec := Record{
		Schema: RecordSchema, Command: o.Command, Plugins: []receipt.Pin{}, Recipes: []receipt.Pin{},
		Binds: []string{}, RemovedEnv: []string{}, SetEnv: []string{}, Unavailable: map[Mode]string{},
	}
	l := launch{o: o, rec: &rec}
	if err := l.run(ctx); err != nil {
		if denied, ok := errors.AsType[*rule.Denied](err); ok {
			rec.Decision = &denied.Decision
		}
		return rec, &lineError{err}
	}
	return rec, nil
}

// launch carries one Run.
type launch struct {
	o   Options
	rec *Record
	who identity
	job *job
	rcp *receipt.Receipt

	store   *nodecache.Cache   // open once something is asked of it
	entries []*nodecache.Entry // of the cache; the launch holds them

	keysFromRegistry bool // no key was pinned: the registry named those that verify the receipt
}

func (l *launch) run(ctx context.Context) error {
	defer func() {
		if l.store != nil {
			l.store.Close() // what it leaves the next launch removes
		}
	}()
	if err := l.complete(); err != nil {
		return err
	}
	if err := l.admitted(ctx); err != nil {
		return err
	}
	if err := l.early(); err != nil {
		return err
	}
	l.rec.CoreVersion, l.rec.CoreSource = l.o.CoreVersion, "option"
	if l.o.CoreVersion == "" {
		l.rec.CoreVersion, l.rec.CoreSource = l.job.spec.Provenance.CoreVersion, "provenance"
	}
	binds, err := l.binds()
	if err != nil {
		return err
	}
	store, err := l.cache()
	if err != nil {
		return err
	}
	l.rec.Plugins, l.rec.Recipes = append(l.rec.Plugins, l.rcp.Plugins...), append(l.rec.Recipes, l.rcp.Recipes...)
	if err := l.revoked(ctx, store); err != nil {
		return err
	}
	// A copy that is not what is pinned came from a damaged cache: it is fetched again, once.
	for attempt := range 2 {
		p := l.plan(binds)
		if err := l.fetch(ctx, store, p); err != nil {
			return err
		}
		if err = l.protected(ctx, p, store); attempt == 1 || !damaged(err, p) {
			break
		}
		if err := l.drop(store); err != nil {
			return err
		}
	}
	return err
}

// admitted brings the spec and the receipt that says that the job was admitted.
func (l *launch) admitted(ctx context.Context) (err error) {
	if l.o.JobSpec == "" {
		l.job, err = jobHere()
	} else {
		l.job, err = openJob(l.o.JobSpec, l.who, l.o.Policy)
	}
	if err != nil {
		return err
	}
	l.rec.JobDir, l.rec.Dialect = l.job.dir, l.job.dialect
	l.rec.JobOwner = l.job.owner
	if l.job.bytes != nil {
		l.rec.SpecBytes = digest.FromBytes(l.job.bytes)
	}
	if err := l.receive(ctx); err != nil {
		return err
	}
	if l.job.bytes == nil {
		err = l.pinnedSpec(ctx)
		l.rec.Dialect, l.rec.SpecBytes = l.rcp.Dialect, l.rcp.SpecBytes
	}
	return err
}

// complete fills in what the options leave open and refuses what can't be followed.
func (l *launch) complete() (err error) {
	o := &l.o
	switch {
	case o.JobSpec == "" && !o.FromPackage:
		return usagef("no job spec is named")
	case o.Package != "" && !o.FromPackage:
		return usagef("a package is named for a job whose directory is not made of it")
	case o.FromPackage && len(o.Binds) > 0:
		return usagef("a job whose directory is made of its package sees nothing else of the user's: it takes no binds")
	case o.CheckOnly && len(o.Command) > 0:
		return usagef("a launch that only checks starts no command")
	case !o.CheckOnly && (len(o.Command) == 0 || o.Command[0] == ""):
		return usagef("no command is named")
	case o.CacheDir == "" || o.Fetcher == nil:
		return usagef("a launch needs a cache directory and a fetcher")
	}
	if o.Env == nil {
		o.Env = os.Environ()
	}
	if o.Grace <= 0 {
		o.Grace = DefaultGrace
	}
	if o.Now.IsZero() {
		o.Now = time.Now()
	}
	o.Command = slices.Clone(o.Command)
	if !o.CheckOnly && strings.Contains(o.Command[0], "/") {
		if o.Command[0], err = filepath.Abs(o.Command[0]); err != nil {
			return err
		}
	}
	for file, own := range map[**os.File]*os.File{&o.Stdin: os.Stdin, &o.Stdout: os.Stdout, &o.Stderr: os.Stderr} {
		if *file == nil {
			*file = own
		}
	}
	l.who, err = identify(o.User)
	l.rec.User = l.who.User
	return err
}

// early refuses a spec that says too little to go on with. What it pins can't be fetched then, and gate 3 has
// nothing else to look at.
func (l *launch) early() error {
	if l.job.report.OK() {
		return nil
	}
	decision := admission.CheckLaunch(admission.LaunchInput{
		Policy: l.o.Policy, Dialect: l.job.dialect, SpecFile: filepath.Join(l.job.names().SpecDir, specName),
		SpecBytes: l.job.bytes, Receipt: l.rcp, CoreVersion: l.o.CoreVersion,
	})
	if decision.Allowed {
		return errors.New("the spec was refused by one reading and not by another")
	}
	return decision.Err()
}

// binds lists the names at the top of the job directory that the job may see: where its experiment lies, what
// experiments share, and what the caller named.
func (l *launch) binds() ([]string, error) {
	exp, _, _ := strings.Cut(l.job.spec.Source.Exp, "/")
	names := []string{exp}
	for _, name := range append([]string{"common", "configs"}, l.o.Binds...) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, name := range names {
		if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
			return nil, usagef("%.200q is no name at the top of the job directory", name)
		}
		if dialect.IsJobFolder(name) {
			return nil, refusal("launch.bind", l.job.subject(), "%.200q is where pinned files lie", name)
		}
	}
	return names, nil
}

// plan is what the stage is told, but for what the mode decides.
func (l *launch) plan(binds []string) *plan {
	return &plan{
		User: identityPlan{l.who.User, l.who.other}, JobDir: l.job.dir, Dialect: l.job.dialect, Spec: l.job.bytes,
		Recipe: l.job.spec.Recipe.Name, Exp: l.job.spec.Source.Exp, Receipt: l.rcp, Core: l.o.CoreVersion, Softened: softened(l.o.Policy),
		Binds: binds, Hidden: l.o.Hidden, CheckOnly: l.o.CheckOnly, Command: l.o.Command, Grace: l.o.Grace,
		RootBytes: l.o.rootBytes,
	}
}

// fetch brings every pinned pack into the node's cache, and the job package when the job directory is to be made of it.
func (l *launch) fetch(ctx context.Context, store *nodecache.Cache, p *plan) (err error) {
	if p.Package, err = l.jobPackage(ctx); err != nil {
		return err
	}
	for _, set := range []struct {
		pins []receipt.Pin
		into *[]pinned
	}{{l.rcp.Plugins, &p.Plugins}, {l.rcp.Recipes, &p.Recipes}} {
		for _, pin := range set.pins {
			one := pinned{Pin: pin}
			if !pin.RuntimeSupplied {
				entry, err := store.Tree(ctx, pin, l.o.Fetcher)
				if err != nil {
					return fmt.Errorf("%s: %w", pin, err)
				}
				one.Tree = entry.Path()
				l.entries = append(l.entries, entry)
			}
			*set.into = append(*set.into, one)
		}
	}
	return nil
}

// drop removes the entries that the launch took from the cache, so that they are fetched again.
func (l *launch) drop(store *nodecache.Cache) error {
	var errs []error
	for _, entry := range l.entries {
		errs = append(errs, store.Drop(entry))
	}
	l.entries = nil
	return errors.Join(errs...)
}

// damaged reports whether what the stage took from the cache was not what is pinned.
func damaged(err error, p *plan) bool {
	denied, ok := errors.AsType[*rule.Denied](err)
	return ok && slices.ContainsFunc(denied.Decision.Violations, func(v rule.Violation) bool {
		return v.Rule == "launch.digest.copy" || v.Rule == "launch.package.digest" && p.Package.Cached
	})
}

// protected runs the stage under the best protection that the node allows.
func (l *launch) protected(ctx context.Context, p *plan, store *nodecache.Cache) error {
	modes := l.o.modes
	if modes == nil {
		modes = protections()
		if l.o.AllowPrivateCopy {
			modes = append(modes, ModePrivateCopy)
		}
	}
	for _, mode := range modes {
		for _, pidNamespace := range []bool{true, false} {
			if pidNamespace && (mode == ModePrivateCopy || slices.Contains(l.o.without, TrackingPIDNamespace)) {
				continue
			}
			p.Mode, p.PIDNamespace = mode, pidNamespace
			why, err := l.attempt(ctx, p, store)
			if why == "" {
				if l.rec.Mode == mode {
					delete(l.rec.Unavailable, mode) // of its two forms the second was allowed
				}
				return err
			}
			l.rec.Unavailable[mode] = why
		}
	}
	var reasons []string
	for _, mode := range slices.Sorted(maps.Keys(l.rec.Unavailable)) {
		reasons = append(reasons, fmt.Sprintf("%s: %s", mode, l.rec.Unavailable[mode]))
	}
	return refusal("launch.protection", l.job.subject(), "the node gives the job no root of its own (%s)", strings.Join(reasons, "; "))
}

// attempt runs the stage in one mode. why says that the node does not allow it; then nothing was done.
func (l *launch) attempt(ctx context.Context, p *plan, store *nodecache.Cache) (why string, err error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	if p.Mode == ModeUser && l.who.other {
		return fmt.Sprintf("in the namespace of root's own uid there is no uid %d", l.who.UID), nil
	}
	if p.Mode == ModePrivateCopy {
		if p.Root, err = store.PrivateFolder(l.who.other); err != nil {
			return "", err
		}
		defer func() { err = errors.Join(err, removeTree(p.Root)) }()
	} else if p.Root, err = mountPoint(p.Mode, l.o.MountPoint); err != nil {
		return err.Error(), nil
	}
	env := jobEnvironment(l.o.Env, l.job.dialect, p.Root, l.outputs(), l.o.User, l.o.KeepEnv)
	p.Env = env.vars
	l.rec.Mode, l.rec.PIDNamespace, l.rec.Root = p.Mode, p.PIDNamespace, p.Root
	l.rec.RemovedEnv, l.rec.SetEnv = append([]string{}, env.removed...), env.set
	l.rec.PassedEnv = env.passed
	if p.Mode == ModeRoot {
		l.demote()
	}
	ctx, cancel := l.patience(ctx)
	defer cancel()
	why, err = l.stage(ctx, p)
	if err = l.slow(ctx, err); why != "" {
		l.rec.Mode, l.rec.PIDNamespace, l.rec.Root = "", false, ""
	}
	return why, err
}

// demote has the record name the mode that keeps out as much as this one does here. The job's root is the same.
func (l *launch) demote() {
	if why := ownedRoot(); why != "" {
		l.rec.Mode, l.rec.Unavailable[ModeRoot] = ModeUser, why
	}
}
