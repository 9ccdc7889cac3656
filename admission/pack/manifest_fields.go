package pack

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/admission/name"
	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
)

const segmentRule = `a letter or digit, then letters, digits, ".", "_" and "-"`

func (r *manifestReader) schema() {
	want := r.m.Dialect.Names().PluginSchema
	r.m.Schema = r.text("schema")
	if r.m.Schema == want {
		return
	}
	expected := want
	if r.forced == "" {
		expected += " or " + r.m.Dialect.Other().Names().PluginSchema
	}
	if r.m.Schema == "" {
		r.addMissing("manifest.schema", "schema", "expected %s", expected)
		return
	}
	out := r.violation("manifest.schema", "schema", r.at("schema"), "unsupported schema %.100q; expected %s", r.m.Schema, expected)
	if other, ok := dialect.Detect(r.m.Schema, pluginSchema); ok {
		out.Hint = "The file is written for the dialect " + string(other) + ": read it as such, or change its schema."
	}
	r.file(out)
}

func (r *manifestReader) name() {
	r.m.Name = r.text("name")
	r.segment("name", r.m.Name, "manifest.name", "manifest.name.length")
}

func (r *manifestReader) version() {
	v := r.root.Get("version")
	if !v.Truthy() && r.defaultVersion != "" {
		r.m.Version = r.defaultVersion
		return
	}
	r.m.Version = r.text("version")
	r.segment("version", r.m.Version, "manifest.version", "manifest.version.length")
}

// segment checks a name or a version.
func (r *manifestReader) segment(field, s string, form, length rule.ID) {
	switch {
	case s == "":
		r.addMissing(form, field, "expected %s", segmentRule)
	case !name.IsSegment(s):
		r.add(form, field, r.at(field), "%.100q is no %s: expected %s", s, field, segmentRule)
	case len(s) > limit.Name:
		r.add(length, field, r.at(field), "the %s has %d characters; at most %d are allowed", field, len(s), limit.Name)
	}
}

// kind reads `kind`, or tuneplane's `capability` and `execution`.
func (r *manifestReader) kind() {
	if r.m.Dialect == dialect.TunePlane {
		r.capability()
		return
	}
	text := r.text("kind")
	k, ok := kindOf(dialect.Forge, text, "")
	r.m.Kind = k
	switch {
	case ok:
	case text == "":
		r.addMissing("manifest.kind", "kind", "expected one of %s", spellings(dialect.Forge))
	default:
		r.add("manifest.kind", "kind", r.at("kind"), "unknown kind %.100q; expected one of %s", text, spellings(dialect.Forge))
	}
}

// capability reads tuneplane's spelling of the kind, which is not coerced and not stripped.
func (r *manifestReader) capability() {
	v := r.root.Get("capability")
	if v == nil || v.Kind != pyvalue.Str || v.Text == "" {
		if v != nil && v.Truthy() {
			r.add("manifest.kind", "capability", v, "the capability is a %s (%.100q); expected a text, one of %s", v.TypeName(), written(v), spellings(dialect.TunePlane))
			return
		}
		r.addMissing("manifest.kind", "capability", "expected one of %s", spellings(dialect.TunePlane))
		return
	}
	execution := r.root.Get("execution")
	isText := execution == nil || execution.Kind == pyvalue.Str
	if !isText {
		r.add("manifest.execution", "execution", execution, "execution is a %s (%.100q); expected a text", execution.TypeName(), written(execution))
	}
	runs := executionsOf(v.Text)
	switch {
	case len(runs) == 0:
		r.add("manifest.kind", "capability", v, "unknown capability %.100q; expected one of %s", v.Text, spellings(dialect.TunePlane))
	case isText && r.execution(v.Text, execution, runs), len(runs) == 1:
		where := runs[0]
		if len(runs) > 1 {
			where = execution.Text
		}
		r.m.Kind, _ = kindOf(dialect.TunePlane, v.Text, where)
	}
}

// execution checks where a capability is to run: required when there is a choice, refused when there is none.
func (r *manifestReader) execution(capability string, v *pyvalue.Value, runs []string) bool {
	text := ""
	if v != nil {
		text = v.Text
	}
	switch {
	case len(runs) == 1 && text != "":
		r.add("manifest.execution", "execution", v, "the capability %s always runs in %q, so execution (%.100q) must be left out", capability, runs[0], text)
	case len(runs) > 1 && text == "":
		r.addMissing("manifest.execution", "execution", "the capability %s needs one of %s", capability, strings.Join(runs, ", "))
	case len(runs) > 1 && !slices.Contains(runs, text):
		r.add("manifest.execution", "execution", v, "unknown execution %.100q; the capability %s needs one of %s", text, capability, strings.Join(runs, ", "))
	default:
		return true
	}
	return false
}

// api reads tuneplane's version of the provider contract: str(v or "1"), not stripped.
func (r *manifestReader) api() {
	v := r.root.Get("api")
	if !v.Truthy() {
		return
	}
	r.checkText("api", v)
	if got := v.PyStr(); got != providerAPI {
		r.add("manifest.api", "api", v, "unsupported provider API %.100q; expected %q", got, providerAPI)
	}
}

// wheel reads tuneplane's `wheel` and `provider`, which come together and instead of an entrypoint.
func (r *manifestReader) wheel() {
	r.m.Wheel, r.m.Provider = r.text("wheel"), r.text("provider")
	if r.m.Wheel == "" && r.m.Provider == "" {
		return
	}
	entrypoint := r.root.Get("entrypoint").TextOf()
	switch {
	case r.m.Wheel == "" || r.m.Provider == "":
		r.add("manifest.wheel", "", r.root, "wheel (%.100q) and provider (%.100q) must be declared together", r.m.Wheel, r.m.Provider)
	case !strings.HasSuffix(r.m.Wheel, ".whl") || strings.ContainsAny(r.m.Wheel, `/`):
		r.add("manifest.wheel", "", r.at("wheel"), "wheel %.100q must be the name of a .whl file in the pack's root", r.m.Wheel)
	case r.m.Kind != "" && !r.m.Kind.TakesEntrypoint():
		r.add("manifest.wheel", "", r.at("wheel"), "a %s pack takes no wheel", r.m.Kind.describe(r.m.Dialect))
	case entrypoint != "":
		r.add("manifest.wheel", "", r.at("wheel"), "wheel %.100q stands instead of an entrypoint, but entrypoint is %.100q", r.m.Wheel, entrypoint)
	}
}

func (r *manifestReader) entrypoint() {
	r.m.Entrypoint = r.text("entrypoint")
	switch {
	case r.m.Kind == "" || r.m.Wheel != "":
	case r.m.Kind.TakesEntrypoint() && r.m.Entrypoint == "":
		r.addMissing("manifest.entrypoint", "entrypoint", "a %s pack needs one, as module.path:callable", r.m.Kind.describe(r.m.Dialect))
	case r.m.Kind.TakesEntrypoint() && !isEntrypoint(r.m.Entrypoint):
		r.add("manifest.entrypoint", "entrypoint", r.at("entrypoint"), "%.100q is no entrypoint; expected module.path:callable", r.m.Entrypoint)
	case !r.m.Kind.TakesEntrypoint() && r.m.Entrypoint != "":
		why := "its scripts are found by their name, prepare_*.py"
		if r.m.Kind.Declarative() {
			why = "nothing in it is executed"
		}
		r.add("manifest.entrypoint", "entrypoint", r.at("entrypoint"), "a %s pack takes no entrypoint: %s", r.m.Kind.describe(r.m.Dialect), why)
	}
}

// isEntrypoint reports whether s is module.path:callable in ASCII. Empty elements of the path pass, as they do
// for the clients.
func isEntrypoint(s string) bool {
	module, callable, ok := strings.Cut(s, ":")
	return ok && isIdentifier(strings.ReplaceAll(module, ".", "_"), module) && isIdentifier(callable, callable)
}

// isIdentifier reports whether s is an ASCII identifier; first is the text whose first byte decides.
func isIdentifier(s, first string) bool {
	if s == "" || first[0] == '.' {
		return false
	}
	for i := range len(s) {
		c := s[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return true
}

// load reads when a plugin is imported. On kinds without an entrypoint the client drops it unread.
func (r *manifestReader) load() {
	if r.m.Kind != "" && !r.m.Kind.TakesEntrypoint() {
		return
	}
	r.m.Load = r.text("load")
	switch r.m.Load {
	case "":
		r.m.Load = LoadEager
	case LoadEager, LoadDeferred:
	default:
		r.add("manifest.load", "load", r.at("load"), "unknown load mode %.100q; expected %s or %s", r.m.Load, LoadEager, LoadDeferred)
	}
}

// Limits of the icon field (packs.md 3.2).
const (
	maxIconText = 8   // code points of an emoji or identifier
	maxIconPath = 256 // code points of a path
)

// icon reads an emoji or short identifier; tuneplane also takes the path of a PNG in the pack.
func (r *manifestReader) icon() {
	r.m.Icon = r.text("icon")
	n := utf8.RuneCountInString(r.m.Icon)
	if r.m.IconPath() != "" {
		if n > maxIconPath || !isInnerPath(r.m.Icon) {
			r.add("manifest.icon", "icon", r.at("icon"), "%.100q is no path of a PNG in the pack: expected a relative path of at most %d characters without \"..\", \"\\\" and \":\"", r.m.Icon, maxIconPath)
		}
		return
	}
	if n > maxIconText {
		r.add("manifest.icon", "icon", r.at("icon"), "the icon has %d characters (%.100q); at most %d are allowed", n, r.m.Icon, maxIconText)
	}
}

// isInnerPath reports whether a path stays inside the pack by its text alone.
func isInnerPath(p string) bool {
	if strings.HasPrefix(p, "/") || strings.ContainsAny(p, `\:`) {
		return false
	}
	for element := range strings.SplitSeq(p, "/") {
		if element == ".." {
			return false
		}
	}
	return true
}

// IconPath is the path of the icon's PNG, "" when the icon is a text.
func (m *Manifest) IconPath() string {
	if m.Dialect == dialect.TunePlane && strings.HasSuffix(pyvalue.Lower(m.Icon), ".png") {
		return m.Icon
	}
	return ""
}

func (r *manifestReader) homepage() {
	r.m.Homepage = r.text("homepage")
	if h := r.m.Homepage; h != "" && !strings.HasPrefix(h, "http://") && !strings.HasPrefix(h, "https://") {
		r.add("manifest.homepage", "homepage", r.at("homepage"), "%.100q is no http:// or https:// address", h)
	}
}

// maxKeywords is how many keywords a manifest may have.
const maxKeywords = 12

// keywords reads a list of texts: in lower case, without repetitions.
func (r *manifestReader) keywords() {
	v := r.root.Get("keywords")
	if !v.Truthy() {
		return
	}
	if v.Kind != pyvalue.List {
		r.add("manifest.keywords", "keywords", v, "keywords is a %s; expected a list of texts", v.TypeName())
		return
	}
	seen := make(map[string]bool)
	for _, item := range v.List {
		r.checkText("keywords", item)
		word := pyvalue.Lower(pyvalue.Strip(item.PyStr()))
		if word != "" && !seen[word] {
			seen[word] = true
			r.m.Keywords = append(r.m.Keywords, word)
		}
	}
	if n := len(r.m.Keywords); n > maxKeywords {
		r.add("manifest.keywords", "keywords", v, "%d keywords; at most %d are allowed", n, maxKeywords)
	}
}
