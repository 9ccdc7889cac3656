package pack

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
)

// Metrics says how to read what a run reports (packs.md 5.4).
type Metrics struct {
	Primary   []string         `json:"primary"`
	Aliases   Table[[]string]  `json:"aliases"`   // the frameworks' own names by canonical name
	Semantics Table[Semantics] `json:"semantics"` // beside the built-in ones
	// Objective and Equivalences are tuneplane's; nil in forge.
	Objective    []string      `json:"objective,omitzero"` // what ranks runs, the best first
	Equivalences []Equivalence `json:"equivalences,omitzero"`
}

// Semantics says which end of a metric is the better one, and how it is shown.
type Semantics struct {
	Direction string `json:"direction"` // higher, lower or neutral
	Display   string `json:"display"`   // ratio or number
}

// Equivalence is a group of metrics that carry one number.
type Equivalence struct {
	Keys   []string `json:"keys"`
	Reason string   `json:"reason"`
}

// Directions and displays that a metric can have.
var (
	metricDirections = []string{"higher", "lower", "neutral"}
	metricDisplays   = []string{"ratio", "number"}
)

// defaultSemantics are those of a metric that neither the recipe nor the built-in table knows, and the default
// direction of a semantics block.
func defaultSemantics(d dialect.Dialect) Semantics {
	if d == dialect.TunePlane {
		return Semantics{"neutral", "number"}
	}
	return Semantics{"higher", "number"}
}

// SemanticsOf says how to read a metric of the recipe: its own statement, else the dialect's built-in one, else the
// default.
func (r *Recipe) SemanticsOf(metric string) Semantics {
	if own, ok := r.Metrics.Semantics.Get(metric); ok {
		return own
	}
	if s, ok := builtinSemantics(r.Dialect, metric); ok {
		return s
	}
	return defaultSemantics(r.Dialect)
}

func (r *recipeReader) metrics() {
	v := r.root.Get("metrics")
	if v == nil {
		return
	}
	block, ok := r.object("recipe.metrics", "metrics", v, r.root)
	if !ok {
		return
	}
	out := &r.out.Metrics
	out.Primary = []string{}
	if primary := block.Get("primary"); !isSequence(primary) || len(primary.List) == 0 {
		r.fault("recipe.metrics", "metrics.primary", or(primary, block), "found %s, expected a list of at least one metric", found(primary))
	} else {
		for _, it := range primary.List {
			out.Primary = append(out.Primary, it.PyStr())
		}
	}
	r.aliases(block)
	r.semantics(block)
	if r.dialect == dialect.TunePlane {
		r.objective(block)
		r.equivalences(block)
		r.rankable(block)
		r.distinctGroups(block)
	}
}

func (r *recipeReader) aliases(block *pyvalue.Value) {
	aliases, ok := r.object("recipe.metrics", "metrics.aliases", block.Get("aliases"), block)
	if !ok {
		return
	}
	for _, it := range aliases.Items {
		name := it.Key.PyStr()
		if !isSequence(it.Value) {
			r.fault("recipe.metrics", pathOf("metrics.aliases", name), it.Value, "found %s, expected a list of texts", found(it.Value))
			continue
		}
		all := []string{}
		for _, a := range it.Value.List {
			all = append(all, a.PyStr())
		}
		r.out.Metrics.Aliases.set(name, all)
	}
}

func (r *recipeReader) semantics(block *pyvalue.Value) {
	v := block.Get("semantics")
	if !v.Truthy() {
		return
	}
	if v.Kind != pyvalue.Map {
		r.fault("recipe.metrics.semantics", "", v, "metrics.semantics is %s, expected an object", found(v))
		return
	}
	for _, it := range v.Items {
		name := it.Key.PyStr()
		field := pathOf("metrics.semantics", name)
		one, ok := r.object("recipe.metrics.semantics", field, it.Value, it.Key)
		if !ok {
			continue
		}
		s := defaultSemantics(r.dialect)
		if d := one.Get("direction"); d != nil {
			s.Direction = d.PyStr()
		}
		if d := one.Get("display"); d != nil {
			s.Display = d.PyStr()
		}
		if !oneOf(s.Direction, metricDirections) {
			r.fault("recipe.metrics.semantics", field+".direction", one.Get("direction"), "found %.100q, expected one of %s", s.Direction, quoteList(metricDirections))
		}
		if !oneOf(s.Display, metricDisplays) {
			r.fault("recipe.metrics.semantics", field+".display", one.Get("display"), "found %.100q, expected one of %s", s.Display, quoteList(metricDisplays))
		}
		r.out.Metrics.Semantics.set(name, s)
	}
}

func (r *recipeReader) objective(block *pyvalue.Value) {
	out := &r.out.Metrics.Objective
	*out = []string{}
	v := block.Get("objective")
	if isNone(v) {
		return
	}
	const id, field = "recipe.metrics.objective", "metrics.objective"
	if !isSequence(v) {
		r.fault(id, field, v, "found %s, expected a list of metrics, the best first", found(v))
		return
	}
	*out = texts(v.List)
	switch repeated := firstRepeated(*out); {
	case len(*out) == 0:
		r.fault(id, field, v, "the list is empty: leave the field out to rank by the first primary metric")
	case repeated != "":
		r.fault(id, field, v, "the metric %.100q stands in the list twice", repeated)
	}
}

func firstRepeated(names []string) string {
	seen := make(map[string]bool, len(names))
	for _, n := range names {
		if seen[n] {
			return n
		}
		seen[n] = true
	}
	return ""
}

// equivalenceReasons are why two metrics can carry one number.
var equivalenceReasons = []string{"unshaped_reward", "no_critic", "no_aborted_rollouts"}

// maxGroups bounds the groups that the stats of the equivalences expand to; each holds a name for every key.
const maxGroups = 10_000

func (r *recipeReader) equivalences(block *pyvalue.Value) {
	r.out.Metrics.Equivalences = []Equivalence{}
	v := block.Get("equivalences")
	if isNone(v) {
		return
	}
	if !isSequence(v) {
		r.fault("recipe.metrics.equivalences", "metrics.equivalences", v, "found %s, expected a list", found(v))
		return
	}
	for i, it := range v.List {
		r.equivalence(fmt.Sprintf("metrics.equivalences[%d]", i), it)
	}
}

// equivalence reads one group; its stats expand it to a group for each of them.
func (r *recipeReader) equivalence(field string, v *pyvalue.Value) {
	const id = "recipe.metrics.equivalences"
	if _, ok := r.object(id, field, v, v); !ok {
		return
	}
	reason := v.Get("reason").TextOf()
	if !oneOf(reason, equivalenceReasons) {
		r.fault(id, field+".reason", or(v.Get("reason"), v), "found %.100q, expected one of %s", reason, quoteList(equivalenceReasons))
	}
	if !isSequence(v.Get("keys")) {
		r.fault(id, field+".keys", or(v.Get("keys"), v), "found %s, expected a list of metrics", found(v.Get("keys")))
		return
	}
	keys := texts(v.Get("keys").List)
	items, ok := r.sequence(id, field+".stats", v.Get("stats"))
	if !ok {
		return
	}
	groups, ok := expand(keys, texts(items), maxGroups-len(r.out.Metrics.Equivalences))
	if !ok {
		r.fault("recipe.limit", field, v, "keys and stats make more than %d names", maxGroups)
		return
	}
	switch {
	case len(keys) < 2:
		r.fault(id, field+".keys", v.Get("keys"), "found %d metrics, expected at least two that carry one number", len(keys))
	case firstRepeated(keys) != "":
		r.fault(id, field+".keys", v.Get("keys"), "the metric %.100q stands in the list twice", firstRepeated(keys))
	default:
		for _, names := range groups {
			r.out.Metrics.Equivalences = append(r.out.Metrics.Equivalences, Equivalence{names, reason})
		}
	}
}

// expand is keys alone, or key/stat for every stat; not ok when that makes more than limit names.
func expand(keys, stats []string, limit int) (groups [][]string, ok bool) {
	if len(stats) == 0 {
		return [][]string{keys}, len(keys) <= limit
	}
	if len(keys)*len(stats) > limit {
		return nil, false
	}
	for _, stat := range stats {
		names := make([]string, len(keys))
		for i, key := range keys {
			names[i] = key + "/" + stat
		}
		groups = append(groups, names)
	}
	return groups, true
}

// declared reports whether the recipe names the metric under primary or aliases.
func (m *Metrics) declared() func(string) bool {
	primary := make(map[string]bool)
	for _, p := range m.Primary {
		primary[p] = true
	}
	return func(name string) bool { return primary[name] || m.Aliases.Has(name) }
}

// rankable checks that every metric of the objective is declared, has a better end, and that all have the same.
func (r *recipeReader) rankable(block *pyvalue.Value) {
	const id, field = "recipe.metrics.objective", "metrics.objective"
	m, at := &r.out.Metrics, block.Get("objective")
	declared := m.declared()
	directions := make(map[string]bool)
	for _, name := range m.Objective {
		direction := r.out.SemanticsOf(name).Direction
		switch {
		case !declared(name):
			r.fault(id, field, at, "found %.100q, which stands neither under metrics.primary nor under metrics.aliases", name)
		case direction == "neutral":
			r.fault(id, field, at, "the direction of %.100q is neutral, so it can't rank one run above another", name)
		default:
			directions[direction] = true
		}
	}
	if len(directions) > 1 {
		r.fault(id, field, at, "the metrics have different directions: %s", strings.Join(slices.Sorted(maps.Keys(directions)), ", "))
	}
}

// distinctGroups checks that every metric of the equivalences is declared, or a framework's own, and in one group
// only.
func (r *recipeReader) distinctGroups(block *pyvalue.Value) {
	const id, field = "recipe.metrics.equivalences", "metrics.equivalences"
	m, at := &r.out.Metrics, block.Get("equivalences")
	declared := m.declared()
	seen := make(map[string]bool)
	for _, group := range m.Equivalences {
		for _, key := range group.Keys {
			if !strings.HasPrefix(key, "raw/") && !declared(key) {
				r.fault(id, field, at, "found %.100q, which stands neither under metrics.primary nor under metrics.aliases (a framework's own name begins with raw/)", key)
			}
			if seen[key] {
				r.fault(id, field, at, "the metric %.100q stands in two groups", key)
			}
			seen[key] = true
		}
	}
}
