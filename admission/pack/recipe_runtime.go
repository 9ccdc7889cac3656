package pack

import (
	"slices"
	"strings"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/name"
	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/digest/tree"
	"github.com/gatehouse-registry/gatehouse/internal/pattern"
)

// exactVersion is a framework version that names one release: three numbers (of any decimal digits, as Python's \d)
// and a suffix, or a whole git commit.
var exactVersion = pattern.New(`^(?:\p{Nd}+\.\p{Nd}+\.\p{Nd}+[A-Za-z0-9.+-]*|[0-9a-f]{40})$`)

func (r *recipeReader) runtime() {
	if !r.root.Has("runtime") {
		r.missing("runtime")
		return
	}
	runtime, ok := r.object("recipe.runtime", "runtime", r.root.Get("runtime"), r.root)
	if !ok {
		return
	}
	out := &r.out.Runtime
	def := runtime.Get("default_version")
	r.checkText(def, "runtime.default_version")
	if out.DefaultVersion = def.TextOf(); out.DefaultVersion == "" {
		r.fault("recipe.runtime", "runtime.default_version", or(def, runtime), "found %s, expected one of runtime.versions", found(def))
	}
	versions := runtime.Get("versions")
	if versions == nil || versions.Kind != pyvalue.Map || len(versions.Items) == 0 {
		r.fault("recipe.runtime", "runtime.versions", or(versions, runtime), "found %s, expected an object with at least one version", found(versions))
		return
	}
	for _, it := range versions.Items {
		r.variant(it)
	}
	if out.DefaultVersion != "" && !out.Versions.Has(out.DefaultVersion) {
		r.fault("recipe.runtime", "runtime.default_version", def, "the default version %.100q is not among runtime.versions: %s", out.DefaultVersion, quoteList(out.Versions.Names()))
	}
}

// variant reads one of runtime.versions.
func (r *recipeReader) variant(it pyvalue.Item) {
	version := pyvalue.Strip(it.Key.PyStr())
	if version == "" {
		r.fault("recipe.runtime", "runtime.versions", it.Key, "a version is empty")
		return
	}
	field := pathOf("runtime.versions", version)
	v, ok := r.object("recipe.runtime", field, it.Value, it.Key)
	if !ok {
		return
	}
	if image := v.Get("image"); image != nil {
		r.fault("recipe.runtime", field+".image", image, "runtime images are no longer declared here: use runtime_id and source")
	}
	out := Variant{Requires: []string{}, RuntimeID: v.Get("runtime_id").TextOf(), DeploymentArtifact: v.Get("deployment_artifact").Truthy(), Status: "supported", Sunset: v.Get("sunset").TextOf()}
	if items, ok := r.sequenceAs("recipe.runtime", "", field+".requires", v.Get("requires")); ok {
		out.Requires = texts(items)
	}
	if source := v.Get("source"); source != nil && source.Kind != pyvalue.None {
		out.Source = r.artifact(field+".source", source)
	}
	if status := v.Get("status").TextOf(); status != "" {
		out.Status = status
	}
	if out.Status != "supported" && out.Status != "deprecated" {
		r.fault("recipe.runtime", field+".status", v.Get("status"), "found %.100q, expected supported or deprecated", out.Status)
	}
	if entry := v.Get("entrypoint"); entry != nil && entry.Kind != pyvalue.None {
		if e, ok := r.entrypoint("recipe.runtime", field+".entrypoint", entry); ok {
			out.Entrypoint = &e
		}
	}
	r.out.Runtime.Versions.set(version, out)
}

// sequenceAs is sequence where the client names no field; the message then says which.
func (d *document) sequenceAs(id rule.ID, field, shown string, v *pyvalue.Value) ([]*pyvalue.Value, bool) {
	if v.Truthy() && !isSequence(v) {
		d.fault(id, field, v, "%s is %s, expected a list of texts", shown, found(v))
		return nil, false
	}
	return d.sequence(id, field, v)
}

// artifactKinds maps a kind to the suffix of its file, "" when it is none.
var artifactKinds = map[string]string{"oci": "", "sif": ".sif", "enroot-sqsh": ".sqsh"}

const defaultPython, defaultRequiresPython = "python", ">=3.10,<3.14"

// artifact reads an image or image file.
func (r *recipeReader) artifact(field string, v *pyvalue.Value) *Artifact {
	const id = "recipe.runtime.source"
	if _, ok := r.object(id, field, v, v); !ok {
		return nil
	}
	a := &Artifact{
		Kind: v.Get("kind").TextOf(), Reference: v.Get("reference").TextOf(), SHA256: pyvalue.Lower(v.Get("sha256").TextOf()),
		SourceDigest: pyvalue.Lower(v.Get("source_digest").TextOf()), Architecture: pyvalue.Lower(v.Get("architecture").TextOf()),
		RayVersion: v.Get("ray_version").TextOf(), PythonExecutable: defaultPython, RequiresPython: defaultRequiresPython, Capabilities: []string{},
	}
	suffix, known := artifactKinds[a.Kind]
	if !known {
		r.fault(id, field+".kind", or(v.Get("kind"), v), "unknown kind %.100q, expected enroot-sqsh, oci or sif", a.Kind)
	}
	if items, ok := r.sequence(id, field+".capabilities", v.Get("capabilities")); ok {
		for _, it := range items {
			a.Capabilities = append(a.Capabilities, it.PyStr())
		}
		slices.Sort(a.Capabilities)
		a.Capabilities = slices.Compact(a.Capabilities)
	}
	if python := v.Get("python_executable"); python.Truthy() {
		a.PythonExecutable = python.TextOf()
		if a.PythonExecutable == "" || strings.ContainsFunc(a.PythonExecutable, pyvalue.IsSpace) {
			r.fault(id, field+".python_executable", python, "found %.100q, expected one command without white space", a.PythonExecutable)
		}
	}
	if python := v.Get("requires_python"); python.Truthy() {
		a.RequiresPython = python.TextOf()
		r.specifiers(id, field+".requires_python", a.RequiresPython, python)
	}
	if a.RayVersion != "" && !exactVersion.MatchString(a.RayVersion) {
		r.fault(id, field+".ray_version", v.Get("ray_version"), "found %.100q, expected three numbers such as 2.49.1, or a whole git commit", a.RayVersion)
	}
	switch {
	case !known:
	case suffix == "":
		r.imageReference(field, a, v)
	default:
		r.imageFile(field, suffix, a, v)
	}
	return a
}

var (
	pinnedReference = pattern.New(`^.+@sha256:[0-9a-f]{64}$`)
	hexDigest       = pattern.New(`^[0-9a-f]{64}$`)
	prefixedDigest  = pattern.New(`^sha256:[0-9a-f]{64}$`)
)

func (r *recipeReader) imageReference(field string, a *Artifact, v *pyvalue.Value) {
	switch at := or(v.Get("reference"), v); {
	case a.Reference == "" || strings.ContainsFunc(a.Reference, pyvalue.IsSpace):
		r.fault("recipe.runtime.source", field+".reference", at, "found %.100q, expected an image such as registry/name:tag, without white space", a.Reference)
	case strings.Contains(a.Reference, "@") && !pinnedReference.MatchString(a.Reference):
		r.fault("recipe.runtime.source", field+".reference", at, "found %.200q, expected a digest in full: @sha256:<64 lower-case hex digits>", a.Reference)
	}
}

func (r *recipeReader) imageFile(field, suffix string, a *Artifact, v *pyvalue.Value) {
	const id = "recipe.runtime.source"
	switch at := or(v.Get("reference"), v); {
	case !strings.HasPrefix(a.Reference, "/"):
		r.fault(id, field+".reference", at, "found %.200q, expected the absolute path of a %s file", a.Reference, suffix)
	case tree.Suffix(lastElement(a.Reference)) != suffix:
		r.fault(id, field+".reference", at, "found %.200q, expected a %s file", a.Reference, suffix)
	}
	if !hexDigest.MatchString(a.SHA256) {
		r.fault(id, field+".sha256", or(v.Get("sha256"), v), "found %.100q, expected the sha256 of the file: 64 hex digits", a.SHA256)
	}
	if a.Kind != "enroot-sqsh" {
		return
	}
	if !prefixedDigest.MatchString(a.SourceDigest) {
		r.fault(id, field+".source_digest", or(v.Get("source_digest"), v), "found %.100q, expected the digest of the image that the file was made from: sha256:<64 hex digits>", a.SourceDigest)
	}
	if a.Architecture != "amd64" && a.Architecture != "arm64" {
		r.fault(id, field+".architecture", or(v.Get("architecture"), v), "found %.100q, expected amd64 or arm64", a.Architecture)
	}
}

// lastElement is the name of a POSIX path as Python tells it: empty and "." elements don't count.
func lastElement(p string) string {
	last := ""
	for element := range strings.SplitSeq(p, "/") {
		if element != "" && element != "." {
			last = element
		}
	}
	return last
}

// distributions are the Python packages of the frameworks whose exact version forge wants among a variant's
// requirements.
var distributions = map[string]string{"verl": "verl", "trl": "trl", "pytorch": "torch"}

// frameworkVersions applies the rules of every framework but custom.
func (r *recipeReader) frameworkVersions() {
	items := make(map[string]pyvalue.Item)
	if versions := r.root.Get("runtime").Get("versions"); versions != nil {
		for _, it := range versions.Items {
			items[pyvalue.Strip(it.Key.PyStr())] = it
		}
	}
	seen := make(map[string]bool)
	for version, v := range r.out.Runtime.Versions.All() {
		field, at := pathOf("runtime.versions", version), items[version].Key
		if !exactVersion.MatchString(version) {
			r.fault("recipe.runtime.exact", field, at, "found the version %.100q, expected three numbers such as 1.10.0, or a whole git commit of 40 hex digits", version)
		}
		r.runtimeID(field+".runtime_id", v.RuntimeID, seen, at)
		r.origin(field+".source", version, v, items[version])
		if want := distributions[r.out.Framework]; r.dialect == dialect.Forge && want != "" && !oneOf(want+"=="+version, v.Requires) {
			r.fault("recipe.runtime.requires", field+".requires", at, "expected the exact requirement %.100q among requires", want+"=="+version)
		}
	}
}

// origin checks that a version says in exactly one way where its environment comes from. A source that could not be
// read has been refused before.
func (r *recipeReader) origin(field, version string, v Variant, it pyvalue.Item) {
	unreadable := v.Source == nil && it.Value.Get("source") != nil && it.Value.Get("source").Kind != pyvalue.None
	switch {
	case unreadable:
	case v.DeploymentArtifact && v.Source != nil:
		r.fault("recipe.runtime.source", field, it.Key, "deployment_artifact is set, so there must be no source beside it")
	case !v.DeploymentArtifact && (v.Source == nil || v.Source.Kind != "oci"):
		r.fault("recipe.runtime.source", field, it.Key, "framework %s %.100q needs a source of kind oci, or deployment_artifact", r.out.Framework, version)
	}
}

// runtimeID checks that a version names a runtime that no other version of the recipe names.
func (r *recipeReader) runtimeID(field, id string, seen map[string]bool, at *pyvalue.Value) {
	switch {
	case id == "":
		r.fault("recipe.runtime.id", field, at, "the runtime_id is missing: every framework but custom needs one for each version")
		return
	case !name.IsSegment(id):
		r.fault("recipe.runtime.id", field, at, "%.100q is no runtime id: expected %s", id, segmentRule)
	case seen[id]:
		r.fault("recipe.runtime.id", field, at, "the runtime_id %.100q stands for another version too", id)
	}
	seen[id] = true
}
