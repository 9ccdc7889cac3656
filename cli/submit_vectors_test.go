package cli

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/gatehouse-registry/gatehouse/admission/catalogue"
	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/pack"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/cli/jobbuild"
	"github.com/gatehouse-registry/gatehouse/cli/jobpackage"
	"github.com/gatehouse-registry/gatehouse/cli/project"
	"github.com/gatehouse-registry/gatehouse/digest/tree"
	"github.com/gatehouse-registry/gatehouse/testdata"
)

// submitVectors is testdata/vectors/{spec-builder,job-package}-vectors.json (README-locks.md).
type submitVectors struct {
	Catalogues map[string][]struct {
		Owner, Name string
		Files       map[string]vectorFile
	}
	Vectors []submitVector
}

type submitVector struct {
	ID, Kind, Note string
	Input          struct {
		Dialect      string
		Core         string `json:"core_version"`
		Catalogue    string `json:"catalogue_ref"`
		Argv         []string
		Files        map[string]vectorFile
		AfterCommit  map[string]vectorFile `json:"files_after_commit"`
		DeletedAfter []string              `json:"deleted_after_commit"`
		Symlinks     map[string]string
		Commit, Git  string
	}
	Expect struct {
		Exit       int
		Stderr     string
		Warnings   string
		Spec, Meta json.RawMessage
		Intent     *struct{ Form, Project, Profile string }
		Package    []json.RawMessage
		FilesAfter map[string]vectorFile `json:"files_after"`
	}
}

// vectorFile is a text, or {"base64": text}.
type vectorFile string

func (f *vectorFile) UnmarshalJSON(src []byte) error {
	if src[0] == '"' {
		return json.Unmarshal(src, (*string)(f))
	}
	var coded struct{ Base64 []byte }
	err := json.Unmarshal(src, &coded)
	*f = vectorFile(coded.Base64)
	return err
}

// packed is a member of a package, as job-package vectors list it; spec-builder vectors list names alone.
type packed struct {
	Name, Type, Mode, SHA256, Link string
	Size                           int64
}

func readSubmitVectors(t *testing.T, subject string) submitVectors {
	t.Helper()
	src, err := testdata.FS.ReadFile("vectors/" + subject + "-vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var all submitVectors
	if err := json.Unmarshal(src, &all); err != nil {
		t.Fatal(err)
	}
	if len(all.Vectors) == 0 {
		t.Fatal("no vectors")
	}
	return all
}

// deliberate are the rules by which we refuse what the clients send, by subject: those that vectors of deliberate.json name.
func deliberate(t *testing.T, subject string) (byRule map[rule.ID]bool, byID map[string]bool) {
	t.Helper()
	src, err := testdata.FS.ReadFile("vectors/deliberate.json")
	if err != nil {
		t.Fatal(err)
	}
	var all map[string][]struct {
		ID     string
		Rule   rule.ID
		Reason string
	}
	if err := json.Unmarshal(src, &all); err != nil {
		t.Fatal(err)
	}
	byRule, byID = make(map[rule.ID]bool), make(map[string]bool)
	for _, d := range all[subject] {
		byRule[d.Rule], byID[d.ID] = true, true
	}
	return byRule, byID
}

// What the server had when the vectors were made (README-locks.md).
var vectorProfiles = []jobbuild.Profile{
	{Name: "h200", Series: "h200", Nodes: 1, GPUsPerNode: 8}, {Name: "h200-2g", Series: "h200", Nodes: 1, GPUsPerNode: 2},
	{Name: "b300", Series: "b300", Nodes: 2, GPUsPerNode: 4}, {Name: "plain", GPUsPerNode: 1},
}

func TestSubmitVectors(t *testing.T) {
	catalogues := readSubmitVectors(t, "spec-builder").Catalogues // for both
	for _, subject := range []string{"spec-builder", "job-package"} {
		all := readSubmitVectors(t, subject)
		all.Catalogues = catalogues
		rules, ids := deliberate(t, subject)
		known := make(map[string]*catalogue.Catalogue)
		for _, v := range all.Vectors {
			t.Run(v.ID, func(t *testing.T) {
				d := vectorDialect(v.Input.Dialect)
				key := v.Input.Catalogue + "@" + v.Input.Core
				if known[key] == nil {
					known[key] = all.catalogue(t, v.Input.Catalogue, d, v.Input.Core)
				}
				root := v.project(t)
				differs := v.check(t, root, knowledge{known[key], vectorProfiles}, d, rules)
				if ids[v.ID] && !differs {
					t.Error("deliberate.json lists it, and it does not differ")
				}
			})
		}
	}
}

func vectorDialect(client string) dialect.Dialect {
	if client == "starforge" {
		return dialect.Forge
	}
	return dialect.TunePlane
}

// catalogue is what the vector's client had: what it ships, and the recipes of the packs.
func (all submitVectors) catalogue(t *testing.T, ref string, d dialect.Dialect, release string) *catalogue.Catalogue {
	t.Helper()
	base, ok := catalogue.Builtin(d, release)
	if !ok {
		t.Fatalf("no catalogue of release %s", release)
	}
	var entries []catalogue.Entry
	for _, p := range all.Catalogues[ref] {
		dir := t.TempDir()
		layFiles(t, dir, p.Files)
		root, err := os.OpenRoot(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		files, err := tree.OpenDir(root)
		if err != nil {
			t.Fatal(err)
		}
		r, report, err := pack.ReadRecipe(files, pack.RecipeOptions{Dialect: d, Name: p.Name})
		if err != nil || r == nil {
			t.Fatalf("%s/%s: %v %v", p.Owner, p.Name, err, report.Violations)
		}
		entries = append(entries, catalogue.FromRecipe(r, catalogue.Pack{Owner: p.Owner, Name: p.Name}))
	}
	c, _ := base.WithPacks(entries)
	return c
}

func layFiles(t *testing.T, root string, files map[string]vectorFile) {
	t.Helper()
	for name, text := range files {
		at := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// gitIn runs git as the vectors' projects were made: one commit, whose author and times are known.
func gitIn(t *testing.T, root string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=Dev", "GIT_AUTHOR_EMAIL=dev@example.invalid", "GIT_AUTHOR_DATE=2026-01-02T03:04:05Z",
		"GIT_COMMITTER_NAME=Dev", "GIT_COMMITTER_EMAIL=dev@example.invalid", "GIT_COMMITTER_DATE=2026-01-02T03:04:05Z")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// project lays out the vector's project and gives its folder.
func (v submitVector) project(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	layFiles(t, root, v.Input.Files)
	for name, target := range v.Input.Symlinks {
		at := filepath.Join(root, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.Symlink(target, at)); err != nil {
			t.Fatal(err)
		}
	}
	if v.Input.Git != "none" {
		gitIn(t, root, "init", "-q", "-b", "main")
	}
	if v.Input.Git == "" {
		gitIn(t, root, "add", "-A")
		gitIn(t, root, "commit", "-q", "-m", "one")
		if head := gitIn(t, root, "rev-parse", "HEAD"); v.Input.Commit != "" && head != v.Input.Commit {
			t.Fatalf("the project's commit is %s, the vector's %s", head, v.Input.Commit)
		}
	}
	layFiles(t, root, v.Input.AfterCommit)
	for _, name := range v.Input.DeletedAfter {
		if err := os.Remove(filepath.Join(root, filepath.FromSlash(name))); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// parse reads the vector's command line.
func (v submitVector) parse(t *testing.T) (string, submitOptions) {
	t.Helper()
	var f submitFlags
	cmd := &cobra.Command{Use: "submit"}
	f.flags(cmd)
	if err := cmd.ParseFlags(v.Input.Argv[1:]); err != nil {
		t.Fatal(err)
	}
	f.writes, f.maxWalk = true, jobpackage.DefaultMaxWalk
	return cmd.Flags().Arg(0), f.submitOptions
}

// check compares what is prepared with what the client sent. It reports whether the two differ, which only rules in
// deliberate may make.
func (v submitVector) check(t *testing.T, root string, know knowledge, d dialect.Dialect, deliberate map[rule.ID]bool) (differs bool) {
	t.Helper()
	exp, opt := v.parse(t)
	var got submission
	p, err := project.Find(root, project.Options{Dialect: d})
	if err == nil {
		got, err = prepare(t.Context(), p, exp, know, opt)
	}
	if v.Expect.Exit != 0 {
		if err == nil {
			t.Fatalf("prepared, and the client says %s", v.Expect.Stderr)
		}
		v.checkRefusal(t, err)
		return false
	}
	if err != nil {
		denied, ok := errors.AsType[*rule.Denied](err)
		if !ok {
			t.Fatalf("%v", err)
		}
		for _, violation := range denied.Decision.Violations {
			if !deliberate[violation.Rule] {
				t.Errorf("refused, and the client sends it: %s", violation)
			}
		}
		return true
	}
	if diff := cmp.Diff(v.spec(t, opt), string(got.job.Document)); diff != "" {
		t.Errorf("spec (-client +ours):\n%s", diff)
	}
	meta, err := got.job.Meta.Encode(nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(compact(t, v.Expect.Meta), string(meta)); diff != "" {
		t.Errorf("metadata (-client +ours):\n%s", diff)
	}
	if i := v.Expect.Intent; i != nil && (i.Project != got.job.Meta.Project || i.Profile != got.job.Meta.Profile) {
		t.Errorf("project %q and profile %q, the client sends %+v", got.job.Meta.Project, got.job.Meta.Profile, i)
	}
	if v.Expect.Warnings != "" && len(got.warnings) == 0 {
		t.Errorf("no warning, the client's is %q", v.Expect.Warnings)
	}
	for name, want := range v.Expect.FilesAfter {
		if text, err := os.ReadFile(filepath.Join(root, name)); err != nil || string(text) != string(want) {
			t.Errorf("%s is %q afterwards (%v), the client leaves %q", name, text, err, want)
		}
	}
	return v.checkPackage(t, got.files)
}

// checkRefusal holds a refusal to saying where, what, and how to mend it.
func (v submitVector) checkRefusal(t *testing.T, err error) {
	t.Helper()
	denied, ok := errors.AsType[*rule.Denied](err)
	if !ok {
		return // no such project or experiment: one sentence
	}
	for _, violation := range denied.Decision.Violations {
		if (violation.Field == "" && violation.File == "") || violation.Hint == "" {
			t.Errorf("a refusal without a place or a fix: %+v", violation)
		}
	}
}

func compact(t *testing.T, src []byte) string {
	t.Helper()
	var b bytes.Buffer
	if err := json.Compact(&b, src); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// spec is the client's spec, with the output data set that it forgets.
func (v submitVector) spec(t *testing.T, opt submitOptions) string {
	t.Helper()
	text := compact(t, v.Expect.Spec)
	if opt.OutputDataset == "" {
		return text
	}
	member := fmt.Sprintf(`"output_dataset":%q`, opt.OutputDataset)
	if !strings.Contains(text, `"data":{`) {
		return strings.Replace(text, `"resources":{`, `"data":{`+member+`},"resources":{`, 1)
	}
	t.Fatal("a vector with an output data set and other data: say where it stands")
	return ""
}

// checkPackage packs the files and compares them with the client's.
func (v submitVector) checkPackage(t *testing.T, files jobpackage.List) (differs bool) {
	t.Helper()
	var archive bytes.Buffer
	if err := files.Pack(&archive, nil); err != nil {
		t.Fatal(err)
	}
	got := membersOf(t, archive.Bytes())
	want := make(map[string]packed)
	for _, raw := range v.Expect.Package {
		var m packed
		if raw[0] == '"' {
			if err := json.Unmarshal(raw, &m.Name); err != nil {
				t.Fatal(err)
			}
			m = packed{Name: m.Name}
			if g, ok := got[m.Name]; ok {
				m = g
			}
		} else if err := json.Unmarshal(raw, &m); err != nil {
			t.Fatal(err)
		}
		want[m.Name] = m
	}
	for name := range got {
		if _, ok := want[name]; !ok && lostByClient(vectorDialect(v.Input.Dialect), name) {
			delete(got, name)
			differs = true
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("package (-client +ours):\n%s", diff)
	}
	if names := slices.Sorted(maps.Keys(got)); !differs && !slices.Equal(names, orderOf(files)) {
		t.Errorf("the members are not sorted: %q", orderOf(files))
	}
	return differs
}

func orderOf(files jobpackage.List) []string {
	var names []string
	for _, m := range files.Members {
		names = append(names, m.Path)
	}
	return names
}

// lostByClient are names that git quotes, which the clients pass over without a word (recipes-and-locks.md 8).
func lostByClient(d dialect.Dialect, name string) bool {
	return strings.ContainsFunc(name, func(r rune) bool {
		return r < 0x20 || r == 0x7F || r == '"' || r == '\\' || d == dialect.Forge && r >= 0x80
	})
}

func membersOf(t *testing.T, archive []byte) map[string]packed {
	t.Helper()
	zr, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]packed)
	for tr := tar.NewReader(zr); ; {
		h, err := tr.Next()
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		m := packed{Name: h.Name, Type: "file", Mode: fmt.Sprintf("0o%o", h.Mode), Size: h.Size, Link: h.Linkname}
		if h.Typeflag == tar.TypeSymlink {
			m.Type = "symlink"
		} else {
			text, err := io.ReadAll(tr)
			if err != nil {
				t.Fatal(err)
			}
			sum := sha256.Sum256(text)
			m.SHA256 = hex.EncodeToString(sum[:])
		}
		all[m.Name] = m
	}
}
