// Package jobbuild makes the JobSpec that the real client of a dialect would send for the same project, flags and catalogue
// (recipes-and-locks.md 6), and what it sends beside it.
//
// The contract:
//   - Build is a pure function of plain values. The same input gives the same bytes, and they are the bytes that the
//     client's own serialiser writes, key for key.
//   - What the client refuses while it builds is refused here, all of it at once, each with the option or field, what was
//     found, what was expected and how to mend it. What the client leaves to the server is left to it here too: gate 2
//     says it, and a caller who wants to hear it earlier asks admission/jobspec.
//   - Two things differ, both for the user's sake: --output-dataset is sent, which the clients check and then forget, and
//     a hyperparameter that is NaN or infinite is refused, since no JSON can carry it (recipes-and-locks.md 0.11).
package jobbuild

import (
	"fmt"

	"github.com/gatehouse-registry/gatehouse/admission/catalogue"
	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/jobspec"
	"github.com/gatehouse-registry/gatehouse/admission/lock"
	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
)

// Input is all that a job is made from.
type Input struct {
	Dialect          dialect.Dialect
	Release          string // of the client that the job is built as: provenance.core_version
	Recipe           Recipe
	FrameworkVersion string // of the lock; "" is the recipe's default
	Exp              string // path of the experiment as the user wrote it: a slash at the end is kept
	Project          string
	Config           *pyvalue.Value // config.yaml with its defaults merged; nil when there is none
	Plugins          lock.Plugins
	Profiles         []Profile // what the server has, of GET /api/cluster/status
	Provenance       Provenance
	Options          Options
}

// Provenance says what the project was when the job was built.
type Provenance struct {
	GitCommit string // abbreviated as git does; "" without git or commit
	GitDirty  bool
	ConfigSHA string // first 12 hex digits of sha256 of config.yaml, or "none"
}

// Options are what the user chose for this one submission, as texts of the command line. Empty ones are not given.
type Options struct {
	Profiles          []string // [<role>,…=]<profile>[:<gpus>]
	Sets              []string // <parameter>=<value>
	InitFrom          string
	Model             string
	TrainData         string
	ValidationData    string
	TrainDataset      string
	ValidationDataset string
	OutputDataset     string
	Environment       string
	Taskset           string // tuneplane
	Volumes           []string
	Image             string
	ObservabilityURL  string
	Then              []string // actions after success
	NoValidate        bool     // the hyperparameters, roles and actions are not held to the recipe, and no default is filled in
}

// Recipe is the method of the job as the client's catalogue has it.
type Recipe struct {
	catalogue.Entry
	// Bundled is the framework integration that the client adds to spec.plugins; nil when it adds none (jobspec.md 9).
	Bundled *jobspec.Plugin
}

// RecipeOf is a recipe of a client release with the integration that ships in the release.
func RecipeOf(c *catalogue.Catalogue, e catalogue.Entry) Recipe {
	r := Recipe{Entry: e}
	if sum, ok := c.BundledDigest(e.Integration, c.Release()); ok {
		r.Bundled = &jobspec.Plugin{ID: e.Integration, Version: c.Release(), Digest: sum}
	}
	return r
}

// Job is a submission without its package.
type Job struct {
	Spec     *jobspec.Spec
	Document []byte // the JobSpec: compact JSON in the clients' key order
	Meta     Meta
}

// Build makes a job. The report says what the client would refuse; then the job is not to be sent.
func Build(in Input) (Job, rule.Report) {
	b := &builder{in: in, opt: in.Options, report: rule.Report{Dialect: in.Dialect}}
	spec := &jobspec.Spec{Dialect: in.Dialect}
	profile := b.resources(spec)
	b.identity(spec)
	b.runtime(spec)
	b.inputs(spec)
	b.hyperparams(spec)
	b.actions(spec)
	b.fromDocument(spec)
	spec.Provenance = jobspec.Provenance{
		CoreVersion: in.Release, GitCommit: in.Provenance.GitCommit, GitDirty: in.Provenance.GitDirty, ConfigSHA: in.Provenance.ConfigSHA,
	}
	if !b.report.OK() {
		return Job{}, b.report
	}
	job := Job{Spec: spec, Document: spec.Normalised()}
	job.Meta = Meta{
		Exp: in.Exp, Profile: profile, GitCommit: in.Provenance.GitCommit, GitDirty: in.Provenance.GitDirty,
		ConfigSHA: in.Provenance.ConfigSHA, Project: in.Project,
	}
	return job, b.report
}

// builder makes one job.
type builder struct {
	in     Input
	opt    Options
	report rule.Report
}

// bad files a violation. where is an option, such as --profile, or a field of the spec.
func (b *builder) bad(id rule.ID, where, format string, args ...any) {
	b.report.Add(rule.Violation{Rule: id, Field: where, Message: fmt.Sprintf(format, args...)})
}

// hinted is bad with a fix of its own.
func (b *builder) hinted(id rule.ID, where, hint, format string, args ...any) {
	b.report.Add(rule.Violation{Rule: id, Field: where, Message: fmt.Sprintf(format, args...), Hint: hint})
}

// validate reports whether the job is held to the recipe.
func (b *builder) validate() bool { return !b.opt.NoValidate }
