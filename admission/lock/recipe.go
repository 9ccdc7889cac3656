package lock

import (
	"cmp"
	"slices"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
	"github.com/gatehouse-registry/gatehouse/digest/canonical"
)

// RecipeFile is the name of the recipe lock in an experiment's folder.
const RecipeFile = "recipe.lock.json"

// Older forms of a recipe lock that forge reads and does not write (recipes-and-locks.md 1).
const (
	recipeLockV3 = "forge/recipe-lock/v3" // no bindings and no range, by its writers; both count when they are there
	recipeLockV2 = "forge/recipe-lock/v2" // flat: the framework stands below recipe
)

// Recipe is what a recipe lock records: the recipe and the runtime that an experiment was built against. Texts are as the
// clients take them: of any type, stripped; what is absent, null or false is "".
type Recipe struct {
	APIVersion       string
	Name             string // <framework>/<method>
	Version          string
	Digest           string
	ManifestDigest   string
	TemplateDigest   string
	Framework        string
	FrameworkVersion string
	RuntimeID        string
	CoreVersion      string // the client that wrote it; nothing compares it
	CoreRequires     string
	Bindings         *Bindings // nil: not recorded

	places map[string]*pyvalue.Value // of the fields, by their labels
}

// Bindings is the part of a recipe that an experiment depends on.
type Bindings struct {
	Params     []BoundParam // sorted by name
	Entrypoint *Entrypoint  // nil: not recorded
}

// BoundParam is a parameter that the experiment's config sets.
type BoundParam struct{ Name, Path, Type string }

// Entrypoint is what the job starts.
type Entrypoint struct{ Kind, Value string }

// The labels of the fields, in the order in which they are compared.
const (
	fieldAPIVersion       = "apiVersion"
	fieldName             = "recipe.name"
	fieldVersion          = "recipe.version"
	fieldDigest           = "recipe.digest"
	fieldManifestDigest   = "recipe.manifest_digest"
	fieldTemplateDigest   = "recipe.template_digest"
	fieldFramework        = "framework.kind"
	fieldFrameworkVersion = "framework.version"
	fieldRuntimeID        = "framework.runtime_id"
	fieldCoreRequires     = "requires.core"
)

// field is one compared field of a lock.
type field struct {
	label string
	of    func(*Recipe) *string
}

var fields = []field{
	{fieldAPIVersion, func(r *Recipe) *string { return &r.APIVersion }},
	{fieldName, func(r *Recipe) *string { return &r.Name }},
	{fieldVersion, func(r *Recipe) *string { return &r.Version }},
	{fieldDigest, func(r *Recipe) *string { return &r.Digest }},
	{fieldManifestDigest, func(r *Recipe) *string { return &r.ManifestDigest }},
	{fieldTemplateDigest, func(r *Recipe) *string { return &r.TemplateDigest }},
	{fieldFramework, func(r *Recipe) *string { return &r.Framework }},
	{fieldFrameworkVersion, func(r *Recipe) *string { return &r.FrameworkVersion }},
	{fieldRuntimeID, func(r *Recipe) *string { return &r.RuntimeID }},
	{fieldCoreRequires, func(r *Recipe) *string { return &r.CoreRequires }},
}

// ReadsRecipe lists the forms of a recipe lock that a dialect's clients read, the one that they write first.
func ReadsRecipe(d dialect.Dialect) []string {
	list := []string{d.Names().RecipeLock}
	if d == dialect.Forge {
		list = append(list, recipeLockV3, recipeLockV2)
	}
	return list
}

// ParseRecipe reads a recipe lock of the dialect. The error is an *Error; it does not name the file. That a lock names no
// recipe is no error here: Inspect says what it means.
func ParseRecipe(src []byte, d dialect.Dialect) (*Recipe, error) {
	r, err := readRecipe(src, d)
	if err != nil {
		return nil, err
	}
	return r, nil
}

func readRecipe(src []byte, d dialect.Dialect) (*Recipe, *Error) {
	doc, err := load(src)
	if err != nil {
		return nil, err
	}
	api := doc.Get(keyAPIVersion)
	reads := ReadsRecipe(d)
	if !slices.Contains(reads, api.TextOf()) {
		return nil, errorAt(cmp.Or(api, doc), keyAPIVersion, "Make the experiment anew with sf new, or use a client that reads this lock.",
			"found %s, expected %q", shown(api), reads[0])
	}
	r := &Recipe{APIVersion: api.TextOf(), places: map[string]*pyvalue.Value{fieldAPIVersion: api}}
	section := func(key string) *pyvalue.Value {
		if v := doc.Get(key); v != nil && v.Kind == pyvalue.Map {
			return v
		}
		return nil
	}
	recipe := section("recipe")
	if r.APIVersion == recipeLockV2 {
		r.take(recipe, map[string]string{
			fieldName: "name", fieldVersion: "version", fieldDigest: "digest",
			fieldFramework: "framework", fieldFrameworkVersion: "framework_version",
		})
		return r, nil
	}
	r.take(recipe, map[string]string{
		fieldName: "name", fieldVersion: "version", fieldDigest: "digest",
		fieldManifestDigest: "manifest_digest", fieldTemplateDigest: "template_digest",
	})
	r.take(section("framework"), map[string]string{fieldFramework: "kind", fieldFrameworkVersion: "version", fieldRuntimeID: "runtime_id"})
	r.take(section("requires"), map[string]string{fieldCoreRequires: "core"})
	r.CoreVersion = section("created_by").Get("core_version").TextOf()
	r.Bindings = readBindings(section("bindings"))
	return r, nil
}

// take reads fields of one section, by label and key.
func (r *Recipe) take(section *pyvalue.Value, keys map[string]string) {
	for _, f := range fields {
		if key, ok := keys[f.label]; ok {
			v := section.Get(key)
			*f.of(r) = v.TextOf()
			r.places[f.label] = v
		}
	}
}

// readBindings reads what the clients look at; entries of another type than an object are passed over.
func readBindings(v *pyvalue.Value) *Bindings {
	if !v.Truthy() {
		return nil
	}
	b := &Bindings{}
	if params := v.Get("params"); params != nil && params.Kind == pyvalue.Map {
		for _, it := range params.Items {
			if it.Value.Kind == pyvalue.Map {
				b.Params = append(b.Params, BoundParam{it.Key.Text, text(it.Value.Get("path")), text(it.Value.Get("type"))})
			}
		}
		b.sort()
	}
	if e := v.Get("entrypoint"); e != nil && e.Kind == pyvalue.Map && e.Truthy() {
		b.Entrypoint = &Entrypoint{text(e.Get("kind")), text(e.Get("value"))}
	}
	return b
}

func (b *Bindings) sort() {
	slices.SortFunc(b.Params, func(x, y BoundParam) int { return cmp.Compare(x.Name, y.Name) })
}

// text is a value as text, not stripped; what is false is "".
func text(v *pyvalue.Value) string {
	if !v.Truthy() {
		return ""
	}
	return v.PyStr()
}

// Encode is the lock as the clients write it (recipes-and-locks.md 1): two blanks a level, keys sorted, non-ASCII as it is,
// a newline at the end. It fails for a text with a lone surrogate, which no UTF-8 file holds.
func (r *Recipe) Encode() ([]byte, error) {
	doc := canonical.Object{
		{Key: keyAPIVersion, Value: r.APIVersion},
		{Key: "created_by", Value: canonical.Object{{Key: "core_version", Value: r.CoreVersion}}},
		{Key: "framework", Value: canonical.Object{
			{Key: "kind", Value: r.Framework}, {Key: "runtime_id", Value: r.RuntimeID}, {Key: "version", Value: r.FrameworkVersion},
		}},
		{Key: "recipe", Value: canonical.Object{
			{Key: "digest", Value: r.Digest}, {Key: "manifest_digest", Value: r.ManifestDigest}, {Key: "name", Value: r.Name},
			{Key: "template_digest", Value: r.TemplateDigest}, {Key: "version", Value: r.Version},
		}},
		{Key: "requires", Value: canonical.Object{{Key: "core", Value: r.CoreRequires}}},
	}
	if r.Bindings != nil {
		doc = slices.Insert(doc, 1, canonical.Member{Key: "bindings", Value: r.Bindings.document()})
	}
	out, err := canonical.Form{Indent: 2}.Encode(doc)
	if err != nil {
		return nil, err
	}
	return append(out, '\n'), nil
}

func (b *Bindings) document() canonical.Object {
	params := canonical.Object{}
	for _, p := range b.Params {
		params = append(params, canonical.Member{Key: p.Name, Value: canonical.Object{{Key: "path", Value: p.Path}, {Key: "type", Value: p.Type}}})
	}
	entry := canonical.Object{}
	if b.Entrypoint != nil {
		entry = canonical.Object{{Key: "kind", Value: b.Entrypoint.Kind}, {Key: "value", Value: b.Entrypoint.Value}}
	}
	return canonical.Object{{Key: "entrypoint", Value: entry}, {Key: "params", Value: params}}
}
