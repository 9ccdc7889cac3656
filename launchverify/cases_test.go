//go:build linux

package launchverify

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/jobspec"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
)

// launchCase is a folder of testdata/launch; its README explains the format.
type launchCase struct {
	dir     string
	ID      string             `json:"id"`
	Dialect dialect.Dialect    `json:"dialect"`
	Title   string             `json:"title"`
	Env     map[string]*string `json:"env"`
	Setup   []caseSetup        `json:"setup"`
	ours    struct {
		Verdict string `json:"verdict"`
		Rule    string `json:"rule"`
	}
}

type caseSetup struct {
	Op     string  `json:"op"`
	Path   string  `json:"path"`
	Base64 string  `json:"b64"`
	Path64 string  `json:"path_b64"`
	Text   string  `json:"text"`
	Target string  `json:"target"`
	To     string  `json:"to"`
	Mode   string  `json:"mode"`
	Mtime  float64 `json:"mtime"`
}

func readCase(t *testing.T, dir string) launchCase {
	t.Helper()
	c := launchCase{dir: dir}
	readJSON(t, filepath.Join(dir, "case.json"), &c)
	var expected struct {
		Ours json.RawMessage `json:"ours"`
	}
	readJSON(t, filepath.Join(dir, "expected.json"), &expected)
	if err := json.Unmarshal(expected.Ours, &c.ours); err != nil {
		t.Fatal(err)
	}
	return c
}

func readJSON(t *testing.T, file string, into any) {
	t.Helper()
	src, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(src, into)
	}
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// hint is what a hint of expected.json stands for: the rules that answer to it, and the exit code.
type hint struct {
	Rules []rule.ID `json:"rules"`
	Exit  int       `json:"exit"`
}

// readHints reads the one table of hints.
func readHints(t *testing.T) map[string]hint {
	t.Helper()
	var hints map[string]hint
	readJSON(t, filepath.Join("..", "testdata", "launch", "rules.json"), &hints)
	return hints
}

// TestCases launches every case of testdata/launch, and of the folder in LAUNCH_CASES, on a fresh cache. A refusal must come
// by the rule that the case names and start nothing. A job that starts must see, of what is pinned, exactly the
// published files, and nothing of the job directory that it should not.
func TestCases(t *testing.T) {
	dirs, err := filepath.Glob(filepath.Join("..", "testdata", "launch", "[ft]-*"))
	if err != nil || len(dirs) < 14 {
		t.Fatalf("found %d cases, %v", len(dirs), err)
	}
	if more := os.Getenv("LAUNCH_CASES"); more != "" {
		found, err := filepath.Glob(filepath.Join(more, "[ft]-*"))
		if err != nil || len(found) == 0 {
			t.Fatalf("LAUNCH_CASES: %d cases, %v", len(found), err)
		}
		dirs = append(dirs, found...)
	}
	hints := readHints(t)
	count := map[string]int{}
	for _, dir := range dirs {
		count[readCase(t, dir).ours.Verdict]++
	}
	t.Logf("cases: %v", count)
	eachMode(t, func(t *testing.T, mode Mode) {
		for _, dir := range dirs {
			c := readCase(t, dir)
			t.Run(c.ID, func(t *testing.T) { c.run(t, mode, hints) })
		}
	})
}

func (c launchCase) run(t *testing.T, mode Mode, hints map[string]hint) {
	r := newRig(t, c.Dialect)
	c.materialise(t, r)
	r.shelf.publishAll(filepath.Join(c.dir, "published"))
	r.sign()
	for name, value := range c.Env {
		if value != nil {
			r.env = append(r.env, name+"="+strings.ReplaceAll(*value, "{JOB}", r.job))
		}
	}
	o := r.options()
	o.modes = []Mode{mode}
	rec, err := r.launch(o)
	s, ran := r.saw()
	if c.ours.Verdict == "refuse" {
		if ran || rec.Started {
			t.Errorf("the command ran")
		}
		if !slices.ContainsFunc(hints[c.ours.Rule].Rules, func(id rule.ID) bool { return slices.Contains(violated(err), id) }) {
			t.Errorf("refused by %v (%v), expected %s", violated(err), err, c.ours.Rule)
		}
		if code := ExitCode(rec, err); code != hints[c.ours.Rule].Exit {
			t.Errorf("exit code %d, expected %d", code, hints[c.ours.Rule].Exit)
		}
		return
	}
	if err != nil || !ran || rec.ExitCode != 0 {
		t.Fatalf("did not run: %v (exit code %d)", err, rec.ExitCode)
	}
	if diff := cmp.Diff(c.expected(t, r), s.Files); diff != "" {
		t.Errorf("what the job sees (-want +got)\n%s", diff)
	}
}

// expected are the files that the job must see: its spec folder, the published plugins, the recipe pack that it
// names, and what is bound.
func (c launchCase) expected(t *testing.T, r *rig) map[string]string {
	t.Helper()
	names := c.Dialect.Names()
	want := map[string]string{"experiments/": ""}
	add := func(below, dir string) {
		for p, sum := range sums(t, dir) {
			want[below+"/"+p] = sum
		}
	}
	add(names.SpecDir, filepath.Join(r.job, names.SpecDir))
	if _, err := os.Stat(filepath.Join(r.job, names.RecipesDir)); err == nil {
		add(names.RecipesDir, filepath.Join(r.job, names.RecipesDir))
	}
	src, err := os.ReadFile(r.specPath())
	if err != nil {
		t.Fatal(err)
	}
	spec, _ := jobspec.Parse(src, jobspec.Options{Dialect: c.Dialect})
	for _, ref := range spec.Plugins {
		if !ships(c.Dialect, ref.ID) {
			add(names.PluginsDir+"/"+jobspec.Leaf(ref.ID), filepath.Join(c.dir, "published", ref.ID, ref.Version))
		}
	}
	return want
}

// materialise makes the job directory: the stored files, then what version control does not keep.
func (c launchCase) materialise(t *testing.T, r *rig) {
	t.Helper()
	if err := os.RemoveAll(r.job); err != nil {
		t.Fatal(err)
	}
	stored := filepath.Join(c.dir, "job")
	if _, err := os.Stat(stored); err == nil {
		if err := os.CopyFS(r.job, os.DirFS(stored)); err != nil {
			t.Fatal(err)
		}
	}
	r.mkdir(r.job)
	for _, op := range c.Setup {
		if err := op.apply(r.job); err != nil {
			t.Fatalf("%s %s: %v", op.Op, op.Path, err)
		}
	}
}

func (op caseSetup) apply(job string) error {
	rel := op.Path
	if op.Path64 != "" {
		b, err := base64.StdEncoding.DecodeString(op.Path64)
		if err != nil {
			return err
		}
		rel = string(b)
	}
	at := filepath.Join(job, strings.ReplaceAll(rel, "{JOBPATH}", strings.Trim(job, "/")))
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return err
	}
	switch op.Op {
	case "write":
		text := []byte(op.Text)
		if op.Base64 != "" {
			var err error
			if text, err = base64.StdEncoding.DecodeString(op.Base64); err != nil {
				return err
			}
		}
		return os.WriteFile(at, text, 0o644)
	case "pyc": // byte code; what it would do needs a Python, that it reaches no job does not
		return os.WriteFile(strings.ReplaceAll(at, "{TAG}", "cpython-313"), []byte("\xf3\r\r\n"+op.Text), 0o644)
	case "symlink":
		return os.Symlink(strings.ReplaceAll(op.Target, "{JOB}", job), at)
	case "mkdir":
		return os.MkdirAll(at, 0o755)
	case "fifo":
		return syscall.Mkfifo(at, 0o644)
	case "chmod":
		var mode uint32
		for _, digit := range op.Mode {
			mode = mode*8 + uint32(digit-'0')
		}
		return os.Chmod(at, os.FileMode(mode))
	case "remove":
		return os.RemoveAll(at)
	case "rename":
		return os.Rename(at, filepath.Join(job, op.To))
	case "utime":
		when := time.Unix(int64(op.Mtime), 0)
		return os.Chtimes(at, when, when)
	}
	return os.ErrInvalid
}

// Every rule that the table of hints names is a rule of the table of rules.
func TestRulesExist(t *testing.T) {
	hints := readHints(t)
	for _, name := range slices.Sorted(maps.Keys(hints)) {
		for _, id := range hints[name].Rules {
			if _, ok := rule.Lookup(id); !ok {
				t.Errorf("%s: no rule is called %s", name, id)
			}
		}
	}
}
