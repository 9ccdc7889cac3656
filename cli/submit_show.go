package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/gatehouse-registry/gatehouse/admission/jobspec"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
)

// showSubmission shows a person what is about to be submitted.
func (a app) showSubmission(s submission, server, account string) {
	spec := s.job.Spec
	row := func(name, format string, args ...any) {
		if text := printable(fmt.Sprintf(format, args...)); text != "" {
			fmt.Fprintf(a.env.Err, "  %-12s %s\n", name, text)
		}
	}
	fmt.Fprintln(a.env.Err, printable(fmt.Sprintf("%s of project %s, to %s%s", spec.Source.Exp, spec.Metadata.Project, server, before(" as ", account))))
	row("recipe", "%s %s, %s", spec.Recipe.Name, spec.Recipe.Version, spec.Recipe.Digest)
	row("framework", "%s %s%s%s", spec.Framework.Kind, spec.Framework.Version, before(", runtime ", spec.Framework.RuntimeID), before(", image ", spec.Framework.Image))
	row("GPUs", "%d: %s", spec.TotalGPUs(), poolsText(spec.Resources))
	row("parameters", "%s", hyperparamsText(spec))
	row("model", "%s%s", spec.Model.Base, before(" from ", initFrom(spec)))
	row("data", "%s", dataText(spec.Data))
	row("evaluation", "%s", strings.Join(spec.Evaluation.Suites, ", "))
	row("afterwards", "%s", strings.Join(spec.OnSuccess, ", "))
	row("plugins", "%s", pluginsText(spec.Plugins))
	row("commit", "%s", commitText(spec.Provenance))
	row("files", "%d, %s", len(s.files.Members), sizeText(s.files.Bytes()))
	for _, change := range s.upgraded {
		row("lock", "%s: %s becomes %s", change.Field, change.Locked, change.Current)
	}
	for _, w := range s.warnings {
		fmt.Fprintf(a.env.Err, "  %s %s\n", a.env.paint(yellow, "warning:"), printable(w))
	}
}

// before is prefix and text, nothing when there is no text.
func before(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

func poolsText(r jobspec.Resources) string {
	var pools []string
	for _, p := range r.Pools {
		var roles []string
		for _, role := range r.Roles {
			if role.Pool == p.Name {
				roles = append(roles, role.Name)
			}
		}
		pools = append(pools, fmt.Sprintf("pool %s of %d × %d %s%s", p.Name, p.Nodes, p.GPUsPerNode, p.Series, before(" for ", strings.Join(roles, ", "))))
	}
	return strings.Join(pools, "; ")
}

// maxShown is how many characters of a list of parameters are shown.
const maxShown = 400

func hyperparamsText(spec *jobspec.Spec) string {
	if spec.Hyperparams == nil {
		return ""
	}
	var all []string
	for _, it := range spec.Hyperparams.Items {
		all = append(all, it.Key.Text+"="+it.Value.PyStr())
	}
	text := strings.Join(all, " ")
	if len(text) > maxShown {
		text = strings.ToValidUTF8(text[:maxShown], "") + "…"
	}
	return text
}

func initFrom(spec *jobspec.Spec) string {
	if spec.Model.InitFrom == nil {
		return ""
	}
	return spec.Model.InitFrom.String()
}

func dataText(d jobspec.Data) string {
	var parts []string
	add := func(name string, texts ...string) {
		if text := strings.TrimSpace(strings.Join(texts, " ")); text != "" {
			parts = append(parts, name+" "+text)
		}
	}
	for _, ref := range []struct {
		name string
		ref  *jobspec.DataRef
	}{{"train", d.Train}, {"validation", d.Validation}} {
		if ref.ref != nil {
			add(ref.name, ref.ref.Dataset, ref.ref.Path)
		}
	}
	add("volumes", strings.Join(d.Volumes, " "))
	add("environment", d.Environment)
	add("taskset", d.Taskset)
	add("writes", d.OutputDataset)
	return strings.Join(parts, ", ")
}

func pluginsText(plugins []jobspec.Plugin) string {
	var all []string
	for _, p := range plugins {
		all = append(all, p.ID+"@"+p.Version)
	}
	return strings.Join(all, ", ")
}

func commitText(p jobspec.Provenance) string {
	switch {
	case p.GitCommit == "":
		return "none"
	case p.GitDirty:
		return p.GitCommit + " and changes that are not committed"
	}
	return p.GitCommit
}

// sizeText is a number of bytes for a person.
func sizeText(n int64) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d bytes", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}

func (a app) showWarnings(warnings []rule.Violation) {
	for _, v := range warnings {
		printViolation(a.env, yellow, "warning", v)
	}
}

// builtJob is a job that was built and not sent, for programs.
type builtJob struct {
	Spec     json.RawMessage `json:"spec"`
	Meta     json.RawMessage `json:"metadata"`
	Files    []string        `json:"files"`
	Bytes    int64           `json:"bytes"`
	Warnings []string        `json:"warnings"`
	Decision *rule.Decision  `json:"decision,omitempty"`
}

func (s submission) built(d *rule.Decision) (builtJob, error) {
	meta, err := s.job.Meta.Encode(nil)
	out := builtJob{Spec: s.job.Document, Meta: meta, Files: make([]string, 0, len(s.files.Members)), Bytes: s.files.Bytes(), Warnings: append([]string{}, s.warnings...), Decision: d}
	for _, m := range s.files.Members {
		out.Files = append(out.Files, m.Path)
	}
	return out, err
}

// showDryRun shows what would be submitted and what the gate says of it.
func (a app) showDryRun(s submission, server, account string, d rule.Decision) error {
	if a.opt.json {
		out, err := s.built(&d)
		if err == nil {
			err = a.env.writeJSON(out)
		}
		if err == nil && !d.Allowed {
			err = exitStatus{exitRefused}
		}
		return err
	}
	a.showSubmission(s, server, account)
	if err := a.printDecision(d); err != nil {
		return err
	}
	_, err := fmt.Fprintln(a.env.Err, "nothing was stored: this was a dry run")
	return err
}

// confirm asks the person at the terminal. Where there is none it is a usage error; a no ends the command with exit code 1.
func (a app) confirm(ctx context.Context, question string) error {
	return a.ask(ctx, question, "submit with --yes, or look at it with --dry-run")
}

// ask is confirm for any question; otherwise says what to do where nobody can be asked.
func (a app) ask(ctx context.Context, question, otherwise string) error {
	if in, ok := a.env.In.(*os.File); !ok || !term.IsTerminal(int(in.Fd())) {
		return usagef("nobody can be asked here: %s", otherwise)
	}
	fmt.Fprintf(a.env.Err, "%s [y/N] ", question)
	type answer struct {
		text string
		err  error
	}
	got := make(chan answer, 1)
	go func() { // the read can't be interrupted; the process ends without it
		text, err := bufio.NewReader(io.LimitReader(a.env.In, 1<<10)).ReadString('\n')
		got <- answer{text, err}
	}()
	select {
	case <-ctx.Done():
		fmt.Fprintln(a.env.Err)
		return ctx.Err()
	case reply := <-got:
		if reply.err != nil && !errors.Is(reply.err, io.EOF) {
			return reply.err
		}
		switch strings.ToLower(strings.TrimSpace(reply.text)) {
		case "y", "yes":
			return nil
		}
		fmt.Fprintln(a.env.Err, "nothing was submitted")
		return exitStatus{exitError}
	}
}
