package project

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-registry/gatehouse/admission/catalogue"
	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/lock"
	"github.com/gatehouse-registry/gatehouse/registry"
)

const recipeYAML = `name: tune
version: 1.0.0
title: Tune
summary: A method of this test.
framework: labfw
template: template
entrypoint: {kind: experiment, value: run.py}
adapter_options: {observability: platform}
lifecycle: {}
lifecycle_resources: {}
roles: [actor]
metrics: {primary: [train/loss], aliases: {}}
artifacts:
  version: forge/artifacts/v1
  checkpoints: [ckpt/*]
  logs: [logs]
  exports: []
  evaluations: []
  formats: {checkpoint: raw, log: text, hf_export: huggingface, eval_report: json}
runtime:
  default_version: 1.1.0
  versions:
    1.1.0: {runtime_id: labfw-1.1.0, source: {kind: oci, reference: "images.example/l@sha256:abababababababababababababababababababababababababababababababab"}}
params:
  lr: {type: float, path: optim.lr, default: 0.1}
`

// installedClient is a package as a real client's installation looks, with the catalogue that it ships.
func installedClient(t *testing.T) (*Installed, *catalogue.Catalogue) {
	t.Helper()
	root := lay(t, map[string]string{
		"bin/sf": "#!" + filepath.Join(t.TempDir(), "never") + "\n",
		"lib/python3.11/site-packages/starforge_core-0.9.9.dist-info/METADATA":                         "Name: starforge-core\nVersion: 0.9.9\n\ntext\n",
		"lib/python3.11/site-packages/starforge/recipes/catalog/labfw/tune/recipe.yaml":                recipeYAML,
		"lib/python3.11/site-packages/starforge/recipes/catalog/labfw/tune/template/config.yaml":       "defaults: ../../configs/base\n",
		"lib/python3.11/site-packages/starforge/recipes/catalog/labfw/tune/template/run.py":            "print()\n",
		"lib/python3.11/site-packages/starforge/recipes/catalog/labfw/tune/template/__pycache__/x.pyc": "x",
		"lib/python3.11/site-packages/starforge/cli/scaffold/experiment-template/README.md":            "# general\n",
		"lib/python3.11/site-packages/starforge/cli/scaffold/experiment-template/config.yaml":          "general: 1\n",
		"lib/python3.11/site-packages/starforge/cli/scaffold/project/configs/base.yaml":                "optim: {lr: 1}\n",
		"lib/python3.11/site-packages/starforge/cli/scaffold/project/common/__init__.py":               "# theirs\n",
	})
	if err := os.WriteFile(filepath.Join(root, "bin/sf"), []byte("#!"+filepath.Join(root, "bin/python3")+"\nexit(1)\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	client := InstalledOnPath("/nowhere"+string(os.PathListSeparator)+filepath.Join(root, "bin"), dialect.Forge)
	if client == nil || client.Release != "0.9.9" {
		t.Fatalf("found %+v on PATH", client)
	}
	c, err := catalogue.ReadPackage(os.DirFS(filepath.Join(root, "lib/python3.11/site-packages")), dialect.Forge)
	if err != nil {
		t.Fatal(err)
	}
	return client, c
}

func TestInstalledAt(t *testing.T) {
	client, _ := installedClient(t)
	for _, dir := range []string{client.Dir, filepath.Dir(client.Dir)} {
		if got, err := InstalledAt(dir, dialect.Forge); err != nil || got.Dir != client.Dir {
			t.Errorf("%s: %+v, %v", dir, got, err)
		}
		if _, err := InstalledAt(dir, dialect.TunePlane); registry.CodeOf(err) != registry.Invalid {
			t.Errorf("%s as the other client: %v", dir, err)
		}
	}
	// A program that a link leads to, and whose first line is the shell's, as pip writes it for long paths.
	script := filepath.Join(client.Dir, "../../../../bin/starforge")
	elsewhere := t.TempDir()
	if err := errors.Join(os.WriteFile(script, []byte("#!/bin/sh\n'''exec' python3\n"), 0o755), os.Symlink(script, filepath.Join(elsewhere, "sf"))); err != nil {
		t.Fatal(err)
	}
	if got := InstalledOnPath(elsewhere, dialect.Forge); got == nil || got.Dir != client.Dir {
		t.Errorf("through a link: %+v", got)
	}
	if got := InstalledOnPath(t.TempDir(), dialect.Forge); got != nil {
		t.Errorf("found %+v in an empty folder", got)
	}
}

func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := make(map[string]string)
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if err == nil && d.Name() == ".git" {
				return filepath.SkipDir
			}
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		text, err := os.ReadFile(path)
		found[rel] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// A project and an experiment made with an installed client have its files, and the lock binds what the base sets.
func TestInitAndNew(t *testing.T) {
	t.Setenv("GIT_CONFIG_GLOBAL", "/dev/null")
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	client, c := installedClient(t)
	dir := filepath.Join(t.TempDir(), "deep", "lab")
	p, warnings, err := Init(dir, InitOptions{Dialect: dialect.Forge, By: "gatehouse test", Git: true, Client: client})
	if err != nil || len(warnings) > 0 || p.Name != "lab" {
		t.Fatalf("%+v, %v, %v", p, warnings, err)
	}
	got := files(t, dir)
	if got["configs/base.yaml"] != "optim: {lr: 1}\n" || got["common/__init__.py"] != "# theirs\n" || !strings.Contains(got["starforge.yaml"], "created_by: gatehouse test\n") {
		t.Errorf("the project has %q", got)
	}
	if facts, err := p.Git(); err != nil || facts.Commit == "" || facts.Dirty {
		t.Errorf("git says %+v, %v", facts, err)
	}
	cmd := exec.Command("git", "log", "--format=%an <%ae>")
	cmd.Dir = dir
	if out, err := cmd.Output(); err != nil || string(out) != "sf init <gatehouse@localhost>\n" {
		t.Errorf("the commit is by %q, %v", out, err)
	}

	entry, ok := c.Lookup("labfw/tune")
	if !ok {
		t.Fatal("no recipe")
	}
	template, err := Template(client.RecipeDir(entry), dialect.Forge, entry)
	if err != nil {
		t.Fatal(err)
	}
	e, err := p.New("one", NewOptions{Catalogue: c, Recipe: entry, Template: template, Client: client})
	if err != nil {
		t.Fatal(err)
	}
	got = files(t, e.Dir)
	text := got[lock.RecipeFile]
	delete(got, lock.RecipeFile)
	want := map[string]string{"README.md": "# general\n", "config.yaml": "defaults: ../../configs/base\n", "run.py": "print()\n"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the experiment (-want +got)\n%s", diff)
	}
	if !strings.Contains(text, `"path": "optim.lr"`) || !strings.Contains(text, `"core_version": "0.9.9"`) {
		t.Errorf("the lock is %s", text)
	}
	if i := e.Inspect(c, ""); i.State != lock.Current {
		t.Errorf("%s: %s", i.State, i.Message)
	}

	// A template of another release, and one that lacks its entrypoint.
	other := entry
	other.TemplateDigest = "sha256:" + strings.Repeat("0", 64)
	if _, err := Template(client.RecipeDir(entry), dialect.Forge, other); registry.CodeOf(err) != registry.DigestInvalid {
		t.Errorf("a template of another release: %v", err)
	}
	if _, err := p.New("two", NewOptions{Catalogue: c, Recipe: entry, Template: t.TempDir()}); err == nil || !strings.Contains(err.Error(), "has no run.py") {
		t.Errorf("a template without its entrypoint: %v", err)
	}
	left, err := os.ReadDir(filepath.Join(p.Root, ExperimentsDir))
	if err != nil || len(left) != 2 { // .gitkeep and one
		t.Errorf("experiments/ has %v, %v", left, err)
	}
}

// When a new project can't be finished, the folder is as it was.
func TestInitLeavesNothing(t *testing.T) {
	dir := lay(t, map[string]string{"mine": "x"})
	broken := &Installed{Dir: filepath.Join(t.TempDir(), "starforge")}
	if _, _, err := Init(dir, InitOptions{Dialect: dialect.Forge, Client: broken}); err == nil {
		t.Fatal("made from nothing")
	}
	if diff := cmp.Diff(map[string]string{"mine": "x"}, files(t, dir)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	fresh := filepath.Join(filepath.Dir(dir), "fresh")
	if _, _, err := Init(fresh, InitOptions{Dialect: dialect.Forge, Client: broken}); err == nil {
		t.Fatal("made from nothing")
	}
	if _, err := os.Lstat(fresh); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is there: %v", fresh, err)
	}
}

// A copy takes no link that leads out of the project along.
func TestForkRefusesLinks(t *testing.T) {
	client, c := installedClient(t)
	p, _, err := Init(filepath.Join(t.TempDir(), "lab"), InitOptions{Dialect: dialect.Forge, Client: client})
	if err != nil {
		t.Fatal(err)
	}
	entry, _ := c.Lookup("labfw/tune")
	template, err := Template(client.RecipeDir(entry), dialect.Forge, entry)
	if err != nil {
		t.Fatal(err)
	}
	e, err := p.New("one", NewOptions{Catalogue: c, Recipe: entry, Template: template})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("run.py", filepath.Join(e.Dir, "main.py")); err != nil {
		t.Fatal(err)
	}
	fork, plan, err := p.Fork("two", e, c)
	if err != nil || plan.State != lock.Current {
		t.Fatalf("%+v, %v", plan.Inspection, err)
	}
	if info, err := os.Lstat(filepath.Join(fork.Dir, "main.py")); err != nil || !info.Mode().IsRegular() {
		t.Errorf("the link became %v, %v", info, err)
	}
	if err := os.Symlink("/etc/hosts", filepath.Join(e.Dir, "hosts")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := p.Fork("three", e, c); err == nil {
		t.Error("a link out of the project was copied")
	}
	if p.exists("experiments/three") {
		t.Error("a refused copy is there")
	}
	noLock := filepath.Join(p.Root, ExperimentsDir, "bare")
	if err := os.Mkdir(noLock, 0o755); err != nil {
		t.Fatal(err)
	}
	bare, err := p.Experiment("bare")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := p.Fork("four", bare, c); registry.CodeOf(err) != registry.NotFound {
		t.Errorf("a copy of what has no lock: %v", err)
	}
}

// When a write of an upgrade of all fails, the locks that were written before it are as they were.
func TestUpgradeAllPutsBack(t *testing.T) {
	client, c := installedClient(t)
	p, _, err := Init(filepath.Join(t.TempDir(), "lab"), InitOptions{Dialect: dialect.Forge, Client: client})
	if err != nil {
		t.Fatal(err)
	}
	entry, _ := c.Lookup("labfw/tune")
	template, err := Template(client.RecipeDir(entry), dialect.Forge, entry)
	if err != nil {
		t.Fatal(err)
	}
	const old = `{"apiVersion": "forge/recipe-lock/v2", "recipe": {"name": "labfw/tune"}}`
	var writes []write
	for _, name := range []string{"a", "b"} {
		e, err := p.New(name, NewOptions{Catalogue: c, Recipe: entry, Template: template})
		if err != nil {
			t.Fatal(err)
		}
		if err := e.WriteRecipeLock([]byte(old)); err != nil {
			t.Fatal(err)
		}
		plan, err := e.PlanUpgrade(c, "", lock.Upgrade{})
		if err != nil {
			t.Fatal(err)
		}
		writes = append(writes, write{e, plan.Text, nil})
	}
	blocked := filepath.Join(writes[1].experiment.Dir, lock.RecipeFile)
	if err := errors.Join(os.Remove(blocked), os.MkdirAll(filepath.Join(blocked, "x"), 0o755)); err != nil {
		t.Fatal(err)
	}
	if err := writeAll(writes); err == nil {
		t.Fatal("written over a folder")
	}
	if text, err := writes[0].experiment.RecipeLockBytes(); err != nil || string(text) != old {
		t.Errorf("the first lock is %q, %v", text, err)
	}
}
