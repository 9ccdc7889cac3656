package suite_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/admission/suite"
	"github.com/gatehouse-registry/gatehouse/testdata"
)

// vector is a golden vector; testdata/vectors/README.md explains its shape.
type vector struct {
	ID        string          `json:"id"`
	Note      string          `json:"note"`
	Input     *input          `json:"input"`
	Expect    json.RawMessage `json:"expect"`
	StarForge *side           `json:"starforge"`
	TunePlane *side           `json:"tuneplane"`
}

type side struct {
	Input  input  `json:"input"`
	Expect expect `json:"expect"`
}

type input struct {
	JSON  string          `json:"json"`
	JSONL string          `json:"jsonl"`
	YAML  string          `json:"yaml"`
	Value json.RawMessage `json:"value"`
	Split string          `json:"split"`
	Limit int             `json:"limit"`
	Call  string          `json:"call"`
	Dirs  []string        `json:"dirs"`
	Tree  []entry         `json:"tree"`
}

type entry struct {
	Path      string `json:"path"`
	Data      []byte `json:"data_b64"`
	Repeat    []byte `json:"repeat_b64"`
	Count     int    `json:"count"`
	SymlinkTo string `json:"symlink_to"`
	HardlinkT string `json:"hardlink_to"`
	Dir       bool   `json:"dir"`
}

type expect struct {
	OK    json.RawMessage `json:"ok"`
	Error *struct {
		Class string `json:"class"`
		Text  string `json:"text"`
	} `json:"error"`
}

// sides are the vector's cases by dialect: one input with one result is a case for both.
func (v vector) sides(t *testing.T) map[dialect.Dialect]side {
	t.Helper()
	sides := make(map[dialect.Dialect]side)
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
		StarForge *expect `json:"starforge"`
		TunePlane *expect `json:"tuneplane"`
	}
	var one expect
	if err := errors.Join(json.Unmarshal(v.Expect, &two), json.Unmarshal(v.Expect, &one)); err != nil {
		t.Fatalf("%s: %v", v.ID, err)
	}
	if two.StarForge == nil && two.TunePlane == nil {
		two.StarForge, two.TunePlane = &one, &one
	}
	sides[dialect.Forge], sides[dialect.TunePlane] = side{*v.Input, *two.StarForge}, side{*v.Input, *two.TunePlane}
	return sides
}

// deliberate is a vector that we answer otherwise on purpose (testdata/vectors/deliberate.json).
type deliberate struct {
	ID      string          `json:"id"`
	Dialect dialect.Dialect `json:"dialect"`
	Rule    rule.ID         `json:"rule"`
	Reason  string          `json:"reason"`
}

// read decodes a file of the vectors' folder.
func read(t *testing.T, file string, into any) {
	t.Helper()
	src, err := testdata.FS.ReadFile("vectors/" + file)
	if err == nil {
		err = json.Unmarshal(src, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// answer is what a reader makes of an input under a policy.
type answer func(t *testing.T, d dialect.Dialect, in input, p rule.Policy) (value any, report rule.Report)

// runVectors holds a reader to a family's vectors. Where the vector refuses, ours must; where it accepts, the value must be the
// same, unless deliberate.json names the rule of ours that refuses: then it must be the same with that rule softened.
func runVectors(t *testing.T, family string, read1 answer) {
	var file struct {
		Vectors []vector `json:"vectors"`
	}
	read(t, family+"-vectors.json", &file)
	var all map[string][]deliberate
	read(t, "deliberate.json", &all)
	listed := map[string][]rule.ID{}
	for _, d := range all[family] {
		key := d.ID + " " + string(d.Dialect)
		listed[key] = append(listed[key], d.Rule)
	}
	same, softer := 0, 0
	for _, v := range file.Vectors {
		for d, s := range v.sides(t) {
			key := v.ID + " " + string(d)
			value, report := read1(t, d, s.Input, rule.Policy{})
			diff := difference(t, value, report, s.Expect)
			rules := listed[key]
			delete(listed, key)
			switch {
			case len(rules) == 0 && diff != "":
				t.Errorf("%s (%s): %s\nviolations: %v", key, v.Note, diff, report.Violations)
			case len(rules) == 0:
				same++
			case diff == "":
				t.Errorf("%s: listed as different, but the answer is the vector's", key)
			default:
				softer++
				policy, err := rule.Soften(rules...)
				if err != nil {
					t.Fatal(err)
				}
				value, report := read1(t, d, s.Input, policy)
				if diff := difference(t, value, report, s.Expect); diff != "" {
					t.Errorf("%s with %v softened: %s\nviolations: %v", key, rules, diff, report.Violations)
				}
			}
		}
	}
	for key := range listed {
		t.Errorf("deliberate.json lists %s %s, which no vector is", family, key)
	}
	t.Logf("%s vectors: %d answered as the clients do, %d stricter by a rule that can be softened", family, same, softer)
}

// difference says how an answer differs from a vector's, "" for not at all.
func difference(t *testing.T, value any, report rule.Report, want expect) string {
	t.Helper()
	switch {
	case want.Error == nil && !report.OK():
		return "refused; the client accepts"
	case want.Error != nil && report.OK():
		return "accepted; the client says " + want.Error.Text
	case want.Error != nil && want.Error.Class == "crash":
		return ""
	case want.Error != nil:
		if info, _ := rule.Lookup(report.Violations[0].Rule); info.Ours {
			return "refused by " + string(info.ID) + " only; the client says " + want.Error.Text
		}
		return ""
	}
	got, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	var a, b any
	if err := errors.Join(decode(got, &a), decode(want.OK, &b)); err != nil {
		t.Fatal(err)
	}
	return cmp.Diff(plainFloats(b), plainFloats(a))
}

// plainFloats takes {"$float": "1.0"}, which keeps a float apart from an integer, for the number.
func plainFloats(v any) any {
	switch v := v.(type) {
	case map[string]any:
		if text, ok := v["$float"].(string); ok && len(v) == 1 {
			return json.Number(text)
		}
		for key, one := range v {
			v[key] = plainFloats(one)
		}
	case []any:
		for i, one := range v {
			v[i] = plainFloats(one)
		}
	}
	return v
}

func decode(src []byte, into *any) error {
	d := json.NewDecoder(bytes.NewReader(src))
	d.UseNumber()
	return d.Decode(into)
}

func TestEnvironmentVectors(t *testing.T) {
	runVectors(t, "environment", func(t *testing.T, d dialect.Dialect, in input, p rule.Policy) (any, rule.Report) {
		return suite.ParseManifest([]byte(in.JSON), suite.ManifestOptions{Policy: p, Dialect: d})
	})
}

func TestTasksVectors(t *testing.T) {
	runVectors(t, "environment-tasks", func(t *testing.T, d dialect.Dialect, in input, p rule.Policy) (any, rule.Report) {
		rows := []suite.Task{}
		opt := suite.TaskOptions{Policy: p, Split: in.Split, Need: in.Call == "load_split"}
		_, report, err := suite.ReadTasks(strings.NewReader(in.JSONL), opt, func(task suite.Task) bool {
			rows = append(rows, task)
			return in.Limit == 0 || len(rows) < in.Limit
		})
		if err != nil {
			t.Fatal(err)
		}
		return rows, report
	})
}

func TestTasksetVectors(t *testing.T) {
	runVectors(t, "taskset", func(t *testing.T, d dialect.Dialect, in input, p rule.Policy) (any, rule.Report) {
		if in.Value != nil {
			doc, report := suite.ParseTaskset(in.Value, p)
			if doc == nil {
				return nil, report
			}
			return map[string]any{"digest": doc.Digest, "summary": doc.Summary()}, report
		}
		root, err := os.OpenRoot(buildTree(t, in.Tree))
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		doc, files, report, err := suite.InspectTaskset(root, p)
		if err != nil {
			t.Fatal(err)
		}
		if doc == nil {
			return nil, report
		}
		return map[string]any{"files": files, "summary": doc.Summary()}, report
	})
}

func TestSolutionVectors(t *testing.T) {
	runVectors(t, "solution", func(t *testing.T, d dialect.Dialect, in input, p rule.Policy) (any, rule.Report) {
		s, report := suite.ParseSolution([]byte(in.YAML), suite.SolutionOptions{Policy: p})
		if s == nil {
			return nil, report
		}
		return map[string]any{"to_dict": s, "references": s.References()}, report
	})
}

func TestDataPrepVectors(t *testing.T) {
	runVectors(t, "data-prep", func(t *testing.T, d dialect.Dialect, in input, p rule.Policy) (any, rule.Report) {
		found, report, err := suite.DiscoverDataPrep(os.DirFS(buildTree(t, in.Tree)), in.Dirs, p)
		if err != nil {
			t.Fatal(err)
		}
		return append([]suite.DataPrep{}, found...), report
	})
}

// buildTree writes a vector's tree into a temporary folder.
func buildTree(t testing.TB, entries []entry) string {
	t.Helper()
	root := t.TempDir()
	for _, e := range entries {
		path := filepath.Join(root, filepath.FromSlash(e.Path))
		err := os.MkdirAll(filepath.Dir(path), 0o777)
		switch {
		case err != nil:
		case e.Dir:
			err = os.MkdirAll(path, 0o777)
		case e.SymlinkTo != "":
			err = os.Symlink(e.SymlinkTo, path)
		case e.HardlinkT != "":
			err = os.Link(filepath.Join(root, e.HardlinkT), path)
		case e.Count > 0:
			err = os.WriteFile(path, bytes.Repeat(e.Repeat, e.Count), 0o666)
		default:
			err = os.WriteFile(path, e.Data, 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// readers run the example of a rule by the family that its id begins with.
var readers = map[string]func(string) rule.Report{
	"environment": func(s string) rule.Report {
		_, r := suite.ParseManifest([]byte(s), suite.ManifestOptions{})
		return r
	},
	"tasks": func(s string) rule.Report {
		_, r, _ := suite.ReadTasks(strings.NewReader(s), suite.TaskOptions{}, nil)
		return r
	},
	"taskset": func(s string) rule.Report {
		_, r := suite.ParseTaskset([]byte(s), rule.Policy{})
		return r
	},
	"suite": func(s string) rule.Report {
		_, r := suite.ParseIndex([]byte(s), rule.Policy{})
		return r
	},
	"solution": func(s string) rule.Report {
		_, r := suite.ParseSolution([]byte(s), suite.SolutionOptions{})
		return r
	},
}

// TestExamples holds that the example of every rule breaks that rule, and no other that refuses.
func TestExamples(t *testing.T) {
	ran := 0
	for _, info := range rule.All() {
		family, _, _ := strings.Cut(string(info.ID), ".")
		if !slices.Contains([]string{"environment", "tasks", "taskset", "suite", "rubric", "solution", "dataprep"}, family) {
			continue
		}
		if info.Example.Value == "" {
			if info.Example.Text == "" {
				t.Errorf("%s has no example", info.ID)
			}
			continue
		}
		ran++
		report := readers[family](info.Example.Value)
		hits := append(slices.Clone(report.Violations), report.Warnings...)
		if !slices.ContainsFunc(hits, func(v rule.Violation) bool { return v.Rule == info.ID }) {
			t.Errorf("%s: its example breaks %v\n%s", info.ID, hits, info.Example.Value)
		}
		for _, v := range report.Violations {
			if v.Rule != info.ID {
				t.Errorf("%s: its example also breaks %v", info.ID, v)
			}
		}
	}
	if ran < 30 {
		t.Errorf("only %d examples ran", ran)
	}
}
