package pack

import (
	"slices"

	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/admission/pyjson"
	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/digest/canonical"
	"github.com/gatehouse-registry/gatehouse/internal/pattern"
)

// IntegrationFile is what a framework-integration pack is about.
const IntegrationFile = "integration.json"

// Integration is a tuneplane integration.json (packs.md 8).
type Integration struct {
	Canonical     []byte // Python's json.dumps with sorted keys and no blanks, in ASCII: what the client stores
	Facts         IntegrationFacts
	NativeConfigs []string // configuration files that the compilers read, sorted
	Profiles      []IntegrationProfile
}

// IntegrationFacts is what the client reads of a framework; absent fields have the client's defaults.
type IntegrationFacts struct {
	DisplayName        string                      `json:"display_name"`
	CatalogOrder       *int                        `json:"catalog_order"`
	RequiredInputs     []string                    `json:"required_inputs"`
	NativeValidation   bool                        `json:"native_validation"`
	CapabilitySwitches []CapabilitySwitch          `json:"capability_switches"`
	MetricDescriptors  map[string]MetricDescriptor `json:"metric_descriptors"`
	AlgorithmHook      bool                        `json:"algorithm_hook"`
	CPUOnly            bool                        `json:"cpu_only"`
	DataPrepJobs       bool                        `json:"data_prep_jobs"`
}

// CapabilitySwitch is a configuration key that turns a capability on.
type CapabilitySwitch struct {
	Capability string `json:"capability"`
	Key        string `json:"key"`
	When       string `json:"when"`
}

// MetricDescriptor says how to read a metric: its fields are texts, but cadence_seconds, which is a json.Number.
type MetricDescriptor map[string]any

// IntegrationProfile is one way in which the framework runs a method.
type IntegrationProfile struct {
	ID, Framework, Method, Engine string
	RuntimeID, RuntimeDigest      string
	Compiler                      string // provider or yaml
	CompilerPath                  string // of a provider: the file in the pack
}

// Grammars of an integration.
var (
	distributionName = pattern.New(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$`)
	environmentName  = pattern.New(`^[A-Z_][A-Z0-9_]{0,127}$`)
	dottedPath       = pattern.New(`^[A-Za-z_][A-Za-z0-9_-]*(?:\.[A-Za-z_][A-Za-z0-9_-]*)*$`)
	sourceID         = pattern.New(`^[A-Za-z0-9_-]{1,64}$`)
	sha256Digest     = pattern.New(`^sha256:[0-9a-f]{64}$`)
)

// Words that fields of an integration may hold.
var (
	integrationInputs       = []string{"model", "train_data", "validation_data"}
	integrationBindings     = []string{"model", "train_data", "validation_data", "output", "run_id", "nodes", "gpus_per_node"}
	integrationCapabilities = []string{"launch", "scalar", "samples", "trajectories", "checkpoint", "resume", "export", "eval"}
	observationCapabilities = []string{"agent", "async", "mixed", "environment", "moe", "speculative"}
	switchConditions        = []string{"true", "set"}
	descriptorDisplays      = []string{"ratio", "percent", "number"}
	observationFormats      = []string{"tensorboard", "jsonl"}
	observationScopes       = []string{"shared", "member"}
	integrationLaunchModes  = []string{"direct", "ray-driver"}
	jobPinned, jobSelected  = "job-pinned", "job-selected"
	integrationFields       = []string{"contract_version", "distribution", "source_root", "observations", "profiles", "display_name", "catalog_order", "required_inputs", "native_validation", "capability_switches", "metric_descriptors", "algorithm_hook", "cpu_only", "data_prep_jobs"}
	profileFields           = []string{"id", "framework", "method", "engine", "runtime_id", "runtime_digest", "capabilities", "compiler"}
	compilerFields          = []string{"kind", "path", "argv", "config", "config_flag", "bindings", "defaults", "launch_mode"}
	switchFields            = []string{"capability", "key", "when"}
	descriptorFields        = []string{"direction", "display", "unit", "population", "reduction", "formula", "comparison_id", "cadence_seconds"}
	observationFields       = []string{"id", "format", "path", "pattern", "scope", "required", "reader_member", "managed"}
)

// ParseIntegration reads an integration.json (packs.md 8). The integration is nil unless the report is OK or
// only softened rules are broken. The violations name no field, as the client's errors don't; the message says
// where it is.
func ParseIntegration(src []byte, policy rule.Policy) (*Integration, rule.Report) {
	root, report := pyjson.Load(src, pyjson.Options{Policy: policy, File: IntegrationFile})
	r := integrationReader{report: report}
	if root != nil {
		r.read(root)
		r.canonical(root)
		r.nativeConfigs()
	}
	r.report.ClientsFirst()
	if root == nil || r.failed {
		return nil, r.report
	}
	return &r.value, r.report
}

// canonical keeps the form that the client stores.
func (r *integrationReader) canonical(root *pyvalue.Value) {
	text, err := canonical.Form{ASCII: true, Finite: true}.Encode(root)
	switch {
	case err != nil:
		r.fault(root, "the document has no canonical form: %v", err)
	case len(text) > limit.Document:
		r.fault(root, "the canonical form has %d bytes; at most %d are allowed", len(text), limit.Document)
	}
	r.value.Canonical = text
}

func (r *integrationReader) nativeConfigs() {
	slices.Sort(r.value.NativeConfigs)
	r.value.NativeConfigs = slices.Compact(r.value.NativeConfigs)
}
