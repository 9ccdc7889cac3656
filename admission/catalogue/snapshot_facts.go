package catalogue

import (
	"fmt"
	"slices"

	"github.com/gatehouse-registry/gatehouse/admission/name"
	"github.com/gatehouse-registry/gatehouse/admission/pack"
	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
)

// facts reads what a row says under "gatehouse". There every list is known: an absent one is empty.
func (s *snapshot) facts(e *Entry, v *pyvalue.Value, field string) {
	if !s.object(v, field) {
		return
	}
	e.ManifestDigest = s.text(v.Get("manifest_digest"), field+".manifest_digest", "sha256:<64 hex digits>", isSHA256)
	e.TemplateDigest = s.optional(v.Get("template_digest"), field+".template_digest", "", isSHA256)
	e.Entrypoint = s.entrypoint(v.Get("entrypoint"), field+".entrypoint")
	e.Roles = s.names(v.Get("roles"), field+".roles")
	e.Plugins = s.names(v.Get("plugins"), field+".plugins")
	e.RequiredInputs = s.names(v.Get("required_inputs"), field+".required_inputs")
	e.Observability = s.text(v.Get("observability"), field+".observability", "platform or external", isObservability)
	e.ConfigMode = s.optional(v.Get("config_mode"), field+".config_mode", "", notEmpty)
	e.ConfigSection = s.optional(v.Get("config_section"), field+".config_section", "", notEmpty)
	e.Category = s.optional(v.Get("category"), field+".category", "", notEmpty)
	s.lifecycle(e, v.Get("lifecycle"), field+".lifecycle")
	s.params(e, v.Get("params"), field+".params")
}

// names is a list of texts, never nil.
func (s *snapshot) names(v *pyvalue.Value, field string) []string {
	list := []string{}
	for i, it := range s.list(v, field, maxNames) {
		list = append(list, s.text(it, fmt.Sprintf("%s[%d]", field, i), "a name", notEmpty))
	}
	return list
}

// lifecycle reads the actions with the GPUs of each.
func (s *snapshot) lifecycle(e *Entry, v *pyvalue.Value, field string) {
	e.Lifecycle = []string{}
	if v == nil || !s.object(v, field) || len(v.Items) == 0 {
		return
	}
	if len(v.Items) > maxNames {
		s.bad(field, "found %d actions, expected at most %d", len(v.Items), maxNames)
		return
	}
	e.LifecycleResources = make(map[string]int64, len(v.Items))
	for _, it := range v.Items {
		action := s.text(it.Key, field, "the name of an action", name.IsSegment)
		if it.Value.Kind != pyvalue.Int || !it.Value.Int.IsInt64() || it.Value.Int.Sign() < 0 {
			s.bad(field+"."+action, "found %s, expected a number of GPUs", it.Value.TypeName())
			continue
		}
		e.Lifecycle = append(e.Lifecycle, action)
		e.LifecycleResources[action] = it.Value.Int.Int64()
	}
}

func (s *snapshot) params(e *Entry, v *pyvalue.Value, field string) {
	params, report := pack.ReadParams(v, s.dialect, e.Supported())
	for _, found := range report.Violations {
		s.bad(field, "%s: %s", found.Field, found.Message)
	}
	e.Params = &params
}

func (s *snapshot) entrypoint(v *pyvalue.Value, field string) *Entrypoint {
	if !s.object(v, field) {
		return nil
	}
	return &Entrypoint{
		Kind:               s.text(v.Get("kind"), field+".kind", "module, file or experiment", isEntrypointKind),
		Value:              s.text(v.Get("value"), field+".value", "what is started", notEmpty),
		ExperimentOverride: s.optional(v.Get("experiment_override"), field+".experiment_override", "", notEmpty),
	}
}

func (s *snapshot) benchmark(v *pyvalue.Value, field string) Benchmark {
	if !s.object(v, field) {
		return Benchmark{}
	}
	return Benchmark{
		ID:     s.text(v.Get("id"), field+".id", "a name", name.IsSegment),
		Digest: s.text(v.Get("digest"), field+".digest", "sha256:<64 hex digits>", isSHA256),
		Runner: s.text(v.Get("runner"), field+".runner", "a runner", notEmpty),
		Suites: s.names(v.Get("suites"), field+".suites"),
	}
}

func isObservability(s string) bool { return s == Platform || s == External }

func isEntrypointKind(s string) bool {
	return slices.Contains([]string{"module", "file", "experiment"}, s)
}
