package jobspec

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/pyjson"
	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/testdata"
)

// neighbour is one line of testdata/vectors/jobspec-neighbours.json: what the real package makes of the smallest document
// with an odd value in one field.
type neighbour struct {
	D     dialect.Dialect
	Put   [][2]string // path, JSON text
	OK    *string     // the package's serialisation, "" for that of the smallest document
	Hubs  [][4]any
	Field *string
	Crash string
}

// beside is what must stand in a document for a field to be looked at, by the path's beginning. jobspec-neighbours.py has the
// same table.
var beside = []struct{ beginning, at, value string }{
	{"spec.evaluation.on_checkpoint.", "spec.evaluation", `{"suites":["gsm8k"],"on_checkpoint":{"every_steps":10}}`},
	{"spec.evaluation.on_checkpoint", "spec.evaluation", `{"suites":["gsm8k"],"on_checkpoint":{"every_steps":10}}`},
	{"spec.evaluation.gates.0", "spec.evaluation", `{"suites":["gsm8k","math"],"gates":[{"metric":"gsm8k/acc","min":0.5}]}`},
	{"spec.evaluation.", "spec.evaluation", `{"suites":["gsm8k"]}`},
	{"spec.resources.pools.1", "spec.resources.pools", `[{"name":"all"},{"name":"two"}]`},
	{"spec.resources.leases.0", "spec.resources.leases", `[{"tool":"t"}]`},
	{"spec.resources.leases.1", "spec.resources.leases", `[{"tool":"t"},{"tool":"u"}]`},
	{"spec.plugins.0", "spec.plugins", `[{"id":"a/x","version":"1","digest":"` + sum + `"}]`},
	{"spec.plugins.1", "spec.plugins", `[{"id":"a/x","version":"1","digest":"` + sum + `"},{"id":"b/y","version":"1","digest":"` + sum + `"}]`},
}

var sum = "sha256:" + strings.Repeat("ab", 32)

func (v neighbour) source(t *testing.T) []byte {
	t.Helper()
	doc := value(t, smallest(v.D))
	for _, put := range v.Put {
		path := put[0]
		for _, b := range beside {
			if strings.HasPrefix(path, b.beginning) && path != b.at {
				place(doc, b.at, value(t, b.value))
				break
			}
		}
		place(doc, path, value(t, put[1]))
	}
	return appendJSON(nil, doc)
}

func value(t *testing.T, src string) *pyvalue.Value {
	t.Helper()
	v, _ := pyjson.Load([]byte(src), pyjson.Options{})
	if v == nil {
		t.Fatalf("%s is no JSON", src)
	}
	return v
}

// place puts a value at a path; a number in the path is an entry of a list.
func place(doc *pyvalue.Value, path string, v *pyvalue.Value) {
	key, rest, more := strings.Cut(path, ".")
	if doc.Kind == pyvalue.List {
		i, err := strconv.Atoi(key)
		if err != nil {
			panic(err)
		}
		if !more {
			doc.List[i] = v
			return
		}
		place(doc.List[i], rest, v)
		return
	}
	next := doc.Get(key)
	if more && next != nil {
		place(next, rest, v)
		return
	}
	if more {
		next = &pyvalue.Value{Kind: pyvalue.Map}
		place(next, rest, v)
		v = next
	}
	for i := range doc.Items {
		if doc.Items[i].Key.Text == key {
			doc.Items[i].Value = v
			return
		}
	}
	doc.Items = append(doc.Items, pyvalue.Item{Key: pyvalue.NewStr(key), Value: v})
}

// alsoAccepted are the forms that the platform's documents show and its package refuses (jobspec.md 10).
func (v neighbour) alsoAccepted() bool {
	for _, put := range v.Put {
		if v.D == dialect.TunePlane && put[0] == "spec.model.init_from" && strings.HasPrefix(put[1], "{") ||
			strings.HasPrefix(put[0], "spec.evaluation.gates") {
			return true
		}
	}
	return false
}

// stricter are the rules of the clients that are stricter here on purpose, by dialect, with the reason.
func stricterRules(t *testing.T) map[[2]string]string {
	t.Helper()
	src, err := testdata.FS.ReadFile("vectors/deliberate.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Neighbours []struct{ Dialect, Rule, Reason string } `json:"jobspec-neighbours"`
	}
	if err := json.Unmarshal(src, &file); err != nil {
		t.Fatal(err)
	}
	reasons := make(map[[2]string]string)
	for _, d := range file.Neighbours {
		reasons[[2]string{d.Dialect, d.Rule}] = d.Reason
	}
	return reasons
}

var neighbourFile = flag.String("neighbours", "", "a file that jobspec-neighbours.py --all wrote, to compare with in place of the committed one")

// neighbourVectors are the committed file, or the one that is named.
func neighbourVectors(t *testing.T) (vectors []neighbour, topologies []topologyVector) {
	t.Helper()
	src, err := testdata.FS.ReadFile("vectors/jobspec-neighbours.json")
	if *neighbourFile != "" {
		src, err = os.ReadFile(*neighbourFile)
	}
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Vectors    []neighbour
		Topologies []topologyVector
	}
	if err := json.Unmarshal(src, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Vectors) == 0 || len(file.Topologies) == 0 {
		t.Fatal("no vectors")
	}
	return file.Vectors, file.Topologies
}

// TestNeighbourTopologies compares random pools and roles with what the packages compile of them.
func TestNeighbourTopologies(t *testing.T) {
	_, topologies := neighbourVectors(t)
	for _, v := range topologies {
		v.check(t)
	}
	t.Logf("%d topologies", len(topologies))
}

// TestNeighbours compares with the real packages, field by field and value by value: what they accept is accepted with their
// value unless a rule of ours is stricter, and what they refuse is refused under their field.
func TestNeighbours(t *testing.T) {
	deliberate := stricterRules(t)
	used := make(map[[2]string]bool)
	var same, stricter int
	vectors, _ := neighbourVectors(t)
	for _, v := range vectors {
		spec, report := Parse(v.source(t), Options{Dialect: v.D})
		theirs := slices.DeleteFunc(slices.Clone(report.Violations), func(f rule.Violation) bool {
			key := [2]string{string(v.D), string(f.Rule)}
			used[key] = used[key] || v.OK != nil && deliberate[key] != ""
			return isOurs(f.Rule, v.D) || deliberate[key] != ""
		})
		switch {
		case v.OK == nil && report.OK() && !v.alsoAccepted():
			t.Errorf("%s %s is accepted, the package refuses %s %s", v.D, v.Put, *v.Field, v.Crash)
		case v.Field != nil && !report.OK() && !v.alsoAccepted() && !v.first(report, theirs):
			t.Errorf("%s %s: the package refuses %s, first here is %v", v.D, v.Put, *v.Field, report.Violations)
		case v.OK == nil:
			same++
		case len(theirs) > 0:
			t.Errorf("%s %s is accepted by the package, refused here: %v", v.D, v.Put, theirs)
		case !report.OK():
			stricter++
		default:
			v.compareStored(t, spec)
			same++
		}
	}
	for key, reason := range deliberate {
		if !used[key] {
			t.Errorf("the deliberate difference %v (%s) is none", key, reason)
		}
	}
	t.Logf("%d alike, %d refused by rules that are stricter on purpose", same, stricter)
}

// first reports whether the package's error is the first of the clients' errors, those that are stricter on purpose aside.
func (v neighbour) first(report rule.Report, theirs []rule.Violation) bool {
	report.ClientsFirst()
	return report.Violations[0].Field == *v.Field || len(theirs) == 0 || theirs[0].Field == *v.Field
}

func (v neighbour) compareStored(t *testing.T, spec *Spec) {
	t.Helper()
	want := []byte(*v.OK)
	if *v.OK == "" {
		want = least(t, v.D)
	}
	plain := *spec
	plain.Data.Corpus = "" // kept here, dropped by the package
	var hubs [][4]any
	for _, h := range spec.HubRefs() {
		hubs = append(hubs, [4]any{h.String(), string(h.Kind), h.Pinned(), h.Platform()})
	}
	if !slices.Equal(hubs, v.Hubs) {
		t.Errorf("%s %s: hub references %v, the package's %v", v.D, v.Put, hubs, v.Hubs)
	}
	if got := plain.Normalised(); !bytes.Equal(got, want) {
		t.Errorf("%s %s is stored as\n%s\nthe package's\n%s", v.D, v.Put, got, want)
	}
}

// least is the smallest document as it is stored; TestVectors holds it against the packages.
func least(t *testing.T, d dialect.Dialect) []byte {
	t.Helper()
	spec, report := Parse([]byte(smallest(d)), Options{Dialect: d})
	if !report.OK() {
		t.Fatal(report.Violations)
	}
	return spec.Normalised()
}

// isOurs reports whether a rule is stricter than the clients of a dialect.
func isOurs(id rule.ID, d dialect.Dialect) bool {
	info, ok := rule.Lookup(id)
	return ok && info.Ours && (len(info.OursIn) == 0 || slices.Contains(info.OursIn, d))
}
