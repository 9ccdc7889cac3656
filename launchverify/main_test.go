//go:build linux

package launchverify

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-registry/gatehouse/admission/archive"
	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/jobspec"
	"github.com/gatehouse-registry/gatehouse/admission/pack"
	"github.com/gatehouse-registry/gatehouse/admission/receipt"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/digest/tree"
	"github.com/gatehouse-registry/gatehouse/registry/trust"
)

// The test program is the agent, its stage, and the command that is launched.
func TestMain(m *testing.M) {
	if handled, code := Stage(os.Args[1:]); handled {
		os.Exit(code)
	}
	if len(os.Args) > 2 && os.Args[1] == standIn {
		os.Exit(look(os.Args[2]))
	}
	if len(os.Args) > 2 && os.Args[1] == agentVerb {
		os.Exit(runAgent(os.Args[2]))
	}
	if len(os.Args) > 4 && os.Args[1] == attackVerb {
		os.Exit(attack(os.Args[2], os.Args[3], os.Args[4]))
	}
	if len(os.Args) > 3 && os.Args[1] == insideVerb {
		os.Exit(inside(os.Args[2], os.Args[3]))
	}
	if len(os.Args) > 3 && os.Args[1] == insideVerb+"-namespace" {
		os.Exit(insideNamespace(os.Args[2], os.Args[3]))
	}
	if len(os.Args) > 3 && os.Args[1] == hammerVerb {
		os.Exit(hammer(os.Args[2], os.Args[3]))
	}
	if len(os.Args) > 3 && os.Args[1] == sealVerb {
		os.Exit(sealed(os.Args[2], os.Args[3]))
	}
	// Under the race detector every program waits for a second at its end; the many that these tests start need not.
	stageEnv = append(stageEnv, noWait)
	os.Exit(m.Run())
}

const noWait = "GORACE=atexit_sleep_ms=0"

const (
	audience = "registry-1"
	standIn  = "stand-in"
)

// shelf is a registry in memory.
type shelf struct {
	t        *testing.T
	pins     map[string]receipt.Pin // by id@version
	archives map[digest.Digest][]byte
	blobs    map[digest.Digest][]byte // specs and job packages
	fetched  int
	down     bool
}

func newShelf(t *testing.T) *shelf {
	return &shelf{t: t, pins: map[string]receipt.Pin{}, archives: map[digest.Digest][]byte{}, blobs: map[digest.Digest][]byte{}}
}

func (s *shelf) FetchSpec(_ context.Context, r *receipt.Receipt) (io.ReadCloser, error) {
	return s.blob(r.SpecBytes)
}

func (s *shelf) FetchPackage(_ context.Context, r *receipt.Receipt) (io.ReadCloser, error) {
	return s.blob(r.JobPackage)
}

func (s *shelf) blob(d digest.Digest) (io.ReadCloser, error) {
	b, ok := s.blobs[d]
	if s.down || !ok {
		return nil, fmt.Errorf("%s: %w", d, ErrNotFound)
	}
	s.fetched++
	return io.NopCloser(bytes.NewReader(b)), nil
}

func (s *shelf) Fetch(_ context.Context, pin receipt.Pin) (io.ReadCloser, error) {
	b, ok := s.archives[pin.Manifest]
	if s.down || !ok {
		return nil, fmt.Errorf("%s: %w", pin.Manifest, ErrNotFound)
	}
	s.fetched++
	return io.NopCloser(bytes.NewReader(b)), nil
}

// publish puts the tree in dir on the shelf.
func (s *shelf) publish(id, version, dir string) receipt.Pin {
	s.t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		s.t.Fatal(err)
	}
	defer root.Close()
	found, err := tree.OpenDir(root)
	if err != nil {
		s.t.Fatal(err)
	}
	var b bytes.Buffer
	if _, err := archive.Pack(&b, found); err != nil {
		s.t.Fatal(err)
	}
	kind := pack.KindAlgorithm
	if src, err := tree.ReadFile(found, pack.ManifestFile, 1<<20); err == nil {
		if m, _ := pack.ParseManifest(src, pack.ManifestOptions{}); m != nil && m.Kind != "" {
			kind = m.Kind
		}
	}
	pin := receipt.Pin{
		ID: id, Version: version, Kind: string(kind), Content: found.Listing().Content, Tree: found.Listing().Tree,
		Manifest: digest.FromBytes([]byte("manifest of " + id + version + digest.FromBytes(b.Bytes()).String())),
	}
	s.pins[id+"@"+version] = pin
	s.archives[pin.Manifest] = b.Bytes()
	return pin
}

// publishAll publishes every <owner>/<name>/<version> below dir.
func (s *shelf) publishAll(dir string) {
	s.t.Helper()
	versions, err := filepath.Glob(filepath.Join(dir, "*", "*", "*"))
	if err != nil {
		s.t.Fatal(err)
	}
	for _, v := range versions {
		name := filepath.Dir(v)
		s.publish(filepath.Base(filepath.Dir(name))+"/"+filepath.Base(name), filepath.Base(v), v)
	}
}

// rig is a job directory ready to be launched.
type rig struct {
	t     *testing.T
	base  string
	job   string
	shelf *shelf
	d     dialect.Dialect
	keys  *trust.Keyring
	env   []string
	as    int // the uid of agents in processes of their own; 0 is the test's
}

// newRig is an empty job directory in a folder that any user may reach.
func newRig(t *testing.T, d dialect.Dialect) *rig {
	t.Helper()
	base := t.TempDir()
	for dir := base; dir != filepath.Dir(os.TempDir()) && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755|infoMode(t, dir)); err != nil {
			break // not ours
		}
	}
	r := &rig{t: t, base: base, job: filepath.Join(base, "job"), shelf: newShelf(t), d: d}
	r.mkdir(r.job)
	r.mkdir(filepath.Join(base, "home"))
	keys, err := trust.Open(filepath.Join(base, "keys"))
	if err != nil {
		t.Fatal(err)
	}
	r.keys = keys
	r.env = []string{noWait, "PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(base, "home"), "LOOK=" + filepath.Join(base, "look.json")}
	return r
}

func infoMode(t *testing.T, path string) fs.FileMode {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode() & (fs.ModePerm | fs.ModeSticky)
}

func (r *rig) mkdir(dir string) {
	r.t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		r.t.Fatal(err)
	}
}

// write puts a file into the job directory.
func (r *rig) write(name, text string) {
	r.t.Helper()
	path := filepath.Join(r.job, name)
	r.mkdir(filepath.Dir(path))
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

// plugin publishes an algorithm and, when injected, puts it into the job directory.
func (r *rig) plugin(id string, injected bool, files map[string]string) receipt.Pin {
	r.t.Helper()
	leaf := filepath.Base(id)
	published := filepath.Join(r.base, "published", id)
	all := map[string]string{
		"plugin.yaml": fmt.Sprintf("schema: %s\nname: %s\nversion: \"1.0.0\"\n%s: algorithm\nentrypoint: %s_patch:install\n",
			r.d.Names().PluginSchema, leaf, r.d.Names().KindKey, leaf),
		leaf + "_patch.py": "def install(params, **ctx): pass\n",
	}
	for name, text := range files {
		all[name] = text
	}
	for name, text := range all {
		path := filepath.Join(published, name)
		r.mkdir(filepath.Dir(path))
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			r.t.Fatal(err)
		}
		if injected {
			r.write(filepath.Join(r.d.Names().PluginsDir, leaf, name), text)
		}
	}
	return r.shelf.publish(id, "1.0.0", published)
}

// spec writes a spec that names the plugins.
func (r *rig) spec(pins ...receipt.Pin) {
	r.t.Helper()
	refs := []map[string]string{}
	for _, p := range pins {
		refs = append(refs, map[string]string{"id": p.ID, "version": p.Version, "digest": p.Content.String()})
	}
	doc := map[string]any{
		"apiVersion": r.d.Names().JobSpec, "kind": "TrainingJob", "metadata": map[string]any{"name": "demo"},
		"spec": map[string]any{
			"recipe":    map[string]any{"name": "custom/custom", "version": "1.0.0", "digest": "sha256:" + strings.Repeat("0", 64)},
			"source":    map[string]any{"exp": "experiments/demo"},
			"framework": map[string]any{"kind": "custom", "version": "user-managed", "image": "registry.example/train@sha256:" + strings.Repeat("1", 64)},
			"resources": map[string]any{"pools": []any{map[string]any{"name": "train", "nodes": 1, "gpus_per_node": 1}}},
			"plugins":   refs,
		},
		"provenance": map[string]any{"core_version": "0.4.0"},
	}
	src, err := json.Marshal(doc)
	if err != nil {
		r.t.Fatal(err)
	}
	r.write(filepath.Join(r.d.Names().SpecDir, specName), string(src))
	r.write("experiments/demo/train.sh", "exit 0\n")
}

func (r *rig) specPath() string { return filepath.Join(r.job, r.d.Names().SpecDir, specName) }

// integrationKind is the kind of what ships inside tuneplane's client.
const integrationKind = "framework-integration"

// ships reports whether a package may come with the client: tuneplane/framework-<kind> does (launch.md 1). The
// launcher takes it only when its content digest agrees.
func ships(d dialect.Dialect, id string) bool {
	return d == dialect.TunePlane && strings.HasPrefix(id, "tuneplane/framework-")
}

// sign writes the receipt of the spec as it lies there, with pins for all that the spec names and the shelf has.
func (r *rig) sign(recipes ...receipt.Pin) {
	r.t.Helper()
	src, err := os.ReadFile(r.specPath())
	if errors.Is(err, fs.ErrNotExist) {
		src = nil
	} else if err != nil {
		r.t.Fatal(err)
	}
	rc := r.receiptOf(src)
	rc.Recipes = recipes
	r.signed(rc)
}

// receiptOf is the receipt of a spec.
func (r *rig) receiptOf(src []byte) receipt.Receipt {
	now := time.Now()
	rc := receipt.Receipt{
		Audience: audience, Job: "job-1", Dialect: r.d, IssuedAt: now, Expires: now.Add(receipt.Lifetime),
		SpecBytes: digest.FromBytes(src), SpecDigest: digest.FromBytes(src),
	}
	spec, _ := jobspec.Parse(src, jobspec.Options{Dialect: r.d})
	leaves := map[string]bool{}
	if spec != nil {
		for _, ref := range spec.Plugins {
			pin, ok := r.shelf.pins[ref.ID+"@"+ref.Version]
			content, err := digest.Parse(ref.Digest)
			if !ok && err == nil && ref.Version != "" && ships(r.d, ref.ID) {
				pin, ok = receipt.Pin{ID: ref.ID, Version: ref.Version, Kind: integrationKind, Content: content, RuntimeSupplied: true}, true
			}
			if ok && !leaves[pin.Leaf()] {
				leaves[pin.Leaf()] = true
				rc.Plugins = append(rc.Plugins, pin)
			}
		}
	}
	return rc
}

func (r *rig) signed(rc receipt.Receipt) {
	r.t.Helper()
	env, err := r.keys.SignReceipt(rc)
	if err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(r.job+receipt.Suffix, env, 0o644); err != nil {
		r.t.Fatal(err)
	}
}

// options are a signed launch of the command; without one, of the stand-in.
func (r *rig) options(command ...string) Options {
	r.t.Helper()
	set, err := r.keys.Trust(audience)
	if err != nil {
		r.t.Fatal(err)
	}
	if len(command) == 0 {
		command = []string{os.Args[0], standIn, filepath.Join(r.base, "look.json")}
	}
	return Options{
		JobSpec: r.specPath(), Trust: set, Audience: audience, Command: command, Env: r.env,
		CacheDir: filepath.Join(r.base, "cache"), Fetcher: r.shelf, AllowPrivateCopy: true, Grace: 5 * time.Second,
		Stdin: devNull(r.t), Stderr: devNull(r.t),
	}
}

func devNull(t *testing.T) *os.File {
	t.Helper()
	f, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func (r *rig) launch(o Options) (Record, error) {
	r.t.Helper()
	return Run(context.Background(), o)
}

// modes lists the protections that this machine allows; every test that is about one runs under each of them.
func modes(t *testing.T) []Mode {
	t.Helper()
	allowed := []Mode{ModePrivateCopy}
	for _, mode := range []Mode{ModeUser, ModeRoot} {
		r := newRig(t, dialect.Forge)
		r.spec()
		r.sign()
		o := r.options()
		o.modes = []Mode{mode}
		if mode == ModeRoot && os.Geteuid() != 0 {
			continue
		}
		rec, err := r.launch(o)
		var denied *rule.Denied
		switch {
		case err == nil:
			allowed = append(allowed, mode)
		case errors.As(err, &denied) && denied.Decision.Violations[0].Rule == "launch.protection":
			t.Logf("%s can't be had here: %v", mode, rec.Unavailable)
		default:
			t.Fatalf("%s: %v", mode, err)
		}
	}
	return allowed
}

// eachMode runs test under every protection that this machine allows.
func eachMode(t *testing.T, test func(t *testing.T, mode Mode)) {
	for _, mode := range modes(t) {
		t.Run(string(mode), func(t *testing.T) { test(t, mode) })
	}
}

// violated lists the rules of a refusal.
func violated(err error) []rule.ID {
	denied, ok := errors.AsType[*rule.Denied](err)
	if !ok {
		return nil
	}
	var ids []rule.ID
	for _, v := range denied.Decision.Violations {
		ids = append(ids, v.Rule)
	}
	return ids
}

// sums are the sha256 of the files below dir, by path.
func sums(t *testing.T, dir string) map[string]string {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	found, err := tree.OpenDir(root)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for e := range found.Listing().Counted {
		all[e.Path] = hex.EncodeToString(e.SHA256[:])
	}
	return all
}
