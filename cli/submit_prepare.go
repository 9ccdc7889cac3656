package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gatehouse-registry/gatehouse/admission/catalogue"
	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/lock"
	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/cli/jobbuild"
	"github.com/gatehouse-registry/gatehouse/cli/jobpackage"
	"github.com/gatehouse-registry/gatehouse/cli/project"
)

// knowledge is what a submission is built against: what one client release can submit to the server, and what hardware the
// server has.
type knowledge struct {
	catalogue *catalogue.Catalogue
	profiles  []jobbuild.Profile
}

// submitOptions are the choices of one submission.
type submitOptions struct {
	jobbuild.Options
	method           string
	frameworkVersion string
	upgradeRecipe    bool
	allowDirty       bool
	writes           bool  // files of the project may be changed: --upgrade-recipe
	maxWalk          int64 // bytes of a package that no git listed; 0: no bound
}

// submission is a job that is ready to be sent.
type submission struct {
	project  *project.Project
	exp      *project.Experiment
	lock     lock.Inspection
	job      jobbuild.Job
	files    jobpackage.List
	warnings []string
	upgraded []lock.Change // what --upgrade-recipe changed in the lock
}

// preparation makes one submission.
type preparation struct {
	submission
	know   knowledge
	opt    submitOptions
	report rule.Report
}

// prepare builds the job of an experiment and lists its files, as the real client of the project's dialect would. What is
// wrong is a *rule.Denied of the submission gate, which holds everything that was found up to the step that failed: the
// lock, then the job and its files together.
func prepare(ctx context.Context, p *project.Project, exp string, know knowledge, opt submitOptions) (submission, error) {
	s := &preparation{know: know, opt: opt, report: rule.Report{Dialect: p.Dialect}}
	s.project = p
	var err error
	if s.exp, err = p.Experiment(exp); err != nil {
		return s.submission, err
	}
	if err := p.CheckName(); err != nil {
		s.fault("submit.project", err)
	}
	if err := s.profiles(); err != nil {
		return s.submission, err
	}
	if opt.upgradeRecipe {
		if err := s.upgrade(); err != nil {
			return s.submission, s.denied(err)
		}
	}
	provenance, err := s.provenance(ctx)
	if err != nil {
		return s.submission, err
	}
	entry, ok := s.checkLock()
	if !ok {
		return s.submission, s.denied(nil)
	}
	if err := s.build(entry, provenance); err != nil {
		return s.submission, err
	}
	files, report, err := jobpackage.Find(ctx, jobpackage.Project{Root: p.Root, Dialect: p.Dialect, Exp: s.exp.Path, MaxWalk: opt.maxWalk})
	if err != nil {
		return s.submission, err
	}
	s.files = files
	s.report.Merge(report)
	if untracked := files.Untracked(); len(untracked) > 0 {
		s.warn("%d files that git does not track travel with the job, and no commit tells what they were: %s", len(untracked), someOf(untracked, 20))
	}
	return s.submission, s.denied(nil)
}

// denied is the refusal of what was found, nil when nothing was. other is a further error: one that is a *lock.Refused or a
// *project.Fault joins the refusal, any other is given back.
func (s *preparation) denied(other error) error {
	if other != nil && !s.fault("submit.lock", other) {
		return other
	}
	d := s.report.Decide(rule.Submission, rule.Subject{Name: s.exp.Path, Dialect: s.project.Dialect}, nil)
	return d.Err()
}

// fault files what is wrong with a file of the project. It reports whether the error is such.
func (s *preparation) fault(id rule.ID, err error) bool {
	if f, ok := errors.AsType[*project.Fault](err); ok {
		s.report.Add(rule.Violation{Rule: id, File: f.File, Line: f.Line, Column: f.Column, Field: f.Field, Message: f.Message, Hint: f.Hint})
		return true
	}
	if refused, ok := errors.AsType[*lock.Refused](err); ok {
		s.refusedLock(refused.Inspection)
		return true
	}
	return false
}

func (s *preparation) refusedLock(i lock.Inspection) {
	v := rule.Violation{Rule: "submit.lock", File: i.Path, Message: strings.TrimPrefix(i.Message, i.Path+": ")}
	if f := i.Fault(); f != nil {
		v.Line, v.Column, v.Field, v.Message, v.Hint = f.Line, f.Column, f.Field, f.Message, f.Hint
	}
	s.report.Add(v)
}

func (s *preparation) warn(format string, args ...any) {
	s.warnings = append(s.warnings, fmt.Sprintf(format, args...))
}

// profiles takes the profile of the experiment's file cluster when the command line names none.
func (s *preparation) profiles() error {
	var given []string
	for _, text := range s.opt.Profiles {
		if pyvalue.Strip(text) != "" {
			given = append(given, text)
		}
	}
	if len(given) == 0 && s.exp.IsFile("cluster") {
		text, err := s.exp.Read("cluster")
		if err != nil {
			return err
		}
		if name := pyvalue.Strip(strings.ToValidUTF8(string(text), "\uFFFD")); name != "" {
			given = []string{name}
		}
	}
	s.opt.Profiles = given
	return nil
}

// upgrade brings the recipe lock to the catalogue before anything looks at it.
func (s *preparation) upgrade() error {
	plan, err := s.exp.PlanUpgrade(s.know.catalogue, s.opt.method, lock.Upgrade{FrameworkVersion: pyvalue.Strip(s.opt.frameworkVersion)})
	if err != nil {
		return err
	}
	s.upgraded = plan.Changes
	if s.opt.writes {
		return s.exp.WriteRecipeLock(plan.Text)
	}
	s.lock = plan.Inspection
	return nil
}

// provenance asks git, and refuses what can't be traced to a commit without being told to.
func (s *preparation) provenance(ctx context.Context) (jobbuild.Provenance, error) {
	state, err := jobpackage.Inspect(ctx, s.project.Root)
	if err != nil {
		return jobbuild.Provenance{}, err
	}
	facts, err := s.project.Git()
	if err != nil {
		return jobbuild.Provenance{}, err
	}
	sum, err := s.exp.ConfigSHA()
	if err != nil {
		return jobbuild.Provenance{}, err
	}
	missing := map[jobpackage.State]string{
		jobpackage.NoGit: "git is not installed", jobpackage.NoRepository: "the project is in no git repository", jobpackage.NoCommit: "the project has no commit yet",
	}[state]
	switch {
	case missing != "" && s.project.Dialect == dialect.Forge:
		s.report.Add(rule.Violation{Rule: "submit.provenance", Field: "provenance.git_commit", Message: missing + ", expected a commit that tells what the job runs", Hint: "Run git init and commit the project once."})
	case missing != "":
		s.warn("%s, so the job records no commit, and what it ran can't be found in the code later", missing)
	case facts.Dirty && !s.opt.allowDirty:
		s.report.Add(rule.Violation{Rule: "submit.provenance", Field: "provenance.git_dirty", Message: "the project has changes that are not committed, expected none: no commit would tell what the job runs"})
	}
	return jobbuild.Provenance{GitCommit: facts.Commit, GitDirty: facts.Dirty, ConfigSHA: sum}, nil
}

// checkLock holds the recipe lock to the catalogue, and unless told not to the experiment to its recipe. It gives the
// recipe; ok is false when the job can't be built.
func (s *preparation) checkLock() (entry catalogue.Entry, ok bool) {
	if s.lock.State == "" {
		s.lock = s.exp.Inspect(s.know.catalogue, s.opt.method)
	}
	if !s.lock.Admits {
		s.refusedLock(s.lock)
		return entry, false
	}
	if advice := s.lock.Advisory(); advice != "" {
		s.warn("%s", advice)
	}
	entry, ok = s.lock.Entry()
	if chosen := pyvalue.Strip(s.opt.frameworkVersion); chosen != "" && s.lock.FrameworkVersion != chosen {
		s.report.Add(rule.Violation{
			Rule: "submit.lock", File: s.lock.Path, Field: "framework.version", Message: fmt.Sprintf("found %.60q, expected %.60q as --framework-version says", s.lock.FrameworkVersion, chosen),
			Hint: "Run sf recipe upgrade " + s.exp.Path + " --framework-version " + chosen + ", or submit with --upgrade-recipe.",
		})
	}
	if s.opt.NoValidate {
		return entry, ok
	}
	if s.project.Dialect == dialect.Forge && !slices.Contains(forgeConfigs, entry.Framework) {
		s.report.Add(rule.Violation{
			Rule: "submit.framework", Field: "spec.framework.kind", Message: fmt.Sprintf("forge's client knows no configs of %.60q, expected one of %s", entry.Framework, strings.Join(forgeConfigs, ", ")),
		})
	}
	warnings, err := s.exp.CheckConfig(entry)
	if err != nil && !s.fault("submit.config", err) {
		s.report.Add(rule.Violation{Rule: "submit.config", File: s.exp.Path + "/" + project.ConfigFile, Message: err.Error()})
	}
	s.warnings = append(s.warnings, warnings...)
	return entry, ok
}

// forgeConfigs are the frameworks whose configs forge's client can check. It submits no other experiment unless told not to
// check, its own ones of openrlhf among them (recipes-and-locks.md 5).
var forgeConfigs = []string{"nemo-rl", "verl", "trl", "pytorch", "evalkit", "custom"}

// build makes the job.
func (s *preparation) build(entry catalogue.Entry, provenance jobbuild.Provenance) error {
	plugins, err := s.exp.PluginsLock()
	if err != nil && !s.fault("submit.lock", err) {
		return err
	}
	config, err := s.exp.Config()
	if err != nil {
		// The clients then build as if the file were empty, and say nothing of it.
		config = nil
		s.warn("the job has no data set, no volume and no evaluation of %s, which can't be read whole: %v", project.ConfigFile, err)
	}
	job, report := jobbuild.Build(jobbuild.Input{
		Dialect: s.project.Dialect, Release: s.know.catalogue.Release(), Recipe: jobbuild.RecipeOf(s.know.catalogue, entry),
		FrameworkVersion: s.lock.FrameworkVersion, Exp: s.exp.Typed, Project: s.project.Name, Config: config, Plugins: plugins,
		Profiles: s.know.profiles, Provenance: provenance, Options: s.opt.Options,
	})
	s.report.Merge(report)
	s.job = job
	return nil
}

// someOf lists at most n names.
func someOf(names []string, n int) string {
	if len(names) <= n {
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:n], ", ") + fmt.Sprintf(" and %d more", len(names)-n)
}
