package project

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-registry/gatehouse/admission/catalogue"
	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/lock"
	"github.com/gatehouse-registry/gatehouse/admission/pack"
	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
	"github.com/gatehouse-registry/gatehouse/digest/tree"
	"github.com/gatehouse-registry/gatehouse/testdata"
)

// lockVectors is testdata/vectors/recipe-lock-vectors.json (README-locks.md).
type lockVectors struct {
	Catalogues map[string][]vectorPack
	Locks      map[string]json.RawMessage
	Vectors    []lockVector
}

type vectorPack struct {
	Owner, Name string
	Files       map[string]json.RawMessage
}

type lockVector struct {
	ID    string
	Input struct {
		Dialect         string
		Core            string `json:"core_version"`
		Catalogue       string `json:"catalogue_ref"`
		Op, Experiment  string
		Files           map[string]json.RawMessage
		LockRef         string  `json:"lock_ref"`
		Lock            *string `json:"lock"`
		LockBase64      string  `json:"lock_base64"`
		RequestedRecipe string  `json:"requested_recipe"`
		Options         struct {
			FrameworkVersion    string `json:"framework_version"`
			AcceptRuntimeChange bool   `json:"accept_runtime_change"`
			DryRun              bool   `json:"dry_run"`
			ConfigErrors        bool   `json:"config_errors"`
		}
	}
	Expect vectorExpect
}

type vectorExpect struct {
	State      string
	Admits     bool
	RecipeName string `json:"recipe_name"`
	Framework  string `json:"framework_version"`
	Changes    []lock.Change
	Advisory   string
	LockAfter  *string         `json:"lock_after"`
	Error      json.RawMessage `json:"error"`
	Crash      string
	Refused    json.RawMessage // an inspection; of upgrade_all a list
	Items      []struct{ Path, State string }
	LocksAfter map[string]*string `json:"locks_after"`
}

func readLockVectors(t *testing.T) lockVectors {
	t.Helper()
	src, err := testdata.FS.ReadFile("vectors/recipe-lock-vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var all lockVectors
	if err := json.Unmarshal(src, &all); err != nil {
		t.Fatal(err)
	}
	if len(all.Vectors) == 0 {
		t.Fatal("no vectors")
	}
	return all
}

func TestRecipeLockVectors(t *testing.T) {
	all := readLockVectors(t)
	known := make(map[string]*catalogue.Catalogue)
	for _, v := range all.Vectors {
		t.Run(v.ID, func(t *testing.T) {
			key := v.Input.Catalogue + "@" + v.Input.Core
			c := known[key]
			if c == nil {
				c = all.catalogue(t, v)
				known[key] = c
			}
			p := all.project(t, v, c.Dialect())
			switch v.Input.Op {
			case "inspect":
				e := experiment(t, p, v.Input.Experiment)
				checkInspection(t, v.Expect, e.Inspect(c, v.Input.RequestedRecipe))
			case "upgrade":
				checkUpgrade(t, v, p, c)
			case "write":
				checkWrite(t, v, p, c)
			case "upgrade_all":
				checkUpgradeAll(t, v, p, c)
			default:
				t.Fatalf("unknown op %q", v.Input.Op)
			}
		})
	}
}

// fileBytes is one file of a map of files: a text, or {"base64": text}.
func fileBytes(t *testing.T, raw json.RawMessage) []byte {
	t.Helper()
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return []byte(text)
	}
	var coded struct{ Base64 []byte }
	if err := json.Unmarshal(raw, &coded); err != nil {
		t.Fatal(err)
	}
	return coded.Base64
}

// catalogue is what the vector's client had: its own recipes and those of the packs, of which the last of one id counts.
func (all lockVectors) catalogue(t *testing.T, v lockVector) *catalogue.Catalogue {
	t.Helper()
	d := dialect.TunePlane
	if v.Input.Dialect == "starforge" {
		d = dialect.Forge
	}
	packs, ok := all.Catalogues[v.Input.Catalogue]
	if !ok {
		t.Fatalf("no catalogue %q", v.Input.Catalogue)
	}
	slices.SortStableFunc(packs, func(a, b vectorPack) int { return strings.Compare(a.Owner+"/"+a.Name, b.Owner+"/"+b.Name) })
	var entries []catalogue.Entry
	for _, p := range slices.Backward(packs) { // of one name the first entry counts
		files := make(map[string]string)
		for name, raw := range p.Files {
			files[name] = string(fileBytes(t, raw))
		}
		root, err := os.OpenRoot(lay(t, files))
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		dir, err := tree.OpenDir(root)
		if err != nil {
			t.Fatal(err)
		}
		r, report, err := pack.ReadRecipe(dir, pack.RecipeOptions{Dialect: d, Name: p.Name})
		if err != nil || r == nil {
			t.Fatalf("%s/%s: %v %v", p.Owner, p.Name, err, report.Violations)
		}
		entries = append(entries, catalogue.FromRecipe(r, catalogue.Pack{Owner: p.Owner, Name: p.Name}))
	}
	base, ok := catalogue.Builtin(d, catalogue.DefaultRelease(d))
	if !ok {
		t.Fatal("no built-in catalogue")
	}
	c, _ := catalogue.New(d, v.Input.Core, base.Entries(), base.Bundled()).WithPacks(entries)
	return c
}

// project lays out the vector's files and its lock.
func (all lockVectors) project(t *testing.T, v lockVector, d dialect.Dialect) *Project {
	t.Helper()
	files := map[string]string{d.Names().Marker: "name: lab\n"}
	for name, raw := range v.Input.Files {
		files[name] = string(fileBytes(t, raw))
	}
	place := v.Input.Experiment + "/" + lock.RecipeFile
	switch {
	case v.Input.LockRef != "":
		files[place] = string(fileBytes(t, all.Locks[v.Input.LockRef]))
	case v.Input.LockBase64 != "":
		src, err := base64.StdEncoding.DecodeString(v.Input.LockBase64)
		if err != nil {
			t.Fatal(err)
		}
		files[place] = string(src)
	case v.Input.Lock != nil:
		files[place] = *v.Input.Lock
	}
	root := lay(t, files)
	if v.Input.Experiment != "" {
		if err := os.MkdirAll(filepath.Join(root, v.Input.Experiment), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return mustOpen(t, root)
}

func experiment(t *testing.T, p *Project, path string) *Experiment {
	t.Helper()
	e, err := p.Experiment(path)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func checkInspection(t *testing.T, want vectorExpect, got lock.Inspection) {
	t.Helper()
	if want.Crash != "" {
		if got.Admits || got.Message == "" {
			t.Errorf("a lock on which the client crashes is %s: %s", got.State, got.Message)
		}
		return
	}
	changes := slices.Clone(got.Changes)
	for i := range changes {
		changes[i].Line = 0
	}
	have := vectorExpect{State: string(got.State), Admits: got.Admits, RecipeName: got.Recipe, Framework: got.FrameworkVersion, Changes: changes}
	wanted := vectorExpect{State: want.State, Admits: want.Admits, RecipeName: want.RecipeName, Framework: want.Framework, Changes: want.Changes}
	if diff := cmp.Diff(wanted, have); diff != "" {
		t.Errorf("(-want +got)\n%s\n%s", diff, got.Message)
	}
	if (want.Advisory != "") != (got.Advisory() != "") {
		t.Errorf("advisory %q, want %q", got.Advisory(), want.Advisory)
	}
}

// lenientConfig is the config without our check of it: the vectors call what lies below the clients' check.
func lenientConfig(e *Experiment, _ catalogue.Entry) (*pyvalue.Value, error) {
	return e.boundConfig(), nil
}

func options(v lockVector) (lock.Upgrade, configOf) {
	o := v.Input.Options
	config := configOf(lenientConfig)
	if o.ConfigErrors {
		config = func(*Experiment, catalogue.Entry) (*pyvalue.Value, error) {
			return nil, errors.New("the config is wrong")
		}
	}
	return lock.Upgrade{FrameworkVersion: o.FrameworkVersion, AcceptRuntimeChange: o.AcceptRuntimeChange}, config
}

func checkUpgrade(t *testing.T, v lockVector, p *Project, c *catalogue.Catalogue) {
	e := experiment(t, p, v.Input.Experiment)
	u, config := options(v)
	plan, err := e.planUpgrade(c, v.Input.RequestedRecipe, u, config)
	if v.Expect.Crash != "" || v.Expect.Refused != nil {
		if err == nil {
			t.Fatalf("upgraded; the client answers %s%s", v.Expect.Refused, v.Expect.Crash)
		}
		if v.Expect.Refused == nil {
			return
		}
		var want vectorExpect
		if err := json.Unmarshal(v.Expect.Refused, &want); err != nil {
			t.Fatal(err)
		}
		refused, ok := errors.AsType[*lock.Refused](err)
		if !ok {
			t.Fatal(err)
		}
		checkInspection(t, want, refused.Inspection)
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	checkInspection(t, v.Expect, plan.Inspection)
	if !v.Input.Options.DryRun {
		if err := e.WriteRecipeLock(plan.Text); err != nil {
			t.Fatal(err)
		}
	}
	checkLock(t, e, v.Expect.LockAfter)
}

func checkLock(t *testing.T, e *Experiment, want *string) {
	t.Helper()
	got, err := e.RecipeLockBytes()
	if err != nil {
		t.Fatal(err)
	}
	if want == nil {
		if got != nil {
			t.Errorf("%s has a lock: %s", e.Path, got)
		}
		return
	}
	if diff := cmp.Diff(*want, string(got)); diff != "" {
		t.Errorf("%s (-want +got)\n%s", e.Path, diff)
	}
}

func checkWrite(t *testing.T, v lockVector, p *Project, c *catalogue.Catalogue) {
	e := experiment(t, p, v.Input.Experiment)
	entry, ok := c.Lookup(v.Input.RequestedRecipe)
	var text []byte
	err := errors.New("no such recipe")
	if ok {
		_, text, err = e.NewLock(c, entry, v.Input.Options.FrameworkVersion)
	}
	if v.Expect.LockAfter == nil {
		if err == nil {
			t.Fatalf("written; the client answers %s%s", v.Expect.Error, v.Expect.Crash)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(*v.Expect.LockAfter, string(text)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func checkUpgradeAll(t *testing.T, v lockVector, p *Project, c *catalogue.Catalogue) {
	u, config := options(v)
	items, err := p.upgradeAll(c, u, v.Input.Options.DryRun, config)
	if v.Expect.Items == nil {
		if batch, ok := errors.AsType[*Batch](err); !ok || len(batch.Refusals) == 0 {
			t.Errorf("%v; the client answers %s%s", err, v.Expect.Refused, v.Expect.Crash)
		}
	} else if err != nil {
		t.Fatal(err)
	}
	var got []struct{ Path, State string }
	for _, i := range items {
		got = append(got, struct{ Path, State string }{i.Path, string(i.State)})
	}
	if diff := cmp.Diff(v.Expect.Items, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for path, want := range v.Expect.LocksAfter {
		checkLock(t, experiment(t, p, filepath.ToSlash(filepath.Dir(path))), want)
	}
}
