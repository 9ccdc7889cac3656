package suite_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/admission/suite"
)

// hostile are documents that readers like to fall over.
var hostile = []string{
	"", "\x00", "\xff", "\ufeff{}", "{", "[", `"`, "nul", "1e999", "-", strings.Repeat("[", 5000), strings.Repeat(`{"a":`, 5000), strings.Repeat("9", 400),
	`{"schema": "forge/environment/v1", "tools": [` + strings.Repeat("0,", 5000) + `0]}`, `{"a\ud800": "\udfff"}`, `{"tasks": {}, "schema": [], "format": null}`,
	"a: &a [*a]", "a: &a {b: 1}\nb: *a", "---\n---\n", "{\"id\": 1}\r\r\n\u2028\n", strings.Repeat("(", 300), "\"\"\"", "f\"{", "'\\x", "'\\N{", "if 1:\n\tx\n        y", "\\",
}

// FuzzReaders holds that no document makes a reader panic, that what is refused says why, and that a manifest which is accepted
// is accepted again in the form that is given out.
func FuzzReaders(f *testing.F) {
	for _, text := range hostile {
		f.Add(text)
	}
	for _, info := range rule.All() {
		if info.Example.Value != "" {
			f.Add(info.Example.Value)
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, d := range dialect.All {
			m, report := suite.ParseManifest([]byte(text), suite.ManifestOptions{Dialect: d})
			if !report.OK() || m == nil {
				if report.OK() {
					t.Error("refused without a violation")
				}
				continue
			}
			out, err := json.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			if _, report := suite.ParseManifest(out, suite.ManifestOptions{Dialect: d}); !report.OK() {
				t.Errorf("the form that is given out is refused: %s: %v", out, report.Violations)
			}
		}
		for _, read := range readers {
			read(text)
		}
		suite.CheckRubric([]byte(text), rule.Policy{})
		suite.CheckFileName(text)
		list, _, err := suite.DiscoverDataPrep(fstest.MapFS{"d/prepare_x.py": {Data: []byte(text)}}, []string{"d"}, rule.Policy{})
		if err != nil || len(list) != 1 || strings.ContainsAny(list[0].Summary, "\n\r") {
			t.Errorf("discovery: %v, %v", list, err)
		}
	})
}

// TestBounds holds that what is too large is refused, and by the rule for it.
func TestBounds(t *testing.T) {
	t.Parallel()
	row := `{"id": "a", "prompt": "` + strings.Repeat("x", 5<<20) + `"}`
	_, report, err := suite.ReadTasks(strings.NewReader(row), suite.TaskOptions{}, nil)
	if err != nil || report.OK() || report.Violations[0].Rule != "tasks.limit" {
		t.Errorf("a row of 5 MiB: %v, %v", report.Violations, err)
	}
	_, report, err = suite.ReadTasks(strings.NewReader(strings.Repeat("x\n", 100_000)), suite.TaskOptions{}, nil)
	if err != nil || len(report.Violations) > 200 {
		t.Errorf("100,000 wrong rows: %d violations, %v", len(report.Violations), err)
	}
	var many strings.Builder
	for i := range 10_001 {
		many.WriteString(`{"id":"t` + strings.Repeat("0", i%7) + `","path":"x","split":"eval","sha256":""},`)
	}
	if _, report := suite.ParseTaskset([]byte(`{"schema":"tuneplane/taskset/v1","format":"harbor","tasks":[`+strings.TrimSuffix(many.String(), ",")+`]}`), rule.Policy{}); report.OK() {
		t.Error("10,001 tasks are taken")
	}
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if doc, _, report, err := suite.InspectTaskset(root, rule.Policy{}); doc != nil || err != nil || report.OK() {
		t.Errorf("an empty folder: %v, %v", report, err)
	}
}

// TestDeepTaskPath checks that a task's path is bounded before the folders above it are gone through.
func TestDeepTaskPath(t *testing.T) {
	document := func(path string) []byte {
		return []byte(`{"schema":"` + suite.TasksetSchema + `","format":"` + suite.TasksetFormat + `","tasks":[{"id":"x","path":"` + path + `","split":"eval","sha256":"` + strings.Repeat("a", 64) + `"}]}`)
	}
	if _, report := suite.ParseTaskset(document(strings.Repeat("a/", (limit.Path-1)/2)+"x"), rule.Policy{}); !report.OK() {
		t.Errorf("the longest path: %v", report.Violations)
	}
	_, report := suite.ParseTaskset(document(strings.Repeat("a/", 500_000)+"x"), rule.Policy{})
	if len(report.Violations) != 1 || report.Violations[0].Rule != "taskset.task.path" || !strings.Contains(report.Violations[0].Message, "expected at most 1024") {
		t.Errorf("a long path: %.500v", report.Violations)
	}
}
