package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/admission/receipt"
	"github.com/gatehouse-registry/gatehouse/cli/jobbuild"
	"github.com/gatehouse-registry/gatehouse/cli/jobpackage"
	"github.com/gatehouse-registry/gatehouse/internal/durable"
	"github.com/gatehouse-registry/gatehouse/registry/api/wire"
	"github.com/gatehouse-registry/gatehouse/registry/client"
)

// submitFlags are the flags of submit.
type submitFlags struct {
	projectFlags
	releaseFlag // of the client that the job is built as
	submitOptions

	yes, dry, preview bool
	receipt, save     string // where the receipt, or spec and receipt, of the job are written
	jobspec, pkg      string // a document, and a package, made elsewhere
	commit            string // a preview that was saved
}

const submitHelp = `Build the job of an experiment as the project's own client would, show it, ask, and submit it with its files.

Works in projects of both clients (starforge.yaml, tuneplane.yaml): the recipe and its version come from the experiment's
recipe.lock.json, plugins from plugins.lock.json, data sets, volumes and evaluation from config.yaml, all else from the
options. The gate is asked before anything is sent: what it would refuse is said without an upload.

  sf submit EXPERIMENT              build, show, ask, submit
  sf submit EXPERIMENT --dry-run    build and ask the gate; nothing is stored
  sf submit EXPERIMENT --preview    (tuneplane) upload and decide; sf submit --commit ID makes the job
  sf submit --jobspec FILE          submit a JobSpec as it is, with --package FILE if it has one

--receipt FILE keeps the signed receipt. --save DIR lays out what sf launch reads: the stored spec in .starforge/ or
.tuneplane/ of the job directory DIR, and the receipt beside it in DIR.receipt.json.`

// submit builds a job and sends it to gate 2.
func (a app) submit() *cobra.Command {
	var f submitFlags
	cmd := &cobra.Command{
		Use:   "submit EXPERIMENT [--profile PROFILE]... [flags]",
		Short: "Submit an experiment, or a JobSpec, of either dialect",
		Long:  submitHelp,
		Args:  cobra.MaximumNArgs(1), ValidArgsFunction: a.completeExperiments,
		RunE: func(cmd *cobra.Command, args []string) error {
			sources := len(args)
			for _, given := range []string{f.jobspec, f.commit} {
				if given != "" {
					sources++
				}
			}
			switch {
			case sources != 1:
				return usagef("name one thing to submit: an experiment, --jobspec FILE or --commit ID")
			case f.pkg != "" && f.jobspec == "":
				return usagef("--package goes with --jobspec: the files of an experiment are packed from the project")
			case f.jobspec != "":
				return a.submitDocument(cmd.Context(), f)
			case f.commit != "":
				return a.submitCommit(cmd.Context(), f)
			}
			return a.submitExperiment(cmd.Context(), args[0], f)
		},
	}
	f.flags(cmd)
	return cmd
}

// flags defines the flags; those that the real clients have are spelled as theirs.
func (f *submitFlags) flags(cmd *cobra.Command) {
	f.projectFlags.add(cmd)
	f.releaseFlag.add(cmd)
	fs := cmd.Flags()
	o := &f.Options
	fs.StringArrayVar(&o.Profiles, "profile", nil, "hardware: [ROLE,…=]PROFILE[:GPUS], such as h200, h200:4 or actor,rollout=h200:8; repeat it for several pools")
	fs.StringVarP(&f.method, "method", "m", "", "the recipe, which must be the one that the lock names")
	fs.StringArrayVarP(&o.Sets, "set", "s", nil, "a hyperparameter, PARAMETER=VALUE; repeat it")
	fs.StringVar(&o.InitFrom, "init-from", "", "start from what another run made: run/RUN/KIND[@step=N]")
	fs.StringVar(&o.Model, "model", "", "the base model: a path or a hub reference")
	fs.StringVar(&o.TrainData, "train-data", "", "path of the training data, in its data set if there is one")
	fs.StringVar(&o.ValidationData, "validation-data", "", "path of the validation data")
	fs.StringVar(&o.TrainDataset, "train-dataset", "", "OWNER/NAME[@VERSION], in place of config.yaml's data.train.dataset")
	fs.StringVar(&o.ValidationDataset, "validation-dataset", "", "OWNER/NAME[@VERSION], in place of config.yaml's")
	fs.StringVar(&o.OutputDataset, "output-dataset", "", "OWNER/NAME@VERSION that the job writes")
	fs.StringArrayVar(&o.Volumes, "volume", nil, "OWNER/NAME to mount, besides those of config.yaml; repeat it")
	fs.StringVar(&o.Environment, "environment", "", "OWNER/NAME[@VERSION] of an environment")
	fs.StringVar(&o.Taskset, "taskset", "", "OWNER/NAME@VERSION of a task set (tuneplane)")
	fs.StringVar(&o.Image, "image", "", "the job's image, in place of the runtime's own")
	fs.StringArrayVar(&o.Then, "then", nil, "an action after success, export or eval; repeat it")
	fs.StringVar(&o.ObservabilityURL, "observability-url", "", "where a run that is watched elsewhere is seen")
	fs.StringVar(&f.frameworkVersion, "framework-version", "", "the version that the lock must have, or with --upgrade-recipe gets")
	fs.BoolVar(&f.upgradeRecipe, "upgrade-recipe", false, "bring the recipe lock to the catalogue first; --dry-run writes nothing")
	fs.BoolVar(&f.allowDirty, "allow-dirty", false, "submit changes that are not committed")
	fs.BoolVar(&o.NoValidate, "no-validate", false, "do not hold the experiment to its recipe; the gate still does")
	fs.BoolVarP(&f.yes, "yes", "y", false, "submit without asking")
	fs.BoolVar(&f.dry, "dry-run", false, "ask the gate and store nothing")
	fs.BoolVar(&f.preview, "preview", false, "upload and have the gate decide, and make no job yet (tuneplane)")
	fs.StringVar(&f.commit, "commit", "", "make the job of a preview: its ID, or a FILE that holds its answer")
	fs.StringVar(&f.receipt, "receipt", "", "write the signed receipt to this file")
	fs.StringVar(&f.save, "save", "", "write the stored spec and the receipt for this job directory")
	fs.StringVar(&f.jobspec, "jobspec", "", "submit this JobSpec instead of an experiment")
	fs.StringVar(&f.pkg, "package", "", "the job package of --jobspec, a gzip tar")
}

// submitExperiment builds, shows, asks and sends.
func (a app) submitExperiment(ctx context.Context, exp string, f submitFlags) error {
	if info, err := os.Stat(exp); err == nil && info.Mode().IsRegular() {
		return usagef("%s is a file, expected the name of an experiment: a JobSpec is submitted with --jobspec %s", exp, exp)
	}
	p, err := f.project(a.env)
	if err != nil {
		return err
	}
	if f.preview && p.Dialect != dialect.TunePlane {
		return usagef("--preview is for projects of tuneplane; --dry-run asks the gate in both")
	}
	c, who, err := a.env.client()
	if err != nil {
		return err
	}
	c = c.For(p.Dialect, f.of(p.Dialect))
	know, err := a.knowledge(ctx, c, p.Dialect, f.of(p.Dialect))
	if err != nil {
		return err
	}
	opt := f.submitOptions
	opt.writes = !f.dry
	if opt.maxWalk, err = walkBound(a.env.Vars["TUNEPLANE_CLIENT_MAX_PACKAGE_MB"]); err != nil {
		return err
	}
	sub, err := prepare(ctx, p, exp, know, opt)
	if err != nil {
		return err
	}
	decision, err := c.DryRun(ctx, sub.job.Document)
	if err != nil {
		return err
	}
	if f.dry {
		return a.showDryRun(sub, c.Server(), who.Account, decision)
	}
	if err := decision.Err(); err != nil {
		a.showSubmission(sub, c.Server(), who.Account)
		return err
	}
	if !a.opt.json || !f.yes {
		a.showSubmission(sub, c.Server(), who.Account)
		a.showWarnings(decision.Warnings)
	}
	if !f.yes && !f.preview {
		if err := a.confirm(ctx, "Submit this job?"); err != nil {
			return err
		}
	}
	return a.sendExperiment(ctx, c, sub, f)
}

// knowledge asks the server what the client release can submit, and what hardware there is.
func (a app) knowledge(ctx context.Context, c *client.Client, d dialect.Dialect, release string) (knowledge, error) {
	all, unkept, err := a.serverCatalogue(ctx, d, release)
	if err != nil {
		return knowledge{}, err
	}
	if unkept != nil {
		fmt.Fprintf(a.env.Err, "  %s the server's catalogue could not be kept for work without it: %s\n", a.env.paint(yellow, "warning:"), printable(unkept.Error()))
	}
	profiles, err := c.Profiles(ctx)
	if err != nil {
		return knowledge{}, err
	}
	know := knowledge{catalogue: all}
	for _, p := range profiles {
		if p.Name != "" {
			know.profiles = append(know.profiles, jobbuild.Profile{Name: p.Name, Series: p.Series, Nodes: p.Nodes, GPUsPerNode: p.GPUsPerNode})
		}
	}
	return know, nil
}

// walkBound reads the variable of tuneplane's client that bounds a package which no git listed, in MiB; 0 is no bound.
func walkBound(text string) (int64, error) {
	if text == "" {
		return jobpackage.DefaultMaxWalk, nil
	}
	mb, err := strconv.ParseInt(text, 10, 32)
	if err != nil || mb < 0 {
		return 0, usagef("TUNEPLANE_CLIENT_MAX_PACKAGE_MB=%.40q is no whole number of megabytes; 0 is no bound", text)
	}
	return mb * limit.MiB, nil
}

// finish keeps what was asked to be kept of a job, and tells of it.
func (a app) finish(ctx context.Context, c *client.Client, job wire.Submitted, f submitFlags) error {
	if f.save != "" {
		if err := saveJob(ctx, c, job.RunID, f.save); err != nil {
			return fmt.Errorf("the job %s is admitted, and could not be saved: %w", job.RunID, err)
		}
	}
	if f.receipt != "" {
		if err := saveReceipt(ctx, c, job.RunID, f.receipt); err != nil {
			return fmt.Errorf("the job %s is admitted, and its receipt could not be saved: %w", job.RunID, err)
		}
	}
	if a.opt.json {
		return a.env.writeJSON(job)
	}
	for _, w := range job.Warnings {
		fmt.Fprintf(a.env.Err, "  %s %s\n", a.env.paint(yellow, "warning:"), printable(w))
	}
	_, err := fmt.Fprintf(a.env.Out, "admitted %s, %d GPUs, spec %s\n", job.RunID, job.GPUs, job.SpecDigest)
	if err == nil {
		where := f.receipt
		if where == "" {
			where = "sf job receipt " + job.RunID
		}
		_, err = fmt.Fprintf(a.env.Err, "  receipt: %s\n", where)
	}
	return err
}

func saveReceipt(ctx context.Context, c *client.Client, id, file string) error {
	signed, err := c.Receipt(ctx, id)
	if err != nil {
		return err
	}
	return durable.Replace(filepath.Clean(file), signed, 0o644)
}

// saveJob lays out what a launch reads: the spec in the dialect's folder of the job directory, the receipt beside it,
// never inside (design.md 6).
func saveJob(ctx context.Context, c *client.Client, id, dir string) error {
	job, err := c.Job(ctx, id)
	if err != nil {
		return err
	}
	spec, err := c.JobSpec(ctx, id)
	if err != nil {
		return err
	}
	folder := filepath.Join(dir, job.Dialect.Names().SpecDir)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	if err := durable.Replace(filepath.Join(folder, "jobspec.json"), spec, 0o644); err != nil {
		return err
	}
	return saveReceipt(ctx, c, id, filepath.Clean(dir)+receipt.Suffix)
}
