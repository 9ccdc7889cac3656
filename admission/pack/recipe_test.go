package pack

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/digest/tree"
	"github.com/gatehouse-registry/gatehouse/testdata"
	"github.com/google/go-cmp/cmp"
)

// openDir hashes a directory until the test ends.
func openDir(t testing.TB, dir string) tree.Tree {
	t.Helper()
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

// wantRecipe is a recipe in a vector's answer.
type wantRecipe struct {
	ID                string
	Digest            string
	ManifestDigest    string `json:"manifest_digest"`
	TemplateDigest    string `json:"template_digest"`
	Owner             string
	Parsed            json.RawMessage
	SupportedVersions []string `json:"supported_versions"`
}

// plain reads JSON into values that compare without regard to the order of keys. The vectors' notation of what JSON
// can't hold becomes what Raw writes for it.
func plain(t *testing.T, src []byte) any {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(src))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%v in %s", err, src)
	}
	return unwrap(v)
}

func unwrap(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = unwrap(v[i])
		}
	case map[string]any:
		for _, mark := range []string{"$float", "$int"} {
			if text, ok := v[mark].(string); ok && len(v) == 1 {
				if json.Valid([]byte(text)) {
					return json.Number(text)
				}
			}
		}
		plain := make(map[string]any, len(v))
		for k := range v {
			plain[strings.TrimPrefix(k, "$key:")] = unwrap(v[k])
		}
		return plain
	}
	return v
}

func recipeDiff(t *testing.T, r *Recipe, want wantRecipe) string {
	t.Helper()
	record := r.Record()
	got, err := json.Marshal(record.Parsed)
	if err != nil {
		t.Fatal(err)
	}
	return cmp.Diff(plain(t, want.Parsed), plain(t, got)) +
		cmp.Diff([]string{want.ID, want.Digest, want.ManifestDigest, want.TemplateDigest},
			[]string{record.ID, record.Digest.String(), record.ManifestDigest.String(), record.TemplateDigest.String()}) +
		cmp.Diff(want.SupportedVersions, record.SupportedVersions)
}

// recipeFolder is one folder of a vector's overlay.
type recipeFolder struct {
	owner, name string
	tree        tree.Tree
}

// recipeFolders are the folders of the vector that the clients' scan reads, in its order.
func recipeFolders(t *testing.T, in vectorInput) []recipeFolder {
	t.Helper()
	in.Owner, in.Dir = orText(in.Owner, "alice"), orText(in.Dir, "demo")
	folders := []recipeFolder{{in.Owner, in.Dir, openDir(t, buildTree(t, in.Tree))}}
	for at, entries := range in.More {
		owner, name := path.Split(at)
		f := recipeFolder{strings.TrimSuffix(owner, "/"), name, openDir(t, buildTree(t, entries))}
		if _, ok := f.tree.Listing().Lookup(RecipeFile); ok && !strings.HasPrefix(f.owner, ".") && !strings.HasPrefix(f.owner, "__") {
			folders = append(folders, f)
		}
	}
	slices.SortFunc(folders, func(a, b recipeFolder) int {
		return strings.Compare(a.owner+"/"+a.name, b.owner+"/"+b.name)
	})
	return folders
}

func orText(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}

func TestRecipeVectors(t *testing.T) {
	run := newVectorRun(t, "recipe")
	for _, v := range readVectors(t, "recipe-vectors.json") {
		for d, side := range v.sides(t) {
			folders := recipeFolders(t, side.Input)
			run.one(t, v.ID, d, func(policy rule.Policy) (rule.Report, string) {
				return overlayDiff(t, folders, RecipeOptions{Policy: policy, Dialect: d}, side.Expect)
			})
		}
	}
	run.finish(t)
}

// overlayDiff reads the folders one after another as a client's overlay, in which the last of one id counts.
func overlayDiff(t *testing.T, folders []recipeFolder, opt RecipeOptions, want vectorExpect) (rule.Report, string) {
	t.Helper()
	byID := make(map[string]*Recipe)
	var all rule.Report
	for _, f := range folders {
		opt.Name = f.name
		r, report, err := ReadRecipe(f.tree, opt)
		if err != nil {
			t.Fatal(err)
		}
		all.Merge(report)
		if report.OK() {
			byID[r.ID()] = r
		}
	}
	if diff := verdictDiff(all, want); diff != "" || want.Error != nil {
		return all, diff
	}
	var ok struct{ Recipes []wantRecipe }
	if err := json.Unmarshal(want.OK, &ok); err != nil {
		t.Fatal(err)
	}
	if len(ok.Recipes) != len(byID) {
		return all, fmt.Sprintf("%d recipes, the client reads %d", len(byID), len(ok.Recipes))
	}
	for _, w := range ok.Recipes {
		if byID[w.ID] == nil {
			return all, "no recipe " + w.ID
		}
		if diff := recipeDiff(t, byID[w.ID], w); diff != "" {
			return all, diff
		}
	}
	return all, ""
}

// digestVector is one of recipe-digest-vectors.json: the digests of a bundled recipe, or a pack of which all is read.
type digestVector struct {
	ID, Kind string
	Input    struct {
		Dialect        string
		ManifestDigest string `json:"manifest_digest"`
		CoreVersion    string `json:"core_version"`
		Pack           *struct {
			Owner, Name string
			Files       map[string]string
		}
	}
	Expect struct {
		Digest  string
		Recipes []wantDigests // empty: the client reads the recipe, and a bundled one of the same id wins over it
		Refused string        // the Python class of a refusal or crash
		Field   *string
		Text    string
	}
}

// verdict is the vector's answer in the form of the other vectors.
func (v digestVector) verdict(t *testing.T) (want vectorExpect) {
	t.Helper()
	if v.Expect.Refused == "" {
		return want
	}
	class := "crash"
	if v.Expect.Refused == "SpecError" {
		class = "refusal"
	}
	raw, err := json.Marshal(map[string]any{"error": map[string]any{"class": class, "field": v.Expect.Field, "text": v.Expect.Text}})
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &want); err != nil {
		t.Fatal(err)
	}
	return want
}

type wantDigests struct {
	ID, Owner, Version, Digest string
	ManifestDigest             string `json:"manifest_digest"`
	TemplateDigest             string `json:"template_digest"`
}

func TestRecipeDigestVectors(t *testing.T) {
	raw, err := testdata.FS.ReadFile("vectors/recipe-digest-vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var doc struct{ Vectors []digestVector }
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	run := newVectorRun(t, "recipe-digest")
	for _, v := range doc.Vectors {
		d := dialect.Forge
		if v.Input.Dialect == "tuneplane" {
			d = dialect.TunePlane
		}
		run.one(t, v.ID, d, func(policy rule.Policy) (rule.Report, string) {
			if v.Input.Pack == nil {
				return rule.Report{}, cmp.Diff(v.Expect.Digest, HandshakeDigest(digest.MustParse(v.Input.ManifestDigest)).String())
			}
			return packDigestDiff(t, v, RecipeOptions{Policy: policy, Dialect: d, Name: v.Input.Pack.Name})
		})
	}
	run.finish(t)
}

func packDigestDiff(t *testing.T, v digestVector, opt RecipeOptions) (rule.Report, string) {
	t.Helper()
	var entries []vectorEntry
	for p, text := range v.Input.Pack.Files {
		entries = append(entries, vectorEntry{Path: p, Data: []byte(text)})
	}
	r, report, err := ReadRecipe(openDir(t, buildTree(t, entries)), opt)
	if err != nil {
		t.Fatal(err)
	}
	if diff := verdictDiff(report, v.verdict(t)); diff != "" || v.Expect.Refused != "" || len(v.Expect.Recipes) == 0 {
		return report, diff
	}
	want := v.Expect.Recipes[0]
	return report, cmp.Diff(want, wantDigests{r.ID(), want.Owner, r.Version, r.Digest.String(), r.ManifestDigest.String(), r.TemplateDigest.String()})
}
