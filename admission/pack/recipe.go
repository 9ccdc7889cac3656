package pack

import (
	"math/big"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/digest"
)

// RecipeFile is the document of a recipe pack.
const RecipeFile = "recipe.yaml"

// Recipe is a recipe.yaml as its dialect's client reads it (packs.md 5.3): defaults filled in, texts coerced and
// stripped. Its JSON is the client's own form of it; what only tuneplane has is left out in forge.
type Recipe struct {
	Dialect dialect.Dialect `json:"-"`

	Name               string            `json:"name"`
	Version            string            `json:"version"`
	Framework          string            `json:"framework"`
	Entrypoint         Entrypoint        `json:"entrypoint"`
	Template           string            `json:"template"` // path of a folder in the pack, as written
	AdapterOptions     Table[Raw]        `json:"adapter_options"`
	Metrics            Metrics           `json:"metrics"`
	Artifacts          Artifacts         `json:"artifacts"`
	Lifecycle          Table[Entrypoint] `json:"lifecycle"`           // by action
	LifecycleResources Table[*big.Int]   `json:"lifecycle_resources"` // GPUs by action
	Runtime            Runtime           `json:"runtime"`
	ContractVersion    string            `json:"contract_version"`
	CoreRequires       string            `json:"core_requires"` // PEP 440 specifiers over the client's version
	Title              string            `json:"title"`
	Summary            string            `json:"summary"`
	ConfigSection      string            `json:"config_section"`
	Plugins            []string          `json:"plugins"`
	Roles              []string          `json:"roles"`
	Category           string            `json:"category"`
	Modalities         []string          `json:"modalities,omitzero"` // tuneplane
	Params             Table[Param]      `json:"params"`
	Validation         Validation        `json:"validation"`
	I18n               Table[Texts]      `json:"i18n"` // by locale: title, summary

	// ManifestDigest is of the canonical JSON of the whole document, TemplateDigest of the template folder, Digest of
	// the formula that the handshake compares (packs.md 5.1). Zero where the document or the folder could not be
	// hashed.
	ManifestDigest digest.Digest `json:"-"`
	TemplateDigest digest.Digest `json:"-"`
	Digest         digest.Digest `json:"-"`
}

// Texts are the translations of one thing, by field.
type Texts = Table[string]

// Entrypoint says what a recipe starts.
type Entrypoint struct {
	Kind               string `json:"kind"`  // module, file or experiment
	Value              string `json:"value"` // a dotted module, or a relative path
	ExperimentOverride string `json:"experiment_override"`
}

// Artifacts says where a run leaves its results, as globs relative to the output folder.
type Artifacts struct {
	Version     string        `json:"version"`
	Checkpoints []string      `json:"checkpoints"`
	Logs        []string      `json:"logs"`
	Exports     []string      `json:"exports"`
	Evaluations []string      `json:"evaluations"`
	Formats     Table[string] `json:"formats"`
}

// Validation says what samples a run reports.
type Validation struct {
	SampleKind       string   `json:"sample_kind"`
	RewardSemantics  string   `json:"reward_semantics"`
	ObserverVersions []string `json:"observer_versions"`
}

// Runtime holds the framework versions a recipe runs with.
type Runtime struct {
	DefaultVersion string         `json:"default_version"`
	Versions       Table[Variant] `json:"versions"`
}

// Variant is what a recipe needs for one framework version.
type Variant struct {
	Requires           []string    `json:"requires"`
	RuntimeID          string      `json:"runtime_id"` // "" for the framework custom
	Source             *Artifact   `json:"source"`
	Entrypoint         *Entrypoint `json:"entrypoint"` // instead of the recipe's own
	DeploymentArtifact bool        `json:"deployment_artifact"`
	Status             string      `json:"status"` // supported or deprecated
	Sunset             string      `json:"sunset"`
}

// Artifact is an image or image file that holds a framework.
type Artifact struct {
	Kind             string   `json:"kind"` // oci, sif or enroot-sqsh
	Reference        string   `json:"reference"`
	SHA256           string   `json:"sha256"`        // 64 hex digits of a file, "" for oci
	SourceDigest     string   `json:"source_digest"` // enroot-sqsh: of the image it was made from
	Architecture     string   `json:"architecture"`
	RayVersion       string   `json:"ray_version"`
	PythonExecutable string   `json:"python_executable"`
	RequiresPython   string   `json:"requires_python"`
	Capabilities     []string `json:"capabilities"` // sorted
}

// Param is one parameter that a job may set.
type Param struct {
	Name             string       `json:"name"`
	Type             string       `json:"type"` // int, float, bool, str or enum
	Path             string       `json:"path"` // dotted, in the experiment's config
	Doc              string       `json:"doc"`
	Group            string       `json:"group"`
	Required         bool         `json:"required"`
	Default          Raw          `json:"default"`
	Minimum          Raw          `json:"minimum"`
	Maximum          Raw          `json:"maximum"`
	ExclusiveMinimum bool         `json:"exclusive_minimum"`
	Choices          []Raw        `json:"choices"`
	PathOverrides    [][2]string  `json:"path_overrides"`    // framework version and path
	Versions         []string     `json:"versions,omitzero"` // tuneplane: the framework versions that offer it; empty means all
	I18n             Table[Texts] `json:"i18n"`              // by locale: doc, group
}

// frameworkCustom is the framework that brings its own environment: its versions are free text and have no runtime
// id.
const frameworkCustom = "custom"

// ID is the name under which jobs ask for the recipe: <framework>/<name>. The owner is no part of it (packs.md 5.5).
func (r *Recipe) ID() string { return r.Framework + "/" + r.Name }

// SupportedVersions lists the framework versions in the order of the document.
func (r *Recipe) SupportedVersions() []string { return r.Runtime.Versions.Names() }

// RecipeRecord is a recipe with its identity, as a decision shows it.
type RecipeRecord struct {
	ID                string        `json:"id"`
	Digest            digest.Digest `json:"digest"`
	ManifestDigest    digest.Digest `json:"manifest_digest"`
	TemplateDigest    digest.Digest `json:"template_digest"`
	Parsed            *Recipe       `json:"parsed"`
	SupportedVersions []string      `json:"supported_versions"`
}

// Record is the recipe with its identity.
func (r *Recipe) Record() RecipeRecord {
	return RecipeRecord{
		ID: r.ID(), Digest: r.Digest, ManifestDigest: r.ManifestDigest, TemplateDigest: r.TemplateDigest,
		Parsed: r, SupportedVersions: r.SupportedVersions(),
	}
}

// CatalogueEntry is the row of a recipe in the catalogue that clients compare with their own (recipes-and-locks.md
// 3).
type CatalogueEntry struct {
	Name              string           `json:"name"` // the recipe's id
	Version           string           `json:"version"`
	Digest            digest.Digest    `json:"digest"`
	Framework         string           `json:"framework"`
	Adapter           string           `json:"adapter"` // the framework again
	SupportedVersions []string         `json:"supported_framework_versions"`
	Runtime           CatalogueRuntime `json:"runtime"`
	CoreRequires      string           `json:"core_requires"`
}

// CatalogueRuntime is the part of a runtime that the handshake compares.
type CatalogueRuntime struct {
	DefaultVersion string                  `json:"default_version"`
	Versions       Table[CatalogueVariant] `json:"versions"`
}

// CatalogueVariant is one framework version in the catalogue.
type CatalogueVariant struct {
	RuntimeID string `json:"runtime_id"` // "" when the framework has none
	Status    string `json:"status"`
	Sunset    string `json:"sunset,omitempty"`
}

// CatalogueEntry is the recipe's row in the catalogue.
func (r *Recipe) CatalogueEntry() CatalogueEntry {
	e := CatalogueEntry{
		Name: r.ID(), Version: r.Version, Digest: r.Digest, Framework: r.Framework, Adapter: r.Framework,
		SupportedVersions: r.SupportedVersions(), CoreRequires: r.CoreRequires,
		Runtime: CatalogueRuntime{DefaultVersion: r.Runtime.DefaultVersion},
	}
	for version, v := range r.Runtime.Versions.All() {
		e.Runtime.Versions.set(version, CatalogueVariant{v.RuntimeID, v.Status, v.Sunset})
	}
	return e
}
