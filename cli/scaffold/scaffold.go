// Package scaffold makes the files of a new pack: the smallest one of its kind that gate 1 admits, with a word at each
// place that its author will change.
package scaffold

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/pack"
)

//go:embed all:templates
var templates embed.FS

// File is one file of a pack.
type File struct {
	Path       string // relative, slash-separated
	Content    []byte
	Executable bool
}

// entrypoints are the entry points, below the pack's module, of the kinds that have one.
var entrypoints = map[pack.Kind]string{
	pack.KindAlgorithm:   "patch:install",
	pack.KindEnvironment: "harness:create",
	pack.KindDataPrepJob: "transform:run",
}

// summaries are what the plugin.yaml of a new pack says about itself.
var summaries = map[pack.Kind]string{
	pack.KindAlgorithm:            "Changes how a training run learns",
	pack.KindEnvironment:          "Scores what a model answers",
	pack.KindDataPrep:             "Prepares a data set on the user's machine",
	pack.KindDataPrepJob:          "Transforms data inside a job",
	pack.KindRecipe:               "Runs the experiment's own train.sh",
	pack.KindBenchmark:            "Questions with exact-match scoring",
	pack.KindPlaybook:             "What to do, step by step",
	pack.KindPrompt:               "A prompt for the platform's assistant",
	pack.KindFrameworkIntegration: "Lets jobs run another framework",
}

// input is what the templates are filled with.
type input struct {
	Kind       pack.Kind
	Names      dialect.Names
	Name       string
	Module     string // the Python module of the pack
	Framework  string
	Spelling   string // of the kind in plugin.yaml
	Execution  string // tuneplane's, of the data-prep kinds
	Entrypoint string
	Summary    string
}

// New makes the files of a pack of a kind, sorted by path. The name must be one that the registry takes.
func New(kind pack.Kind, d dialect.Dialect, name string) ([]File, error) {
	if !kind.In(d) {
		return nil, fmt.Errorf("%s has no packs of kind %q", d, kind)
	}
	in := input{
		Kind: kind, Names: d.Names(), Name: name, Module: moduleOf(name), Framework: strings.ToLower(name),
		Spelling: string(kind), Summary: summaries[kind],
	}
	if d == dialect.TunePlane {
		in.Spelling = kind.Capability()
		if kind == pack.KindDataPrep || kind == pack.KindDataPrepJob {
			in.Execution = kind.Execution()
		}
	}
	if e := entrypoints[kind]; e != "" {
		in.Entrypoint = in.Module + "." + e
	}
	var files []File
	for _, folder := range []string{"common", string(kind)} {
		more, err := fill(folder, in)
		if err != nil {
			return nil, err
		}
		files = append(files, more...)
	}
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return files, nil
}

// fill executes the templates of a folder. The word "module" in a path stands for the pack's module.
func fill(folder string, in input) ([]File, error) {
	below, err := fs.Sub(templates, "templates/"+folder)
	if err != nil {
		return nil, err
	}
	var files []File
	err = fs.WalkDir(below, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		src, err := fs.ReadFile(below, path)
		if err != nil {
			return err
		}
		t, err := template.New(path).Option("missingkey=error").Parse(string(src))
		if err != nil {
			return err
		}
		var text bytes.Buffer
		if err := t.Execute(&text, in); err != nil {
			return err
		}
		files = append(files, File{
			Path: strings.ReplaceAll(path, "module", in.Module), Content: text.Bytes(), Executable: strings.HasSuffix(path, ".sh"),
		})
		return nil
	})
	return files, err
}

var notIdentifier = regexp.MustCompile(`[^a-z0-9]+`)

// moduleOf is a Python module name for a pack: its name in lower case with single underscores. One word alone, or what a
// platform reserves, may be somebody else's module, so it gets a suffix.
func moduleOf(name string) string {
	module := strings.Trim(notIdentifier.ReplaceAllString(strings.ToLower(name), "_"), "_")
	if module[0] >= '0' && module[0] <= '9' {
		module = "pack_" + module
	}
	if !strings.Contains(module, "_") || pack.ReservedModule(module) {
		module += "_plugin"
	}
	return module
}
