package pack

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
)

// observations checks the list of files that a job's metrics are read from.
func (r *integrationReader) observations(v *pyvalue.Value) {
	if v == nil {
		return
	}
	if v.Kind != pyvalue.List || len(v.List) > maxObservations {
		r.fault(v, "observations must be a list of at most %d objects", maxObservations)
		return
	}
	seen := make(map[string]bool)
	for _, item := range v.List {
		if !r.object(item, observationFields, "an observation source") {
			continue
		}
		id := item.Get("id")
		if id == nil || id.Kind != pyvalue.Str || !sourceID.MatchString(id.Text) {
			r.fault(orRoot(id, item), "the id of an observation source is %s; expected 1 to 64 letters, digits, \"_\" and \"-\"", shown(id))
		} else if seen[id.Text] {
			r.fault(id, "two observation sources have the id %q", id.Text)
		} else {
			seen[id.Text] = true
		}
		r.observation(item)
	}
}

// observation checks one source apart from its id.
func (r *integrationReader) observation(item *pyvalue.Value) {
	format := r.word(item, "format", observationFormats, "")
	scope := r.word(item, "scope", observationScopes, "shared")
	r.flag(item, "required", false)
	if r.flag(item, "managed", false) && format != "jsonl" {
		r.fault(item.Get("managed"), "only a jsonl source can be managed")
	}
	if v := item.Get("reader_member"); v != nil {
		switch {
		case v.Kind == pyvalue.None && scope == "shared":
			r.fault(v, "a shared source needs a reader_member")
		case v.Kind == pyvalue.None, v.Kind == pyvalue.Int && v.Int.Sign() >= 0, v.Kind == pyvalue.Str && v.Text == "last":
		default:
			r.fault(v, "reader_member is %s; expected a number from 0, \"last\" or null", shown(v))
		}
	}
	path, pattern := r.observedPath(item, "path"), r.observedPath(item, "pattern")
	if strings.ContainsAny(path, "*?[") {
		r.fault(item.Get("path"), "path %.100q must be literal; only pattern holds wildcards", path)
	}
	if strings.Contains(pattern, "/") {
		r.fault(item.Get("pattern"), "pattern %.100q must match file names, without \"/\"", pattern)
	}
}

func (r *integrationReader) observedPath(item *pyvalue.Value, field string) string {
	v := item.Get(field)
	if v == nil || v.Kind != pyvalue.Str || v.Text == "" || utf8.RuneCountInString(v.Text) > maxObservedPath ||
		strings.Contains(v.Text, `\`) || v.Text != "." && !isPlainPath(v.Text) {
		r.fault(orRoot(v, item), "%s of an observation source is %s; expected a relative path of at most %d characters inside the job's output", field, shown(v), maxObservedPath)
		return ""
	}
	return v.Text
}

// isPlainPath reports whether p is a relative path in its shortest form that stays below where it starts.
func isPlainPath(p string) bool {
	for element := range strings.SplitSeq(p, "/") {
		if element == "" || element == "." || element == ".." {
			return false
		}
	}
	return true
}

// profiles checks what the framework can run, and that a job selects one profile at most.
func (r *integrationReader) profiles(root *pyvalue.Value) {
	v := root.Get("profiles")
	if v == nil || v.Kind != pyvalue.List || len(v.List) < 1 || len(v.List) > maxProfiles {
		r.fault(orRoot(v, root), "profiles must be a list of 1 to %d objects", maxProfiles)
		return
	}
	for _, item := range v.List {
		if !r.object(item, profileFields, "a profile") {
			continue
		}
		p := r.profile(item)
		for _, other := range r.value.Profiles {
			if p.ID == other.ID {
				r.fault(item, "two profiles have the id %.100q", p.ID)
			} else if p.ambiguousWith(other) {
				r.fault(item, "the profiles %.100q and %.100q can't be told apart by framework, method, engine and runtime", other.ID, p.ID)
			}
		}
		r.value.Profiles = append(r.value.Profiles, p)
	}
}

// ambiguousWith reports whether one job could select both profiles.
func (p IntegrationProfile) ambiguousWith(q IntegrationProfile) bool {
	return p.Framework == q.Framework && p.Method == q.Method && p.Engine == q.Engine &&
		(p.RuntimeID == q.RuntimeID || p.RuntimeID == jobSelected || q.RuntimeID == jobSelected) &&
		(p.RuntimeDigest == q.RuntimeDigest || p.RuntimeDigest == jobPinned || q.RuntimeDigest == jobPinned)
}

func (r *integrationReader) profile(item *pyvalue.Value) IntegrationProfile {
	p := IntegrationProfile{
		ID: r.boundedText(item, "id", "profile.id", 1), Framework: r.boundedText(item, "framework", "profile.framework", 1),
		Method: r.boundedText(item, "method", "profile.method", 1), Engine: r.boundedText(item, "engine", "profile.engine", 0),
		RuntimeID: r.boundedText(item, "runtime_id", "profile.runtime_id", 1), RuntimeDigest: r.boundedText(item, "runtime_digest", "profile.runtime_digest", 1),
	}
	if d := p.RuntimeDigest; d != "" && d != jobPinned && !sha256Digest.MatchString(d) {
		r.fault(item.Get("runtime_digest"), "profile.runtime_digest is %.100q; expected %q or sha256:<64 hex digits>", d, jobPinned)
	}
	capabilities, ok := words(item.Get("capabilities"), integrationCapabilities)
	switch {
	case !ok:
		r.fault(orRoot(item.Get("capabilities"), item), "profile.capabilities must be a list of distinct words of %s", strings.Join(integrationCapabilities, ", "))
	case !slices.Contains(capabilities, "launch"):
		r.fault(item.Get("capabilities"), "profile.capabilities must hold launch")
	}
	r.compiler(item, &p)
	return p
}

// boundedText reads a required text of least to maxProfileText characters.
func (r *integrationReader) boundedText(object *pyvalue.Value, field, where string, least int) string {
	v := object.Get(field)
	if v == nil || v.Kind != pyvalue.Str || len(v.Text) < least || utf8.RuneCountInString(v.Text) > maxProfileText {
		r.fault(orRoot(v, object), "%s is %s; expected a text of %d to %d characters", where, shown(v), least, maxProfileText)
		return ""
	}
	return v.Text
}

// innerPath reads a required relative path in its shortest form.
func (r *integrationReader) innerPath(object *pyvalue.Value, field, where string) string {
	p := r.boundedText(object, field, where, 1)
	if p != "" && !isPlainPath(p) {
		r.fault(object.Get(field), "%s is %.100q; expected a relative path in its shortest form, without \"..\"", where, p)
		return ""
	}
	return p
}

func (r *integrationReader) compiler(item *pyvalue.Value, p *IntegrationProfile) {
	c := item.Get("compiler")
	if c == nil || c.Kind != pyvalue.Map {
		r.fault(orRoot(c, item), "profile.compiler is %s; expected an object", shown(c))
		return
	}
	kind := c.Get("kind")
	switch {
	case kind != nil && kind.Kind == pyvalue.Str && kind.Text == "provider":
		if r.object(c, []string{"kind", "path", "config"}, "a provider compiler") {
			p.CompilerPath = r.innerPath(c, "path", "compiler.path")
			if c.Has("config") {
				r.nativeConfig(r.innerPath(c, "config", "compiler.config"))
			}
		}
	case kind != nil && kind.Kind == pyvalue.Str && kind.Text == "yaml":
		if r.object(c, []string{"kind", "argv", "config", "config_flag", "bindings", "defaults", "launch_mode"}, "a yaml compiler") {
			r.yamlCompiler(c)
		}
	default:
		r.object(c, compilerFields, "a compiler")
		r.fault(orRoot(kind, c), "compiler.kind is %s; expected provider or yaml", shown(kind))
		return
	}
	p.Compiler = kind.Text
}

func (r *integrationReader) nativeConfig(path string) {
	if path != "" {
		r.value.NativeConfigs = append(r.value.NativeConfigs, path)
	}
}

// maxArguments and maxOwnedPaths bound a yaml compiler.
const (
	maxArguments  = 128
	maxOwnedPaths = 256
)

func (r *integrationReader) yamlCompiler(c *pyvalue.Value) {
	argv := c.Get("argv")
	if argv == nil || argv.Kind != pyvalue.List || len(argv.List) < 1 || len(argv.List) > maxArguments {
		r.fault(orRoot(argv, c), "compiler.argv must be a list of 1 to %d texts", maxArguments)
	} else {
		for _, arg := range argv.List {
			if arg.Kind != pyvalue.Str || arg.Text == "" || utf8.RuneCountInString(arg.Text) > maxProfileText {
				r.fault(arg, "compiler.argv holds %s; expected texts of 1 to %d characters", shown(arg), maxProfileText)
			}
		}
	}
	r.nativeConfig(r.innerPath(c, "config", "compiler.config"))
	r.boundedText(c, "config_flag", "compiler.config_flag", 1)
	r.word(c, "launch_mode", integrationLaunchModes, "")
	r.ownedPaths(c)
}

// ownedPaths checks the configuration paths that the platform sets: none may be another, or lie below another.
func (r *integrationReader) ownedPaths(c *pyvalue.Value) {
	bindings, defaults := c.Get("bindings"), c.Get("defaults")
	if bindings == nil || bindings.Kind != pyvalue.Map || defaults == nil || defaults.Kind != pyvalue.Map || len(bindings.Items)+len(defaults.Items) > maxOwnedPaths {
		r.fault(c, "compiler.bindings and compiler.defaults must be objects with at most %d paths together", maxOwnedPaths)
		return
	}
	var paths []string
	for _, it := range slices.Concat(bindings.Items, defaults.Items) {
		path := it.Key.Text
		if !dottedPath.MatchString(path) {
			r.fault(it.Key, "%.100q is no dotted configuration path", path)
			continue
		}
		for _, other := range paths {
			if path == other || strings.HasPrefix(path, other+".") || strings.HasPrefix(other, path+".") {
				r.fault(it.Key, "the configuration paths %.100q and %.100q overlap", other, path)
			}
		}
		paths = append(paths, path)
	}
	for _, it := range bindings.Items {
		if it.Value.Kind != pyvalue.Str || !slices.Contains(integrationBindings, it.Value.Text) {
			r.fault(it.Value, "the binding of %.100q is %s; expected one of %s", it.Key.Text, shown(it.Value), strings.Join(integrationBindings, ", "))
		}
	}
}
