package catalogue

import (
	"fmt"
	"slices"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/admission/name"
	"github.com/gatehouse-registry/gatehouse/admission/pep440"
	"github.com/gatehouse-registry/gatehouse/admission/pyjson"
	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/digest"
)

// Bounds of a snapshot. A client release carries some fifty recipes.
const (
	maxRecipes    = 2000
	maxBundled    = 2000
	maxVariants   = 200
	maxNames      = 200 // roles, actions and the like of one recipe
	maxBenchmarks = 2000
)

// ParseSnapshot reads what an administrator took from an installed client release:
//
//	{"recipes": [row as in Answer...], "bundled_plugins": [{"id","version","digest","hooks"}...], "benchmarks": [...]}
//
// A row may have a key "gatehouse" with what else is known of the recipe, as Encode writes it; without it the facts of the
// shipped recipe with the same digest count. Keys that no client looks at are passed over. The catalogue is nil when the
// report refuses. The rules are catalogue.snapshot and json.*.
func ParseSnapshot(src []byte, d dialect.Dialect, release string) (*Catalogue, rule.Report) {
	doc, report := pyjson.Load(src, pyjson.Options{MaxBytes: limit.JSONBody})
	s := &snapshot{report: &report, dialect: d}
	if _, err := pep440.ParseVersion(release); err != nil {
		s.bad("release", "found the client release %.100q, expected a version such as %s", release, DefaultRelease(d))
	}
	if doc == nil || !s.object(doc, "<root>") {
		return nil, report
	}
	var entries []Entry
	seen := make(map[string]bool)
	for i, v := range s.list(doc.Get("recipes"), "recipes", maxRecipes) {
		field := fmt.Sprintf("recipes[%d]", i)
		e := s.entry(v, field)
		if e.Name != "" && seen[e.Name] {
			s.bad(field+".name", "the recipe %.100q is listed twice", e.Name)
		}
		seen[e.Name] = true
		entries = append(entries, e)
	}
	var bundled []Bundled
	for i, v := range s.list(doc.Get("bundled_plugins"), "bundled_plugins", maxBundled) {
		bundled = append(bundled, s.bundled(v, fmt.Sprintf("bundled_plugins[%d]", i)))
	}
	var benchmarks []Benchmark
	for i, v := range s.list(doc.Get("benchmarks"), "benchmarks", maxBenchmarks) {
		benchmarks = append(benchmarks, s.benchmark(v, fmt.Sprintf("benchmarks[%d]", i)))
	}
	if len(entries) == 0 && report.OK() {
		s.bad("recipes", "found no recipe, expected at least one: an empty catalogue would stop every submission")
	}
	if !report.OK() {
		return nil, report
	}
	c := New(d, release, integrated(entries, bundled), bundled)
	c.benchmarks = benchmarks
	return c, report
}

// integrated names the framework integration of each shipped recipe, where the release ships one (packs.md 5.5).
func integrated(entries []Entry, bundled []Bundled) []Entry {
	for i, e := range entries {
		id := integrationID(e.Framework)
		if slices.ContainsFunc(bundled, func(b Bundled) bool { return b.ID == id }) {
			entries[i].Integration = id
		}
	}
	return entries
}

// snapshot reads with one report.
type snapshot struct {
	report  *rule.Report
	dialect dialect.Dialect
}

// maxProblems bounds what one report lists.
const maxProblems = 100

func (s *snapshot) bad(field, format string, args ...any) {
	if len(s.report.Violations) < maxProblems {
		s.report.Add(rule.Violation{Rule: "catalogue.snapshot", Field: field, Message: fmt.Sprintf(format, args...)})
	}
}

func (s *snapshot) object(v *pyvalue.Value, field string) bool {
	if v == nil || v.Kind != pyvalue.Map {
		s.bad(field, "found %s, expected an object", v.TypeName())
		return false
	}
	return true
}

// list reads an array of at most most entries. Absent and null are empty.
func (s *snapshot) list(v *pyvalue.Value, field string, most int) []*pyvalue.Value {
	switch {
	case v == nil || v.Kind == pyvalue.None:
		return nil
	case v.Kind != pyvalue.List:
		s.bad(field, "found %s, expected an array", v.TypeName())
		return nil
	case len(v.List) > most:
		s.bad(field, "found %d entries, expected at most %d", len(v.List), most)
		return nil
	}
	return v.List
}

// text reads a text of at most limit.Path bytes; ok checks it further.
func (s *snapshot) text(v *pyvalue.Value, field, want string, ok func(string) bool) string {
	if v == nil || v.Kind != pyvalue.Str || len(v.Text) > limit.Path || !ok(v.Text) {
		found := v.TypeName()
		if v != nil && v.Kind == pyvalue.Str {
			found = fmt.Sprintf("%.100q", v.Text)
		}
		s.bad(field, "found %s, expected %s", found, want)
		return ""
	}
	return v.Text
}

func (s *snapshot) entry(v *pyvalue.Value, field string) Entry {
	if !s.object(v, field) {
		return Entry{}
	}
	e := Entry{
		Name:      s.text(v.Get("name"), field+".name", "<framework>/<method>", isRecipeID),
		Version:   s.text(v.Get("version"), field+".version", "a version", notEmpty),
		Digest:    s.text(v.Get("digest"), field+".digest", "sha256:<64 hex digits>", isSHA256),
		Framework: s.text(v.Get("framework"), field+".framework", "a framework's name", name.IsSegment),
	}
	e.Adapter = s.optional(v.Get("adapter"), field+".adapter", e.Framework, name.IsSegment)
	e.CoreRequires = s.optional(v.Get("core_requires"), field+".core_requires", "", isRange)
	s.variants(&e, v, field)
	e.DefaultVersion = s.optional(v.Get("framework_version"), field+".framework_version", "", notEmpty)
	if _, ok := e.Variant(e.DefaultVersion); !ok && len(e.Versions) > 0 {
		e.DefaultVersion = e.Versions[0].Version
	}
	if facts := v.Get("gatehouse"); facts != nil {
		s.facts(&e, facts, field+".gatehouse")
		return e
	}
	return withFacts(s.dialect, e)
}

// optional is text with a default for what is absent, null or empty.
func (s *snapshot) optional(v *pyvalue.Value, field, def string, ok func(string) bool) string {
	if v == nil || v.Kind == pyvalue.None || (v.Kind == pyvalue.Str && v.Text == "") {
		return def
	}
	return s.text(v, field, "a text as the clients write it", ok)
}

// variants reads the supported framework versions in their order, with the runtime id of each.
func (s *snapshot) variants(e *Entry, v *pyvalue.Value, field string) {
	runtimes := v.Get("runtime").Get("versions")
	for i, version := range s.list(v.Get("supported_framework_versions"), field+".supported_framework_versions", maxVariants) {
		at := fmt.Sprintf("%s.supported_framework_versions[%d]", field, i)
		text := s.text(version, at, "a version", notEmpty)
		if text == "" {
			continue
		}
		runtime := runtimes.Get(text)
		if runtime == nil || runtime.Kind != pyvalue.Map {
			s.bad(field+".runtime.versions", "has no object for the supported version %.100q", text)
			continue
		}
		id := s.optional(runtime.Get("runtime_id"), at+".runtime_id", "", name.IsSegment)
		if _, twice := e.Variant(text); twice {
			s.bad(at, "the version %.100q is listed twice", text)
			continue
		}
		variant := Variant{Version: text, RuntimeID: id}
		if runtime.Get("status").TextOf() == Deprecated {
			variant.Status = Deprecated
			variant.Sunset = s.optional(runtime.Get("sunset"), at+".sunset", "", notEmpty)
		}
		if v := runtime.Get("entrypoint"); v != nil && v.Kind == pyvalue.Map {
			variant.Entrypoint = s.entrypoint(v, at+".entrypoint")
		}
		e.Versions = append(e.Versions, variant)
	}
	if len(e.Versions) == 0 {
		s.bad(field+".supported_framework_versions", "found none, expected at least one version")
	}
}

func (s *snapshot) bundled(v *pyvalue.Value, field string) Bundled {
	if !s.object(v, field) {
		return Bundled{}
	}
	return Bundled{
		ID:      s.text(v.Get("id"), field+".id", "<owner>/<name>", isRecipeID),
		Version: s.text(v.Get("version"), field+".version", "a version", name.IsSegment),
		Digest:  s.text(v.Get("digest"), field+".digest", "sha256:<64 hex digits>", isSHA256),
		Hooks:   s.hooks(v.Get("hooks"), field+".hooks"),
	}
}

// hooks may be absent: snapshots of older programs lack them.
func (s *snapshot) hooks(v *pyvalue.Value, field string) *Hooks {
	if v == nil || v.Kind == pyvalue.None || !s.object(v, field) {
		return nil
	}
	flag := func(key string) bool {
		b := v.Get(key)
		if b == nil || b.Kind != pyvalue.Bool {
			s.bad(field+"."+key, "found %s, expected true or false", b.TypeName())
			return false
		}
		return b.Bool
	}
	return &Hooks{Algorithms: flag("algorithms"), DataPrepJobs: flag("data_prep_jobs")}
}

func notEmpty(s string) bool { return s != "" && s == pyvalue.Strip(s) }

// isRecipeID reports whether s is two names with a slash between, as ids of recipes and of packs are.
func isRecipeID(s string) bool {
	id, err := name.RecipeID(s, "")
	if err != nil || id != s {
		return false
	}
	f := framework(s)
	return name.IsSegment(f) && name.IsSegment(s[len(f)+1:])
}

func isSHA256(s string) bool {
	d, err := digest.Parse(s)
	return err == nil && d.Algorithm() == digest.SHA256
}

func isRange(s string) bool {
	_, err := pep440.ParseSpecifierSet(s)
	return err == nil
}
