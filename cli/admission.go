package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gatehouse-registry/gatehouse/admission"
	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/digest/strictjson"
	"github.com/gatehouse-registry/gatehouse/registry/client"
)

// expectationFile lists the documents of a folder with what the gate must say of each (docs/admission.md).
const expectationFile = "index.json"

// The verdicts of an expectation.
const (
	verdictAccept = "accept"
	verdictRefuse = "refuse"
)

// expectation is what is expected of one document. An entry without a verdict is skipped.
type expectation struct {
	File    string          `json:"file"`
	Dialect dialect.Dialect `json:"dialect"` // "": the document's own
	verdict
	Gatehouse *verdict `json:"gatehouse"` // the verdict may stand in an object of its own, beside those of other tools
}

// verdict is what the gate must say. Rules and warnings must be among those found; with Exact they are all.
type verdict struct {
	Verdict  string    `json:"verdict"`
	Rules    []rule.ID `json:"rules"`
	Warnings []rule.ID `json:"warnings"`
	Exact    bool      `json:"exact"`
}

// trial is one document's result.
type trial struct {
	File       string              `json:"file"`
	OK         bool                `json:"ok"`
	Skipped    bool                `json:"skipped,omitempty"` // nothing is expected of it
	Expected   string              `json:"expected,omitempty"`
	Found      string              `json:"found,omitempty"`
	Missing    []rule.ID           `json:"missing,omitempty"`    // expected, and not found
	Unexpected []rule.ID           `json:"unexpected,omitempty"` // found where the expectation is exact
	Decision   *admission.Decision `json:"decision,omitempty"`
}

// trials are the results of a folder.
type trials struct {
	Rules   string  `json:"rules"` // version of the table of this binary
	Results []trial `json:"results"`
	Passed  int     `json:"passed"`
	Failed  int     `json:"failed"`
	Skipped int     `json:"skipped"`
}

// admission holds what a platform team does with gate 2.
func (a app) admission() *cobra.Command {
	cmd := &cobra.Command{Use: "admission", Short: "Try the submission gate on documents of your own"}
	cmd.AddCommand(a.admissionTest())
	return cmd
}

func (a app) admissionTest() *cobra.Command {
	var flags checkFlags
	var server bool
	cmd := &cobra.Command{
		Use: "test DIR [--server] [--json]", Short: "Check a folder of documents against the verdicts that it states", Args: cobra.ExactArgs(1),
		Long: `Check a folder of documents against the verdicts that DIR/index.json states, and end with 3 when one differs: for the CI of a
platform team, whose documents must go on being admitted, or refused, whatever changes.

  {"examples": [
    {"file": "good.json", "verdict": "accept"},
    {"file": "no-owner.json", "dialect": "forge", "verdict": "refuse", "rules": ["job.plugins.id.format"]}
  ]}

Rules and warnings must be among those found; with "exact": true they must be all. Without --server the rules of the document
alone count; with it the server that one is signed in to is asked (nothing is stored), so that catalogue, library and quota
count too. docs/admission.md has the rest.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			opt, err := flags.options()
			if err != nil {
				return err
			}
			ask := offline(opt)
			if server {
				c, _, err := a.env.client()
				if err != nil {
					return err
				}
				ask = online(c, opt)
			}
			results, err := runTrials(cmd.Context(), args[0], ask)
			if err != nil {
				return err
			}
			return a.printTrials(results)
		},
	}
	flags.add(cmd)
	cmd.Flags().BoolVar(&server, "server", false, "ask the server, whose catalogue, library and quotas then count")
	return cmd
}

// The kinds of documents, by the ends of their names.
const (
	jobspecFile   = ".json"
	recipeFile    = "recipe.yaml"
	benchmarkFile = "benchmark.yaml"
	manifestFile  = ".yaml"
)

func kindOfFile(name string) string {
	for _, end := range []string{jobspecFile, recipeFile, benchmarkFile} {
		if strings.HasSuffix(name, end) {
			return end
		}
	}
	return manifestFile
}

// asker decides on one document.
type asker func(ctx context.Context, e expectation, src []byte) (admission.Decision, error)

// offline is the gate as far as a document alone tells.
func offline(opt admission.CheckOptions) asker {
	return func(_ context.Context, e expectation, src []byte) (admission.Decision, error) {
		own := opt
		if e.Dialect != "" {
			own.Dialect = e.Dialect
		}
		switch kindOfFile(e.File) {
		case jobspecFile:
			return admission.CheckJobSpec(src, e.File, own), nil
		case recipeFile:
			return admission.CheckRecipe(src, own), nil
		case benchmarkFile:
			return admission.CheckBenchmark(src, own), nil
		}
		return admission.CheckManifest(src, own), nil
	}
}

// online asks a server about JobSpecs. It has no say about other documents.
func online(c *client.Client, opt admission.CheckOptions) asker {
	return func(ctx context.Context, e expectation, src []byte) (admission.Decision, error) {
		if kindOfFile(e.File) != jobspecFile {
			return offline(opt)(ctx, e, src)
		}
		d, err := c.DryRun(ctx, src)
		for _, list := range [][]admission.Violation{d.Violations, d.Warnings} {
			for i := range list {
				list[i].File = e.File // which the server can't know
			}
		}
		return d, err
	}
}

// runTrials decides on every document of a folder.
func runTrials(ctx context.Context, dir string, ask asker) (trials, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return trials{}, err
	}
	defer root.Close()
	expected, err := readExpectations(root)
	if err != nil {
		return trials{}, err
	}
	out := trials{Rules: rule.Version(), Results: make([]trial, 0, len(expected))}
	for _, e := range expected {
		t := trial{File: e.File, Skipped: e.Verdict == ""}
		if t.Skipped {
			out.Skipped++
			out.Results = append(out.Results, t)
			continue
		}
		src, err := readIn(root, e.File, limit.Document+1)
		if err != nil {
			return out, err
		}
		d, err := ask(ctx, e, src)
		if err != nil {
			return out, fmt.Errorf("%s: %w", e.File, err)
		}
		if t = compare(e, d); t.OK {
			out.Passed++
		} else {
			out.Failed++
		}
		out.Results = append(out.Results, t)
	}
	return out, nil
}

// readExpectations reads index.json. Errors: a usage error for an index that says nothing, or nothing that can be held.
func readExpectations(root *os.Root) ([]expectation, error) {
	src, err := readIn(root, expectationFile, limit.Document)
	if err != nil {
		return nil, err
	}
	if err := strictjson.Scan(src, strictjson.Options{}); err != nil {
		return nil, usagef("%s: %w", expectationFile, err)
	}
	var index struct {
		Examples []expectation `json:"examples"`
	}
	if err := json.Unmarshal(src, &index); err != nil {
		return nil, usagef("%s: %w", expectationFile, err)
	}
	if len(index.Examples) == 0 {
		return nil, usagef(`%s: expected {"examples": [{"file": ..., "verdict": ...}]}`, expectationFile)
	}
	for i := range index.Examples {
		e := &index.Examples[i]
		if e.Gatehouse != nil {
			e.verdict = *e.Gatehouse
		}
		if err := e.check(); err != nil {
			return nil, usagef("%s: examples[%d]: %w", expectationFile, i, err)
		}
	}
	return index.Examples, nil
}

// check asks that an expectation can be held.
func (e expectation) check() error {
	switch {
	case e.File == "":
		return fmt.Errorf("file: required field is missing")
	case e.Dialect != "" && !slices.Contains(dialect.All, e.Dialect):
		return fmt.Errorf("dialect: found %.40q, expected forge or tuneplane", e.Dialect)
	case e.Verdict != "" && e.Verdict != verdictAccept && e.Verdict != verdictRefuse:
		return fmt.Errorf("verdict: found %.40q, expected accept or refuse", e.Verdict)
	case e.Verdict == verdictAccept && len(e.Rules) > 0:
		return fmt.Errorf("rules: an accepted document breaks none; name what it is warned of in warnings")
	case e.Verdict == "" && len(e.Rules)+len(e.Warnings) > 0:
		return fmt.Errorf("verdict: required field is missing")
	}
	for _, id := range slices.Concat(e.Rules, e.Warnings) {
		if _, ok := rule.Lookup(id); !ok {
			return fmt.Errorf("no rule is called %.100q%s", id, nearestRule(string(id), ruleNames()))
		}
	}
	return nil
}

// readIn reads at most max bytes of a regular file of a folder; no name leads out of it.
func readIn(root *os.Root, name string, max int64) ([]byte, error) {
	info, err := root.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", name)
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, max))
}

// compare holds a decision against what was expected.
func compare(e expectation, d admission.Decision) trial {
	t := trial{File: e.File, Expected: e.Verdict, Found: verdictRefuse, Decision: &d}
	if d.Allowed {
		t.Found = verdictAccept
	}
	for _, list := range []struct {
		expected []rule.ID
		found    []rule.Violation
	}{{e.Rules, d.Violations}, {e.Warnings, d.Warnings}} {
		found := make(map[rule.ID]bool, len(list.found))
		for _, v := range list.found {
			if !found[v.Rule] && e.Exact && !slices.Contains(list.expected, v.Rule) {
				t.Unexpected = append(t.Unexpected, v.Rule)
			}
			found[v.Rule] = true
		}
		for _, id := range list.expected {
			if !found[id] {
				t.Missing = append(t.Missing, id)
			}
		}
	}
	t.OK = t.Found == t.Expected && len(t.Missing)+len(t.Unexpected) == 0
	return t
}

// printTrials shows the results and ends with 3 when one differs.
func (a app) printTrials(all trials) error {
	if a.opt.json {
		if err := a.env.writeJSON(all); err != nil {
			return err
		}
	} else {
		a.showTrials(all)
	}
	if all.Failed > 0 {
		return exitStatus{exitRefused}
	}
	return nil
}

func (a app) showTrials(all trials) {
	for _, t := range all.Results {
		switch name := printable(t.File); {
		case t.Skipped:
			fmt.Fprintf(a.env.Out, "%s %s: no verdict is expected\n", a.env.paint(yellow, "skipped"), name)
		case t.OK:
			fmt.Fprintf(a.env.Out, "%s %s: %s\n", a.env.paint(green, "ok"), name, t.Found)
		default:
			fmt.Fprintf(a.env.Out, "%s %s: %s\n", a.env.paint(red, "differs"), name, t.difference())
			for _, v := range slices.Concat(t.Decision.Violations, t.Decision.Warnings) {
				fmt.Fprintf(a.env.Out, "   %s\n", printable(v.String()))
			}
		}
	}
	fmt.Fprintf(a.env.Out, "%d as expected, %d differ, %d skipped\n", all.Passed, all.Failed, all.Skipped)
}

// difference says what is not as it should be.
func (t trial) difference() string {
	var parts []string
	if t.Found != t.Expected {
		parts = append(parts, fmt.Sprintf("expected %s, found %s", t.Expected, t.Found))
	}
	for what, ids := range map[string][]rule.ID{"not found": t.Missing, "not expected": t.Unexpected} {
		for _, id := range ids {
			parts = append(parts, fmt.Sprintf("%s is %s", id, what))
		}
	}
	slices.Sort(parts)
	return strings.Join(parts, "; ")
}
