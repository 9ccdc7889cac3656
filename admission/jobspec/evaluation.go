package jobspec

import (
	"fmt"
	"strings"

	"github.com/gatehouse-registry/gatehouse/admission/nearest"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
)

// hyperparams keeps any JSON; what the recipe says about it only a server knows.
func (r *reader) hyperparams(n node) {
	if m, ok := r.object(n, secFree, "job.hyperparams.object"); ok && !m.empty() {
		r.spec.Hyperparams = m.v
	}
}

// lifecycle reads spec.lifecycle.
func (r *reader) lifecycle(n node) {
	if m, ok := r.object(n, secLifecycle, "job.lifecycle.object"); ok {
		r.spec.OnSuccess, _ = r.names(m.get("on_success"), "job.lifecycle.on_success.array", "job.lifecycle.on_success.segment", true)
	}
}

// evaluation reads spec.evaluation: suites, gates, limit, and in tuneplane on_checkpoint.
func (r *reader) evaluation(n node) {
	m, ok := r.object(n, secEvaluation, "job.evaluation.object")
	if !ok || m.empty() {
		return
	}
	out := &r.spec.Evaluation
	suites, whole := r.suites(m.get("suites"), "job.evaluation.suites.array", "job.evaluation.suites.segment")
	out.Suites = suites
	r.gates(m, whole)
	out.Limit, _ = r.optional(m.get("limit"), "job.evaluation.limit.positive", 1, 0, "a whole number above 0")
	out.Runner = r.loose(m.get("runner"))
	out.Baseline = r.loose(m.get("baseline"))
	if r.tunePlane() {
		r.onCheckpoint(m.get("on_checkpoint"), whole)
	}
}

// suites reads a list of benchmarks; blanks and repeats are dropped.
func (r *reader) suites(n node, array, segment rule.ID) ([]string, bool) {
	names, ok := r.names(n, array, segment, true)
	var suites []string
	seen := make(map[string]bool)
	for _, name := range names {
		if !seen[name] {
			seen[name] = true
			suites = append(suites, name)
		}
	}
	return suites, ok
}

// gates reads every gate, then compares them with the suites. Without whole suites nothing can be said about those.
func (r *reader) gates(m node, suites bool) {
	n := m.get("gates")
	list, ok := r.list(n, "job.evaluation.gates.array", "objects")
	if !ok || len(list) == 0 {
		return
	}
	var metrics []node
	for i, v := range list {
		if gate, metric, ok := r.gate(n.item(i, v)); ok {
			r.spec.Evaluation.Gates = append(r.spec.Evaluation.Gates, gate)
			metrics = append(metrics, metric)
		}
	}
	names := r.spec.Evaluation.Suites
	if suites && len(names) == 0 {
		r.bad(m.get("suites"), "job.evaluation.gates.suites_required", "found no suites, expected the benchmarks that the gates judge")
		return
	}
	if !suites {
		return
	}
	known := make(map[string]bool, len(names))
	for _, name := range names {
		known[name] = true
	}
	for i, gate := range r.spec.Evaluation.Gates {
		if benchmark, _, _ := strings.Cut(gate.Metric, "/"); !known[benchmark] {
			r.otherSuite(metrics[i], benchmark, names)
		}
	}
}

// maxNamed is how many names of a document are looked through for one that a message shows: a million bytes hold enough of them
// to keep a core busy for minutes when each is compared with each.
const maxNamed = 100

// otherSuite says that a gate judges a benchmark that does not run. Where a suite is spelled nearly so, either of the two may
// be the wrong one.
func (r *reader) otherSuite(n node, benchmark string, suites []string) {
	suites = suites[:min(len(suites), maxNamed)]
	message := fmt.Sprintf("found the benchmark %.100q, expected one of the suites (%.200s)", benchmark, strings.Join(suites, ", "))
	hint, near := "", ""
	if len(r.report.Violations) < maxNamed { // who has so many does not mend them one by one
		near = nearest.Word(benchmark, suites)
	}
	if near != "" {
		message += fmt.Sprintf("; the metric says %.100q and the suite %.100q, one of which is misspelled", benchmark, near)
		hint = "Write the benchmark's name in the metric and in suites alike, as the catalogue spells it."
	}
	r.badWith(n, "job.evaluation.gate.metric.suite", hint, "%s", message)
}

// gate reads one gate; ok says that its metric could be read.
func (r *reader) gate(n node) (gate Gate, metric node, ok bool) {
	m, ok := r.object(n, secGate, "job.evaluation.gate.object")
	if !ok {
		return gate, metric, false
	}
	metric = m.get("metric")
	if gate.Metric, ok = r.required(metric, "job.evaluation.gate.metric.required", "job.evaluation.gate.metric.type"); ok {
		gate.Metric, ok = r.metric(metric, gate.Metric)
	}
	typed := true
	for _, bound := range []struct {
		key string
		to  **float64
	}{{"min", &gate.Min}, {"max", &gate.Max}, {"max_regression", &gate.MaxRegression}} {
		value, isNumber := r.number(m.get(bound.key), "job.evaluation.gate.bound.type")
		*bound.to, typed = value, typed && isNumber
	}
	if typed && gate.Min == nil && gate.Max == nil && gate.MaxRegression == nil {
		r.bad(n, "job.evaluation.gate.bound.missing", "found no bound, expected min, max or max_regression")
	}
	if v := gate.MaxRegression; v != nil && *v < 0 {
		r.expected(m.get("max_regression"), "job.evaluation.gate.regression.negative", "a number of at least 0")
	}
	return gate, metric, ok
}

// metric completes a bare key when there is exactly one suite that it can mean (jobspec.md 10).
func (r *reader) metric(n node, text string) (string, bool) {
	if strings.Contains(text, "/") {
		return text, true
	}
	if suites := r.spec.Evaluation.Suites; text != "" && len(suites) == 1 {
		return suites[0] + "/" + text, true
	}
	r.bad(n, "job.evaluation.gate.metric.format", "found %.100q, expected <benchmark>/<key>, such as gsm8k/exact_match", text)
	return "", false
}

// onCheckpoint reads spec.evaluation.on_checkpoint.
func (r *reader) onCheckpoint(n node, suites bool) {
	m, ok := r.object(n, secOnCheckpoint, "job.evaluation.on_checkpoint.object")
	if !ok || m.empty() {
		return
	}
	out := &OnCheckpoint{}
	every := m.get("every_steps")
	if every.null() {
		r.missing(every, "job.evaluation.on_checkpoint.every_steps")
	}
	own, whole := r.suites(m.get("suites"), "job.evaluation.on_checkpoint.suites", "job.evaluation.on_checkpoint.suites")
	out.Suites = own
	if len(own) == 0 && whole {
		out.Suites = r.spec.Evaluation.Suites
		if len(out.Suites) == 0 && suites {
			r.bad(m.get("suites"), "job.evaluation.on_checkpoint.suites", "found no suites here or in evaluation, expected the benchmarks to run")
		}
	}
	out.WarmupSteps, _ = r.optional(m.get("warmup_steps"), "job.evaluation.on_checkpoint.warmup_steps", 0, 0, "a whole number of at least 0")
	fleet := m.get("fleet")
	if text := r.loose(fleet); text != "" && r.segment(fleet, text, "job.evaluation.on_checkpoint.fleet") {
		out.Fleet = text
	}
	if !every.null() {
		out.EverySteps, _ = r.positive(every, "job.evaluation.on_checkpoint.every_steps", 0)
	}
	out.Limit, _ = r.optional(m.get("limit"), "job.evaluation.on_checkpoint.limit", 1, 0, "a whole number above 0")
	out.Repetitions, _ = r.optional(m.get("repetitions"), "job.evaluation.on_checkpoint.repetitions", 1, 1, "a whole number above 0")
	r.spec.Evaluation.OnCheckpoint = out
}
