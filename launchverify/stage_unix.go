//go:build unix

package launchverify

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/gatehouse-registry/gatehouse/admission/receipt"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/admission/runrecord"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/digest/tree"
)

// stageVerb is the hidden verb under which Run starts the current executable again.
const stageVerb = "__launch-stage"

// Stage runs the part of a launch that lives in its own namespaces, when the arguments (without the program's name) are
// those under which Run started this process; then handled is true and the process must exit with code. A program
// that calls Run calls Stage before anything else.
func Stage(args []string) (handled bool, code int) {
	if len(args) != 3 || args[0] != stageVerb && args[0] != keeperVerb {
		return false, 0
	}
	if args[0] == keeperVerb {
		return true, keep(args[1:])
	}
	hide()
	in, err := ownDescriptor(args[1])
	if err != nil {
		return true, exitUsage
	}
	out, err := ownDescriptor(args[2])
	if err != nil {
		return true, exitUsage
	}
	s := &stage{out: json.NewEncoder(out), signals: listen(), resumed: make(chan resumption)}
	fromAgent := json.NewDecoder(in)
	if s.plan, err = receivePlan(fromAgent); err != nil {
		return true, exitUsage
	}
	gone := make(chan struct{})
	go s.hear(fromAgent, gone)
	err = s.run(gone)
	if denied, ok := errors.AsType[*rule.Denied](err); ok {
		s.tell(report{Decision: &denied.Decision})
	} else if err != nil {
		s.tell(report{Error: err.Error()})
	}
	return true, 0
}

// hear passes on what the agent says until its end, and closes gone then.
func (s *stage) hear(fromAgent *json.Decoder, gone chan struct{}) {
	defer close(gone)
	for {
		var r resumption
		if err := fromAgent.Decode(&r); err != nil {
			return
		}
		s.resumed <- r
	}
}

// ownDescriptor takes over a pipe of the agent's, so that nothing the stage starts inherits it.
func ownDescriptor(arg string) (*os.File, error) {
	fd, err := strconv.Atoi(arg)
	if err != nil || fd < 3 {
		return nil, fmt.Errorf("%q is no descriptor", arg)
	}
	unix.CloseOnExec(fd)
	f := os.NewFile(uintptr(fd), "pipe")
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Mode()&fs.ModeNamedPipe == 0 {
		return nil, fmt.Errorf("descriptor %d is no pipe", fd)
	}
	return f, nil
}

// stage builds the job's root, seals it, checks it, and runs the command in it.
type stage struct {
	plan    plan
	out     *json.Encoder
	signals chan os.Signal // the agent's, to be passed on
	resumed chan resumption
	// recipes are recipe packs of the job directory that no receipt pins.
	recipes []receipt.Pin
	// pkg is the package that the job directory is made of; nil when it is not.
	pkg *jobPackage
	// need is how many bytes the root may take.
	need int64
}

func (s *stage) subject() rule.Subject {
	return rule.Subject{Dialect: s.plan.Dialect, Digest: digest.FromBytes(s.plan.Spec).String()}
}

// tell sends a message to the agent. When the agent is gone nobody needs it.
func (s *stage) tell(m report) { s.out.Encode(m) }

// privateRoot is the job's root under construction.
type privateRoot interface {
	// place makes room in root for names of the job directory.
	place(p *plan, names []string, root *os.Root) error
	// seal makes what was written unchangeable, as far as the mode can.
	seal() error
	// attach shows the job what place made room for.
	attach() error
	// placeOutputs makes room in root, at a path, for the folder of the job's outputs.
	placeOutputs(root *os.Root, at, outputs string) error
	// showOutputs makes that folder with the job's rights and shows it there; the root was sealed before.
	showOutputs(p *plan, at, outputs string) error
	// hides lists the folders of the plan that the job finds empty.
	hides() []string
	// remove takes away what would outlive the stage.
	remove() error
}

func (s *stage) run(gone chan struct{}) (err error) {
	umask := syscall.Umask(0o022)
	if s.plan.Probe {
		return s.probe(gone, umask)
	}
	sources, err := s.gather()
	if err != nil {
		return err
	}
	defer func() {
		for _, src := range sources {
			src.close()
		}
		s.pkg.close()
	}()
	root, err := s.enter(sources)
	if _, refused := errors.AsType[*rule.Denied](err); refused {
		return err
	}
	if err != nil {
		s.tell(report{Unavailable: err.Error()})
		return nil
	}
	defer func() { err = errors.Join(err, root.remove()) }()
	if err := s.build(root, sources); err != nil {
		return s.roomError(err)
	}
	decision, err := s.verify()
	if err != nil {
		return err
	}
	s.tell(report{Decision: &decision})
	if !decision.Allowed || s.plan.CheckOnly {
		return nil
	}
	select {
	case <-gone:
		return nil
	case sig := <-s.signals:
		if slices.Contains(ending, sig) {
			s.tell(report{Interrupted: true})
			return nil
		}
	default:
	}
	if err := s.showOutputs(root); err != nil {
		return err
	}
	return s.execute(gone, umask)
}

// execute runs the command and says how it ended.
func (s *stage) execute(gone chan struct{}, umask int) error {
	if s.plan.PIDNamespace {
		dieWithAgent() // the kernel then ends the namespace, even when somebody stopped this process
	}
	entry := s.watchEntry()
	result, err := supervise(s, gone, umask)
	if err != nil {
		return nil // told already: the command was not executed
	}
	if entry.never() && result.Training.Seen {
		result.Training = runrecord.Training{Unopened: entry.file}
	}
	if s.plan.Mode == ModePrivateCopy && !s.plan.Probe {
		again, err := s.verify()
		result.Changed = err != nil || !again.Allowed
	}
	s.tell(report{Exit: &result})
	return nil
}

// enter puts the root where the plan says, large enough for the sources.
func (s *stage) enter(sources []*source) (privateRoot, error) {
	const slack = 4 << 20 // folders, places for binds, and what the file system needs itself
	size := slack + s.pkg.bytes()
	for _, src := range sources {
		size += src.bytes()
	}
	s.need = size
	if err := s.checkRoom(size); err != nil {
		return nil, err
	}
	if s.plan.Mode == ModePrivateCopy {
		return copyRoot{s.plan.Root}, nil
	}
	if s.plan.RootBytes > 0 {
		size = s.plan.RootBytes
	}
	return protect(&s.plan, size)
}

// build writes the sources into the root, seals it, and shows the job what it may see of its directory.
func (s *stage) build(private privateRoot, sources []*source) error {
	go rule.Version() // gate 3 will name it, and while one goroutine copies another processor is free
	root, err := os.OpenRoot(s.plan.Root)
	if err != nil {
		return err
	}
	defer root.Close()
	names := s.plan.Dialect.Names()
	if err := root.MkdirAll(names.PluginsDir, 0o755); err != nil {
		return err
	}
	for _, src := range sources {
		var replace map[string][]byte
		if src.into == names.SpecDir {
			replace = map[string][]byte{specName: s.plan.Spec}
		}
		if err := src.writeTo(root, replace); err != nil {
			return fmt.Errorf("build the job's root: %w", err)
		}
	}
	seen, err := s.show(private, root)
	if err != nil {
		return err
	}
	if err := private.seal(); err != nil {
		return err
	}
	s.tell(report{Prepared: &prepared{Binds: seen, Hidden: private.hides(), Recipes: s.recipes}})
	return private.attach()
}

// show makes room in the root for what the job may see of its directory; where that is made of its package, for the
// outputs alone.
func (s *stage) show(private privateRoot, root *os.Root) (seen []string, err error) {
	if s.pkg == nil {
		if seen, err = s.visible(); err != nil {
			return nil, err
		}
		return seen, private.place(&s.plan, seen, root)
	}
	if err := s.unpack(root); err != nil || s.pkg.shown == "" {
		return []string{}, err
	}
	return []string{}, private.placeOutputs(root, s.pkg.shown, string(s.plan.Package.Outputs))
}

// visible lists the names of the plan's binds that are in the job directory. A link is refused: where it leads can be
// changed while the job runs, and may be where the job's user has no business.
func (s *stage) visible() ([]string, error) {
	seen := []string{}
	err := s.plan.User.identity().do(func() error {
		for _, name := range s.plan.Binds {
			at := filepath.Join(s.plan.JobDir, name)
			info, err := os.Lstat(at)
			switch {
			case errors.Is(err, fs.ErrNotExist):
			case err != nil:
				return err
			case !info.IsDir() && !info.Mode().IsRegular():
				return refusal("launch.bind", s.subject(), "%.200q is no real file or folder", at)
			default:
				seen = append(seen, name)
			}
		}
		return nil
	})
	return seen, err
}

// gather lists all that goes into the root: the spec folder, the pinned plugins and recipe packs from the cache, and
// the recipe pack of the job directory that the spec names, when no receipt pins one.
func (s *stage) gather() (sources []*source, err error) {
	defer func() {
		if err != nil {
			for _, src := range sources {
				src.close()
			}
		}
	}()
	names, who := s.plan.Dialect.Names(), s.plan.User.identity()
	spec, err := s.specFolder(who)
	if _, tooLarge := errors.AsType[*tree.LimitError](err); tooLarge || errors.Is(err, errOddFile) {
		return nil, refusal("launch.spec.folder", s.subject(), "%v", err)
	}
	if err != nil {
		return nil, err
	}
	sources = append(sources, spec)
	for _, p := range s.plan.Plugins {
		if p.Tree == "" {
			continue
		}
		if err := s.cached(p, path.Join(names.PluginsDir, p.Leaf()), &sources); err != nil {
			return sources, err
		}
	}
	for _, p := range s.plan.Recipes {
		if err := s.cached(p, path.Join(names.RecipesDir, p.ID), &sources); err != nil {
			return sources, err
		}
	}
	recipes, err := s.jobRecipes(who)
	return append(sources, recipes...), err
}

// specFolder is the spec's folder in the job directory; where that is made of its package, the spec alone: nothing else that
// the platform writes is in a package. That package is opened here as well.
func (s *stage) specFolder(who identity) (spec *source, err error) {
	folder := s.plan.Dialect.Names().SpecDir
	if s.plan.Package == nil {
		return jobSource(who, s.plan.JobDir, folder)
	}
	if s.pkg, err = s.openPackage(); err != nil {
		return nil, err
	}
	return specSource(folder, s.plan.Spec), nil
}

// cached adds a pack of the node's cache. An entry that can't be taken is damaged; the agent fetches it again.
func (s *stage) cached(p pinned, into string, sources *[]*source) error {
	src, err := cachedSource(p.Tree, into)
	if exhausted(err) {
		return fmt.Errorf("%s: read the node's cache: %w", p.Pin, err)
	}
	if err != nil {
		return refusal("launch.digest.copy", s.subject(), "%s: the node's cache is damaged: %v", p.Pin, err)
	}
	*sources = append(*sources, src)
	return nil
}
