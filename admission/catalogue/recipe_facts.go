package catalogue

import (
	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/pack"
	"github.com/gatehouse-registry/gatehouse/digest"
)

// FromRecipe is the entry of a published recipe.
func FromRecipe(r *pack.Recipe, from Pack) Entry {
	e := entryOf(r)
	e.Integration, e.Params, e.Pack = option(r, "integration"), &r.Params, &from
	e.Title, e.Summary = r.Title, r.Summary
	return e
}

// shipped is the entry of a recipe that ships in a client release: facts without texts.
func shipped(r *pack.Recipe, release string) Entry {
	e := entryOf(r)
	params := r.ParamFacts()
	e.Params = &params
	e.Digest = digestIn(r.Dialect, release, r.ManifestDigest, r.TemplateDigest).String()
	return e
}

// entryOf is what a recipe's document says, whoever ships it.
func entryOf(r *pack.Recipe) Entry {
	row := r.CatalogueEntry()
	e := Entry{
		Name: row.Name, Version: row.Version, Digest: row.Digest.String(), Framework: row.Framework, Adapter: row.Adapter,
		DefaultVersion: row.Runtime.DefaultVersion, CoreRequires: row.CoreRequires,
		Roles: known(r.Roles), Plugins: known(r.Plugins), Lifecycle: known(r.Lifecycle.Names()),
		Observability:  option(r, "observability"),
		ManifestDigest: text(r.ManifestDigest), TemplateDigest: text(r.TemplateDigest), Entrypoint: &r.Entrypoint,
		ConfigMode: option(r, "config_mode"), ConfigSection: r.ConfigSection, Category: r.Category,
	}
	for action, gpus := range r.LifecycleResources.All() {
		if e.LifecycleResources == nil {
			e.LifecycleResources = make(map[string]int64)
		}
		if gpus.IsInt64() {
			e.LifecycleResources[action] = gpus.Int64()
		}
	}
	for version, v := range r.Runtime.Versions.All() {
		variant := Variant{Version: version, RuntimeID: v.RuntimeID, Sunset: v.Sunset, Entrypoint: v.Entrypoint}
		if v.Status == Deprecated {
			variant.Status = Deprecated
		}
		e.Versions = append(e.Versions, variant)
	}
	return e
}

// text is a digest as it is written, "" for none.
func text(d digest.Digest) string {
	if d.IsZero() {
		return ""
	}
	return d.String()
}

// option is a text of the recipe's adapter_options.
func option(r *pack.Recipe, key string) string {
	raw, _ := r.AdapterOptions.Get(key)
	return raw.Value.TextOf()
}

// firstManifestOnly is the first release of each client whose recipe digest leaves the template out (packs.md 5.1,
// formula D2); the releases before it have formula D1.
var firstManifestOnly = map[dialect.Dialect]string{dialect.Forge: "0.3.53", dialect.TunePlane: "0"}

// digestIn is the recipe digest as a client release computes it.
func digestIn(d dialect.Dialect, release string, manifest, template digest.Digest) digest.Digest {
	if in, err := InRange(release, ">="+firstManifestOnly[d]); err == nil && !in {
		return digest.FromBytes([]byte(`{"manifest":"` + manifest.String() + `","template":"` + template.String() + `"}`))
	}
	return pack.HandshakeDigest(manifest)
}

// forgeInputs are the inputs that a StarForge client asks of a job by framework: its own rule, of no document
// (recipes-and-locks.md 6). TunePlane's stand in the integration of the framework.
var forgeInputs = map[string][]string{
	"verl": {"model", "train_data", "validation_data"}, "trl": {"model", "train_data", "validation_data"},
	"openrlhf": {"model", "train_data"},
}
