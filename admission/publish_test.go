package admission

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/name"
	"github.com/gatehouse-registry/gatehouse/admission/pack"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/digest/tree"
	"github.com/gatehouse-registry/gatehouse/testdata"
)

const publishedManifest = "schema: forge/plugin/v1\nname: My-Algo\nversion: \"1.2.0\"\nkind: algorithm\nentrypoint: main:install\n"

// openPack opens a folder with the given files as a tree.
func openPack(t testing.TB, files map[string]string) tree.Tree {
	t.Helper()
	dir := t.TempDir()
	for file, data := range files {
		path := filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	d, err := tree.OpenDir(root)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// publishInput is a publish over OCI that is right: alice's first version.
func publishInput(t testing.TB, manifest string) PublishInput {
	t.Helper()
	p, report, err := pack.Check(openPack(t, map[string]string{"plugin.yaml": manifest, "main.py": "pass\n"}), pack.Options{})
	if err != nil {
		t.Fatal(err)
	}
	in := PublishInput{Report: report, Pack: p, Owner: "alice", Principal: "alice", MayWrite: true}
	if !report.OK() {
		return in
	}
	if in.Config, err = pack.BuildConfig(p); err != nil {
		t.Fatal(err)
	}
	in.Repository, in.Tag = "alice/"+strings.ToLower(p.Manifest.Name), p.Manifest.Version
	in.Artifact = &pack.OCIArtifact{
		Kind: p.Manifest.Kind, Title: p.Manifest.ArchiveName(), Content: p.Content(), Tree: p.Tree(),
	}
	return in
}

func TestCheckPublish(t *testing.T) {
	other := digest.FromBytes([]byte("other"))
	known := func(version string, kind pack.Kind) Known {
		return Known{Versions: []KnownVersion{{Version: version, Kind: kind, Tree: other}}}
	}
	recipe := readPack(t, "tiny-sft")
	benchmark := readPack(t, "arithmetic")
	cases := []struct {
		name   string
		change func(in *PublishInput)
		rule   RuleID // "" allowed
		class  rule.Class
		says   string
	}{
		{name: "right", change: func(in *PublishInput) {}},
		{name: "over REST", change: func(in *PublishInput) { in.Artifact, in.Config, in.Tag, in.Repository = nil, nil, "", "" }},
		{name: "a namespace that the account may write", change: func(in *PublishInput) { in.Principal = "root" }},
		{name: "a newer version", change: func(in *PublishInput) { in.Known = known("1.1.0", pack.KindAlgorithm) }},
		{name: "by digest, taken", change: func(in *PublishInput) { in.Tag, in.ByDigest, in.Known = "", true, known("1.2.0", pack.KindAlgorithm) }},
		{name: "a pack of its own name", change: func(in *PublishInput) { in.Known.Names = []string{"My-Algo", "my-other"} }},

		{"another's namespace", func(in *PublishInput) { in.Principal, in.MayWrite = "bob", false }, "publish.owner", rule.Forbidden, "bob"},
		{"reserved owner", func(in *PublishInput) { in.Owner, in.Repository = "tuneplane", "tuneplane/my-algo" }, "publish.owner.reserved", rule.Forbidden, "tuneplane"},
		{"a repository of another name", func(in *PublishInput) { in.Repository = "alice/other" }, "publish.name.repository", rule.Invalid, `"alice/my-algo"`},
		{"a name people take for another", func(in *PublishInput) { in.Known.Names = []string{"my_algo"} }, "publish.name.taken", rule.Conflict, `"my_algo"`},
		{"tag of another version", func(in *PublishInput) { in.Tag = "1.3.0" }, "publish.version.tag", rule.Invalid, `"1.3.0"`},
		{"taken, other bytes", func(in *PublishInput) { in.Known = known("1.2.0", pack.KindAlgorithm) }, "publish.version.taken", rule.Conflict, "differ: published tree " + other.String()},
		{"taken, same bytes", func(in *PublishInput) {
			in.Known = known("1.2.0", pack.KindAlgorithm)
			in.Known.Versions[0].Tree = in.Pack.Tree()
		}, "publish.version.taken", rule.Conflict, "are the same"},
		{"equal under PEP 440", func(in *PublishInput) { in.Known = known("v1.2", pack.KindAlgorithm) }, "publish.version.equivalent", rule.Conflict, `"v1.2"`},
		{"another kind", func(in *PublishInput) { in.Known = known("1.0.0", pack.KindRecipe) }, "publish.kind.fixed", rule.Conflict, "recipe"},
		{"artifact type of another kind", func(in *PublishInput) { in.Artifact.Kind = pack.KindEnvironment }, "publish.kind.artifact", rule.Invalid, "environment"},
		{"title of another pack", func(in *PublishInput) { in.Artifact.Title = "x.tar.gz" }, "publish.title", rule.Invalid, `"My-Algo-1.2.0.tar.gz"`},
		{"claimed content", func(in *PublishInput) { in.Artifact.Content = other }, "digest.content", rule.Invalid, other.String()},
		{"claimed tree", func(in *PublishInput) { in.Artifact.Tree = other }, "digest.tree", rule.Invalid, other.String()},
		{"another config", func(in *PublishInput) { in.Config = []byte("{}") }, "digest.config", rule.Invalid, "2 bytes"},
		{"recipe id of another owner", func(in *PublishInput) {
			*in = PublishInput{Report: recipe.Report, Pack: recipe.Pack, Owner: "alice", Principal: "alice", MayWrite: true, Known: Known{TakenID: "trl/tiny-sft", TakenBy: "bob/tiny-sft"}}
		}, "publish.recipe.taken", rule.Conflict, "bob/tiny-sft"},
		{"built-in recipe id", func(in *PublishInput) {
			*in = PublishInput{Report: recipe.Report, Pack: recipe.Pack, Owner: "alice", Principal: "alice", MayWrite: true, Known: Known{TakenID: "trl/tiny-sft", TakenBy: BuiltIn}}
		}, "publish.recipe.taken", rule.Conflict, "built-in"},
		{"benchmark id of another owner", func(in *PublishInput) {
			*in = PublishInput{Report: benchmark.Report, Pack: benchmark.Pack, Owner: "a.b", Principal: "a.b", MayWrite: true, Known: Known{TakenID: "a.b.c", TakenBy: "a/b.c"}}
		}, "publish.benchmark.taken", rule.Conflict, "a/b.c"},
		{"folder of a sync", func(in *PublishInput) {
			renamed := *recipe.Pack
			manifest := *renamed.Manifest
			manifest.Name, renamed.Manifest = "tiny.Syncing", &manifest
			*in = PublishInput{Report: recipe.Report, Pack: &renamed, Owner: "alice", Principal: "alice", MayWrite: true}
		}, "publish.name.syncing", rule.Invalid, "tiny.Syncing"},
		{"recipe id of an older version of its own", func(in *PublishInput) {
			*in = PublishInput{Report: recipe.Report, Pack: recipe.Pack, Owner: "alice", Principal: "alice", MayWrite: true, Known: Known{TakenID: "trl/tiny-sft", TakenBy: "alice/tiny-sft"}}
		}, "", rule.Invalid, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			in := publishInput(t, publishedManifest)
			c.change(&in)
			d := CheckPublish(in)
			if c.rule == "" {
				if !d.Allowed {
					t.Errorf("refused: %v", d.Violations)
				}
				return
			}
			if len(d.Violations) != 1 || d.Violations[0].Rule != c.rule || !strings.Contains(d.Violations[0].Message, c.says) {
				t.Fatalf("violations %v; want one of %s that says %q", d.Violations, c.rule, c.says)
			}
			if d.Allowed || d.Class() != c.class || d.Violations[0].Hint == "" {
				t.Errorf("allowed %t, class %d, hint %q; want class %d and a hint", d.Allowed, d.Class(), d.Violations[0].Hint, c.class)
			}
		})
	}
}

// readPack checks one of the repository's own packs.
func readPack(t testing.TB, folder string) PublishInput {
	t.Helper()
	root, err := os.OpenRoot(filepath.Join("..", "testdata", "packs", folder))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	d, err := tree.OpenDir(root)
	if err != nil {
		t.Fatal(err)
	}
	p, report, err := pack.Check(d, pack.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return PublishInput{Report: report, Pack: p}
}

func TestPolicyPacksAreForAdministrators(t *testing.T) {
	in := publishInput(t, "schema: forge/plugin/v1\nname: style\nversion: \"1\"\nkind: playbook\n")
	if in.Report.OK() {
		t.Fatal("a playbook pack with main.py was accepted")
	}
	p, report, err := pack.Check(openPack(t, map[string]string{"plugin.yaml": "schema: tuneplane/plugin/v1\nname: style\nversion: \"1\"\ncapability: prompt\n"}), pack.Options{})
	if err != nil {
		t.Fatal(err)
	}
	d := CheckPublish(PublishInput{Report: report, Pack: p, Owner: "alice", Principal: "alice", MayWrite: true})
	if d.Allowed || d.Class() != rule.Forbidden || d.Violations[0].Rule != "publish.kind.admin" || d.Violations[0].Field != "capability" {
		t.Errorf("%+v", d.Violations)
	}
	if d := CheckPublish(PublishInput{Report: report, Pack: p, Owner: "alice", Principal: "root", MayWrite: true, MayPolicy: true}); !d.Allowed {
		t.Errorf("refused to an administrator: %v", d.Violations)
	}
}

// A known content digest with other files is no refusal, which would let one owner block another's publish.
func TestTwinsAreAWarning(t *testing.T) {
	in := publishInput(t, publishedManifest)
	in.Known.Twins = []KnownTwin{
		{Pack: "bob/x", Version: "1", Tree: digest.FromBytes([]byte("other"))},
		{Pack: "bob/same", Version: "1", Tree: in.Pack.Tree()},
	}
	d := CheckPublish(in)
	if !d.Allowed || len(d.Warnings) != 1 || d.Warnings[0].Rule != "digest.twin" || !strings.Contains(d.Warnings[0].Message, "bob/x") {
		t.Errorf("allowed %t, warnings %v", d.Allowed, d.Warnings)
	}
}

// Every violation is listed, the greatest class decides, and the input is left as it was.
func TestPublishListsEverything(t *testing.T) {
	in := publishInput(t, strings.Replace(publishedManifest, "main:install", "mian:install", 1))
	in.Principal, in.MayWrite = "bob", false
	in.Known = Known{Versions: []KnownVersion{{Version: "1.2.0", Kind: pack.KindAlgorithm}}}
	before := len(in.Report.Violations)
	d := CheckPublish(in)
	found := make(map[RuleID]bool)
	for _, v := range d.Violations {
		found[v.Rule] = true
	}
	for _, want := range []RuleID{"layout.entrypoint", "publish.owner", "publish.version.taken"} {
		if !found[want] {
			t.Errorf("no %s in %v", want, d.Violations)
		}
	}
	if d.Class() != rule.Forbidden || len(in.Report.Violations) != before {
		t.Errorf("class %d; the report has %d violations, had %d", d.Class(), len(in.Report.Violations), before)
	}
	if d.Subject.Name != "alice/My-Algo" || d.Subject.Version != "1.2.0" || d.Subject.TreeDigest == "" {
		t.Errorf("subject %+v", d.Subject)
	}
}

func TestPublishOfARefusedArchive(t *testing.T) {
	var report Report
	report.Add(Violation{Rule: "archive.path.parent", File: "../x", Message: "x"})
	d := CheckPublish(PublishInput{Report: report, Owner: "alice", Principal: "alice", MayWrite: true})
	if d.Allowed || d.Value != nil || len(d.Violations) != 1 {
		t.Errorf("%+v", d)
	}
}

// The corpus of versions: what each line becomes at gate 1. "" is refused by the rule; two accepted spellings of one
// version have one canonical form, so that the second is refused where the first is published.
var corpusVersions = map[string]struct {
	canonical string
	rule      RuleID
}{
	"1.0": {"1", ""}, "1.2.3": {"1.2.3", ""}, "01.2.3": {"1.2.3", ""}, "v1.2.3": {"1.2.3", ""}, "V1.2.3": {"1.2.3", ""},
	"1.2.3_build.1": {"1.2.3_build.1", ""}, "1.2.3-": {"1.2.3-", ""}, "1.2.3-01": {"1.2.3.post1", ""},
	"1.2.3-rc.1": {"1.2.3rc1", ""}, "1.2.3-RC.1": {"1.2.3rc1", ""}, "1.0.post1": {"1.post1", ""}, "1.0.dev3": {"1.dev3", ""},
	"1.0a1": {"1a1", ""}, "4.1": {"4.1", ""}, "4.1.0": {"4.1", ""}, "0.0.39": {"0.0.39", ""}, "0.0.4": {"0.0.4", ""},
	"1.x": {"1.x", ""}, "99999999999999999999.0.0": {"99999999999999999999", ""}, "2026.01.02": {"2026.1.2", ""}, "1..2": {"1..2", ""},
	" 1.2.3": {"1.2.3", ""}, "1.2.3 ": {"1.2.3", ""}, // stripped, as the clients do

	"1.2.3+build.1": {"", "manifest.version"}, "1.2.3+build.2": {"", "manifest.version"}, "1!2.0": {"", "manifest.version"},
	"1.0+local.7": {"", "manifest.version"}, "^1.2": {"", "manifest.version"}, "1.2.3\u200b": {"", "manifest.version"},
	"１.2.3": {"", "manifest.version"}, "..": {"", "manifest.version"}, "1.2.3%2f..": {"", "manifest.version"},
	"latest": {"", "publish.version"}, "sha256-" + strings.Repeat("a", 64): {"", "publish.version"},
	"1.2.3-" + strings.Repeat("a", 200): {"", "manifest.version.length"},
}

func TestCorpusVersions(t *testing.T) {
	src, err := testdata.FS.ReadFile("corpus/versions.txt")
	if err != nil {
		t.Fatal(err)
	}
	accepted, refused := 0, 0
	for line := range strings.SplitSeq(strings.TrimSuffix(string(src), "\n"), "\n") {
		want, ok := corpusVersions[line]
		if !ok {
			t.Errorf("%q has no answer here", line)
			continue
		}
		quoted, err := json.Marshal(line)
		if err != nil {
			t.Fatal(err)
		}
		manifest := strings.Replace(publishedManifest, `"1.2.0"`, string(quoted), 1)
		d, err := CheckPack(openPack(t, map[string]string{"plugin.yaml": manifest, "main.py": ""}), Report{}, CheckOptions{Dialect: dialect.Forge})
		if err != nil {
			t.Fatal(err)
		}
		if want.rule == "" {
			accepted++
			version, err := name.ParseVersion(line)
			if !d.Allowed || err != nil || version.Canonical() != want.canonical || d.Subject.Version != version.String() {
				t.Errorf("%q: %v, canonical %q as %q; want accepted as %q", line, d.Violations, version.Canonical(), d.Subject.Version, want.canonical)
			}
			continue
		}
		refused++
		if len(d.Violations) != 1 || d.Violations[0].Rule != want.rule {
			t.Errorf("%q: %v; want refused by %s", line, d.Violations, want.rule)
		}
	}
	t.Logf("%d versions of the corpus accepted, %d refused", accepted, refused)
}

func TestCheckVerbs(t *testing.T) {
	for _, folder := range []string{"arithmetic", "grad-clip", "tiny-sft"} {
		in := readPack(t, folder)
		if !in.Report.OK() {
			t.Errorf("%s: refused: %v", folder, in.Report.Violations)
		}
	}
	d := CheckManifest([]byte(strings.Replace(publishedManifest, "My-Algo", "a..b", 1)), CheckOptions{})
	if !d.Allowed || len(d.Warnings) != 1 || d.Warnings[0].Rule != "publish.name" || d.Subject.Kind != "algorithm" {
		t.Errorf("a..b: %+v", d)
	}
	if d := CheckManifest([]byte("- x"), CheckOptions{}); d.Allowed || d.Value != nil {
		t.Errorf("a list: %+v", d)
	}
	text, err := json.Marshal(CheckManifest([]byte(publishedManifest), CheckOptions{}))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"gate":"publish","allowed":true,"rules":"` + rule.Version() + `","subject":{"name":"My-Algo","version":"1.2.0","kind":"algorithm","dialect":"forge"},"violations":[],"warnings":[],` +
		`"value":{"schema":"forge/plugin/v1","name":"My-Algo","version":"1.2.0","kind":"algorithm","entrypoint":"main:install","load":"eager"}}`
	if string(text) != want {
		t.Errorf("decision\n%s\nwant\n%s", text, want)
	}
	recipe, err := os.ReadFile("../testdata/packs/tiny-sft/recipe.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if d := CheckRecipe(recipe, CheckOptions{}); !d.Allowed || d.Subject.Kind != "recipe" {
		t.Errorf("recipe: %+v", d.Violations)
	}
	benchmark, err := os.ReadFile("../testdata/packs/arithmetic/benchmark.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if d := CheckBenchmark(benchmark, CheckOptions{}); !d.Allowed || d.Subject.Name != "arithmetic" {
		t.Errorf("benchmark: %+v", d.Violations)
	}
}
