package jobspec

import (
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
)

// RefKind says what kind of thing a reference names.
type RefKind string

// The kinds of references (jobspec.md 9).
const (
	RefRecipe      RefKind = "recipe"
	RefAlgorithm   RefKind = "algorithm" // a built-in algorithm by name
	RefSource      RefKind = "source"    // the experiment in the job package
	RefRuntime     RefKind = "runtime"
	RefImage       RefKind = "image"
	RefURL         RefKind = "url"
	RefModel       RefKind = "model"
	RefArtifact    RefKind = "artifact" // an output of another run
	RefDataset     RefKind = "dataset"
	RefCorpus      RefKind = "corpus"
	RefVolume      RefKind = "volume"
	RefEnvironment RefKind = "environment"
	RefTaskset     RefKind = "taskset"
	RefSeries      RefKind = "series"
	RefTool        RefKind = "tool"
	RefAction      RefKind = "action"
	RefBenchmark   RefKind = "benchmark"
	RefRubric      RefKind = "rubric"
	RefRunner      RefKind = "runner"
	RefRun         RefKind = "run"
	RefMetric      RefKind = "metric"
	RefFleet       RefKind = "fleet"
	RefPlugin      RefKind = "plugin"
)

// How a dataset is used.
const (
	AccessRead  = "read"
	AccessWrite = "write"
)

// Reference is one place where a spec names something outside itself. Parts that the kind lacks are empty.
type Reference struct {
	Kind      RefKind `json:"kind"`
	Path      string  `json:"path"` // spec.plugins[0]
	Text      string  `json:"text"`
	Version   string  `json:"version,omitempty"`
	Digest    string  `json:"digest,omitempty"`
	RuntimeID string  `json:"runtime_id,omitempty"`
	Access    string  `json:"access,omitempty"` // of a dataset: AccessRead or AccessWrite
}

// evalkit is the recipe whose hyperparameters name benchmarks and a rubric.
const evalkit = "evalkit/benchmark"

// References lists every place where the spec names something outside itself, in the order of the document with what
// is read before what is written. There is no other list: whoever looks for what a job may touch asks here.
func (s *Spec) References() iter.Seq[Reference] {
	return func(yield func(Reference) bool) {
		for _, section := range []func() []Reference{
			s.methodRefs, s.modelRefs, s.dataRefs, s.resourceRefs, s.lifecycleRefs, s.benchmarkRefs, s.evaluationRefs, s.pluginRefs,
		} {
			for _, ref := range section() {
				if ref.Text != "" && !yield(ref) {
					return
				}
			}
		}
	}
}

// ReferencesOf lists the references of one kind, in the same order. It makes no others where the kind has a place of its own.
func (s *Spec) ReferencesOf(kind RefKind) iter.Seq[Reference] {
	return func(yield func(Reference) bool) {
		var list iter.Seq[Reference]
		switch kind {
		case RefAction:
			list = slices.Values(s.lifecycleRefs())
		case RefSeries:
			list = slices.Values(s.resourceRefs())
		default:
			list = s.References()
		}
		for ref := range list {
			if ref.Kind == kind && ref.Text != "" && !yield(ref) {
				return
			}
		}
	}
}

func (s *Spec) methodRefs() []Reference {
	refs := []Reference{{Kind: RefRecipe, Path: "spec.recipe", Text: s.Recipe.Name, Version: s.Recipe.Version, Digest: s.Recipe.Digest}}
	refs = append(refs, numbered(RefAlgorithm, "spec.recipe.plugins", s.Recipe.Plugins)...)
	f := s.Framework
	return append(refs,
		Reference{Kind: RefSource, Path: "spec.source.exp", Text: s.Source.Exp},
		Reference{Kind: RefRuntime, Path: "spec.framework", Text: f.Kind, Version: f.Version, RuntimeID: f.RuntimeID},
		Reference{Kind: RefImage, Path: "spec.framework.image", Text: f.Image},
		Reference{Kind: RefURL, Path: "spec.framework.observability_url", Text: f.ObservabilityURL},
	)
}

func (s *Spec) modelRefs() []Reference {
	refs := []Reference{{Kind: RefModel, Path: "spec.model.base", Text: s.Model.Base}}
	if a := s.Model.InitFrom; a != nil {
		refs = append(refs, Reference{Kind: RefArtifact, Path: "spec.model.init_from", Text: a.String()})
	}
	return refs
}

func (s *Spec) dataRefs() []Reference {
	d := s.Data
	var refs []Reference
	read := func(path, text string) {
		refs = append(refs, Reference{Kind: RefDataset, Path: path, Text: text, Access: AccessRead})
	}
	if d.Train != nil {
		read("spec.data.train.dataset", d.Train.Dataset)
	}
	if d.Validation != nil {
		read("spec.data.validation.dataset", d.Validation.Dataset)
	}
	read("spec.data.quality.overlap_with", d.Quality.OverlapWith)
	refs = append(refs, Reference{Kind: RefCorpus, Path: "spec.data.corpus", Text: d.Corpus})
	refs = append(refs, numbered(RefVolume, "spec.data.volumes", d.Volumes)...)
	return append(refs,
		Reference{Kind: RefDataset, Path: "spec.data.output_dataset", Text: d.OutputDataset, Access: AccessWrite},
		Reference{Kind: RefEnvironment, Path: "spec.data.environment", Text: d.Environment},
		Reference{Kind: RefTaskset, Path: "spec.data.taskset", Text: d.Taskset},
	)
}

func (s *Spec) resourceRefs() []Reference {
	var refs []Reference
	for i, p := range s.Resources.Pools {
		refs = append(refs, Reference{Kind: RefSeries, Path: fmt.Sprintf("spec.resources.pools[%d].series", i), Text: p.Series})
	}
	for i, l := range s.Resources.Leases {
		refs = append(refs, Reference{Kind: RefTool, Path: fmt.Sprintf("spec.resources.leases[%d].tool", i), Text: l.Tool})
	}
	return refs
}

func (s *Spec) lifecycleRefs() []Reference {
	return numbered(RefAction, "spec.lifecycle.on_success", s.OnSuccess)
}

// benchmarkRefs are the benchmarks that run after the job, while it runs, and as the job.
func (s *Spec) benchmarkRefs() []Reference {
	refs := numbered(RefBenchmark, "spec.evaluation.suites", s.Evaluation.Suites)
	if c := s.Evaluation.OnCheckpoint; c != nil {
		refs = append(refs, numbered(RefBenchmark, "spec.evaluation.on_checkpoint.suites", c.Suites)...)
	}
	return append(refs, s.hyperparamRefs()...)
}

// hyperparamRefs are the benchmarks and the rubric that the evaluation recipe takes as parameters.
func (s *Spec) hyperparamRefs() []Reference {
	if s.Recipe.Name != evalkit {
		return nil
	}
	var refs []Reference
	if suites := s.Hyperparams.Get("suites"); suites != nil && suites.Kind == pyvalue.Str {
		for suite := range strings.SplitSeq(suites.Text, ",") {
			refs = append(refs, Reference{Kind: RefBenchmark, Path: "spec.hyperparams.suites", Text: pyvalue.Strip(suite)})
		}
	}
	if rubric := s.Hyperparams.Get("rubric"); rubric != nil && rubric.Kind == pyvalue.Str {
		refs = append(refs, Reference{Kind: RefRubric, Path: "spec.hyperparams.rubric", Text: pyvalue.Strip(rubric.Text)})
	}
	return refs
}

func (s *Spec) evaluationRefs() []Reference {
	e := s.Evaluation
	refs := []Reference{
		{Kind: RefRunner, Path: "spec.evaluation.runner", Text: e.Runner},
		{Kind: RefRun, Path: "spec.evaluation.baseline", Text: e.Baseline},
	}
	for i, g := range e.Gates {
		refs = append(refs, Reference{Kind: RefMetric, Path: fmt.Sprintf("spec.evaluation.gates[%d].metric", i), Text: g.Metric})
	}
	if e.OnCheckpoint != nil {
		refs = append(refs, Reference{Kind: RefFleet, Path: "spec.evaluation.on_checkpoint.fleet", Text: e.OnCheckpoint.Fleet})
	}
	return refs
}

func (s *Spec) pluginRefs() []Reference {
	refs := make([]Reference, len(s.Plugins))
	for i, p := range s.Plugins {
		refs[i] = Reference{Kind: RefPlugin, Path: "spec.plugins[" + strconv.Itoa(i) + "]", Text: p.ID, Version: p.Version, Digest: p.Digest}
	}
	return refs
}

func numbered(kind RefKind, path string, list []string) []Reference {
	refs := make([]Reference, len(list))
	for i, text := range list {
		refs[i] = Reference{Kind: kind, Path: path + "[" + strconv.Itoa(i) + "]", Text: text}
	}
	return refs
}
