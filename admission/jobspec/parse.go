package jobspec

import (
	"strconv"
	"strings"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/pyjson"
	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
)

// Options say how to read a document. The zero Options find the dialect from apiVersion.
type Options struct {
	Dialect dialect.Dialect // the dialect of whoever asks; "" takes the document's own
	Policy  rule.Policy
	File    string // Violation.File
	Account string // an owner equal to it in the document needs no warning
	Stored  bool   // the document is what a server stored: it filled in the owner
}

// jsonRules are the rules under which the JSON reader files what it finds.
var jsonRules = pyjson.Rules{
	Syntax: "job.json.syntax", Encoding: "job.json.syntax", Constant: "job.json.syntax",
	Limit: "job.json.limit", Duplicate: "job.json.duplicate_key", Number: "job.json.number",
	Depth: "job.json.depth", String: "job.json.string",
}

// Parse reads a JobSpec of at most limit.Document bytes. The spec is nil when there is no object to read; otherwise
// it holds what could be read, whatever the report says.
func Parse(src []byte, opt Options) (*Spec, rule.Report) {
	doc, report := pyjson.Load(src, pyjson.Options{Policy: opt.Policy, File: opt.File, Rules: jsonRules})
	if doc == nil {
		report.Dialect = opt.Dialect
		return nil, report
	}
	return Decode(doc, opt, report)
}

// Decode is Parse for a document that is read already; report is what reading it found.
func Decode(doc *pyvalue.Value, opt Options, report rule.Report) (*Spec, rule.Report) {
	d := opt.Dialect
	if d == "" {
		d = Detect(doc)
	}
	report.Dialect = d
	r := &reader{d: d, opt: opt, report: &report, spec: &Spec{Dialect: d, doc: doc}}
	root := node{v: doc, line: doc.Line, column: doc.Column}
	scan := scanTree(root)
	r.addAll(scan.numbers)
	if !r.document(root) {
		return nil, report
	}
	r.unknownKeys()
	r.addAll(scan.secrets)
	r.overflow()
	return r.spec, report
}

// Detect is the dialect that a document's apiVersion names, or comes nearest to.
func Detect(doc *pyvalue.Value) dialect.Dialect {
	version := doc.Get("apiVersion").TextOf()
	if d, ok := dialectOf(version); ok {
		return d
	}
	if family, _, _ := strings.Cut(strings.ToLower(version), "/"); strings.HasPrefix(family, "tune") {
		return dialect.TunePlane
	}
	return dialect.Forge
}

func dialectOf(version string) (dialect.Dialect, bool) {
	return dialect.Detect(version, func(n dialect.Names) string { return n.JobSpec })
}

// document reads the root. It reports whether there is an object at all.
func (r *reader) document(root node) bool {
	root, ok := r.object(root, secRoot, "job.root.object")
	if !ok {
		return false
	}
	r.sections(root, "job.root.required", "apiVersion", "kind", "metadata", "spec", "provenance")
	if !r.version(root.get("apiVersion")) {
		r.kind(root.get("kind"))
		r.opened = nil
		return true
	}
	r.kind(root.get("kind"))
	for _, section := range []struct {
		key  string
		read func(node)
	}{{"metadata", r.metadata}, {"spec", r.body}, {"provenance", r.provenance}} {
		if n := root.get(section.key); !n.absent() {
			section.read(n)
		}
	}
	return true
}

// shapes show what the required sections look like.
var shapes = map[string]string{
	"kind": `"TrainingJob"`, "metadata": `{"name": ...}`, "spec": `{"recipe": ..., "source": ..., "framework": ..., "resources": ...}`,
	"provenance": `{"core_version": ...}`, "recipe": `{"name": "<framework>/<method>", "version": ..., "digest": "sha256:..."}`,
	"source": `{"exp": "experiments/<name>"}`, "framework": `{"kind": ..., "version": ..., "runtime_id": ...}`,
	"resources": `{"pools": [{"name": "all", "nodes": 1, "gpus_per_node": 8}]}`,
}

// sections files the required keys that an object lacks.
func (r *reader) sections(n node, id rule.ID, keys ...string) {
	for _, key := range keys {
		c := n.get(key)
		if !c.absent() {
			continue
		}
		shape := shapes[key]
		if key == "apiVersion" {
			shape = strconv.Quote(r.d.Names().JobSpec)
		}
		r.bad(c, id, "the required field is missing, expected %s", shape)
	}
}

// version reads apiVersion. It reports false for a document of the other dialect: none of this dialect's further
// rules would say anything useful about it.
func (r *reader) version(n node) bool {
	text, ok := r.exact(n, "job.apiversion.type")
	if !ok || text == r.d.Names().JobSpec {
		return true
	}
	r.bad(n, "job.apiversion.value", "found %.100q, expected %q", text, r.d.Names().JobSpec)
	other, known := dialectOf(text)
	return !known || other == r.d
}

func (r *reader) kind(n node) {
	if text, ok := r.exact(n, "job.kind.type"); ok && text != Kind {
		r.bad(n, "job.kind.value", "found %.100q, expected %q", text, Kind)
	}
}

// exact reads a required text that is not trimmed. An absent key is reported elsewhere.
func (r *reader) exact(n node, id rule.ID) (string, bool) {
	if n.absent() {
		return "", false
	}
	if n.null() {
		r.missing(n, id)
		return "", false
	}
	if n.v.Kind != pyvalue.Str {
		r.expected(n, id, "a string")
		return "", false
	}
	return n.v.Text, true
}

// body reads spec.
func (r *reader) body(n node) {
	spec, ok := r.object(n, secSpec, "job.spec.object")
	if !ok {
		return
	}
	if spec.empty() {
		r.missing(n, "job.spec.empty")
		return
	}
	r.sections(spec, "job.spec.required", "recipe", "source", "framework", "resources")
	r.plugins(spec.get("plugins"))
	for _, section := range []struct {
		key      string
		required bool
		read     func(node)
	}{
		{"recipe", true, r.recipe}, {"source", true, r.source}, {"framework", true, r.framework},
		{"model", false, r.model}, {"data", false, r.data}, {"resources", true, r.resources},
		{"hyperparams", false, r.hyperparams}, {"lifecycle", false, r.lifecycle}, {"evaluation", false, r.evaluation},
	} {
		if n := spec.get(section.key); !n.absent() || !section.required {
			section.read(n)
		}
	}
}
