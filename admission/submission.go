package admission

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/gatehouse-registry/gatehouse/admission/catalogue"
	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/jobspec"
	"github.com/gatehouse-registry/gatehouse/admission/pack"
	"github.com/gatehouse-registry/gatehouse/admission/receipt"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/digest"
)

// SubmissionInput is everything that gate 2 decides on.
type SubmissionInput struct {
	Spec   *jobspec.Spec // what jobspec.Parse read; nil when there was nothing to read
	Report Report        // what it found; its policy is the gate's
	File   string        // the document's name in violations, "" for none

	Account      string // the authenticated account; it becomes the job's owner
	AnyNamespace bool   // the account may write below any owner

	Catalogue *catalogue.Catalogue // of the job's dialect and the client's release, packs included; nil has no recipe
	Plugins   map[PluginRef]PluginRecord
	Quota     Quota

	Profiles   []Profile // hardware that the deployment has; nil: not known
	ImageHosts []string  // registry hosts that images may come from, "*" and "*.<domain>" allowed; nil: not known
	PinImages  bool      // an image must name its bytes by digest; otherwise one that does not is a warning
	Hubs       []string  // hubs that models and datasets may come from, of jobspec.Hubs; nil: all
	PinHubs    bool      // what comes from a hub outside must name a commit
	Beside     *Beside   // what the request says beside the spec; nil: nothing

	// Resolve answers for what the registry does not hold. Nil holds nothing. It must not block: whoever calls the gate
	// has looked everything up before.
	Resolve func(jobspec.Reference) Resolution
	// Advise helps to mend a triple that the job can't use; it is asked about nothing else. Nil knows nothing.
	Advise func(jobspec.Plugin) PluginAdvice
	// RefuseUnchecked lists the kinds of references that are refused when nothing could check them.
	RefuseUnchecked []jobspec.RefKind
}

// PluginRef names one published version.
type PluginRef struct{ ID, Version string }

// String is id@version.
func (r PluginRef) String() string { return r.ID + "@" + r.Version }

// PluginRecord is what the library holds of a published version.
type PluginRecord struct {
	Kind                    pack.Kind
	Dialect                 dialect.Dialect
	Enabled                 bool
	Revoked                 bool   // for good; then it is not enabled either
	Reason                  string // why it is disabled or revoked, "" when nobody said
	Content, Tree, Manifest digest.Digest
	Requires                pack.Requires
}

// Quota bounds what an account's jobs hold at a time. 0 and nil are no bounds.
type Quota struct {
	Limit, InUse  int64    // GPUs
	MaxJobs, Jobs int64    // jobs
	Profiles      []string // names of the hardware profiles that the account may use
}

// Profile is a kind of hardware.
type Profile struct {
	Name   string
	Series string // "" is the name
}

// Beside is what a request says beside the spec (wire.md 6). Empty parts were not sent.
type Beside struct {
	Exp     string
	Profile string
	Project string
	Spec    []byte // tuneplane sends the spec twice; this is the second one
}

// Resolution says whether something that a job names outside itself is there.
type Resolution struct {
	State   ResolutionState
	Version string // of an environment that was named without one: the version to pin
	Detail  string // why not, for NotFound and NotAllowed
}

// ResolutionState is what a resolver knows.
type ResolutionState uint8

// The states. NotAllowed should read like NotFound to whoever may not know of the thing.
const (
	Unresolved ResolutionState = iota // nobody could check
	Resolved
	NotFound
	NotAllowed
)

// SubmissionValue is the value of gate 2's decision.
type SubmissionValue struct {
	Spec       json.RawMessage `json:"spec"`       // the document that is stored, handed over and launched, owner stamped
	SpecDigest digest.Digest   `json:"specDigest"` // jobspec.Spec.Digest
	SpecBytes  digest.Digest   `json:"specBytes"`  // sha256 of Spec as it stands
	TotalGPUs  int64           `json:"totalGpus"`
	Plugins    []receipt.Pin   `json:"plugins"`   // one for each entry of spec.plugins that is known, in its order
	Recipes    []receipt.Pin   `json:"recipes"`   // the recipe's pack, when it comes from one
	Unchecked  []Unchecked     `json:"unchecked"` // what the registry does not hold and nobody checked
	Catalogue  *CatalogueUsed  `json:"catalogue,omitempty"`
}

// Unchecked is a reference that nobody could check.
type Unchecked struct {
	Kind jobspec.RefKind `json:"kind"`
	Path string          `json:"path"`
	Text string          `json:"text"`
}

// CatalogueUsed says against which catalogue a job was checked.
type CatalogueUsed struct {
	Dialect dialect.Dialect `json:"dialect"`
	Release string          `json:"release"`
	Digest  digest.Digest   `json:"digest"`
}

// CheckSubmission is gate 2. It is pure: the same input gives the same answer. When the decision allows, the spec is the
// job as it must be stored: the owner stamped, an alias, a parameter's path or an open environment version put right,
// tuneplane's framework integration added where it was missing. In.Spec is not changed. Otherwise the spec is nil.
func CheckSubmission(in SubmissionInput) (Decision, *jobspec.Spec) {
	g := &submissionGate{in: in, report: in.Report, structured: in.Report.OK()}
	g.report.Violations = slices.Clone(in.Report.Violations)
	g.report.Warnings = slices.Clone(in.Report.Warnings)
	if in.Spec == nil {
		g.report.InDocumentOrder()
		return g.report.Decide(Submission, Subject{Dialect: in.Report.Dialect}, nil), nil
	}
	g.report.Dialect = in.Spec.Dialect
	g.spec = *in.Spec
	g.spec.Plugins = slices.Clone(in.Spec.Plugins)
	g.spec.StampOwner(in.Account)
	g.value = SubmissionValue{Plugins: []receipt.Pin{}, Recipes: []receipt.Pin{}, Unchecked: []Unchecked{}}

	g.beside()
	g.recipe()
	g.framework()
	g.method()
	g.resources()
	g.quota()
	g.plugins()
	g.references()
	return g.decide()
}

// submissionGate is one run of the gate.
type submissionGate struct {
	in         SubmissionInput
	report     Report
	structured bool          // the document itself breaks no rule, so its parts can be compared
	spec       jobspec.Spec  // the job as it will be stored
	entry      catalogueFind // the recipe
	value      SubmissionValue

	violations, warnings int // filed by the gate, those of the document apart
	dropped              int // beyond maxFiled
}

// maxFiled bounds the violations and, apart from them, the warnings that the gate adds to those of the document: a job can name
// tens of thousands of things.
const maxFiled = 500

// catalogueFind is a recipe that may not have been found.
type catalogueFind struct {
	catalogue.Entry
	ok bool
}

// add files a breach at a field of the document, and reports whether it refuses.
func (g *submissionGate) add(id RuleID, field, format string, args ...any) bool {
	return g.file(Violation{Rule: id, Field: field, Message: fmt.Sprintf(format, args...)})
}

// file adds a violation, with the place of its field in the document, and reports whether it refuses.
func (g *submissionGate) file(v Violation) bool {
	filed := &g.violations
	info, known := rule.Lookup(v.Rule)
	warns := known && info.Warns(g.report.Dialect, g.report.Policy)
	if warns {
		filed = &g.warnings
	}
	if *filed == maxFiled {
		g.dropped++
		return !warns
	}
	*filed++
	if p := g.in.Spec.Place(v.Field); v.Field != "" {
		v.Pointer = p.Pointer
		if v.Line == 0 {
			v.Line, v.Column = p.Line, p.Column
		}
	}
	v.File = g.in.File
	return g.report.Add(v)
}

// refused reports whether a rule was broken at a field, so that what follows from it need not be said.
func (g *submissionGate) refused(id RuleID, field string) bool {
	return slices.ContainsFunc(g.report.Violations, func(v Violation) bool { return v.Rule == id && v.Field == field })
}

// addBeside files a breach of what the request says beside the document.
func (g *submissionGate) addBeside(field, format string, args ...any) {
	g.report.Add(Violation{Rule: "job.meta.agree", Field: field, Message: fmt.Sprintf(format, args...)})
}

// unchecked lists something that nobody could check.
func (g *submissionGate) unchecked(ref jobspec.Reference) {
	g.value.Unchecked = append(g.value.Unchecked, Unchecked{ref.Kind, ref.Path, ref.Text})
	if slices.Contains(g.in.RefuseUnchecked, ref.Kind) {
		g.add("job.reference.unverified", ref.Path, "nothing could check the %s %.200q, and this server refuses what nobody checked", ref.Kind, ref.Text)
	}
}

// decide turns what was found into the answer.
func (g *submissionGate) decide() (Decision, *jobspec.Spec) {
	if g.dropped > 0 {
		g.report.Add(Violation{Rule: "job.report.truncated", File: g.in.File, Message: fmt.Sprintf(
			"%d more findings of the server are not listed (at most %d violations and %d warnings are)", g.dropped, maxFiled, maxFiled)})
	}
	g.report.InDocumentOrder()
	subject := Subject{Name: g.spec.Metadata.Name, Dialect: g.spec.Dialect}
	if c := g.in.Catalogue; c != nil {
		g.value.Catalogue = &CatalogueUsed{c.Dialect(), c.Release(), c.Digest()}
	}
	if !g.structured {
		return g.answer(subject, nil), nil
	}
	normalised, sum, err := g.spec.Forms()
	if err != nil {
		g.add("job.json.number", "<root>", "the document has no digest: %v", err)
		return g.answer(subject, nil), nil
	}
	g.value.Spec = normalised
	g.value.SpecDigest, g.value.SpecBytes = sum, digest.FromBytes(g.value.Spec)
	g.value.TotalGPUs = g.spec.TotalGPUs()
	subject.Digest = sum.String()
	d := g.answer(subject, g.value)
	if !d.Allowed {
		return d, nil
	}
	return d, &g.spec
}

// answer is the decision, which names the catalogue whether there is a value or not.
func (g *submissionGate) answer(subject Subject, value any) Decision {
	d := g.report.Decide(Submission, subject, value)
	if g.value.Catalogue != nil {
		d.Catalogue = g.value.Catalogue.Digest.String()
	}
	return d
}

// JobSpecValue is the value of a decision about a JobSpec by itself.
type JobSpecValue struct {
	Spec       json.RawMessage     `json:"spec"` // the normalised document
	SpecDigest digest.Digest       `json:"specDigest"`
	TotalGPUs  int64               `json:"totalGpus"`
	References []jobspec.Reference `json:"references"`
}

// CheckJobSpec is what can be said of a JobSpec without a server: the rules of the document alone. It is the first half of
// gate 2.
func CheckJobSpec(src []byte, file string, opt CheckOptions) Decision {
	spec, report := jobspec.Parse(src, jobspec.Options{Dialect: opt.Dialect, Policy: opt.Policy, File: file})
	report.InDocumentOrder()
	subject := Subject{Name: file, Dialect: report.Dialect}
	if !report.OK() {
		return report.Decide(Submission, subject, nil)
	}
	sum, err := spec.Digest()
	if err != nil {
		report.Add(Violation{Rule: "job.json.number", Field: "<root>", File: file, Message: fmt.Sprintf("the document has no digest: %v", err)})
		return report.Decide(Submission, subject, nil)
	}
	subject.Digest = sum.String()
	return report.Decide(Submission, subject, JobSpecValue{
		Spec: spec.Normalised(), SpecDigest: sum, TotalGPUs: spec.TotalGPUs(), References: slices.Collect(spec.References()),
	})
}
