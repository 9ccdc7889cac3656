package admission

import (
	"fmt"
	"strings"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/jobspec"
)

// ownRules are the kinds of references that the gate itself checks elsewhere.
var ownRules = map[jobspec.RefKind]bool{
	jobspec.RefRecipe: true, jobspec.RefRuntime: true, jobspec.RefImage: true, jobspec.RefSeries: true,
	jobspec.RefAction: true, jobspec.RefPlugin: true,
}

// accessRules are the rules that a reference breaks which is not there, or not for this account (jobspec.md 8).
var accessRules = map[jobspec.RefKind]RuleID{
	jobspec.RefModel: "job.hub.policy", jobspec.RefArtifact: "job.model.init_from.exists",
	jobspec.RefDataset: "job.data.dataset.access", jobspec.RefCorpus: "job.data.dataset.access",
	jobspec.RefVolume: "job.data.volumes.access", jobspec.RefEnvironment: "job.data.environment.access",
	jobspec.RefTaskset: "job.data.environment.access", jobspec.RefBenchmark: "job.evaluation.suites.exists",
	jobspec.RefRun: "job.evaluation.baseline.exists",
}

// quietKinds are not worth a warning when nobody checked them: they lie in the job itself, or are only shown.
var quietKinds = map[jobspec.RefKind]bool{jobspec.RefSource: true, jobspec.RefMetric: true, jobspec.RefURL: true}

// UncheckedKinds are the kinds of references that may be left unchecked, and so refused where the deployment wants that. Source
// and metric lie in the job itself, and a url is only shown.
var UncheckedKinds = []jobspec.RefKind{
	jobspec.RefAlgorithm, jobspec.RefImage, jobspec.RefModel, jobspec.RefArtifact, jobspec.RefDataset, jobspec.RefCorpus,
	jobspec.RefVolume, jobspec.RefEnvironment, jobspec.RefTaskset, jobspec.RefSeries, jobspec.RefTool, jobspec.RefAction, jobspec.RefBenchmark,
	jobspec.RefRubric, jobspec.RefRunner, jobspec.RefRun, jobspec.RefFleet, refHyperparams, refRoles,
}

// What a recipe does not tell of itself leaves unchecked, beside the kinds of package jobspec.
const (
	refHyperparams jobspec.RefKind = "hyperparams"
	refRoles       jobspec.RefKind = "roles"
)

// references asks the resolver about everything that the gate has no rule of its own for. What nobody can check is
// listed, never passed in silence.
func (g *submissionGate) references() {
	faulty := g.faulty()
	for ref := range g.spec.References() {
		if g.violations == maxFiled {
			break // refused, with as many reasons as are told: the rest need not be looked up
		}
		if faulty[g.placeOf(ref, faulty)] {
			continue // the document itself is wrong there: no need to look for what it can't mean
		}
		if ownRules[ref.Kind] || ref.Kind == jobspec.RefAlgorithm && g.spec.Dialect == dialect.TunePlane {
			continue
		}
		if ref.Access == jobspec.AccessWrite && !g.mayWrite(ref) || !g.fromHub(ref) {
			continue
		}
		g.resolve(ref)
	}
	var warn []string
	told := make(map[string]bool)
	for _, u := range g.value.Unchecked {
		if text := fmt.Sprintf("%s %.100q", u.Kind, u.Text); !quietKinds[u.Kind] && !told[text] {
			told[text], warn = true, append(warn, text)
		}
	}
	if n := len(warn); n > 0 {
		more := ""
		if n > 8 {
			warn, more = warn[:8], fmt.Sprintf(" and %d more", n-8)
		}
		g.add("job.reference.unchecked", "", "this registry does not hold, and nobody has checked: %s%s", strings.Join(warn, ", "), more)
	}
}

// faulty are the places at which the document itself breaks a rule.
func (g *submissionGate) faulty() map[string]bool {
	places := make(map[string]bool, len(g.in.Report.Violations))
	for _, v := range g.in.Report.Violations {
		places[v.Pointer] = true
	}
	return places
}

// placeOf is where a reference stands in the document. Without faults nobody needs to know.
func (g *submissionGate) placeOf(ref jobspec.Reference, faulty map[string]bool) string {
	if len(faulty) == 0 {
		return ""
	}
	return g.in.Spec.Place(ref.Path).Pointer
}

// resolve asks about one reference.
func (g *submissionGate) resolve(ref jobspec.Reference) {
	var r Resolution
	if g.in.Resolve != nil {
		r = g.in.Resolve(ref)
	}
	switch r.State {
	case Resolved:
		g.pinEnvironment(ref, r.Version)
		return
	case Unresolved:
		g.unchecked(ref)
		return
	}
	id, ok := accessRules[ref.Kind]
	if !ok {
		id = "job.reference.missing"
	}
	if ref.Access == jobspec.AccessWrite {
		id = "job.data.output_dataset.owner"
	}
	why := r.Detail
	if why == "" {
		why = "it is not there, or not for this account"
	}
	g.add(id, ref.Path, "the %s %.200q: %.200s", ref.Kind, ref.Text, why)
}

// pinEnvironment stores the version that an environment without one was resolved to.
func (g *submissionGate) pinEnvironment(ref jobspec.Reference, version string) {
	if body, named, _ := strings.Cut(ref.Text, "@"); ref.Kind == jobspec.RefEnvironment && strings.TrimSpace(named) == "" && version != "" {
		g.spec.Data.Environment = body + "@" + version
	}
}

// mayWrite asks that a job publishes below its own account only.
func (g *submissionGate) mayWrite(ref jobspec.Reference) bool {
	owner, _, _ := strings.Cut(strings.TrimLeft(ref.Text, "/"), "/")
	if g.in.AnyNamespace || g.in.Account == "" || owner == g.in.Account {
		return true
	}
	g.add("job.data.output_dataset.owner", ref.Path, "the account %s can't publish below %.100q", g.in.Account, owner)
	return false
}
