package suite

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
	"github.com/gatehouse-registry/gatehouse/admission/pyyaml"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
)

var (
	dataFormats    = []string{"messages", "prompt_completion", "preference", "fim", "repo_context", "spec_rtl", "testbench", "log_root_cause", "script"}
	directions     = []string{"higher", "lower"}
	solutionFields = []string{"schema", "name", "title", "summary", "recipe", "environment", "benchmarks", "rubric", "toolchain", "data_format", "acceptance", "template", "keywords"}
)

// ParseSolution reads a solution.yaml. The solution is nil exactly when src is no YAML object; only an OK report says that
// it is whole.
func ParseSolution(src []byte, opt SolutionOptions) (*Solution, rule.Report) {
	r := &solutionReader{findings: findings{file: SolutionFile, report: rule.Report{Policy: opt.Policy, Dialect: dialect.TunePlane}}}
	if len(src) > limit.Document {
		r.fault("solution.limit", "", nil, "the file has %d bytes, at most %d are allowed", len(src), limit.Document)
		return nil, r.finish()
	}
	root, report := pyyaml.Load(src, pyyaml.Options{File: SolutionFile, Policy: opt.Policy})
	r.report.Merge(report)
	if root == nil {
		return nil, r.finish()
	}
	if !root.Truthy() {
		root = &pyvalue.Value{Kind: pyvalue.Map, Line: 1, Column: 1}
	}
	if !isMap(root) {
		r.fault("solution.root", "", root, "the file holds %s, expected an object of fields such as `name: …`", found(root))
		return nil, r.finish()
	}
	r.root = root
	r.read(opt)
	return &r.out, r.finish()
}

// solutionReader carries one reading of a solution.yaml.
type solutionReader struct {
	findings
	root *pyvalue.Value
	out  Solution
}

func (r *solutionReader) read(opt SolutionOptions) {
	s := &r.out
	s.Schema = r.text("schema")
	switch {
	case s.Schema == "":
		r.fault("solution.missing", "schema", or(r.root.Get("schema"), r.root), "the field is required: write schema: %s", SolutionSchema)
	case s.Schema != SolutionSchema:
		r.fault("solution.schema", "schema", r.root.Get("schema"), "found the schema %.100q, expected %s", s.Schema, SolutionSchema)
	}
	r.benchmarks()
	s.Name, s.Title, s.Summary = r.text("name"), r.text("title"), r.text("summary")
	for _, need := range []struct{ field, text string }{{"name", s.Name}, {"title", s.Title}} {
		if need.text == "" {
			r.fault("solution.missing", need.field, or(r.root.Get(need.field), r.root), "the field is required: found %s", found(r.root.Get(need.field)))
		}
	}
	if s.Name != "" && opt.Name != "" && s.Name != opt.Name {
		r.fault("solution.name", "name", r.root.Get("name"), "found %.100q in the folder %.100q: the two are the same", s.Name, opt.Name)
	}
	s.Recipe, s.Environment, s.Rubric, s.Toolchain = r.text("recipe"), r.text("environment"), r.text("rubric"), r.text("toolchain")
	r.acceptance()
	if s.Template = r.text("template"); s.Template == "template" {
		s.Template = ""
	}
	r.keywords()
	if s.Recipe == "" && s.Environment == "" {
		r.fault("solution.start", "recipe", r.root, "found neither a recipe nor an environment: nothing says what a user starts from")
	}
	if s.DataFormat = r.text("data_format"); s.DataFormat != "" && !slices.Contains(dataFormats, pyvalue.Lower(s.DataFormat)) {
		r.fault("solution.data_format", "data_format", r.root.Get("data_format"), "found %.100q, expected %s", s.DataFormat, oneOf(dataFormats))
	}
	r.ignored("solution.ignored", r.root, solutionFields)
}

func (r *solutionReader) text(field string) string { return r.root.Get(field).TextOf() }

func (r *solutionReader) benchmarks() {
	v := r.root.Get("benchmarks")
	if v.Truthy() && (v == nil || v.Kind != pyvalue.List) {
		r.fault("solution.benchmarks", "benchmarks", v, "found %s, expected a list of benchmarks", found(v))
		return
	}
	if v.Truthy() {
		r.out.Benchmarks = texts(v.List)
	}
}

// keywords are what a Python loop over the value takes: of a text its letters, of an object its keys.
func (r *solutionReader) keywords() {
	v := r.root.Get("keywords")
	if !v.Truthy() {
		return
	}
	switch v.Kind {
	case pyvalue.List, pyvalue.Tuple, pyvalue.Set:
		r.out.Keywords = texts(v.List)
	case pyvalue.Map:
		var keys []*pyvalue.Value
		for _, it := range v.Items {
			keys = append(keys, it.Key)
		}
		r.out.Keywords = texts(keys)
	case pyvalue.Str:
		var letters []*pyvalue.Value
		for s := v.Text; s != ""; {
			_, n := pyvalue.DecodeRune(s)
			letters = append(letters, pyvalue.NewStr(s[:n]))
			s = s[n:]
		}
		r.out.Keywords = texts(letters)
		r.fault("solution.letters", "keywords", v, "the text %.100q is read as the list of its letters", v.Text)
	default:
		r.fault("solution.keywords", "keywords", v, "found %s, expected a list of words", found(v))
	}
}

// texts are str(item).strip() of the items, without the empty ones.
func texts(items []*pyvalue.Value) []string {
	var all []string
	for _, it := range items {
		if s := pyvalue.Strip(it.PyStr()); s != "" {
			all = append(all, s)
		}
	}
	return all
}

func (r *solutionReader) acceptance() {
	v := r.root.Get("acceptance")
	a := &r.out.Acceptance
	a.Baseline, a.HumanReview = "prompt", true
	if !v.Truthy() {
		return
	}
	if !isMap(v) {
		r.fault("solution.acceptance", "acceptance", v, "found %s, expected an object", found(v))
		return
	}
	metrics := v.Get("metrics")
	if metrics.Truthy() && metrics.Kind != pyvalue.List {
		r.fault("solution.acceptance.metrics", "acceptance.metrics", metrics, "found %s, expected a list of {key, min_delta, direction}", found(metrics))
	}
	r.sampleMin(v.Get("sample_min"))
	if b := v.Get("baseline"); b.Truthy() {
		a.Baseline = b.TextOf()
	}
	if metrics.Truthy() && metrics.Kind == pyvalue.List {
		for i, m := range metrics.List {
			r.metric(fmt.Sprintf("acceptance.metrics[%d]", i), m)
		}
	}
	a.SplitBy = v.Get("split_by").TextOf()
	if review := v.Get("human_review"); review != nil {
		a.HumanReview = review.Truthy()
	}
}

func (r *solutionReader) sampleMin(v *pyvalue.Value) {
	const field = "acceptance.sample_min"
	if !v.Truthy() {
		return
	}
	n, ok := pyvalue.ParseInt(v)
	switch {
	case !ok:
		r.fault("solution.acceptance.sample_min", field, v, "found %s, expected a whole number", found(v))
	case n.Sign() < 0:
		r.fault("solution.acceptance.sample_min", field, v, "found %.40s, expected 0 or more", n.String())
	case n.Sign() > 0:
		r.out.Acceptance.SampleMin = n
	}
}

func (r *solutionReader) metric(field string, v *pyvalue.Value) {
	const id = "solution.acceptance.metrics"
	if !isMap(v) {
		r.fault(id, field, v, "found %s, expected an object {key, min_delta, direction}", found(v))
		return
	}
	m := MetricTarget{Key: v.Get("key").TextOf()}
	if m.Key == "" {
		r.fault(id, field+".key", or(v.Get("key"), v), "found %s, expected the metric's name", found(v.Get("key")))
	}
	if d := v.Get("direction"); d.Truthy() {
		if m.Direction = pyvalue.Lower(d.TextOf()); !slices.Contains(directions, m.Direction) {
			r.fault(id, field+".direction", d, "found %.100q, expected %s", m.Direction, oneOf(directions))
		}
		if m.Direction == directions[0] {
			m.Direction = ""
		}
	}
	if d := v.Get("min_delta"); d.Truthy() {
		f, ok := pyFloat(d)
		switch {
		case !ok:
			r.fault(id, field+".min_delta", d, "found %s, expected a number", found(d))
		case f < 0:
			r.fault(id, field+".min_delta", d, "found %s, expected 0 or more: direction: lower is for a metric where less is better", pyvalue.FloatText(f))
		}
		m.MinDelta = target(f)
	}
	r.out.Acceptance.Metrics = append(r.out.Acceptance.Metrics, m)
}

// pyFloat is Python's float(v): texts are read, truth values are 0 and 1; not ok where it would raise.
func pyFloat(v *pyvalue.Value) (float64, bool) {
	switch v.Kind {
	case pyvalue.Float:
		return v.Float, true
	case pyvalue.Bool:
		if v.Bool {
			return 1, true
		}
		return 0, true
	case pyvalue.Int:
		f, _ := new(big.Float).SetInt(v.Int).Float64()
		return f, !math.IsInf(f, 0)
	case pyvalue.Str:
		text := pyvalue.Strip(v.Text)
		if strings.ContainsAny(text, "xXpP") || strings.HasPrefix(text, "_") || strings.HasSuffix(text, "_") || strings.Contains(text, "__") {
			return 0, false
		}
		f, err := strconv.ParseFloat(strings.ReplaceAll(text, "_", ""), 64)
		return f, err == nil || math.IsInf(f, 0)
	}
	return 0, false
}
