package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gatehouse-registry/gatehouse/admission"
	"github.com/gatehouse-registry/gatehouse/admission/catalogue"
	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/lock"
	"github.com/gatehouse-registry/gatehouse/admission/pack"
	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/cli/jobbuild"
	"github.com/gatehouse-registry/gatehouse/cli/jobpackage"
	"github.com/gatehouse-registry/gatehouse/cli/project"
)

// validate says what is wrong with experiments as far as this computer knows.
func (a app) validate() *cobra.Command {
	var flags experimentFlags
	cmd := &cobra.Command{
		Use: "validate [EXPERIMENT | --all]", Short: "Say what is wrong with an experiment, without a server", Args: cobra.MaximumNArgs(1),
		ValidArgsFunction: a.completeExperiments,
		Long: `Say everything that can be known to be wrong with an experiment, or with every one that has a recipe lock, without a server:
the project's name, both locks, config.yaml and what it inherits, its values against the method's parameters, and the job
that would be built, by the rules of the submission gate for the document. What a submission is given on its command line
(hardware, data, an image) is not needed; the answer names it. A lock that a submission refuses ends the command with 1,
anything else that is wrong with 3.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			p, c, err := flags.open(a)
			if err != nil {
				return err
			}
			experiments, err := flags.experiments(p, args)
			if err != nil {
				return err
			}
			results := make([]validation, len(experiments))
			for i, e := range experiments {
				if results[i], err = validateExperiment(cmd.Context(), p, e, c); err != nil {
					return err
				}
			}
			return a.printValidations(results)
		},
	}
	flags.add(cmd)
	return cmd
}

// validation is what was found about one experiment.
type validation struct {
	Experiment string           `json:"experiment"`
	Lock       lock.State       `json:"lock"`
	Valid      bool             `json:"valid"`
	Violations []rule.Violation `json:"violations"`
	Warnings   []string         `json:"warnings"`
	Needs      []string         `json:"needs"` // options that a submission has to give
}

// exit is the status that it ends with.
func (v validation) exit() int {
	switch {
	case !v.Lock.Admits():
		return exitError
	case !v.Valid:
		return exitRefused
	}
	return exitOK
}

// unknownYet stands for what only a submission is given: it passes the rules of the document and is shown to nobody.
const (
	anyProfile = "hardware"
	anyPath    = "data"
	anyModel   = "any/model"
	anyCommit  = "0000000"
	anyURL     = "https://observability.invalid/run"
	anyImage   = "registry.invalid/image@sha256:0000000000000000000000000000000000000000000000000000000000000000"
)

// validateExperiment is an error only when the experiment could not be looked at.
func validateExperiment(ctx context.Context, p *project.Project, e *project.Experiment, c *catalogue.Catalogue) (validation, error) {
	s := &preparation{report: rule.Report{Dialect: p.Dialect}, know: knowledge{
		catalogue: c, profiles: []jobbuild.Profile{{Name: anyProfile, Nodes: 1, GPUsPerNode: 1}},
	}}
	s.project, s.exp, s.lock = p, e, e.Inspect(c, "")
	s.opt.Options = jobbuild.Options{Profiles: []string{anyProfile}, NoValidate: true}
	v := validation{Experiment: e.Path, Lock: s.lock.State, Warnings: []string{}, Needs: []string{"--profile"}}
	if err := p.CheckName(); err != nil {
		s.fault("submit.project", err)
	}
	if entry, ok := s.checkLock(); ok {
		v.standIn(entry, &s.opt.Options)
		if err := v.config(s, entry); err != nil {
			return v, err
		}
		if err := s.build(entry, jobbuild.Provenance{GitCommit: anyCommit, ConfigSHA: "none"}); err != nil {
			return v, err
		}
	}
	if err := v.files(ctx, s); err != nil {
		return v, err
	}
	v.Violations = append([]rule.Violation{}, s.report.Violations...)
	v.Warnings = append(v.Warnings, s.warnings...)
	if s.job.Document != nil && len(v.Violations) == 0 {
		d := admission.CheckJobSpec(s.job.Document, "", admission.CheckOptions{Dialect: p.Dialect})
		v.Violations = append(v.Violations, d.Violations...)
		for _, w := range d.Warnings {
			v.Warnings = append(v.Warnings, w.String())
		}
	}
	v.Valid = len(v.Violations) == 0
	return v, nil
}

// files looks at what would travel with the job, where that is known: a forge project in no repository has no list of it.
func (v *validation) files(ctx context.Context, s *preparation) error {
	state, err := jobpackage.Inspect(ctx, s.project.Root)
	if err != nil {
		return err
	}
	if !state.Lists() && s.project.Dialect == dialect.Forge {
		s.warn("the project is in no git repository: a submission needs one, with a commit")
		return nil
	}
	bound, err := walkBound("")
	if err != nil {
		return err
	}
	_, report, err := jobpackage.Find(ctx, jobpackage.Project{Root: s.project.Root, Dialect: s.project.Dialect, Exp: s.exp.Path, MaxWalk: bound})
	s.report.Merge(report)
	return err
}

// standIn gives what the recipe needs and only a submission has, and notes it.
func (v *validation) standIn(e catalogue.Entry, o *jobbuild.Options) {
	need := func(option string, to *string, value string) {
		*to = value
		v.Needs = append(v.Needs, option)
	}
	for _, input := range e.RequiredInputs {
		switch input {
		case "model":
			need("--model", &o.Model, anyModel)
		case "train_data":
			need("--train-data", &o.TrainData, anyPath)
		case "validation_data":
			need("--validation-data", &o.ValidationData, anyPath)
		}
	}
	if e.Observability == catalogue.External {
		need("--observability-url", &o.ObservabilityURL, anyURL)
	}
	if variant, ok := e.Variant(e.DefaultVersion); ok && variant.RuntimeID == "" {
		need("--image", &o.Image, anyImage)
	}
	if e.Params == nil {
		return
	}
	for name, p := range e.Params.All() {
		if p.Required {
			v.Needs = append(v.Needs, "--set "+name+"=")
		}
	}
}

// config holds the experiment's config.yaml to its recipe: it can be read, and the values that it writes down itself at the
// places of the recipe's parameters fit them. A value that does not is a warning: the clients send the file as it is, and
// the framework decides.
func (v *validation) config(s *preparation, entry catalogue.Entry) error {
	e, file := s.exp, s.exp.Path+"/"+project.ConfigFile
	warnings, err := e.CheckConfig(entry)
	if err != nil {
		if !s.fault("submit.config", err) {
			return err
		}
		return nil
	}
	s.warnings = append(s.warnings, warnings...)
	own, err := e.Project.ConfigAlone(file)
	if err != nil || entry.Params == nil {
		return nil // CheckConfig said what there is to say of a file that can't be read
	}
	given := &pyvalue.Value{Kind: pyvalue.Map}
	paths := make(map[string]string)
	for name, p := range entry.Params.All() {
		if at, set := lock.At(own, p.Path); set && at.Kind != pyvalue.None && !strings.Contains(at.Text, "${") {
			given.Items = append(given.Items, pyvalue.Item{Key: pyvalue.NewStr(name), Value: at})
			paths["spec.hyperparams."+name] = p.Path
		}
	}
	recipe := pack.Recipe{Framework: entry.Framework, Name: entry.Method(), Params: *entry.Params}
	_, report := recipe.CheckHyperparams(given, "")
	for _, found := range report.Violations {
		if path, ok := paths[found.Field]; ok && found.Line > 0 {
			v.Warnings = append(v.Warnings, fmt.Sprintf("%s:%d:%d: %s: %s", file, found.Line, found.Column, path, found.Message))
		}
	}
	return nil
}

func (a app) printValidations(results []validation) error {
	worst := exitOK
	for _, v := range results {
		// A lock that stops a submission is what a caller has to hear first.
		if code := v.exit(); worst == exitOK || code == exitError {
			worst = code
		}
	}
	if a.opt.json {
		if err := a.env.writeJSON(map[string]any{"experiments": results, "valid": worst == exitOK}); err != nil {
			return err
		}
	} else {
		if len(results) == 0 {
			fmt.Fprintln(a.env.Err, "no experiment has a recipe lock")
		}
		for _, v := range results {
			a.printValidation(v)
		}
	}
	if worst != exitOK {
		return exitStatus{worst}
	}
	return nil
}

func (a app) printValidation(v validation) {
	word := "valid"
	if !v.Valid {
		word = fmt.Sprintf("%d wrong", len(v.Violations))
	}
	fmt.Fprintf(a.env.Out, "%s: %s (lock %s)\n", printable(v.Experiment), word, v.Lock)
	for _, found := range v.Violations {
		printViolation(a.env, red, "violation", found)
	}
	for _, w := range slices.Compact(v.Warnings) {
		fmt.Fprintf(a.env.Err, "  %s %s\n", a.env.paint(yellow, "warning:"), printable(w))
	}
	if v.Valid {
		fmt.Fprintf(a.env.Out, "   next: sf submit %s %s …\n", strings.TrimPrefix(v.Experiment, project.ExperimentsDir+"/"), printable(strings.Join(v.Needs, " … ")))
	}
}
