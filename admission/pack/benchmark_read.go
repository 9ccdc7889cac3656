package pack

import (
	"fmt"
	"math/big"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/digest/tree"
)

// BenchmarkOptions say how a benchmark.yaml is read. The zero BenchmarkOptions take the dialect from the file.
type BenchmarkOptions struct {
	Policy rule.Policy
	// Dialect is the dialect to read in; "" takes the one whose schema the file names, else forge.
	Dialect dialect.Dialect
	// Name is the name of the pack, which the benchmark must have too; "" compares nothing.
	Name string
}

// ParseBenchmark reads a benchmark.yaml (packs.md 6). The report holds every violation: first those of the clients'
// own rules in the order in which the client checks, then ours. The benchmark is nil exactly when src is no YAML
// object; otherwise it holds what could be read, and only an OK report says that it is whole.
func ParseBenchmark(src []byte, opt BenchmarkOptions) (*Benchmark, rule.Report) {
	r := newBenchmarkReader(opt)
	b := r.read(src)
	return b, r.finish()
}

// ReadBenchmark reads the benchmark.yaml in the root of a pack, whose content digest is the benchmark's. Beyond
// ParseBenchmark it refuses a pack without the file. An error means that the pack's bytes could not be read.
func ReadBenchmark(t tree.Tree, opt BenchmarkOptions) (*Benchmark, rule.Report, error) {
	r := newBenchmarkReader(opt)
	src, ok, err := r.source(t, BenchmarkFile, "benchmark.file", "benchmark.limit")
	if err != nil || !ok {
		return nil, r.finish(), err
	}
	b := r.read(src)
	if b != nil {
		b.Digest = t.Listing().Content
	}
	return b, r.finish(), nil
}

// benchmarkReader carries one reading of a benchmark.yaml.
type benchmarkReader struct {
	document
	opt  BenchmarkOptions
	root *pyvalue.Value
	out  Benchmark
}

func newBenchmarkReader(opt BenchmarkOptions) *benchmarkReader {
	r := &benchmarkReader{opt: opt, document: document{file: BenchmarkFile}}
	r.report.Policy = opt.Policy
	return r
}

// read reads the document in the order in which the client does.
func (r *benchmarkReader) read(src []byte) *Benchmark {
	r.root = r.load(src, r.opt.Policy, "benchmark.limit", "benchmark.root")
	if r.root == nil {
		return nil
	}
	r.schema()
	r.name()
	r.runner()
	r.suites()
	r.metrics()
	r.rubric()
	r.keywords()
	r.out.I18n = r.translations("benchmark.i18n", "i18n", r.root.Get("i18n"), []string{"title", "summary"})
	r.displayTexts()
	r.out.NumFewshot = r.integer("num_fewshot")
	r.out.Limit = r.integer("limit")
	if r.opt.Name != "" && r.out.Name != "" && r.out.Name != r.opt.Name {
		r.fault("benchmark.name.pack", "", r.root.Get("name"), "the benchmark is named %.100q and the pack %.100q: expected one name", r.out.Name, r.opt.Name)
	}
	r.ignoredKeys("benchmark.ignored", r.root, benchmarkKeys)
	return &r.out
}

// benchmarkKeys are the keys of the document that the client reads.
var benchmarkKeys = []string{
	"schema", "name", "runner", "suites", "metrics", "rubric", "num_fewshot", "limit", "batch_size", "extra_args", "category", "keywords", "title", "summary", "i18n",
	"source", "owner", "digest", "id",
}

// lacking files that a required field is absent or empty, with the key that was probably meant as the hint.
func (r *benchmarkReader) lacking(id rule.ID, field, expected string) {
	v := or(r.root.Get(field), r.root)
	out := rule.Violation{Rule: id, Field: field, File: r.file, Line: v.Line, Column: v.Column, Message: fmt.Sprintf("found %s, expected %s", found(r.root.Get(field)), expected)}
	if like := lookAlike(r.root, field, benchmarkKeys); like != "" {
		out.Hint = hintRename(like, field)
	}
	r.add(out)
}

func benchmarkSchema(n dialect.Names) string { return n.BenchmarkSchema }

// schema settles the dialect and checks that the document names its schema.
func (r *benchmarkReader) schema() {
	r.out.Schema = r.root.Get("schema").TextOf()
	d := r.opt.Dialect
	if d == "" {
		var ok bool
		if d, ok = dialect.Detect(r.out.Schema, benchmarkSchema); !ok {
			d = dialect.Forge
		}
	}
	r.dialect, r.out.Dialect, r.report.Dialect = d, d, d
	if want := d.Names().BenchmarkSchema; r.out.Schema != want {
		r.lacking("benchmark.schema", "schema", want)
	}
}

func (r *benchmarkReader) name() {
	s := r.text(r.root, "name")
	if s == "" {
		r.lacking("benchmark.name", "name", segmentRule)
		return
	}
	r.out.Name, _ = r.segment("benchmark.name", "name", s, r.root.Get("name"))
}

func (r *benchmarkReader) runner() {
	if r.out.Runner = r.root.Get("runner").TextOf(); r.out.Runner == "" {
		r.lacking("benchmark.runner", "runner", "a runner such as lm-eval, evalscope, judge, rtl or safety")
	}
}

func (r *benchmarkReader) suites() {
	items, ok := r.sequence("benchmark.suites", "suites", r.root.Get("suites"))
	r.out.Suites = texts(items)
	if ok && len(r.out.Suites) == 0 {
		r.lacking("benchmark.suites", "suites", "a list of at least one suite")
	}
}

func (r *benchmarkReader) metrics() {
	items, ok := r.sequence("benchmark.metrics", "metrics", r.root.Get("metrics"))
	primaries := 0
	for i, it := range items {
		m, read := r.metric(fmt.Sprintf("metrics[%d]", i), it)
		if read {
			r.out.Metrics = append(r.out.Metrics, m)
		}
		if m.Primary {
			primaries++
		}
	}
	switch {
	case ok && len(items) == 0:
		r.lacking("benchmark.metrics", "metrics", "a list of at least one metric")
	case primaries > 1:
		r.fault("benchmark.metrics", "metrics", r.root.Get("metrics"), "%d metrics are primary, expected one at most", primaries)
	}
}

func (r *benchmarkReader) metric(field string, v *pyvalue.Value) (m BenchmarkMetric, ok bool) {
	const id = "benchmark.metrics"
	if _, ok := r.object(id, field, v, v); !ok {
		return m, false
	}
	m = BenchmarkMetric{Key: v.Get("key").TextOf(), Label: v.Get("label").TextOf(), Direction: "higher", Ratio: true, Primary: v.Get("primary").Truthy()}
	if m.Key == "" {
		r.fault(id, field+".key", or(v.Get("key"), v), "found %s, expected the name of the metric in the runner's output", found(v.Get("key")))
	}
	if m.Label == "" {
		m.Label = m.Key
	}
	if d := v.Get("direction"); d.Truthy() {
		m.Direction = d.TextOf()
	}
	if !oneOf(m.Direction, metricDirections) {
		r.fault(id, field+".direction", v.Get("direction"), "found %.100q, expected one of %s", m.Direction, quoteList(metricDirections))
	}
	if ratio := v.Get("ratio"); ratio != nil {
		m.Ratio = ratio.Truthy()
	}
	m.I18n = r.translations("benchmark.i18n", field+".i18n", v.Get("i18n"), []string{"label"})
	return m, true
}

func (r *benchmarkReader) rubric() {
	r.out.Rubric = r.root.Get("rubric").TextOf()
	if r.out.Runner == "judge" && r.out.Rubric == "" {
		r.lacking("benchmark.rubric", "rubric", "the rubric by which the judge decides, as <owner>/<name>")
	}
}

func (r *benchmarkReader) keywords() {
	v := r.root.Get("keywords")
	items, ok := iterated(v)
	if !ok {
		r.fault("benchmark.list", "", v, "keywords is %s, expected a list of texts", found(v))
	}
	r.out.Keywords = []string{}
	seen := make(map[string]bool)
	for _, word := range texts(items) {
		if word = pyvalue.Lower(word); !seen[word] {
			seen[word] = true
			r.out.Keywords = append(r.out.Keywords, word)
		}
	}
	if v != nil && v.Kind == pyvalue.Str && len(r.out.Keywords) > 1 {
		r.fault("benchmark.letters", "keywords", v, "the text %.100q is read as the list of its letters", v.Text)
	}
}

// displayTexts reads the texts that have a default.
func (r *benchmarkReader) displayTexts() {
	r.out.Title, r.out.Summary = r.root.Get("title").TextOf(), r.root.Get("summary").TextOf()
	if r.out.Title == "" {
		r.out.Title = r.out.Name
	}
	r.out.ExtraArgs = r.root.Get("extra_args").TextOf()
	r.out.BatchSize = r.textOr("batch_size", "auto")
	r.out.Category = r.textOr("category", "general")
}

// textOr is str(v or fallback).strip(): a text of white space alone is empty, not the fallback.
func (r *benchmarkReader) textOr(field, fallback string) string {
	if v := r.root.Get(field); v.Truthy() {
		return v.TextOf()
	}
	return fallback
}

// integer is Python's int() of a field, nil when it is absent or null.
func (r *benchmarkReader) integer(field string) *big.Int {
	v := r.root.Get(field)
	if isNone(v) {
		return nil
	}
	n, ok := pyvalue.ParseInt(v)
	if !ok {
		r.fault("benchmark.integer", "", v, "%s is %s, expected an integer", field, found(v))
	}
	return n
}
