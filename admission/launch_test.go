package admission

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/pack"
	"github.com/gatehouse-registry/gatehouse/admission/receipt"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/digest/tree"
)

// openTree hashes a tree of the given files.
func openTree(t *testing.T, files map[string]string) tree.Tree {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	found, err := tree.OpenDir(root)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func algorithm(name string, more map[string]string) map[string]string {
	files := map[string]string{
		"plugin.yaml":       "schema: forge/plugin/v1\nname: " + name + "\nversion: \"1.0.0\"\nkind: algorithm\nentrypoint: " + name + "_patch:install\n",
		name + "_patch.py":  "def install(params, **ctx): pass\n",
		"data/weights.bin":  "1",
		"data/more/two.txt": "2",
	}
	for path, text := range more {
		files[path] = text
	}
	return files
}

// launchJob is a job whose plugins all agree with what is pinned, and its receipt.
func launchJob(t *testing.T, plugins ...map[string]string) LaunchInput {
	t.Helper()
	in := LaunchInput{Dialect: dialect.Forge, SpecFile: ".starforge/jobspec.json"}
	var refs []string
	for _, files := range plugins {
		var name string
		for line := range strings.Lines(files["plugin.yaml"]) {
			if rest, ok := strings.CutPrefix(line, "name: "); ok {
				name = strings.TrimSpace(rest)
			}
		}
		published := openTree(t, files)
		pin := receipt.Pin{
			ID: "lab/" + name, Version: "1.0.0", Kind: "algorithm", Content: published.Listing().Content,
			Tree: published.Listing().Tree, Manifest: digest.FromBytes([]byte(name)),
		}
		in.Plugins = append(in.Plugins, LaunchPack{
			Pin: pin, Copy: published,
			Injected: Injected{Folder: "forge_plugins/" + name, State: InjectedPresent, Listing: published.Listing()},
		})
		refs = append(refs, `{"id":"`+pin.ID+`","version":"1.0.0","digest":"`+pin.Content.String()+`"}`)
	}
	in.SpecBytes = []byte(`{"apiVersion":"forge/v2","kind":"TrainingJob","metadata":{"name":"demo"},"spec":{
		"recipe":{"name":"custom/custom","version":"1","digest":"sha256:` + strings.Repeat("0", 64) + `"},
		"source":{"exp":"e"},"framework":{"kind":"custom","version":"1"},
		"resources":{"pools":[{"name":"train","nodes":1,"gpus_per_node":1}]},
		"plugins":[` + strings.Join(refs, ",") + `]},"provenance":{"core_version":"0.3.56"}}`)
	in.Receipt = &receipt.Receipt{Job: "job-1", Dialect: dialect.Forge, SpecBytes: digest.FromBytes(in.SpecBytes)}
	for _, p := range in.Plugins {
		in.Receipt.Plugins = append(in.Receipt.Plugins, p.Pin)
	}
	return in
}

// replaceInjected puts another tree where the first plugin was injected.
func replaceInjected(t *testing.T, in *LaunchInput, files map[string]string) {
	in.Plugins[0].Injected.Listing = openTree(t, files).Listing()
}

func TestLaunch(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(t *testing.T, in *LaunchInput)
		want  []RuleID
		say   string // in the first message
	}{
		{"as pinned", func(t *testing.T, in *LaunchInput) {}, nil, ""},
		{"without a receipt", func(t *testing.T, in *LaunchInput) { in.Receipt = nil }, nil, ""},
		{"other spec", func(t *testing.T, in *LaunchInput) { in.SpecBytes = append(in.SpecBytes, '\n') }, []RuleID{"launch.receipt.spec"}, "job-1"},
		{"other dialect's receipt", func(t *testing.T, in *LaunchInput) { in.Receipt.Dialect = dialect.TunePlane }, []RuleID{"launch.receipt.spec"}, "tuneplane"},
		{"pinned by nothing", func(t *testing.T, in *LaunchInput) { in.Plugins = in.Plugins[:1] }, []RuleID{"launch.digest.pin"}, "lab/beta"},
		{"pin of another version", func(t *testing.T, in *LaunchInput) { in.Plugins[0].Pin.Version = "1.0.1" }, []RuleID{"launch.digest.pin", "launch.identity"}, "1.0.1"},
		{"changed, extra and missing files", func(t *testing.T, in *LaunchInput) {
			files := algorithm("alpha", map[string]string{"alpha_patch.py": "#", "extra.txt": ""})
			delete(files, "data/weights.bin")
			replaceInjected(t, in, files)
		}, []RuleID{"launch.digest.content"}, `("alpha_patch.py" differs, "extra.txt" is extra, "data/weights.bin" is missing)`},
		{"a twin", func(t *testing.T, in *LaunchInput) {
			*in = launchJob(t, map[string]string{"plugin.yaml": algorithm("alpha", nil)["plugin.yaml"], "alpha_patch.py": "x", "b": "1\x00c\x002"})
			twin := map[string]string{"plugin.yaml": algorithm("alpha", nil)["plugin.yaml"], "alpha_patch.py": "x", "b": "1", "c": "2"}
			replaceInjected(t, in, twin)
		}, []RuleID{"launch.digest.tree"}, `"c" is extra`},
		{"not injected", func(t *testing.T, in *LaunchInput) { in.Plugins[1].Injected.State = InjectedAbsent }, []RuleID{"launch.plugin.missing"}, "lab/beta"},
		{"injected by a link", func(t *testing.T, in *LaunchInput) { in.Plugins[1].Injected.State = InjectedLink }, []RuleID{"launch.plugin.link"}, "lab/beta"},
		{"injected and unreadable", func(t *testing.T, in *LaunchInput) {
			in.Plugins[1].Injected.State, in.Plugins[1].Injected.Detail = InjectedUnreadable, "permission denied"
		}, []RuleID{"launch.plugin.unreadable"}, "permission denied"},
		{"odd entries", func(t *testing.T, in *LaunchInput) {
			listing := *in.Plugins[0].Injected.Listing
			listing.Entries = append(slices.Clone(listing.Entries), tree.Entry{Path: "l", Kind: tree.FolderLink, Link: "data"},
				tree.Entry{Path: "d", Kind: tree.Dangling, Link: "x"}, tree.Entry{Path: "o", Kind: tree.Outside, Link: "/etc"}, tree.Entry{Path: "f", Kind: tree.Special})
			in.Plugins[0].Injected.Listing = &listing
		}, []RuleID{"launch.plugin.link", "launch.plugin.link", "launch.plugin.link", "launch.plugin.special"}, `"data"`},
		{"our own copy damaged", func(t *testing.T, in *LaunchInput) {
			in.Plugins[0].Copy = openTree(t, algorithm("alpha", map[string]string{"x": ""}))
		}, []RuleID{"launch.digest.copy"}, "lab/alpha"},
		{"other kind than published", func(t *testing.T, in *LaunchInput) { in.Plugins[0].Pin.Kind = "environment" }, []RuleID{"launch.kind"}, "environment"},
		{"runtime supplied and not there", func(t *testing.T, in *LaunchInput) {
			p := &in.Plugins[1]
			p.Pin.RuntimeSupplied, p.Pin.Tree, p.Copy, p.Injected.State = true, digest.Digest{}, nil, InjectedAbsent
		}, nil, ""},
		{"runtime supplied and another one there", func(t *testing.T, in *LaunchInput) {
			p := &in.Plugins[0]
			p.Pin.RuntimeSupplied, p.Pin.Tree, p.Copy = true, digest.Digest{}, nil
			replaceInjected(t, in, algorithm("alpha", map[string]string{"x": ""}))
		}, []RuleID{"launch.digest.content"}, "lab/alpha"},
		{"a spec that is none", func(t *testing.T, in *LaunchInput) { in.SpecBytes = []byte("{"); in.Receipt = nil }, []RuleID{"job.json.syntax"}, ""},
	} {
		in := launchJob(t, algorithm("alpha", nil), algorithm("beta", nil))
		c.spoil(t, &in)
		d := CheckLaunch(in)
		var got []RuleID
		for _, v := range d.Violations {
			got = append(got, v.Rule)
		}
		if diff := cmp.Diff(c.want, got); diff != "" || d.Allowed != (len(got) == 0) {
			t.Errorf("%s: allowed %v (-want +got)\n%s%v", c.name, d.Allowed, diff, d.Violations)
			continue
		}
		if len(got) > 0 && !strings.Contains(d.Violations[0].Message, c.say) {
			t.Errorf("%s: the message does not say %q: %s", c.name, c.say, d.Violations[0].Message)
		}
	}
}

// requires.core is met as the launcher answers it, with the version that the launch names before the spec's.
func TestLaunchCore(t *testing.T) {
	for _, c := range []struct {
		requires, core string
		want           []RuleID
	}{
		{">=0.3,<0.4", "", nil},
		{">=0.4", "", []RuleID{"launch.requires.core"}},
		{">=0.4", "0.4.0rc1", []RuleID{"launch.requires.core"}},
		{">=0.4.0rc1", "0.4.0rc2", nil},
		{">=0.4", "0.5", nil},
		{">=0.4", "no version", []RuleID{"launch.requires.core"}},
	} {
		files := algorithm("alpha", nil)
		files["plugin.yaml"] += "requires:\n  core: \"" + c.requires + "\"\n"
		in := launchJob(t, files)
		in.CoreVersion = c.core
		var got []RuleID
		for _, v := range CheckLaunch(in).Violations {
			got = append(got, v.Rule)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("requires %s with %q (-want +got)\n%s", c.requires, c.core, diff)
		}
	}
}

// Two plugins may not own one import name: a module, or a folder that holds Python at any depth.
func TestLaunchImportNames(t *testing.T) {
	for _, c := range []struct {
		name        string
		alpha, beta map[string]string
		collide     bool
	}{
		{"folders of data", map[string]string{"data/x.txt": ""}, map[string]string{"data/y.txt": ""}, false},
		{"a module twice", map[string]string{"shared.py": ""}, map[string]string{"shared.py": ""}, true},
		{"a module and a folder", map[string]string{"shared.py": ""}, map[string]string{"shared/deep/x.py": ""}, true},
		{"a namespace twice", map[string]string{"shared/a.py": ""}, map[string]string{"shared/b/c.py": ""}, true},
		{"a folder that is no identifier", map[string]string{"not-a-name/a.py": ""}, map[string]string{"not-a-name/b.py": ""}, false},
		{"case counts", map[string]string{"Shared.py": ""}, map[string]string{"shared.py": ""}, false},
	} {
		d := CheckLaunch(launchJob(t, algorithm("alpha", c.alpha), algorithm("beta", c.beta)))
		collided := slices.ContainsFunc(d.Violations, func(v Violation) bool { return v.Rule == "launch.import.collision" })
		if collided != c.collide {
			t.Errorf("%s: %v", c.name, d.Violations)
		}
	}
}

// A recipe pack that the job brings along is held against the digest that the spec locks, by either formula.
func TestLaunchRecipe(t *testing.T) {
	src, err := os.ReadFile(filepath.Join("..", "testdata", "packs", "tiny-sft", "recipe.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"recipe.yaml": string(src), "template/config.yaml": "a: 1\n"}
	brought := openTree(t, files)
	read, report, err := pack.ReadRecipe(brought, pack.RecipeOptions{})
	if err != nil || !report.OK() {
		t.Fatal(report.Violations, err)
	}
	in := launchJob(t)
	if read.Dialect != in.Dialect {
		t.Fatalf("the pack is of %s", read.Dialect)
	}
	in.Receipt = nil
	in.Recipes = []LaunchPack{{
		Pin: receipt.Pin{ID: "lab/tiny-sft", Kind: "recipe"}, Unpinned: true, Copy: brought,
		Injected: Injected{Folder: "forge_recipes/lab/tiny-sft", State: InjectedPresent, Listing: brought.Listing()},
	}}
	lock := func(name, sum string) Decision {
		in := in
		spec := strings.Replace(string(in.SpecBytes), "custom/custom", name, 1)
		in.SpecBytes = []byte(strings.Replace(spec, "sha256:"+strings.Repeat("0", 64), sum, 1))
		return CheckLaunch(in)
	}
	older := digest.FromBytes(fmt.Appendf(nil, `{"manifest":"%s","template":"%s"}`, read.ManifestDigest, read.TemplateDigest))
	for _, good := range []digest.Digest{read.Digest, older} {
		if d := lock(read.ID(), good.String()); !d.Allowed || len(d.Warnings) == 0 || d.Warnings[0].Rule != "launch.recipe.unpinned" {
			t.Errorf("locked as %s: %v, warnings %v", good, d.Violations, d.Warnings)
		}
	}
	if d := lock(read.ID(), "sha256:"+strings.Repeat("1", 64)); d.Allowed || d.Violations[0].Rule != "launch.digest.recipe" {
		t.Errorf("another recipe: %v", d.Violations)
	}
}

// A spec that was stored has the owner that the server filled in: nothing to warn of, on every launch.
func TestLaunchOwner(t *testing.T) {
	in := launchJob(t, algorithm("alpha", nil))
	in.SpecBytes = []byte(strings.Replace(string(in.SpecBytes), `{"name":"demo"}`, `{"name":"demo","owner":"alice"}`, 1))
	in.Receipt.SpecBytes = digest.FromBytes(in.SpecBytes)
	if d := CheckLaunch(in); !d.Allowed || len(d.Warnings) != 0 {
		t.Errorf("allowed %v, warnings %v, violations %v", d.Allowed, d.Warnings, d.Violations)
	}
}
