package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"text/template"
)

// The job directory, as a platform lays it out, and the plugin's folder in it.
const (
	jobDir    = "job"
	spec      = jobDir + "/.starforge/jobspec.json"
	pluginDir = jobDir + "/forge_plugins/grad-clip"
	patchFile = pluginDir + "/grad_clip/patch.py"
)

var jobSpec = template.Must(template.New("job").Parse(`{
  "apiVersion": "forge/v2",
  "kind": "TrainingJob",
  "metadata": {"name": "demo", "project": "demo"},
  "spec": {
    "recipe": {"name": "custom/tiny-sft", "version": "0.3.0", "digest": "{{.Recipe}}"},
    "plugins": [{"id": "alice/grad-clip", "version": "1.2.0", "digest": "{{.Plugin}}"}],
    "source": {"exp": "experiments/demo"},
    "framework": {"kind": "custom", "version": "user-managed",
      "image": "registry.example.org/train@sha256:1111111111111111111111111111111111111111111111111111111111111111",
      "observability_url": "https://tracker.example.org/demo"},
    "resources": {"pools": [{"name": "all", "series": "h200", "nodes": 1, "gpus_per_node": 1}]},
    "hyperparams": {"learning_rate": 0.0001, "epochs": 1}
  },
  "provenance": {"core_version": "0.3.56"}
}
`))

func submitJob(d *demo) error {
	recipe, err := d.recipeDigest()
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := jobSpec.Execute(&text, map[string]string{"Recipe": recipe, "Plugin": d.digests["grad-clip content"]}); err != nil {
		return err
	}
	if err := os.WriteFile(d.path("job.json"), text.Bytes(), 0o644); err != nil {
		return err
	}
	if err := d.show("job.json"); err != nil {
		return err
	}
	if err := d.decision("job.json"); err != nil {
		return err
	}
	return d.says(0, []string{"submit", "--jobspec", "job.json", "--save", jobDir}, `^admitted run-\S+, 1 GPUs, spec sha256:`)
}

// recipeDigest is what a job names a recipe by: the digest of its recipe.yaml.
func (d *demo) recipeDigest() (string, error) {
	output, exit, err := d.quiet("", "check", "pack", "packs/tiny-sft", "--json")
	if err != nil {
		return "", err
	}
	var decision struct {
		Value struct {
			Document struct{ Digest string }
		}
	}
	if err := json.Unmarshal([]byte(output), &decision); err != nil {
		return "", err
	}
	digest := decision.Value.Document.Digest
	return digest, d.check(exit == 0 && digest != "", "sf check pack names no digest of the recipe")
}

// decision shows gate 2's decision about a spec, without the normalised spec that it ends with.
func (d *demo) decision(file string) error {
	args := []string{"submit", "--jobspec", file, "--dry-run", "--json"}
	fmt.Println("$ sf " + shellWords(args))
	output, exit, err := d.quiet("", args...)
	if err != nil {
		return err
	}
	head, _, _ := strings.Cut(output, "\n  \"value\"")
	fmt.Println("  " + strings.ReplaceAll(head, "\n", "\n  "))
	fmt.Println("    \"value\": { the normalised spec and what it pins }")
	fmt.Println("  }")
	var decision struct {
		Gate    string
		Allowed bool
	}
	if err := json.Unmarshal([]byte(output), &decision); err != nil {
		return err
	}
	return d.check(exit == 0 && decision.Allowed && decision.Gate == "submission", "gate 2 did not admit the job")
}

// materialise completes the job directory, which has the admitted spec: the experiment, the plugin and the recipe.
func (d *demo) materialise() error {
	fmt.Printf("$ mkdir -p %[1]s/experiments/demo; cp packs/tiny-sft/template/* %[1]s/experiments/demo/\n", jobDir)
	for from, to := range map[string]string{
		"packs/tiny-sft/template/train.sh":    jobDir + "/experiments/demo/train.sh",
		"packs/tiny-sft/template/config.yaml": jobDir + "/experiments/demo/config.yaml",
	} {
		if err := copyFile(d.path(from), d.path(to)); err != nil {
			return err
		}
	}
	if err := d.says(0, []string{"plugin", "pull", "alice/grad-clip@1.2.0", pluginDir}, d.digests["grad-clip tree"]); err != nil {
		return err
	}
	return d.says(0, []string{"plugin", "pull", "alice/tiny-sft@0.3.0", jobDir + "/forge_recipes/alice/tiny-sft"}, d.digests["tiny-sft tree"])
}

// started is what the launched command says.
const started = "the command runs in"

// launch is the command line of a launch. A shell stands in for forge-launch.
func launch(flags ...string) []string {
	return slices.Concat([]string{"launch", "--jobspec", spec, "--trust", "registry-key", "--cache", "node-cache", "--allow", "private-copy"}, flags,
		[]string{"--", "sh", "-c", "echo " + started + " $PWD; sh experiments/demo/train.sh; grep version forge_plugins/grad-clip/plugin.yaml"})
}

func launchJob(d *demo) error {
	if err := d.materialise(); err != nil {
		return err
	}
	if err := d.says(0, launch("--record", "record.json"), started, `training with`, `version: "1\.2\.0"`); err != nil {
		return err
	}
	content, err := os.ReadFile(d.path("record.json"))
	if err != nil {
		return err
	}
	var record struct {
		Mode             string
		Started          bool
		Receipt          string
		Unavailable      map[string]string
		Plugins, Recipes []struct{ ID, Content, Tree, Manifest string }
	}
	if err := json.Unmarshal(content, &record); err != nil {
		return err
	}
	d.protection = "The launch was protected by: " + record.Mode + "."
	fmt.Println("  protection: " + record.Mode + " (record.json)")
	for _, mode := range slices.Sorted(maps.Keys(record.Unavailable)) {
		fmt.Printf("  %s was not available: %s\n", mode, record.Unavailable[mode])
	}
	if err := d.check(record.Started && record.Receipt != "" && len(record.Plugins) == 1 && len(record.Recipes) == 1, "the record says otherwise: %s", content); err != nil {
		return err
	}
	p := record.Plugins[0]
	return d.check(p.ID == "alice/grad-clip" && p.Content == d.digests["grad-clip content"] && p.Tree == d.digests["grad-clip tree"] && p.Manifest == d.digests["grad-clip manifest"],
		"the record pins other digests: %+v", p)
}

// refused launches and checks that the command was not started.
func (d *demo) refused(exit int, expressions ...string) error {
	output, err := d.command(exit, launch()...)
	if err != nil {
		return err
	}
	if err := d.check(!strings.Contains(output, started+" "), "the command was started"); err != nil {
		return err
	}
	for _, e := range expressions {
		if err := d.check(strings.Contains(output, e), "the refusal does not name %s", e); err != nil {
			return err
		}
	}
	return nil
}

func refuseTampered(d *demo) error {
	fmt.Println("$ sed -i 's|limit / norm|limit * norm|' " + patchFile)
	if err := replaceIn(d.path(patchFile), "limit / norm", "limit * norm"); err != nil {
		return err
	}
	if err := d.refused(7, "grad_clip/patch.py", "[launch.digest.content]"); err != nil {
		return err
	}
	fmt.Println("$ sed -i 's|limit [*] norm|limit / norm|' " + patchFile)
	return replaceIn(d.path(patchFile), "limit * norm", "limit / norm")
}

func refuseDisabled(d *demo) error {
	if err := d.login("data/admin-token", "admin"); err != nil {
		return err
	}
	if err := d.says(0, []string{"plugin", "disable", "alice/grad-clip@1.2.0"}, `versions: 1`); err != nil {
		return err
	}
	if err := d.login("alice-token", "alice"); err != nil {
		return err
	}
	if err := d.says(3, []string{"submit", "--jobspec", "job.json"}, `alice/grad-clip@1\.2\.0 is disabled`, `\[job\.plugins\.record\.disabled\]`); err != nil {
		return err
	}
	return d.says(0, launch(), started)
}
