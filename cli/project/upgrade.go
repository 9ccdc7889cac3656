package project

import (
	"errors"
	"fmt"
	"strings"

	"github.com/gatehouse-registry/gatehouse/admission/catalogue"
	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/lock"
	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
)

// Inspect says how the experiment's recipe lock stands against a catalogue. requested is the recipe that the caller asks
// for, "" for the one that the lock names.
func (e *Experiment) Inspect(c *catalogue.Catalogue, requested string) lock.Inspection {
	src, err := e.RecipeLockBytes()
	return lock.Inspect(lock.Subject{
		Source: src, Unread: err, Path: e.file(lock.RecipeFile), Command: e.command(), Requested: requested, Catalogue: c,
	})
}

// command is the experiment as a command names it.
func (e *Experiment) command() string {
	if e.Path == ExperimentsDir+"/"+e.Name {
		return e.Name
	}
	return e.Path
}

// PlanUpgrade decides what an upgrade of the recipe lock would write; WriteRecipeLock with its Text does it. The error is a
// *lock.Refused, or a *Fault of the config.
func (e *Experiment) PlanUpgrade(c *catalogue.Catalogue, requested string, u lock.Upgrade) (lock.Plan, error) {
	return e.planUpgrade(c, requested, u, (*Experiment).checkedConfig)
}

// configOf reads the config whose parameters a lock binds, or says why the lock must not be written.
type configOf func(*Experiment, catalogue.Entry) (*pyvalue.Value, error)

func (e *Experiment) planUpgrade(c *catalogue.Catalogue, requested string, u lock.Upgrade, config configOf) (lock.Plan, error) {
	return e.Inspect(c, requested).Plan(u, func(entry catalogue.Entry) (*pyvalue.Value, error) { return config(e, entry) })
}

func (e *Experiment) checkedConfig(entry catalogue.Entry) (*pyvalue.Value, error) {
	if _, err := e.CheckConfig(entry); err != nil {
		return nil, err
	}
	return e.boundConfig(), nil
}

// NewLock is a fresh lock of a recipe for the experiment, with the bytes of its file.
func (e *Experiment) NewLock(c *catalogue.Catalogue, entry catalogue.Entry, version string) (*lock.Recipe, []byte, error) {
	return lock.New(c, entry, version, e.boundConfig())
}

// boundConfig is as much of the config as can be read: with its bases, else alone, else none (recipes-and-locks.md 1.1).
func (e *Experiment) boundConfig() *pyvalue.Value {
	file := e.file(ConfigFile)
	if config, err := e.Project.Config(file); err == nil {
		return config
	}
	if config, err := e.Project.ConfigAlone(file); err == nil {
		return config
	}
	return nil
}

// CheckConfig holds the experiment's files to what its recipe needs of them, whatever its lock says: its own entrypoint, and
// a config.yaml that can be read. What the real clients let pass is a warning, but for a base outside the project: with it
// the lock would record other parameters here than on another computer.
func (e *Experiment) CheckConfig(entry catalogue.Entry) (warnings []string, err error) {
	if p := entry.Entrypoint; p != nil && p.Kind == "experiment" && !e.IsFile(p.Value) {
		return nil, &Fault{File: e.file(p.Value), Message: "is not there, and the recipe " + entry.Name + " starts it", Hint: "Write the file, or make the experiment anew with sf new."}
	}
	forge := e.Project.Dialect == dialect.Forge
	if !e.Project.exists(e.file(ConfigFile)) {
		f := &Fault{File: e.file(ConfigFile), Message: "is not there", Hint: "Write the config of the experiment."}
		if forge && entry.Framework != "custom" {
			return nil, f
		}
		return nil, nil
	}
	if forge && entry.Framework == "custom" {
		return nil, nil
	}
	if _, err := e.Project.ConfigAlone(e.file(ConfigFile)); err != nil {
		return nil, err
	}
	_, err = e.Project.Config(e.file(ConfigFile))
	switch {
	case err == nil:
		return nil, nil
	case forge && entry.Framework == "nemo-rl", errors.Is(err, errOutside):
		return nil, err
	}
	return []string{err.Error()}, nil
}

// Batch is why an upgrade of all experiments wrote nothing: every refusal, in the order of the experiments.
type Batch struct{ Refusals []error }

func (b *Batch) Error() string {
	lines := make([]string, len(b.Refusals))
	for i, err := range b.Refusals {
		lines[i] = "- " + err.Error()
	}
	return "nothing was written, since not every lock can be upgraded:\n" + strings.Join(lines, "\n")
}

func (b *Batch) Unwrap() []error { return b.Refusals }

// UpgradeAll upgrades the locks of all experiments (Locked) that are not current, all or none: any refusal is a *Batch and
// nothing is written; when a write fails the locks that were written before it get their old content back. The inspections
// of current locks are in the answer too.
func (p *Project) UpgradeAll(c *catalogue.Catalogue, u lock.Upgrade, dryRun bool) ([]lock.Inspection, error) {
	return p.upgradeAll(c, u, dryRun, (*Experiment).checkedConfig)
}

func (p *Project) upgradeAll(c *catalogue.Catalogue, u lock.Upgrade, dryRun bool, config configOf) ([]lock.Inspection, error) {
	experiments, err := p.Locked()
	if err != nil {
		return nil, err
	}
	var batch Batch
	var writes []write
	var all []lock.Inspection
	for _, e := range experiments {
		inspection := e.Inspect(c, "")
		if inspection.State == lock.Current {
			all = append(all, inspection)
			continue
		}
		plan, err := e.planUpgrade(c, "", u, config)
		if err != nil {
			batch.Refusals = append(batch.Refusals, err)
			continue
		}
		all = append(all, plan.Inspection)
		writes = append(writes, write{e, plan.Text, nil})
	}
	if len(batch.Refusals) > 0 {
		return nil, &batch
	}
	if dryRun {
		return all, nil
	}
	return all, writeAll(writes)
}

// write is one lock to be written, and what it replaces.
type write struct {
	experiment *Experiment
	text, old  []byte
}

// writeAll writes all, or puts back what it had written.
func writeAll(writes []write) error {
	for i, w := range writes {
		old, err := w.experiment.RecipeLockBytes()
		if err == nil {
			writes[i].old = old
			err = w.experiment.WriteRecipeLock(w.text)
		}
		if err != nil {
			err = fmt.Errorf("%s: %w", w.experiment.Path, err)
			for _, done := range writes[:i] {
				err = errors.Join(err, done.experiment.WriteRecipeLock(done.old))
			}
			return err
		}
	}
	return nil
}
