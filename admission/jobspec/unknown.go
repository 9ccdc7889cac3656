package jobspec

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/nearest"
	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
)

// section is a kind of object in a document.
type section int

const (
	secRoot section = iota
	secMetadata
	secSpec
	secPlugin
	secRecipe
	secSource
	secFramework
	secModel
	secPEFT
	secData
	secDataRef
	secQuality
	secResources
	secPool
	secLease
	secLifecycle
	secEvaluation
	secGate
	secOnCheckpoint
	secProvenance
	secFree // keys are the user's
)

// keys are what a section may hold: in both dialects, and in one only.
type keys struct{ both, forge, tunePlane string }

var known = map[section]keys{
	secRoot:         {both: "apiVersion kind metadata spec provenance"},
	secMetadata:     {both: "name project owner display_name labels"},
	secSpec:         {both: "recipe source framework model data resources hyperparams lifecycle evaluation plugins"},
	secPlugin:       {both: "id version digest"},
	secRecipe:       {both: "name version digest plugins"},
	secSource:       {both: "exp entrypoint"},
	secFramework:    {both: "kind version runtime_id image observability_url"},
	secModel:        {both: "base peft init_from"},
	secPEFT:         {both: "kind dim alpha"},
	secData:         {both: "train validation volumes output_dataset environment quality", forge: "corpus", tunePlane: "taskset"},
	secDataRef:      {both: "dataset split path"},
	secQuality:      {both: "max_duplicate_ratio overlap_with max_overlap_ratio", tunePlane: "group_key max_group_leak_ratio"},
	secResources:    {both: "pools roles", tunePlane: "leases network"},
	secPool:         {both: "name nodes gpus_per_node series", tunePlane: "cpus memory_gb scratch_gb"},
	secLease:        {tunePlane: "tool seats"},
	secLifecycle:    {both: "on_success"},
	secEvaluation:   {both: "suites runner baseline limit gates", tunePlane: "on_checkpoint"},
	secGate:         {both: "metric min max max_regression"},
	secOnCheckpoint: {tunePlane: "every_steps suites limit repetitions warmup_steps fleet"},
	secProvenance:   {both: "core_version git_commit git_dirty config_sha model_name"},
}

// keysOf lists the keys of every section in each dialect, sorted.
var keysOf = sync.OnceValue(func() map[dialect.Dialect]map[section][]string {
	all := map[dialect.Dialect]map[section][]string{dialect.Forge: {}, dialect.TunePlane: {}}
	for sec, k := range known {
		all[dialect.Forge][sec] = slices.Sorted(strings.FieldsSeq(k.both + " " + k.forge))
		all[dialect.TunePlane][sec] = slices.Sorted(strings.FieldsSeq(k.both + " " + k.tunePlane))
	}
	return all
})

// opened is an object that was read, with what its keys may be.
type opened struct {
	node node
	sec  section
}

// unknownKeys files every key that no rule reads: the objects in the order in which they were read, the keys of one
// by code point, so that the clients' only such error comes first.
func (r *reader) unknownKeys() {
	for _, o := range r.opened {
		if o.sec == secFree || o.node.v == nil {
			continue
		}
		names := keysOf()[r.d][o.sec]
		var strange []pyvalue.Item
		for _, it := range o.node.v.Items {
			if !slices.Contains(names, it.Key.Text) {
				strange = append(strange, it)
			}
		}
		slices.SortFunc(strange, func(a, b pyvalue.Item) int { return strings.Compare(a.Key.Text, b.Key.Text) })
		for _, it := range strange {
			if r.full("job.unknown_field") {
				r.dropped++ // looking for the nearest name is the costly part
				continue
			}
			message, hint := r.instead(it.Key.Text, o.sec, names)
			r.badWith(o.node.child(it.Key.Text, it.Key), "job.unknown_field", hint, "unknown field: %s", message)
		}
	}
}

// lookalike says in what a key differs from the one that was meant, where that is hard to see.
func lookalike(key, meant string) string {
	if strings.EqualFold(pyvalue.Strip(key), meant) {
		return " (case and white space count)"
	}
	for _, c := range key {
		if c >= utf8.RuneSelf {
			return fmt.Sprintf(" (%q is U+%04X, which is not ASCII)", c, c)
		}
	}
	return ""
}

// homes are the sections as a person finds them, and the section around each.
var homes = map[section]struct {
	name   string
	parent section
}{
	secRoot:         {"the document itself, beside spec", secFree},
	secMetadata:     {"metadata", secRoot},
	secSpec:         {"spec", secRoot},
	secPlugin:       {"an entry of spec.plugins", secSpec},
	secRecipe:       {"spec.recipe", secSpec},
	secSource:       {"spec.source", secSpec},
	secFramework:    {"spec.framework", secSpec},
	secModel:        {"spec.model", secSpec},
	secPEFT:         {"spec.model.peft", secModel},
	secData:         {"spec.data", secSpec},
	secDataRef:      {"spec.data.train or spec.data.validation", secData},
	secQuality:      {"spec.data.quality", secData},
	secResources:    {"spec.resources", secSpec},
	secPool:         {"an entry of spec.resources.pools", secResources},
	secLease:        {"an entry of spec.resources.leases", secResources},
	secLifecycle:    {"spec.lifecycle", secSpec},
	secEvaluation:   {"spec.evaluation", secSpec},
	secGate:         {"an entry of spec.evaluation.gates", secEvaluation},
	secOnCheckpoint: {"spec.evaluation.on_checkpoint", secEvaluation},
	secProvenance:   {"provenance", secRoot},
}

// belongs says where a key that a section lacks is known: in the objects around and inside it, or else anywhere. It is ""
// for a key that is known nowhere, or in so many places, as name and version are, that none is likely; but of the document
// itself the sections inside it are.
func (r *reader) belongs(key string, sec section) string {
	var around, all []string
	for other := secRoot; other < secFree; other++ {
		if other == sec || !slices.Contains(keysOf()[r.d][other], key) {
			continue
		}
		all = append(all, homes[other].name)
		if homes[other].parent == sec || homes[sec].parent == other {
			around = append(around, homes[other].name)
		}
	}
	if len(all) > 2 && sec != secRoot {
		return ""
	}
	if len(around) > 0 {
		all = around
	}
	if len(all) > 2 {
		return ""
	}
	return strings.Join(all, " or ")
}

// inside is the key of an object inside a section that an unknown key of the section was probably meant to be. Of what is known
// as it stands belongs has spoken.
func (r *reader) inside(key string, sec section) (near, home string) {
	for child := secRoot; child < secFree; child++ {
		if homes[child].parent != sec {
			continue
		}
		if near = nearest.Mistyped(key, keysOf()[r.d][child]); near != "" && near != key {
			return near, homes[child].name
		}
	}
	return "", ""
}

// carriedElsewhere are keys that users of other platforms expect to set variables and credentials by.
var carriedElsewhere = []string{"env", "env_vars", "environment_variables", "secret", "secrets", "credentials", "token", "tokens"}

// instead says what could have been meant by an unknown key, and how to mend it where that is not the rule's usual way.
func (r *reader) instead(key string, sec section, names []string) (message, hint string) {
	if slices.Contains(keysOf()[r.d.Other()][sec], key) {
		return "only " + r.d.Other().Names().JobSpec + " has it; " + r.d.Names().JobSpec + " does not", ""
	}
	if near := nearest.Mistyped(key, names); near != "" {
		return "did you mean " + near + "?" + lookalike(key, near), ""
	}
	if home := r.belongs(key, sec); home != "" {
		return "it belongs in " + home, "Move it into " + home + "."
	}
	if near := nearest.Word(key, names); near != "" {
		return "did you mean " + near + "?", ""
	}
	if near, home := r.inside(key, sec); near != "" {
		return fmt.Sprintf("did you mean %s in %s?", near, home), ""
	}
	message = "this object may hold " + strings.Join(names, ", ")
	if slices.Contains(carriedElsewhere, strings.ToLower(key)) {
		hint = "Remove it: a JobSpec has no variables and no credentials. The platform gives a job its credentials; settings go into spec.hyperparams or the experiment's config.yaml."
	}
	return message, hint
}
