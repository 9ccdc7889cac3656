package pack

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/testdata"
)

// vectorFile is a file of golden vectors; testdata/vectors/README.md explains its shape.
type vectorFile struct {
	Vectors []vector `json:"vectors"`
}

type vector struct {
	ID        string          `json:"id"`
	Note      string          `json:"note"`
	Input     *vectorInput    `json:"input"`
	Expect    json.RawMessage `json:"expect"`
	StarForge *vectorSide     `json:"starforge"`
	TunePlane *vectorSide     `json:"tuneplane"`
}

type vectorSide struct {
	Input  vectorInput  `json:"input"`
	Expect vectorExpect `json:"expect"`
}

type vectorInput struct {
	YAML           *string       `json:"yaml"`
	YAMLB64        []byte        `json:"yaml_b64"`
	DefaultVersion string        `json:"default_version"`
	JSON           string        `json:"json"`
	PadSpaces      int           `json:"pad_spaces"`
	Tree           []vectorEntry `json:"tree"`

	Dir     string                   `json:"dir"`   // of recipe and benchmark packs: the folder's name
	Owner   string                   `json:"owner"` // and its owner's
	More    map[string][]vectorEntry `json:"more"`  // further folders, by <owner>/<name>
	Locales []string                 `json:"locales"`
}

func (in vectorInput) source() []byte {
	if in.YAML != nil {
		return []byte(*in.YAML)
	}
	return in.YAMLB64
}

type vectorEntry struct {
	Path      string `json:"path"`
	PathB64   []byte `json:"path_b64"`
	Data      []byte `json:"data_b64"`
	Repeat    []byte `json:"repeat_b64"`
	Count     int    `json:"count"`
	Mode      string `json:"mode"`
	SymlinkTo string `json:"symlink_to"`
	HardlinkT string `json:"hardlink_to"`
	Dir       bool   `json:"dir"`
	FIFO      bool   `json:"fifo"`
}

type vectorExpect struct {
	OK     json.RawMessage `json:"ok"`
	Digest string          `json:"digest"`
	Error  *struct {
		Class string  `json:"class"`
		Field *string `json:"field"`
		Text  string  `json:"text"`
		Stage string  `json:"stage"`
	} `json:"error"`
}

// sides are the vector's cases by dialect: one input with one result is a case for both.
func (v vector) sides(t *testing.T) map[dialect.Dialect]vectorSide {
	t.Helper()
	sides := make(map[dialect.Dialect]vectorSide)
	if v.StarForge != nil {
		sides[dialect.Forge] = *v.StarForge
	}
	if v.TunePlane != nil {
		sides[dialect.TunePlane] = *v.TunePlane
	}
	if v.Input == nil {
		return sides
	}
	var two struct {
		StarForge *vectorExpect `json:"starforge"`
		TunePlane *vectorExpect `json:"tuneplane"`
	}
	var one vectorExpect
	if err := errors.Join(json.Unmarshal(v.Expect, &two), json.Unmarshal(v.Expect, &one)); err != nil {
		t.Fatalf("%s: %v", v.ID, err)
	}
	if two.StarForge == nil && two.TunePlane == nil {
		two.StarForge, two.TunePlane = &one, &one
	}
	if two.StarForge != nil {
		sides[dialect.Forge] = vectorSide{*v.Input, *two.StarForge}
	}
	if two.TunePlane != nil {
		sides[dialect.TunePlane] = vectorSide{*v.Input, *two.TunePlane}
	}
	return sides
}

func readVectors(t testing.TB, file string) []vector {
	t.Helper()
	src, err := testdata.FS.ReadFile("vectors/" + file)
	if err != nil {
		t.Fatal(err)
	}
	var f vectorFile
	if err := json.Unmarshal(src, &f); err != nil {
		t.Fatal(err)
	}
	if len(f.Vectors) == 0 {
		t.Fatalf("%s holds no vectors", file)
	}
	return f.Vectors
}

// deliberate is a vector that we answer otherwise on purpose (testdata/vectors/deliberate.json).
type deliberate struct {
	ID      string          `json:"id"`
	Dialect dialect.Dialect `json:"dialect"`
	Rule    rule.ID         `json:"rule"`
	Reason  string          `json:"reason"`
}

func readDeliberate(t testing.TB, family string) []deliberate {
	t.Helper()
	src, err := testdata.FS.ReadFile("vectors/deliberate.json")
	if err != nil {
		t.Fatal(err)
	}
	var all map[string][]deliberate
	if err := json.Unmarshal(src, &all); err != nil {
		t.Fatal(err)
	}
	return all[family]
}

// vectorRun counts how the vectors of a family were met.
type vectorRun struct {
	family            string
	differ            []deliberate
	used              map[int]bool
	same, soft, fixed int
}

func newVectorRun(t *testing.T, family string) *vectorRun {
	return &vectorRun{family: family, differ: readDeliberate(t, family), used: make(map[int]bool)}
}

// one runs a case: check answers under a policy and says how its answer differs from the vector's, "" for not at all.
func (r *vectorRun) one(t *testing.T, id string, d dialect.Dialect, check func(rule.Policy) (rule.Report, string)) {
	t.Helper()
	report, diff := check(rule.Policy{})
	var rules []rule.ID
	isFixed := false
	for i, entry := range r.differ {
		if entry.ID != id || entry.Dialect != d {
			continue
		}
		r.used[i] = true
		if !slices.ContainsFunc(report.Violations, func(v rule.Violation) bool { return v.Rule == entry.Rule }) {
			t.Errorf("%s %s: listed as different by %s, which is not broken", id, d, entry.Rule)
		}
		info, _ := rule.Lookup(entry.Rule)
		isFixed = isFixed || !info.Softenable()
		rules = append(rules, entry.Rule)
	}
	switch {
	case len(rules) == 0 && diff == "":
		r.same++
	case len(rules) == 0:
		t.Errorf("%s %s: %s\nviolations: %v", id, d, diff, report.Violations)
	case diff == "":
		t.Errorf("%s %s: listed as different, but the answer is the vector's", id, d)
	case isFixed:
		r.fixed++
	default:
		r.soft++
		policy, err := rule.Soften(rules...)
		if err != nil {
			t.Fatal(err)
		}
		if softened, diff := check(policy); diff != "" {
			t.Errorf("%s %s with %v softened: %s\nviolations: %v", id, d, rules, diff, softened.Violations)
		}
	}
}

func (r *vectorRun) finish(t *testing.T) {
	t.Helper()
	for i, entry := range r.differ {
		if !r.used[i] {
			t.Errorf("deliberate.json lists %s %s, which no vector of %s is", entry.ID, entry.Dialect, r.family)
		}
	}
	t.Logf("%s vectors: %d answered as the clients do, %d stricter by a rule that can be softened, %d stricter always", r.family, r.same, r.soft, r.fixed)
}

// verdictDiff compares a report with the vector's verdict: whether it refuses, and the field of the client's rule
// that it would show.
func verdictDiff(report rule.Report, want vectorExpect) string {
	switch {
	case want.Error == nil && !report.OK():
		return "refused; the client accepts"
	case want.Error != nil && report.OK():
		return "accepted; the client says " + want.Error.Text
	case want.Error == nil || want.Error.Class == "crash":
		return ""
	}
	field := ""
	if want.Error.Field != nil {
		field = *want.Error.Field
	}
	first := report.Violations[0]
	if info, _ := rule.Lookup(first.Rule); info.Ours {
		return "refused by " + string(first.Rule) + " only; the client says " + want.Error.Text
	}
	if first.Field != field {
		return "the first violation is of field " + first.Field + " (" + first.Message + "); the client says " + want.Error.Text
	}
	return ""
}

// sameJSON compares two JSON texts with the order of their keys.
func sameJSON(t *testing.T, got, want []byte) bool {
	t.Helper()
	a, b := json.NewDecoder(bytes.NewReader(got)), json.NewDecoder(bytes.NewReader(want))
	a.UseNumber()
	b.UseNumber()
	for {
		x, errX := a.Token()
		y, errY := b.Token()
		if errX == io.EOF && errY == io.EOF {
			return true
		}
		if errX != nil || errY != nil || x != y {
			return false
		}
	}
}

// buildTree writes a vector's tree into a temporary folder.
func buildTree(t testing.TB, entries []vectorEntry) string {
	t.Helper()
	root := t.TempDir()
	must := func(err error) {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
	}
	for _, e := range entries {
		if e.PathB64 != nil {
			e.Path = string(e.PathB64)
		}
		path := filepath.Join(root, filepath.FromSlash(e.Path))
		must(os.MkdirAll(filepath.Dir(path), 0o755))
		switch {
		case e.Dir:
			must(os.MkdirAll(path, 0o755))
		case e.FIFO:
			must(syscall.Mkfifo(path, 0o644))
		case e.SymlinkTo != "":
			must(os.Symlink(e.SymlinkTo, path))
		case e.HardlinkT != "":
			must(os.Link(filepath.Join(root, e.HardlinkT), path))
		default:
			data := e.Data
			if e.Repeat != nil {
				data = bytes.Repeat(e.Repeat, e.Count)
			}
			mode := os.FileMode(0o644)
			if e.Mode == "0755" {
				mode = 0o755
			}
			must(os.WriteFile(path, data, mode))
			must(os.Chmod(path, mode))
		}
	}
	return root
}
