package pyyaml

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/digest/canonical"
)

// TestCanonicalVectors holds the recipe digests of the real clients: the bytes that are hashed, and both digests.
func TestCanonicalVectors(t *testing.T) {
	policy := softest(t)
	agreed, refused := 0, 0
	for _, v := range readVectors(t, "canonical-vectors.json") {
		id, src := v.Get("id").Text, v.Get("input").Get("yaml").Text
		root, report := Load([]byte(src), Options{Policy: policy})
		var form []byte
		var err error = errors.New("not read")
		if root != nil && report.OK() {
			if !root.Truthy() {
				root = &pyvalue.Value{Kind: pyvalue.Map}
			}
			form, err = canonical.Python(root)
		}
		want := v.Get("expect").Get("ok")
		if want == nil {
			refused++
			if err == nil {
				t.Errorf("%s: %q becomes %s; the clients crash", id, src, form)
			}
			continue
		}
		agreed++
		if err != nil {
			t.Errorf("%s: %q: %v %v", id, src, report.Violations, err)
			continue
		}
		if d := cmp.Diff(string(unbase64(t, want.Get("canonical_b64").Text)), string(form)); d != "" {
			t.Errorf("%s: %q: %s", id, src, d)
		}
		manifest := digest.FromBytes(form)
		if got := manifest.String(); got != want.Get("manifest_digest").Text {
			t.Errorf("%s: manifest digest %s", id, got)
		}
		d2, err := canonical.Python(canonical.Object{{Key: "manifest", Value: manifest.String()}})
		if err != nil {
			t.Fatal(err)
		}
		if got := digest.FromBytes(d2).String(); got != want.Get("digest").Text {
			t.Errorf("%s: digest %s", id, got)
		}
	}
	t.Logf("%d forms agree, %d are refused as by the clients", agreed, refused)
}

var place = regexp.MustCompile(`line (\d+), column (\d+)`)

// TestManifestVectors holds which plugin.yaml the clients can read as YAML at all, and where they say that they can't.
func TestManifestVectors(t *testing.T) {
	policy := softest(t)
	read, refused := 0, 0
	for _, v := range readVectors(t, "manifest-vectors.json") {
		id := v.Get("id").Text
		for _, dialect := range []string{"starforge", "tuneplane"} {
			one := v.Get(dialect)
			if one == nil || one.Get("input") == nil {
				continue
			}
			var src []byte
			if text := one.Get("input").Get("yaml"); text != nil {
				src = []byte(text.Text)
			} else {
				src = unbase64(t, one.Get("input").Get("yaml_b64").Text)
			}
			value, report := Load(src, Options{Policy: policy})
			var text string
			var crash bool
			if e := one.Get("expect").Get("error"); e != nil {
				text, crash = e.Get("text").Text, e.Get("type").Text == "UnicodeDecodeError" || e.Get("type").Text == "ValueError"
			}
			switch {
			case strings.Contains(text, "is not valid YAML") || crash:
				refused++
				if value != nil {
					t.Errorf("%s %s: the clients can't read it: %s", id, dialect, text)
					continue
				}
				if m := place.FindAllStringSubmatch(text, -1); m != nil {
					last, first := m[len(m)-1], report.Violations[0]
					if got := fmt.Sprintf("%d:%d", first.Line, first.Column); got != last[1]+":"+last[2] {
						t.Errorf("%s %s: refused at %s, the clients say %s", id, dialect, got, last[0])
					}
				}
			case value == nil && !strings.HasPrefix(string(report.Violations[0].Rule), "yaml.alias."):
				t.Errorf("%s %s: %v; the clients read it", id, dialect, report.Violations[0])
			default:
				read++
			}
		}
	}
	t.Logf("%d documents read, %d refused as by the clients", read, refused)
}
