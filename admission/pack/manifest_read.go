package pack

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
	"github.com/gatehouse-registry/gatehouse/admission/pyyaml"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
)

// ManifestOptions say how a plugin.yaml is read. The zero ManifestOptions take the dialect from the file.
type ManifestOptions struct {
	Policy rule.Policy
	// Dialect is the dialect to read in; "" takes the one that `schema` names.
	Dialect dialect.Dialect
	// DefaultVersion stands in for an absent version. Only packages that ship inside a client have none (packs.md 8).
	DefaultVersion string
}

// ParseManifest reads a plugin.yaml (packs.md 3.2). The report holds every violation: first those of the clients'
// own rules in the order in which the client checks, so that the first is the one it would show, then ours. The
// manifest is nil exactly when src is no YAML object; otherwise it holds what could be read, and only an OK
// report says that it is whole.
func ParseManifest(src []byte, opt ManifestOptions) (*Manifest, rule.Report) {
	r := manifestReader{forced: opt.Dialect, defaultVersion: opt.DefaultVersion}
	r.report.Policy = opt.Policy
	if len(src) > limit.PluginYAML {
		r.add("manifest.limit", "", nil, "plugin.yaml has %d bytes; at most %d are allowed", len(src), limit.PluginYAML)
		return nil, r.report
	}
	root, report := pyyaml.Load(src, pyyaml.Options{File: ManifestFile, Policy: opt.Policy})
	r.report.Merge(report)
	if root == nil {
		return nil, r.report
	}
	if !root.Truthy() {
		root = &pyvalue.Value{Kind: pyvalue.Map, Line: 1, Column: 1}
	}
	if root.Kind != pyvalue.Map {
		r.add("manifest.root", "", root, "the file holds a %s; expected an object of fields such as `schema: …`", root.TypeName())
		r.report.ClientsFirst()
		return nil, r.report
	}
	r.root = root
	r.read()
	r.report.ClientsFirst()
	return &r.m, r.report
}

// manifestReader carries one reading of a plugin.yaml.
type manifestReader struct {
	forced         dialect.Dialect
	defaultVersion string
	root           *pyvalue.Value
	m              Manifest
	filer
}

// manifestKeys are the fields a dialect knows, in no order that matters.
func manifestKeys(d dialect.Dialect) []string {
	common := []string{"schema", "name", "version", "summary", "entrypoint", "load", "requires", "icon", "homepage", "license", "author", "keywords"}
	if d == dialect.TunePlane {
		return append(common, "capability", "execution", "scope", "api", "wheel", "provider")
	}
	return append(common, "kind")
}

// read checks field after field in the order of the clients (packs.md 3.2, "Order of checks").
func (r *manifestReader) read() {
	r.dialect()
	r.unknownKeys()
	r.schema()
	r.name()
	r.version()
	r.kind()
	if r.m.Dialect == dialect.TunePlane {
		r.api()
		r.wheel()
	}
	r.entrypoint()
	r.load()
	r.requires()
	r.icon()
	r.homepage()
	r.keywords()
	r.m.Summary = r.text("summary")
	r.m.License = r.text("license")
	r.m.Author = r.text("author")
}

// add files a violation of the value v, or of the whole document when v is nil.
func (r *manifestReader) add(id rule.ID, field string, v *pyvalue.Value, format string, args ...any) (refused bool) {
	return r.file(r.violation(id, field, v, format, args...))
}

func (r *manifestReader) violation(id rule.ID, field string, v *pyvalue.Value, format string, args ...any) rule.Violation {
	out := rule.Violation{Rule: id, Field: field, File: ManifestFile, Message: fmt.Sprintf(format, args...)}
	if v != nil {
		out.Line, out.Column = v.Line, v.Column
	}
	return out
}

// addMissing files the absence of what a field must hold, with the key that was probably meant as the hint.
func (r *manifestReader) addMissing(id rule.ID, field, format string, args ...any) {
	v := r.root.Get(field)
	state := "is missing"
	if v != nil {
		state = fmt.Sprintf("reads as empty (found %.40q)", written(v))
	}
	out := r.violation(id, field, r.at(field), "%s: %s", state, fmt.Sprintf(format, args...))
	if found := lookAlike(r.root, field, manifestKeys(r.m.Dialect)); found != "" {
		out.Hint = hintRename(found, field)
	}
	r.file(out)
}

// written is a value as the file has it, as near as a message needs.
func written(v *pyvalue.Value) string {
	if v.Written != "" {
		return v.Written
	}
	return v.PyRepr()
}

// at is the value of a field, or the document when it is absent: what a position can be taken from.
func (r *manifestReader) at(field string) *pyvalue.Value {
	if v := r.root.Get(field); v != nil {
		return v
	}
	return r.root
}

// text is the client's reading of a text field, checked for scalars that change on the way.
func (r *manifestReader) text(field string) string {
	return r.textOf(field, r.root.Get(field))
}

func (r *manifestReader) textOf(field string, v *pyvalue.Value) string {
	r.checkText(field, v)
	return v.TextOf()
}

// checkText files scalars whose text for the client is not what was written, and texts that no JSON can hold.
func (r *manifestReader) checkText(field string, v *pyvalue.Value) {
	if v == nil {
		return
	}
	scalar := rule.Report{Policy: r.report.Policy}
	pyyaml.CheckText(&scalar, ManifestFile, field, v)
	for _, found := range append(scalar.Violations, scalar.Warnings...) {
		r.file(found)
	}
	if v.Kind == pyvalue.Str && !utf8.ValidString(v.Text) {
		r.add("manifest.text", field, v, "%.100q holds half of a character (a lone surrogate)", v.Text)
	}
}

// dialect settles the dialect: the forced one, else the one whose schema the file names, else the one whose
// key for the kind it has.
func (r *manifestReader) dialect() {
	d, ok := r.forced, r.forced != ""
	if !ok {
		d, ok = dialect.Detect(r.root.Get("schema").TextOf(), pluginSchema)
	}
	if !ok && r.root.Has(dialect.TunePlane.Names().KindKey) {
		d, ok = dialect.TunePlane, true
	}
	if !ok {
		d = dialect.Forge
	}
	r.m.Dialect = d
}

// unknownKeys refuses keys that tuneplane does not know and warns of those that forge ignores.
func (r *manifestReader) unknownKeys() {
	known := manifestKeys(r.m.Dialect)
	var unknown []pyvalue.Item
	for _, it := range r.root.Items {
		if it.Key.Kind != pyvalue.Str || !slices.Contains(known, it.Key.Text) {
			unknown = append(unknown, it)
		}
	}
	if r.m.Dialect == dialect.TunePlane {
		r.refuseKeys(unknown, "", known)
		return
	}
	r.warnKeys(unknown, "", known)
}

// refuseKeys files tuneplane's refusal of unknown keys, one violation for them all as the client has it. A key that
// is no text crashes the client.
func (r *manifestReader) refuseKeys(unknown []pyvalue.Item, field string, known []string) {
	var names []string
	for _, it := range unknown {
		if it.Key.Kind != pyvalue.Str {
			r.add("manifest.key", field, it.Key, "the key %.100q is a %s; keys must be texts", it.Key.PyStr(), it.Key.TypeName())
			continue
		}
		names = append(names, it.Key.Text)
	}
	if len(names) == 0 {
		return
	}
	slices.Sort(names)
	out := r.violation("manifest.field.unknown", field, unknown[0].Key, "unknown fields: %s (known: %s)", quoteList(names), strings.Join(known, ", "))
	for _, n := range names {
		if k := meant(n, known); k != "" {
			out.Hint = hintRename(n, k)
		}
	}
	if field == "" && slices.Contains(names, "type") {
		out.Hint = "Remove `type`: it follows from the capability."
	}
	r.file(out)
}

// warnKeys files a warning for each key that the client ignores.
func (r *manifestReader) warnKeys(unknown []pyvalue.Item, prefix string, known []string) {
	for _, it := range unknown {
		key := it.Key.PyStr()
		out := r.violation("manifest.field.ignored", prefix+bounded(key), it.Key, "the client ignores the field %.100q", key)
		if k := meant(key, known); k != "" && it.Key.Kind == pyvalue.Str {
			out.Hint = hintRename(key, k)
		}
		r.file(out)
	}
}

// quoteList quotes names for a message, at most maxListed of them.
func quoteList(names []string) string {
	quoted := make([]string, 0, min(len(names), maxListed))
	for _, n := range names[:min(len(names), maxListed)] {
		quoted = append(quoted, fmt.Sprintf("%.100q", n))
	}
	s := strings.Join(quoted, ", ")
	if more := len(names) - maxListed; more > 0 {
		s += fmt.Sprintf(" and %d more", more)
	}
	return s
}

// bounded cuts a text from outside to what a field name needs.
func bounded(s string) string {
	if len(s) > 100 {
		return strings.ToValidUTF8(s[:100], "") + "…"
	}
	return s
}
