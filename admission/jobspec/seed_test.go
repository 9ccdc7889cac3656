package jobspec

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
)

// seedVerdict is what is said of a document in testdata/seed-examples.
type seedVerdict struct {
	Verdict    string
	Rules      []rule.ID
	Warnings   []rule.ID
	Normalised json.RawMessage
}

func readSeed(t *testing.T, file string, to any) {
	t.Helper()
	src, err := os.ReadFile(filepath.Join("testdata", "seed-examples", file))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(src, to); err != nil {
		t.Fatal(err)
	}
}

func checkSeed(t *testing.T, name string, src []byte, d dialect.Dialect, want seedVerdict) {
	t.Helper()
	spec, report := Parse(src, Options{Dialect: d})
	if report.OK() != (want.Verdict == "accept") {
		t.Errorf("%s: want %s, got %v", name, want.Verdict, report.Violations)
		return
	}
	for id, list := range map[*[]rule.ID][]rule.Violation{&want.Rules: report.Violations, &want.Warnings: report.Warnings} {
		got := rulesOf(list)
		for _, r := range *id {
			if !got[r] {
				t.Errorf("%s: %s is not among %v", name, r, list)
			}
		}
	}
	if want.Normalised != nil && !bytes.Equal(spec.Normalised(), compact(want.Normalised)) {
		t.Errorf("%s: stored\n%s\nwant\n%s", name, spec.Normalised(), compact(want.Normalised))
	}
}

// TestSeedShapes checks the documents that the platform's own pages show.
func TestSeedShapes(t *testing.T) {
	var index struct {
		Examples []struct {
			File      string
			Dialect   dialect.Dialect
			Gatehouse seedVerdict
		}
	}
	readSeed(t, "index.json", &index)
	var n int
	for _, e := range index.Examples {
		if e.Dialect == "" {
			continue // no JobSpec
		}
		n++
		var src json.RawMessage
		readSeed(t, e.File, &src)
		checkSeed(t, e.File, src, e.Dialect, e.Gatehouse)
		checkSeed(t, e.File+" (dialect found)", src, "", e.Gatehouse)
	}
	if n != 6 {
		t.Errorf("checked %d documents, want 6", n)
	}
}

// TestSeedFragments checks every field rule that those pages state, as a value put into the smallest document.
func TestSeedFragments(t *testing.T) {
	var file struct {
		Fragments []struct {
			ID, Path  string
			Dialect   dialect.Dialect
			Value     json.RawMessage
			Gatehouse seedVerdict
		}
	}
	readSeed(t, "fragments.json", &file)
	if len(file.Fragments) == 0 {
		t.Fatal("no fragments")
	}
	for _, f := range file.Fragments {
		checkSeed(t, f.ID, with(smallest(f.Dialect), f.Path, string(f.Value)), f.Dialect, f.Gatehouse)
	}
	t.Logf("%d fragments", len(file.Fragments))
}

// smallest is the smallest document of a dialect.
func smallest(d dialect.Dialect) string {
	return `{"apiVersion":"` + d.Names().JobSpec + `","kind":"TrainingJob","metadata":{"name":"demo"},"spec":{` +
		`"recipe":{"name":"verl/grpo","version":"0.9.0","digest":"sha256:` + strings.Repeat("ab", 32) + `"},` +
		`"source":{"exp":"experiments/demo"},"framework":{"kind":"verl","version":"0.9.0"},` +
		`"resources":{"pools":[{"name":"all"}]}},"provenance":{"core_version":"0.4.0"}}`
}

// without removes what is at a dotted path of a document.
func without(doc, path string) []byte {
	var root map[string]any
	decode(doc, &root)
	keys := strings.Split(path, ".")
	at := root
	for _, key := range keys[:len(keys)-1] {
		at = at[key].(map[string]any)
	}
	delete(at, keys[len(keys)-1])
	out, err := json.Marshal(root)
	if err != nil {
		panic(err)
	}
	return out
}

// with puts a JSON value at a dotted path of a document, in place of what is there.
func with(doc, path, value string) []byte {
	var root map[string]any
	decode(doc, &root)
	keys := strings.Split(path, ".")
	at := root
	for _, key := range keys[:len(keys)-1] {
		next, ok := at[key].(map[string]any)
		if !ok {
			next = make(map[string]any)
			at[key] = next
		}
		at = next
	}
	mark := "put " + path + " here"
	at[keys[len(keys)-1]] = mark
	out, err := json.Marshal(root)
	if err != nil {
		panic(err)
	}
	return bytes.Replace(out, []byte(strconv.Quote(mark)), []byte(value), 1) // as it is written: not every value is strict JSON
}

func decode(doc string, to any) {
	dec := json.NewDecoder(strings.NewReader(doc))
	dec.UseNumber()
	if err := dec.Decode(to); err != nil {
		panic(err)
	}
}
