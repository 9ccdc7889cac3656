package catalogue

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/pyjson"
)

func TestAnswerWithFactsRoundTrip(t *testing.T) {
	c, _ := Builtin(dialect.TunePlane, "0.4.0")
	all, _ := c.WithPacks([]Entry{{Name: "trl/mine", Version: "1.0", Digest: "sha256:" + strings.Repeat("b", 64), Framework: "trl", Adapter: "trl",
		DefaultVersion: "1.0.0", Versions: []Variant{{Version: "1.0.0", RuntimeID: "trl-1.0.0"}}, Pack: &Pack{Owner: "alice", Name: "mine", Version: "1.0"}}})
	src := must(json.Marshal(all.Answer(true)))
	got, err := ParseAnswer(src, dialect.TunePlane)
	if err != nil {
		t.Fatal(err)
	}
	if diff := diffEntries(all.Entries(), got.Entries()); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
	if got.Release() != "0.4.0" || !cmp.Equal(got.Bundled(), all.Bundled()) || got.Digest() != all.Digest() {
		t.Error("another release, other packages or another digest")
	}
	for name, bad := range map[string][]byte{
		"no JSON":           []byte("{"),
		"without facts":     must(json.Marshal(all.Answer(false))),
		"another digest":    bytes.Replace(src, []byte(`"catalog_digest":"sha256:`), []byte(`"catalog_digest":"sha256:`+strings.Repeat("0", 64)+`","x":"`), 1),
		"another dialect":   bytes.Replace(src, []byte(dialect.TunePlane.Names().Catalogue), []byte(dialect.Forge.Names().Catalogue), 1),
		"an owner's path":   bytes.Replace(src, []byte(`"owner":"alice"`), []byte(`"owner":"../x"`), -1),
		"a recipe's path":   bytes.Replace(src, []byte(`"trl/mine"`), []byte(`"trl/../x"`), -1),
		"another framework": bytes.Replace(src, []byte(`"trl/mine"`), []byte(`"verl/mine"`), -1),
		"a row without":     bytes.Replace(src, []byte(`"recipe":`), []byte(`"recpie":`), 1),
	} {
		if _, err := ParseAnswer(bad, dialect.TunePlane); err == nil || strings.HasSuffix(name, "path") && !strings.Contains(err.Error(), "expected <") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The digest of entries is that of the rows which an answer has, whatever texts are in them.
func TestDigestOfEntries(t *testing.T) {
	texts := []string{"", "a", "a\"b", "a\\b", "\x7f", "\u00e9", "\U0001F600", "<&>", "a\nb", "1.0"}
	var entries []Entry
	for i, text := range texts {
		entries = append(entries, Entry{Name: fmt.Sprintf("n%d%s", i, text), Version: text, Digest: "sha256:" + text})
	}
	c := New(dialect.Forge, "0.3.56", entries, nil)
	doc, report := pyjson.Load(must(json.Marshal(c.Answer(false))), pyjson.Options{})
	if !report.OK() {
		t.Fatal(report.Violations)
	}
	if sum, _, err := DigestOf(doc.Get("recipes")); err != nil || sum != c.Digest() {
		t.Errorf("entries %s, their rows %s (%v)", c.Digest(), sum, err)
	}
	half := New(dialect.Forge, "0.3.56", entries[:5], nil)
	with, err := half.DigestWith(func(yield func(id, version, digest string)) error {
		for _, e := range entries[3:] {
			yield(e.Name, e.Version, e.Digest)
		}
		return nil
	})
	if err != nil || with != c.Digest() {
		t.Errorf("in two parts %s (%v), want %s", with, err, c.Digest())
	}
}

// What a framework runs comes from the integration that the release ships for it, also over the wire; nothing is guessed where a
// snapshot does not tell it.
func TestHooks(t *testing.T) {
	builtin, _ := Builtin(dialect.TunePlane, "0.4.0")
	told, err := ParseAnswer(must(json.Marshal(builtin.Answer(true))), dialect.TunePlane)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []*Catalogue{builtin, told} {
		for framework, want := range map[string]Hooks{
			"verl": {Algorithms: true}, "custom": {DataPrepJobs: true}, "evalkit": {}, "of-a-pack": {Algorithms: true},
		} {
			if got, ok := c.Hooks(framework); !ok || got != want {
				t.Errorf("%s: %+v, %v, want %+v", framework, got, ok, want)
			}
		}
	}
	var silent []Bundled
	for _, b := range builtin.Bundled() {
		b.Hooks = nil
		silent = append(silent, b)
	}
	old := New(dialect.TunePlane, "0.4.0", builtin.Entries(), silent)
	for _, framework := range []string{"verl", "custom", "of-a-pack"} {
		if got, ok := old.Hooks(framework); ok {
			t.Errorf("%s of an older snapshot: %+v", framework, got)
		}
	}
}
