package project

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/lock"
	"github.com/gatehouse-registry/gatehouse/registry"
)

// lay writes files below a new folder; a text that starts with "->" is the target of a link.
func lay(t *testing.T, files map[string]string) string {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	root = filepath.Join(root, "project")
	for name, text := range files {
		at := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if target, link := strings.CutPrefix(text, "->"); link {
			err = os.Symlink(target, at)
		} else {
			err = os.WriteFile(at, []byte(text), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return root
}

const marker = "apiVersion: forge/project/v1\nname: lab\n"

func mustOpen(t *testing.T, dir string) *Project {
	t.Helper()
	p, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestOpen(t *testing.T) {
	root := lay(t, map[string]string{"starforge.yaml": marker, "experiments/a/deep/x": ""})
	p := mustOpen(t, filepath.Join(root, "experiments/a/deep"))
	if p.Root != root || p.Dialect != dialect.Forge || p.Name != "lab" {
		t.Errorf("found %+v", p)
	}
	if _, err := Open(filepath.Dir(root)); registry.CodeOf(err) != registry.NotFound {
		t.Errorf("outside a project: %v", err)
	}
	if _, err := Find(root, Options{Dialect: dialect.TunePlane}); registry.CodeOf(err) != registry.NotFound {
		t.Errorf("a project of the other dialect: %v", err)
	}
	both := lay(t, map[string]string{"starforge.yaml": marker, "tuneplane.yaml": "name: t\n"})
	if _, err := Open(both); registry.CodeOf(err) != registry.Invalid {
		t.Errorf("a project of both dialects: %v", err)
	}
	p, err := Find(filepath.Dir(root), Options{Vars: map[string]string{"TUNEPLANE_CLIENT_REPO_ROOT": both}})
	if err != nil || p.Dialect != dialect.TunePlane || p.Root != both {
		t.Errorf("by the environment: %+v, %v", p, err)
	}
	if _, err := Find(root, Options{Vars: map[string]string{"SF_REPO_ROOT": filepath.Dir(root)}}); registry.CodeOf(err) != registry.NotFound {
		t.Errorf("the environment names no project: %v", err)
	}
}

// A marker that a person broke is refused with the place and the field.
func TestMarkerFaults(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"name: [", "starforge.yaml:1:"},
		{"- a\n", "starforge.yaml:1:1: found list, expected a mapping"},
		{"name: \xff", "starforge.yaml:1:"},
	} {
		_, err := Open(lay(t, map[string]string{"starforge.yaml": test.text}))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q: %v, want %q", test.text, err, test.want)
		}
	}
	for _, test := range []struct{ text, want string }{
		{"", "starforge.yaml: name: found no name. Add a line"},
		{"# here\nname: my lab\n", `starforge.yaml:2:7: name: found the project name "my lab". Use only`},
	} {
		err := mustOpen(t, lay(t, map[string]string{"starforge.yaml": test.text})).CheckName()
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q: %v, want %q", test.text, err, test.want)
		}
	}
}

func TestExperiment(t *testing.T) {
	root := lay(t, map[string]string{
		"starforge.yaml": marker, "experiments/b/recipe.lock.json": "{}", "experiments/a/config.yaml": "x: 1\n", "experiments/file": "",
		"smoke/s/recipe.lock.json": "{}", "experiments/out": "->../..", "experiments/in": "->b",
	})
	p := mustOpen(t, root)
	e, err := p.Experiment("experiments/a/")
	if err != nil {
		t.Fatal(err)
	}
	want := Experiment{p, "a", "experiments/a", "experiments/a/", filepath.Join(root, "experiments/a")}
	if diff := cmp.Diff(want, *e); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for exp, code := range map[string]registry.Code{
		"c": registry.NotFound, "file": registry.NotFound, "a b": registry.Invalid, "../project": registry.Invalid, "/a": registry.Invalid, "": registry.Invalid,
	} {
		if _, err := p.Experiment(exp); registry.CodeOf(err) != code {
			t.Errorf("%q: %v, want %s", exp, err, code)
		}
	}
	if _, err := p.Experiment("out"); err == nil {
		t.Error("an experiment outside the project was opened")
	}
	locked, err := p.Locked()
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, e := range locked {
		paths = append(paths, e.Path)
	}
	if diff := cmp.Diff([]string{"experiments/b", "experiments/in", "smoke/s"}, paths); diff != "" {
		t.Errorf("with a lock (-want +got)\n%s", diff)
	}
	if sum, err := e.ConfigSHA(); err != nil || sum != "d09edadd173a" {
		t.Errorf("fingerprint %s, %v", sum, err)
	}
}

// A link that leads out of the project is neither read nor written through.
func TestLinksOut(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "target")
	if err := os.WriteFile(outside, []byte("secret: 1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	root := lay(t, map[string]string{
		"starforge.yaml": marker, "experiments/a/config.yaml": "->" + outside, "experiments/a/plugins.lock.json": "->" + outside,
		"experiments/a/recipe.lock.json": "->" + outside,
	})
	e, err := mustOpen(t, root).Experiment("a")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Config(); err == nil || !strings.Contains(err.Error(), "leads out of the project") {
		t.Errorf("config: %v", err)
	}
	if _, err := e.PluginsLock(); err == nil || !strings.Contains(err.Error(), "leads out of the project") {
		t.Errorf("plugins lock: %v", err)
	}
	if err := e.WriteRecipeLock([]byte("{}\n")); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(outside); err != nil || string(text) != "secret: 1\n" {
		t.Errorf("the file outside is %q, %v", text, err)
	}
	if text, err := e.RecipeLockBytes(); err != nil || string(text) != "{}\n" {
		t.Errorf("the lock is %q, %v", text, err)
	}
}

func TestPluginsLock(t *testing.T) {
	root := lay(t, map[string]string{"starforge.yaml": marker, "experiments/a/README.md": ""})
	e, err := mustOpen(t, root).Experiment("a")
	if err != nil {
		t.Fatal(err)
	}
	l, err := e.PluginsLock()
	if err != nil || len(l.Entries) != 0 {
		t.Fatalf("%+v, %v", l, err)
	}
	l.Upsert(lock.NewPlugin("o/p", "1", "sha256:0"))
	if err := e.WritePluginsLock(l); err != nil {
		t.Fatal(err)
	}
	if l, err = e.PluginsLock(); err != nil || len(l.Entries) != 1 {
		t.Fatalf("%+v, %v", l, err)
	}
	l.Remove("o/p")
	for range 2 { // the second time there is no file
		if err := e.WritePluginsLock(l); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := e.Read(lock.PluginsFile); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an empty lock has a file: %v", err)
	}
	if err := os.WriteFile(filepath.Join(e.Dir, lock.PluginsFile), []byte("{\"apiVersion\": \"forge/plugins-lock/v1\",\n \"plugins\": [{}]}"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err = e.PluginsLock()
	if f, ok := errors.AsType[*Fault](err); !ok || f.Line != 2 || f.Field != "plugins[0]" {
		t.Errorf("%v", err)
	}
}

func TestGit(t *testing.T) {
	root := lay(t, map[string]string{"starforge.yaml": marker})
	p := mustOpen(t, root)
	git := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-c", "user.name=n", "-c", "user.email=e", "-c", "commit.gpgsign=false"}, args...)...)
		cmd.Dir = root
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	check := func(what string, want GitFacts) {
		t.Helper()
		if got, err := p.Git(); err != nil || got != want {
			t.Errorf("%s: %+v, %v, want %+v", what, got, err, want)
		}
	}
	t.Setenv("GIT_CEILING_DIRECTORIES", filepath.Dir(root))
	check("no repository", GitFacts{})
	git("init", "-q")
	check("no commit", GitFacts{})
	git("add", "-A")
	git("commit", "-q", "-m", "one")
	check("clean", GitFacts{Commit: git("rev-parse", "--short", "HEAD")})
	if err := os.WriteFile(filepath.Join(root, "new"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	check("a new file", GitFacts{Commit: git("rev-parse", "--short", "HEAD"), Dirty: true})
}
