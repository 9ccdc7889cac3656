package project

import (
	"encoding/json"
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-registry/gatehouse/admission/catalogue"
	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/lock"
	"github.com/gatehouse-registry/gatehouse/digest/canonical"
	"github.com/gatehouse-registry/gatehouse/testdata"
)

var neighboursFile = flag.String("neighbours", "", "compare with this output of lock-neighbours.py instead of the one in testdata")

// neighbour is a vector of testdata/vectors/lock-neighbours.json (lock-neighbours.py states its shape).
type neighbour struct {
	D       string
	C       string
	Put     [][2]string
	Raw     *string
	R       string
	State   string
	Recipe  string
	Version string
	Changes [][3]string
	Crash   string
	Files   map[string]string
	Bound   []string
}

func TestLockNeighbours(t *testing.T) {
	src, err := testdata.FS.ReadFile("vectors/lock-neighbours.json")
	if *neighboursFile != "" {
		src, err = os.ReadFile(*neighboursFile)
	}
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Vectors []neighbour }
	if err := json.Unmarshal(src, &file); err != nil {
		t.Fatal(err)
	}
	all := readLockVectors(t)
	catalogues := make(map[string]*catalogue.Catalogue)
	for i, n := range file.Vectors {
		d := dialect.Dialect(n.D)
		if n.C == "" {
			n.C = map[dialect.Dialect]string{dialect.Forge: "sf:base", dialect.TunePlane: "tp:base"}[d]
		}
		c := catalogues[n.C]
		if c == nil {
			var v lockVector
			v.Input.Dialect, v.Input.Catalogue, v.Input.Core = map[dialect.Dialect]string{dialect.Forge: "starforge", dialect.TunePlane: "tuneplane"}[d], n.C, catalogue.DefaultRelease(d)
			c = all.catalogue(t, v)
			catalogues[n.C] = c
		}
		if n.Put == nil && n.Raw == nil {
			checkBound(t, i, n, c)
			continue
		}
		checkNeighbour(t, i, n, n.text(t, all), c)
	}
	if len(file.Vectors) < 1000 {
		t.Errorf("only %d vectors", len(file.Vectors))
	}
}

// text is the lock of a vector.
func (n neighbour) text(t *testing.T, all lockVectors) []byte {
	t.Helper()
	if n.Raw != nil {
		return []byte(*n.Raw)
	}
	ref := "tp-lock:base"
	if n.D == string(dialect.Forge) {
		ref = "sf-lock:base"
	}
	var doc map[string]any
	if err := json.Unmarshal(fileBytes(t, all.Locks[ref]), &doc); err != nil {
		t.Fatal(err)
	}
	for _, p := range n.Put {
		put(doc, p[0], p[1])
	}
	text, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// put sets a value by its path, as lock-neighbours.py does.
func put(doc map[string]any, path, value string) {
	for {
		key, rest, more := cut(path)
		if !more {
			if value == "GONE" {
				delete(doc, key)
			} else {
				doc[key] = json.RawMessage(value)
			}
			return
		}
		below, ok := doc[key].(map[string]any)
		if raw, isRaw := doc[key].(json.RawMessage); isRaw && json.Unmarshal(raw, &below) == nil && below != nil {
			ok = true
		}
		if !ok {
			below = make(map[string]any)
		}
		doc[key] = below
		doc, path = below, rest
	}
}

func cut(path string) (key, rest string, more bool) {
	for i := range path {
		if path[i] == '.' {
			return path[:i], path[i+1:], true
		}
	}
	return path, "", false
}

func checkNeighbour(t *testing.T, i int, n neighbour, text []byte, c *catalogue.Catalogue) {
	t.Helper()
	got := lock.Inspect(lock.Subject{Source: text, Path: "recipe.lock.json", Command: "x", Requested: n.R, Catalogue: c})
	if n.Crash != "" {
		if got.Admits {
			t.Errorf("vector %d: the client crashes (%s), ours says %s of %s", i, n.Crash, got.State, text)
		}
		return
	}
	var changes [][3]string
	for _, ch := range got.Changes {
		changes = append(changes, [3]string{ch.Field, wire(t, ch.Locked), wire(t, ch.Current)})
	}
	if len(n.Changes) == 0 {
		n.Changes = nil
	}
	have := neighbour{State: string(got.State), Recipe: wire(t, got.Recipe), Version: wire(t, got.FrameworkVersion), Changes: changes}
	want := neighbour{State: n.State, Recipe: n.Recipe, Version: n.Version, Changes: n.Changes}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("vector %d, %s: (-want +got)\n%s\n%s", i, n.C, diff, text)
	}
}

// wire is a text as it comes out of JSON: Go reads a lone surrogate, which a lock may hold, as U+FFFD.
func wire(t *testing.T, s string) string {
	t.Helper()
	text, err := canonical.ASCII(s)
	if err != nil {
		t.Fatal(err)
	}
	var out string
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func checkBound(t *testing.T, i int, n neighbour, c *catalogue.Catalogue) {
	t.Helper()
	files := map[string]string{c.Dialect().Names().Marker: "name: lab\n", "experiments/x/.keep": ""}
	for name, text := range n.Files {
		files["experiments/x/"+name] = text
	}
	e := experiment(t, mustOpen(t, lay(t, files)), "x")
	entry, _ := c.Lookup("labfw/tune")
	r, _, err := e.NewLock(c, entry, "")
	if err != nil {
		t.Fatal(err)
	}
	got := []string{}
	for _, p := range r.Bindings.Params {
		got = append(got, p.Name)
	}
	if diff := cmp.Diff(n.Bound, got); diff != "" {
		t.Errorf("vector %d: %v (-want +got)\n%s", i, n.Files, diff)
	}
}
