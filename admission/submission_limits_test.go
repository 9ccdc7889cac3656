package admission

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/gatehouse-registry/gatehouse/admission/catalogue"
	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/jobspec"
	"github.com/gatehouse-registry/gatehouse/digest"
)

// TestSubmissionLimits goes through what the deployment and an account's quota bound, each kept and broken.
func TestSubmissionLimits(t *testing.T) {
	const (
		runtime = `"runtime_id":"verl-0.9.0"`
		pools   = `{"name":"all","series":"h200","nodes":1,"gpus_per_node":8}`
		model   = `"resources"`
		commit  = "0123456789abcdef0123456789abcdef01234567"
	)
	pin := "@" + digest.FromBytes([]byte("image")).String()
	tunePlane := dialect.TunePlane
	found := func(in *SubmissionInput) {
		in.Resolve = func(jobspec.Reference) Resolution { return Resolution{State: Resolved} }
	}
	quota := func(q Quota) func(*SubmissionInput) { return func(in *SubmissionInput) { in.Quota = q } }
	beside := func(profile string, allowed ...string) func(*SubmissionInput) {
		return func(in *SubmissionInput) { in.Quota, in.Beside = Quota{Profiles: allowed}, &Beside{Profile: profile} }
	}
	hubs := func(pinned bool, allowed ...string) func(*SubmissionInput) {
		return func(in *SubmissionInput) { found(in); in.Hubs, in.PinHubs = allowed, pinned }
	}
	demand := func(in *SubmissionInput) { in.PinImages = true }
	for _, tt := range []submissionCase{
		{name: "the last job", input: quota(Quota{MaxJobs: 3, Jobs: 2})},
		{name: "a job too many", input: quota(Quota{MaxJobs: 3, Jobs: 3}), rule: "job.quota.jobs", says: []string{"3"}},
		{name: "a lowered number of jobs", input: quota(Quota{MaxJobs: 1, Jobs: 3}), rule: "job.quota.jobs", says: []string{"1", "3"}},
		{name: "the last GPUs", input: quota(Quota{Limit: 16, InUse: 8})},
		{name: "a GPU too many", input: quota(Quota{Limit: 16, InUse: 9}), rule: "job.quota.gpus", says: []string{"8", "16", "9"}},
		{name: "GPUs over pools", replace: []string{pools, pools + `,{"name":"more","series":"h200","gpus_per_node":1}`, `"rollout":"all"`, `"rollout":"more"`}, input: quota(Quota{Limit: 8}), rule: "job.quota.gpus", says: []string{"9"}},

		{name: "an allowed profile", input: quota(Quota{Profiles: []string{"plain", "h200"}})},
		{name: "another profile", input: quota(Quota{Profiles: []string{"plain"}}), rule: "job.quota.profiles", says: []string{"h200", "plain"}},
		{name: "any profile", input: quota(Quota{Profiles: []string{}})},
		{name: "no series, limited", replace: []string{`"series":"h200",`, ``}, input: quota(Quota{Profiles: []string{"plain"}}), rule: "job.quota.profiles", says: []string{"no series", "plain"}},
		{name: "no series, not limited", replace: []string{`"series":"h200",`, ``}, input: quota(Quota{})},
		{name: "no series, but an allowed profile beside", replace: []string{`"series":"h200",`, ``}, input: beside("plain", "plain")},
		{name: "no series, and another profile beside", replace: []string{`"series":"h200",`, ``}, input: beside("h200", "plain"), rule: "job.quota.profiles", says: []string{"h200", "plain"}},
		{name: "no GPUs, limited", d: tunePlane, replace: []string{pools, `{"name":"all","gpus_per_node":0,"cpus":1,"memory_gb":1}`}, input: quota(Quota{Profiles: []string{"plain"}})},

		{name: "a tag", replace: []string{runtime, runtime + `,"image":"registry.example/x:1"`}, rule: "job.framework.image.unpinned", warns: true},
		{name: "a digest", replace: []string{runtime, runtime + `,"image":"registry.example/x` + pin + `"`}},
		{name: "a tag and a digest", replace: []string{runtime, runtime + `,"image":"registry.example/x:1` + pin + `"`}, input: demand},
		{name: "a tag where a digest is demanded", replace: []string{runtime, runtime + `,"image":"registry.example/x:1"`}, input: demand, rule: "job.framework.image.digest", says: []string{"registry.example/x:1", "sha256:"}},
		{name: "a digest where one is demanded", replace: []string{runtime, runtime + `,"image":"registry.example/x` + pin + `"`}, input: demand},

		{name: "a hub, all allowed", d: tunePlane, replace: []string{model, `"model":{"base":"hf:a/b"},` + model}, input: found},
		{name: "an allowed hub", d: tunePlane, replace: []string{model, `"model":{"base":"huggingface:a/b"},` + model}, input: hubs(false, "tp", "hf")},
		{name: "a hub that is not allowed", d: tunePlane, replace: []string{model, `"model":{"base":"ms:a/b"},` + model}, input: hubs(false, "tp", "hf"), rule: "job.hub.policy", says: []string{"ms:a/b", "tp, hf"}},
		{name: "a data set of a hub that is not allowed", d: tunePlane, replace: []string{model, `"data":{"train":{"dataset":"hf:a/b"}},` + model}, input: hubs(false, "tp"), rule: "job.hub.policy", says: []string{"hf:a/b", "allows tp"}},
		{name: "the platform, without a revision", d: tunePlane, replace: []string{model, `"model":{"base":"a/b"},` + model}, input: hubs(true, "tp")},
		{name: "a branch where a commit is demanded", d: tunePlane, replace: []string{model, `"model":{"base":"hf:a/b@main"},` + model}, input: hubs(true, "hf"), rule: "job.hub.policy", says: []string{"40 hex"}},
		{name: "a commit where one is demanded", d: tunePlane, replace: []string{model, `"model":{"base":"hf:a/b@` + commit + `"},` + model}, input: hubs(true, "hf")},
		{name: "a path is on no hub", d: tunePlane, replace: []string{model, `"model":{"base":"/models/a"},` + model}, input: hubs(true, "tp")},
		{name: "forge has no hubs", d: dialect.Forge, replace: []string{model, `"model":{"base":"hf:a/b"},` + model}, input: hubs(true, "tp")},
	} {
		dialects := dialect.All
		if tt.d != "" {
			dialects = []dialect.Dialect{tt.d}
		}
		for _, d := range dialects {
			t.Run(string(d)+"/"+tt.name, func(t *testing.T) { tt.check(t, d) })
		}
	}
}

// TestSubmissionTruncated checks that what the gate finds of thousands of names is bounded, and that the rest is counted.
func TestSubmissionTruncated(t *testing.T) {
	names := make([]string, 2000)
	for i := range names {
		names[i] = fmt.Sprintf("%q", fmt.Sprintf("action%d", i))
	}
	src := strings.Replace(document(dialect.Forge), `"plugins":[`, `"lifecycle":{"on_success":[`+strings.Join(names, ",")+`]},"plugins":[`, 1)
	in := inputOf(t, dialect.Forge, src)
	lifecycle(&in)
	decision, spec := CheckSubmission(in)
	if decision.Allowed || spec != nil || len(decision.Violations) != maxFiled || decision.Violations[0].Rule != "job.lifecycle.on_success.recipe" {
		t.Errorf("allowed %v with %d violations", decision.Allowed, len(decision.Violations))
	}
	if !slices.ContainsFunc(decision.Warnings, func(v Violation) bool {
		return v.Rule == "job.report.truncated" && strings.Contains(v.Message, "1500 more")
	}) {
		t.Errorf("the rest is not told: %v", decision.Warnings)
	}
}

// TestSubmissionLooksUp checks that nothing more is looked up for a job that is refused for as much as is told.
func TestSubmissionLooksUp(t *testing.T) {
	names := make([]string, 5000)
	for i := range names {
		names[i] = fmt.Sprintf("%q", fmt.Sprintf("suite%d", i))
	}
	src := strings.Replace(document(dialect.Forge), `"plugins":[`, `"evaluation":{"suites":[`+strings.Join(names, ",")+`]},"plugins":[`, 1)
	in := inputOf(t, dialect.Forge, src)
	asked := 0
	in.Resolve = func(jobspec.Reference) Resolution {
		asked++
		return Resolution{State: NotFound}
	}
	if d, _ := CheckSubmission(in); d.Allowed || asked > maxFiled {
		t.Errorf("allowed %v after %d look-ups", d.Allowed, asked)
	}
}

// lifecycle gives the recipe of the catalogue an action.
func lifecycle(in *SubmissionInput) {
	e, _ := in.Catalogue.Lookup("verl/tune")
	e.Lifecycle = []string{"export"}
	in.Catalogue = catalogue.New(in.Catalogue.Dialect(), in.Catalogue.Release(), []catalogue.Entry{e}, in.Catalogue.Bundled())
}
