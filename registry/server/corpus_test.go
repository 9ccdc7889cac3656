package server_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/testdata"
)

// corpusFamilies is the last column of corpus/EXPECT.md: the families that a file may be refused for. A file that is not
// listed is a control.
var corpusFamilies = map[string]string{
	"t01": "archive.path", "t03": "archive.path", "t05": "archive.link", "t07": "archive.link", "t09": "archive.type", "t11": "archive.type",
	"t13": "archive.duplicate archive.path", "t15": "archive.duplicate archive.path", "t17": "archive.name", "t19": "archive.path archive.type",
	"t21": "archive.path archive.duplicate", "t23": "archive.header", "t25": "archive.name archive.header", "t27": "archive.path", "t29": "archive.header",
	"t31": "archive.end", "t33": "archive.end", "t35": "archive.header", "t37": "archive.empty", "t39": "archive.path archive.name", "t41": "archive.name",
	"t43": "archive.name", "t45": "archive.limit", "t47": "archive.type", "t49": "archive.header", "t51": "archive.limit",
	"z01": "archive.limit", "z03": "archive.gzip", "z05": "archive.gzip", "z07": "archive.limit",
	"y01": "yaml.scalar", "y11": "yaml.scalar", "y03": "yaml.scalar", "y13": "yaml.scalar", "y19": "yaml.scalar",
	"y05": "yaml.alias", "y15": "yaml.alias", "y21": "yaml.alias", "y07": "manifest.name", "y09": "manifest.name", "y17": "yaml.tag",
}

// corpusFile reads a file of the corpus, gunzipped where EXPECT.md says so.
func corpusFile(tb testing.TB, name string) []byte {
	tb.Helper()
	content, err := testdata.FS.ReadFile("corpus/" + name)
	if err != nil {
		tb.Fatal(err)
	}
	if strings.HasSuffix(name, ".tar.gz") || strings.HasSuffix(name, ".tgz.gz") || strings.HasSuffix(name, ".json.gz") {
		zr, err := gzip.NewReader(bytes.NewReader(content))
		if err != nil {
			tb.Fatal(err)
		}
		if content, err = io.ReadAll(zr); err != nil {
			tb.Fatal(err)
		}
	}
	return content
}

// corpusArchives are the archives of the corpus as they are uploaded, and its manifests each as the plugin.yaml of a
// pack.
func corpusArchives(tb testing.TB) map[string][]byte {
	tb.Helper()
	files, err := testdata.FS.ReadDir("corpus")
	if err != nil {
		tb.Fatal(err)
	}
	all := map[string][]byte{}
	for _, f := range files {
		name := f.Name()
		switch {
		case strings.HasSuffix(name, ".tar"), strings.HasSuffix(name, ".tar.gz"):
			content := corpusFile(tb, name)
			if len(content) > 0 { // an empty archive has no gzip around it either
				content = zipped(tb, content)
			}
			all[name] = content
		case strings.HasSuffix(name, ".tgz"):
			all[name] = corpusFile(tb, name)
		case strings.HasSuffix(name, ".yaml"):
			all[name] = archiveOf(tb, with(algorithm("demo", "1.0.0"), "plugin.yaml", string(corpusFile(tb, name))))
		}
	}
	return all
}

// TestCorpus sends every hostile and odd pack by both ways in. The answer is the one of EXPECT.md, the verdict the same
// as on the publisher's machine (invariant 6), and nothing of what was refused is left.
func TestCorpus(t *testing.T) {
	g := startGatehouse(t)
	refused, accepted := 0, 0
	for name, content := range corpusArchives(t) {
		families := strings.Fields(corpusFamilies[name[:3]])
		if len(families) == 0 {
			accepted++
			t.Run(name, func(t *testing.T) { acceptedByBoth(t, g.in(t), name, content) })
			continue
		}
		refused++
		t.Run(name, func(t *testing.T) { refusedByBoth(t, g.in(t), content, families) })
	}
	if len(corpusFamilies) != refused || accepted != 5 {
		t.Errorf("%d files were refused and %d accepted, want %d and 5", refused, accepted, len(corpusFamilies))
	}
	if got := g.staging(); len(got) > 0 {
		t.Errorf("left in staging: %q", got)
	}
	t.Logf("corpus: %d packs refused and %d accepted, each by REST and by the distribution protocol", refused, accepted)
}

func refusedByBoth(t *testing.T, g *gatehouse, content []byte, families []string) {
	a, offline := artifactOf(t, content)
	want := rulesOf(offline)
	if offline.Allowed || !slices.ContainsFunc(want, func(id string) bool {
		return slices.ContainsFunc(families, func(f string) bool { return id == f || strings.HasPrefix(id, f+".") })
	}) {
		t.Fatalf("offline: %q, want one of %q", want, families)
	}
	plugins := g.plugins()
	answers := map[string]reply{
		"/api/plugins/publish": g.publish("bob", content),
		"/v2/":                 g.push("bob", "bob", a),
	}
	for path, r := range answers {
		got := r.refused(t, path, statusOf(offline.Class()))
		if rules := got.Decision.rules(); !slices.Equal(rules, want) {
			t.Errorf("%s: rules %q, offline %q", path, rules, want)
		}
		for _, v := range got.Decision.Violations {
			if v.Message == "" || v.Hint == "" {
				t.Errorf("%s: %s has no message or no fix", path, v.Rule)
			}
		}
		if strings.ContainsFunc(got.Detail, func(r rune) bool { return r < ' ' && r != '\n' || r >= 0x202a && r <= 0x202e }) {
			t.Errorf("%s: the text can't be shown: %q", path, got.Detail)
		}
	}
	if got := g.plugins(); !slices.Equal(got, plugins) {
		t.Errorf("listed after a refusal: %q", got)
	}
	if got := g.repositories(); slices.ContainsFunc(got, func(r string) bool { return strings.HasPrefix(r, "bob/") }) {
		t.Errorf("repositories after a refusal: %q", got)
	}
	repository := "/v2/bob/" + a.repository
	for _, path := range []string{repository + "/tags/list", repository + "/manifests/" + a.tag, "/api/plugins/bob/" + a.repository} {
		g.get("bob", path).refused(t, path, http.StatusNotFound)
	}
	if got := g.staging(); len(got) > 0 {
		t.Errorf("left in staging: %q", got)
	}
}

// statusOf is how a refusal of a class is answered.
func statusOf(c rule.Class) int {
	return map[rule.Class]int{rule.Invalid: 400, rule.Conflict: 409, rule.TooLarge: 413, rule.Forbidden: 403}[c]
}

// acceptedByBoth publishes a control below two accounts, one for each way in: the two must be the same pack.
func acceptedByBoth(t *testing.T, g *gatehouse, name string, content []byte) {
	a, offline := artifactOf(t, content)
	if !offline.Allowed {
		t.Fatalf("offline: %v", offline.Violations)
	}
	rest, oci := "r"+name[:3], "o"+name[:3]
	g.addAccount(rest, "operator")
	g.addAccount(oci, "operator")
	var byREST, byOCI struct {
		Digest     string `json:"digest"`
		TreeDigest string `json:"tree_digest"`
		Version    string `json:"version"`
	}
	g.publish(rest, content).want(t, http.StatusOK).into(t, &byREST)
	g.push(oci, oci, a).want(t, http.StatusCreated)
	g.get(oci, "/api/plugins/"+oci+"/"+a.repository).want(t, http.StatusOK).into(t, &byOCI)
	if byREST != byOCI || byOCI.Digest != a.content.String() || byOCI.TreeDigest != a.tree.String() {
		t.Errorf("REST %+v, OCI %+v, offline content %s tree %s", byREST, byOCI, a.content, a.tree)
	}
}
