package suite

import (
	"bytes"
	"encoding/json"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/pack"
	"github.com/gatehouse-registry/gatehouse/admission/pyjson"
	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
)

// Files of an environment.
const (
	ManifestFile = "manifest.json"
	TasksFile    = "tasks.jsonl"
)

// Manifest is the manifest.json of an environment as its dialect's client reads it (packs.md 7): texts coerced and stripped,
// defaults filled in. Fields that a dialect lacks are empty.
type Manifest struct {
	Dialect    dialect.Dialect
	Protocol   string
	Deployment string // tuneplane only
	Verifier   Verifier
	Tools      []Tool
	Harness    Harness
	Domain     string // other when the document has none
	Image      string
	ImagePort  int64 // 0: the platform's default; tuneplane only
	Endpoint   string
	Fleet      string
	Sandbox    Sandbox
	Text       string // the description
}

// Verifier is what decides whether a task was done.
type Verifier struct {
	Kind string `json:"kind"`
	Ref  string `json:"ref"`
}

// Tool is what an environment offers to a model.
type Tool struct {
	Name     string   `json:"name"`
	Endpoint string   `json:"endpoint"`
	Schema   pack.Raw `json:"schema"`
}

// Harness is the plugin that drives the model.
type Harness struct {
	Plugin     string `json:"plugin"`
	Version    string `json:"version"`
	Entrypoint string `json:"entrypoint"`
	Digest     string `json:"digest,omitempty"`
}

// Sandbox says whether the code that a model writes needs a room of its own.
type Sandbox struct {
	Required bool   `json:"required"`
	Profile  string `json:"profile,omitempty"` // tuneplane only
}

// NeedsTasks reports whether the environment's tasks.jsonl must be there: always in forge, and in tuneplane where the job
// itself serves the tasks.
func (m *Manifest) NeedsTasks() bool {
	return m.Dialect == dialect.Forge || m.Deployment == "local"
}

// MarshalJSON writes the form that the client of the dialect gives out.
func (m Manifest) MarshalJSON() ([]byte, error) {
	tools := m.Tools
	if tools == nil {
		tools = []Tool{}
	}
	out := struct {
		Schema     string   `json:"schema"`
		Protocol   string   `json:"protocol"`
		Deployment string   `json:"deployment,omitempty"`
		Verifier   Verifier `json:"verifier"`
		Tools      []Tool   `json:"tools"`
		Sandbox    Sandbox  `json:"sandbox"`
		Harness    *Harness `json:"harness,omitempty"`
		Domain     *string  `json:"domain,omitempty"`
		Image      string   `json:"image,omitempty"`
		ImagePort  int64    `json:"image_port,omitempty"`
		Endpoint   string   `json:"endpoint,omitempty"`
		Fleet      string   `json:"fleet,omitempty"`
		Text       string   `json:"description,omitempty"`
	}{
		Schema: m.Dialect.Names().Environment, Protocol: m.Protocol, Deployment: m.Deployment, Verifier: m.Verifier, Tools: tools,
		Sandbox: m.Sandbox, Image: m.Image, ImagePort: m.ImagePort, Endpoint: m.Endpoint, Fleet: m.Fleet, Text: m.Text,
	}
	if m.Harness.Plugin != "" {
		out.Harness = &m.Harness
	}
	if m.Domain != defaultDomain {
		out.Domain = &m.Domain
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(out)
	return bytes.TrimRight(b.Bytes(), "\n"), err
}

// ManifestOptions say how a manifest.json is read. The zero ManifestOptions take the dialect from the document.
type ManifestOptions struct {
	Policy  rule.Policy
	Dialect dialect.Dialect // to read in; "" takes the one whose schema the document names, else Fallback
	// Fallback is the dialect of a document whose schema is none of the two; "" is forge.
	Fallback dialect.Dialect
}

// ParseManifest reads a manifest.json of at most limit.Document bytes. The manifest is nil exactly when src is no JSON
// object; otherwise it holds what could be read, and only an OK report says that it is whole.
func ParseManifest(src []byte, opt ManifestOptions) (*Manifest, rule.Report) {
	root, report := pyjson.Load(src, pyjson.Options{Policy: opt.Policy, File: ManifestFile})
	r := &manifestReader{findings: findings{file: ManifestFile, report: report}, root: root}
	if root == nil {
		return nil, r.finish()
	}
	if root.Kind != pyvalue.Map {
		r.fault("environment.root", "", root, "the file holds %s, expected an object", found(root))
		return nil, r.finish()
	}
	r.read(opt)
	return &r.out, r.finish()
}
