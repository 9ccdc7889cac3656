package pack

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/testdata"
)

// writeFiles writes a pack into a temporary folder.
func writeFiles(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, data := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const algorithmManifest = "schema: forge/plugin/v1\nname: Demo\nversion: \"1.0.0\"\nkind: algorithm\nentrypoint: main:install\nsummary: \"<b> & é\"\n"

func checkedPack(t testing.TB, files map[string]string) (*Pack, rule.Report) {
	t.Helper()
	p, report, err := Check(openTree(t, writeFiles(t, files)), Options{})
	if err != nil {
		t.Fatal(err)
	}
	return p, report
}

func demoPack(t testing.TB) *Pack {
	t.Helper()
	p, report := checkedPack(t, map[string]string{ManifestFile: algorithmManifest, "main.py": "def install(params, **ctx): pass\n", "README.md": "# Demo\n"})
	if !report.OK() {
		t.Fatal(report.Violations)
	}
	return p
}

func TestConfig(t *testing.T) {
	p := demoPack(t)
	first, err := BuildConfig(p)
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for e := range p.Listing.Counted {
		files = append(files, fmt.Sprintf(`{"path":%q,"sha256":"%x","size":%d}`, e.Path, e.SHA256, e.Size))
	}
	want := fmt.Sprintf(`{"contentDigest":%q,"dialect":"forge","files":[%s],"manifest":{"entrypoint":"main:install","kind":"algorithm",`+
		`"load":"eager","name":"Demo","schema":"forge/plugin/v1","summary":"<b> & é","version":"1.0.0"},"treeDigest":%q}`,
		p.Content(), strings.Join(files, ","), p.Tree())
	if string(first) != want {
		t.Errorf("config\n%s\nwant\n%s", first, want)
	}
	c, err := ParseConfig(first)
	if err != nil {
		t.Fatal(err)
	}
	if c.Manifest.Summary != "<b> & é" || c.Manifest.Kind != KindAlgorithm || len(c.Files) != 3 || c.TreeDigest != p.Tree() {
		t.Errorf("read back %+v", c)
	}
	for e := range p.Listing.Counted {
		if !slices.Contains(c.Files, configFile(e)) {
			t.Errorf("%s is not in the config", e.Path)
		}
	}
	for name, other := range map[string][]byte{
		"white space":   append(bytes.Clone(first), '\n'),
		"order of keys": bytes.Replace(first, []byte(`"path":"main.py",`), nil, 1),
		"unknown key":   append([]byte(`{"a":1,`), first[1:]...),
		"escape":        bytes.Replace(first, []byte("README.md"), []byte(`\u0052EADME.md`), 1),
		"no JSON":       []byte("x"),
		"two documents": append(bytes.Clone(first), first...),
	} {
		if _, err := ParseConfig(other); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestConfigOfARefusedPack(t *testing.T) {
	p, report := checkedPack(t, map[string]string{"README.md": "x"})
	if report.OK() {
		t.Fatal("a pack without plugin.yaml was accepted")
	}
	if _, err := BuildConfig(p); err == nil {
		t.Error("a refused pack got a config")
	}
}

// demoImage is the manifest of the demo pack.
func demoImage(t testing.TB) (*Pack, []byte) {
	t.Helper()
	p := demoPack(t)
	layer := digest.Descriptor{Digest: digest.FromBytes([]byte("layer")), Size: 5}
	config := digest.Descriptor{Digest: digest.FromBytes([]byte("config")), Size: 6}
	src, err := BuildManifest(p, layer, config)
	if err != nil {
		t.Fatal(err)
	}
	return p, src
}

func TestArtifact(t *testing.T) {
	p, src := demoImage(t)
	a, report := ParseArtifact(src, rule.Policy{})
	if !report.OK() {
		t.Fatal(report.Violations)
	}
	want := OCIArtifact{
		Kind: KindAlgorithm, Title: "Demo-1.0.0.tar.gz", Content: p.Content(), Tree: p.Tree(),
		Layer:  digest.Descriptor{MediaType: MediaTypeLayer, Digest: digest.FromBytes([]byte("layer")), Size: 5},
		Config: digest.Descriptor{MediaType: MediaTypeConfig, Digest: digest.FromBytes([]byte("config")), Size: 6},
	}
	if *a != want {
		t.Errorf("read back %+v, want %+v", *a, want)
	}
	_, again := demoImage(t)
	if !bytes.Equal(src, again) {
		t.Error("two manifests of one pack differ")
	}
}

func TestArtifactFaults(t *testing.T) {
	_, good := demoImage(t)
	change := func(f func(m map[string]any)) []byte {
		var m map[string]any
		if err := json.Unmarshal(good, &m); err != nil {
			t.Fatal(err)
		}
		f(m)
		src, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		return src
	}
	layers := func(m map[string]any) []any { return m["layers"].([]any) }
	cases := []struct {
		name string
		src  []byte
		rule rule.ID
	}{
		{"no layers (corpus m01, as a pack)", change(func(m map[string]any) { m["layers"] = []any{} }), "oci.layers"},
		{"the layer twice (corpus m19, as a pack)", change(func(m map[string]any) { m["layers"] = append(layers(m), layers(m)[0]) }), "oci.layers"},
		{"an index too (corpus m03)", change(func(m map[string]any) { m["manifests"] = []any{map[string]any{}} }), "oci.layers"},
		{"unknown kind", change(func(m map[string]any) { m["artifactType"] = "application/vnd.gatehouse.pack.rubric.v1" }), "oci.kind"},
		{"another version", change(func(m map[string]any) { m["artifactType"] = "application/vnd.gatehouse.pack.recipe.v2" }), "oci.kind"},
		{"no artifact type", change(func(m map[string]any) { delete(m, "artifactType") }), "oci.kind"},
		{"config of another type", change(func(m map[string]any) {
			m["config"].(map[string]any)["mediaType"] = "application/vnd.oci.empty.v1+json"
		}), "oci.mediatype"},
		{"layer of another type", change(func(m map[string]any) { layers(m)[0].(map[string]any)["mediaType"] = "application/zip" }), "oci.mediatype"},
		{"an index's type", change(func(m map[string]any) { m["mediaType"] = "application/vnd.oci.image.index.v1+json" }), "oci.mediatype"},
		{"no title", change(func(m map[string]any) { delete(layers(m)[0].(map[string]any), "annotations") }), "oci.title"},
		{"no claims", change(func(m map[string]any) { delete(m, "annotations") }), "oci.claims"},
		{"one claim", change(func(m map[string]any) { delete(m["annotations"].(map[string]any), AnnotationTree) }), "oci.claims"},
		{"a claim in upper case", change(func(m map[string]any) {
			a := m["annotations"].(map[string]any)
			a[AnnotationTree] = "sha256:" + strings.Repeat("A", 64)
		}), "oci.claims"},
		{"short sha512 (corpus m11)", change(func(m map[string]any) { layers(m)[0].(map[string]any)["digest"] = "sha512:abc" }), "oci.descriptor"},
		{"negative size", change(func(m map[string]any) { layers(m)[0].(map[string]any)["size"] = -1 }), "oci.descriptor"},
		{"key in another case (corpus m05)", change(func(m map[string]any) { m["LAYERS"] = []any{} }), "oci.json"},
		{"key twice (corpus m07)", append([]byte(`{"layers":[],`), good[1:]...), "oci.json"},
		{"byte-order mark (corpus m23)", append([]byte("\xef\xbb\xbf"), good...), "oci.json"},
		{"deep (corpus m25)", []byte(strings.Repeat("[", 12000)), "oci.json"},
		{"layers is no list", change(func(m map[string]any) { m["layers"] = "x" }), "oci.json"},
		{"5 MiB (corpus m17)", append(bytes.Clone(good), bytes.Repeat([]byte(" "), 5<<20)...), "oci.limit"},
	}
	for _, c := range cases {
		a, report := ParseArtifact(c.src, rule.Policy{})
		if a != nil || report.OK() {
			t.Errorf("%s: accepted", c.name)
			continue
		}
		for _, v := range report.Violations {
			if v.Rule != c.rule {
				t.Errorf("%s: %s, want %s", c.name, v, c.rule)
			}
		}
	}
}

// Documents that do not claim to be packs are left to the ordinary protocol.
func TestArtifactOfOthers(t *testing.T) {
	for _, file := range []string{"m01-empty-layers.json", "m19-dup-layers.json", "m15-subject-missing.json", "m21-index-cycle.json"} {
		src, err := testdata.FS.ReadFile("corpus/" + file)
		if err != nil {
			t.Fatal(err)
		}
		if a, report := ParseArtifact(src, rule.Policy{}); a != nil || !report.OK() {
			t.Errorf("%s: %v, %v; want neither", file, a, report.Violations)
		}
	}
}

func TestKindsAndArtifactTypes(t *testing.T) {
	if len(Kinds()) != 9 {
		t.Errorf("%d kinds, want 9", len(Kinds()))
	}
	for _, k := range Kinds() {
		if got, ok := KindOfArtifactType(k.ArtifactType()); !ok || got != k {
			t.Errorf("%s: artifact type %s is of kind %q", k, k.ArtifactType(), got)
		}
		if k.Executable() == k.Declarative() || k.Declarative() != (k.InstallDir() != "") {
			t.Errorf("%s: executable %t, declarative %t, installed in %q", k, k.Executable(), k.Declarative(), k.InstallDir())
		}
	}
	for _, s := range []string{"", "application/vnd.gatehouse.pack.v1", "recipe", "application/vnd.gatehouse.pack.recipe.v1x", "application/vnd.gatehouse.pack..v1"} {
		if k, ok := KindOfArtifactType(s); ok {
			t.Errorf("%q is of kind %s", s, k)
		}
	}
}

func FuzzArtifact(f *testing.F) {
	_, good := demoImage(f)
	f.Add(good)
	files, err := testdata.FS.ReadDir("corpus")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file.Name(), ".json") {
			src, err := testdata.FS.ReadFile("corpus/" + file.Name())
			if err != nil {
				f.Fatal(err)
			}
			f.Add(src)
		}
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		a, report := ParseArtifact(src, rule.Policy{})
		if a != nil && (!report.OK() || a.Kind == "" || a.Layer.Digest.IsZero() || a.Tree.IsZero() || a.Title == "") {
			t.Errorf("half an artifact: %+v", a)
		}
	})
}
