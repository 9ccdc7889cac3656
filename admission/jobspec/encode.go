package jobspec

import (
	"math/big"
	"strconv"
	"sync"

	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
)

// Normalised is the stored document: compact JSON in the clients' key order, without what is empty (jobspec.md 6). It
// is what the clients' own serialiser writes for an accepted document. After a refusal it means nothing.
func (s *Spec) Normalised() []byte { return appendJSON(nil, s.value()) }

// object builds a JSON object in a fixed order.
type object struct{ items []pyvalue.Item }

// must adds a member whatever its value.
func (o *object) must(key string, v *pyvalue.Value) { o.add(memberKey(key), v) }

// named is must for a key that the user chose.
func (o *object) named(key string, v *pyvalue.Value) { o.add(pyvalue.NewStr(key), v) }

func (o *object) add(key, v *pyvalue.Value) {
	if o.items == nil {
		o.items = make([]pyvalue.Item, 0, 4) // most objects have no more
	}
	o.items = append(o.items, pyvalue.Item{Key: key, Value: v})
}

// memberKeys are the names of members as values, which nobody changes: every job has the same ones.
var memberKeys sync.Map

func memberKey(name string) *pyvalue.Value {
	if v, ok := memberKeys.Load(name); ok {
		return v.(*pyvalue.Value)
	}
	v, _ := memberKeys.LoadOrStore(name, pyvalue.NewStr(name))
	return v.(*pyvalue.Value)
}

// put adds a member unless it is nil, an empty text, list or object.
func (o *object) put(key string, v *pyvalue.Value) {
	if v == nil || (v.Kind == pyvalue.Map || v.Kind == pyvalue.List || v.Kind == pyvalue.Str) && !v.Truthy() {
		return
	}
	o.must(key, v)
}

func (o *object) text(key, s string) { o.put(key, pyvalue.NewStr(s)) }

// whole adds a number unless it is zero.
func (o *object) whole(key string, n int64) {
	if n != 0 {
		o.must(key, integerValue(n))
	}
}

// ratio adds a float unless it is not given.
func (o *object) ratio(key string, f *float64) {
	if f != nil {
		o.must(key, &pyvalue.Value{Kind: pyvalue.Float, Float: *f})
	}
}

func (o *object) texts(key string, list []string) { o.put(key, textList(list)) }

func (o *object) value() *pyvalue.Value { return &pyvalue.Value{Kind: pyvalue.Map, Items: o.items} }

func integerValue(n int64) *pyvalue.Value {
	return &pyvalue.Value{Kind: pyvalue.Int, Int: big.NewInt(n)}
}

func textList(list []string) *pyvalue.Value {
	v := &pyvalue.Value{Kind: pyvalue.List, List: make([]*pyvalue.Value, len(list))}
	for i, s := range list {
		v.List[i] = pyvalue.NewStr(s)
	}
	return v
}

func listOf[T any](list []T, each func(T) *pyvalue.Value) *pyvalue.Value {
	v := &pyvalue.Value{Kind: pyvalue.List, List: make([]*pyvalue.Value, len(list))}
	for i, item := range list {
		v.List[i] = each(item)
	}
	return v
}

func (s *Spec) value() *pyvalue.Value {
	var o object
	o.text("apiVersion", s.Dialect.Names().JobSpec)
	o.text("kind", Kind)
	o.must("metadata", s.Metadata.value())
	o.must("spec", s.body())
	o.must("provenance", s.Provenance.value())
	return o.value()
}

func (m Metadata) value() *pyvalue.Value {
	var o, labels object
	o.must("name", pyvalue.NewStr(m.Name))
	o.text("project", m.Project)
	o.text("owner", m.Owner)
	o.text("display_name", m.DisplayName)
	for _, l := range m.Labels {
		labels.named(l.Key, pyvalue.NewStr(l.Value))
	}
	o.put("labels", labels.value())
	return o.value()
}

func (s *Spec) body() *pyvalue.Value {
	var o, source, lifecycle object
	o.must("recipe", s.Recipe.value())
	source.must("exp", pyvalue.NewStr(s.Source.Exp))
	o.must("source", source.value())
	o.must("framework", s.Framework.value())
	o.put("model", s.Model.value())
	o.put("data", s.Data.value())
	o.must("resources", s.Resources.value())
	o.put("hyperparams", s.Hyperparams)
	lifecycle.texts("on_success", s.OnSuccess)
	o.put("lifecycle", lifecycle.value())
	o.put("evaluation", s.Evaluation.value())
	o.put("plugins", listOf(s.Plugins, Plugin.value))
	return o.value()
}

func (r Recipe) value() *pyvalue.Value {
	var o object
	o.must("name", pyvalue.NewStr(r.Name))
	o.must("version", pyvalue.NewStr(r.Version))
	o.must("digest", pyvalue.NewStr(r.Digest))
	o.texts("plugins", r.Plugins)
	return o.value()
}

func (f Framework) value() *pyvalue.Value {
	var o object
	o.must("kind", pyvalue.NewStr(f.Kind))
	o.must("version", pyvalue.NewStr(f.Version))
	o.text("runtime_id", f.RuntimeID)
	o.text("image", f.Image)
	o.text("observability_url", f.ObservabilityURL)
	return o.value()
}

func (m Model) value() *pyvalue.Value {
	var o object
	o.text("base", m.Base)
	if p := m.PEFT; p != nil {
		var peft object
		peft.text("kind", p.Kind)
		peft.any("dim", p.Dim)
		peft.any("alpha", p.Alpha)
		o.must("peft", peft.value())
	}
	if m.InitFrom != nil {
		o.text("init_from", m.InitFrom.String())
	}
	return o.value()
}

// any adds a member unless it is nil.
func (o *object) any(key string, v *pyvalue.Value) {
	if v != nil {
		o.must(key, v)
	}
}

func (d Data) value() *pyvalue.Value {
	var o object
	for _, ref := range []struct {
		key string
		ref *DataRef
	}{{"train", d.Train}, {"validation", d.Validation}} {
		if ref.ref != nil {
			o.must(ref.key, ref.ref.value())
		}
	}
	o.texts("volumes", d.Volumes)
	o.text("output_dataset", d.OutputDataset)
	o.text("environment", d.Environment)
	o.text("taskset", d.Taskset)
	o.put("quality", d.Quality.value())
	o.text("corpus", d.Corpus)
	return o.value()
}

func (d DataRef) value() *pyvalue.Value {
	var o object
	o.text("dataset", d.Dataset)
	o.text("split", d.Split)
	o.text("path", d.Path)
	return o.value()
}

func (q Quality) value() *pyvalue.Value {
	var o object
	o.ratio("max_duplicate_ratio", q.MaxDuplicateRatio)
	o.text("overlap_with", q.OverlapWith)
	o.ratio("max_overlap_ratio", q.MaxOverlapRatio)
	o.text("group_key", q.GroupKey)
	o.ratio("max_group_leak_ratio", q.MaxGroupLeakRatio)
	return o.value()
}

func (r Resources) value() *pyvalue.Value {
	var o, roles object
	o.must("pools", listOf(r.Pools, Pool.value))
	for _, role := range r.Roles {
		roles.named(role.Name, pyvalue.NewStr(role.Pool))
	}
	o.put("roles", roles.value())
	o.put("leases", listOf(r.Leases, Lease.value))
	if n := r.Network; n != nil {
		var network object
		network.must("transport", pyvalue.NewStr(n.Transport))
		network.must("interface", pyvalue.NewStr(n.Interface))
		network.must("isolation", pyvalue.NewStr(n.Isolation))
		o.must("network", network.value())
	}
	return o.value()
}

func (p Pool) value() *pyvalue.Value {
	var o object
	o.must("name", pyvalue.NewStr(p.Name))
	o.must("nodes", integerValue(p.Nodes))
	o.must("gpus_per_node", integerValue(p.GPUsPerNode))
	o.text("series", p.Series)
	o.whole("cpus", p.CPUs)
	o.whole("memory_gb", p.MemoryGB)
	o.whole("scratch_gb", p.ScratchGB)
	return o.value()
}

func (l Lease) value() *pyvalue.Value {
	var o object
	o.must("tool", pyvalue.NewStr(l.Tool))
	o.must("seats", integerValue(l.Seats))
	return o.value()
}

func (e Evaluation) value() *pyvalue.Value {
	var o object
	o.texts("suites", e.Suites)
	o.text("runner", e.Runner)
	o.text("baseline", e.Baseline)
	o.whole("limit", e.Limit)
	o.put("gates", listOf(e.Gates, Gate.value))
	if e.OnCheckpoint != nil {
		o.must("on_checkpoint", e.OnCheckpoint.value())
	}
	return o.value()
}

func (g Gate) value() *pyvalue.Value {
	var o object
	o.must("metric", pyvalue.NewStr(g.Metric))
	o.ratio("min", g.Min)
	o.ratio("max", g.Max)
	o.ratio("max_regression", g.MaxRegression)
	return o.value()
}

func (c OnCheckpoint) value() *pyvalue.Value {
	var o object
	o.must("every_steps", integerValue(c.EverySteps))
	o.must("suites", textList(c.Suites))
	o.whole("limit", c.Limit)
	if c.Repetitions > 1 {
		o.whole("repetitions", c.Repetitions)
	}
	o.whole("warmup_steps", c.WarmupSteps)
	o.text("fleet", c.Fleet)
	return o.value()
}

func (p Plugin) value() *pyvalue.Value {
	var o object
	o.must("id", pyvalue.NewStr(p.ID))
	o.must("version", pyvalue.NewStr(p.Version))
	o.must("digest", pyvalue.NewStr(p.Digest))
	return o.value()
}

func (p Provenance) value() *pyvalue.Value {
	var o object
	o.must("core_version", pyvalue.NewStr(p.CoreVersion))
	o.text("git_commit", p.GitCommit)
	if p.GitDirty {
		o.must("git_dirty", &pyvalue.Value{Kind: pyvalue.Bool, Bool: true})
	}
	o.text("config_sha", p.ConfigSHA)
	o.text("model_name", p.ModelName)
	return o.value()
}

// appendJSON writes a value as Python's json.dumps does without white space and with non-ASCII kept. Values read from
// JSON are not nested beyond limit.JSONDepth.
func appendJSON(b []byte, v *pyvalue.Value) []byte {
	switch v.Kind {
	case pyvalue.Bool:
		return strconv.AppendBool(b, v.Bool)
	case pyvalue.Int:
		return v.Int.Append(b, 10)
	case pyvalue.Float:
		return append(b, pyvalue.FloatText(v.Float)...)
	case pyvalue.Str:
		return appendText(b, v.Text)
	case pyvalue.List:
		b = append(b, '[')
		for i, item := range v.List {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendJSON(b, item)
		}
		return append(b, ']')
	case pyvalue.Map:
		b = append(b, '{')
		for i, it := range v.Items {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendText(b, it.Key.Text), ':')
			b = appendJSON(b, it.Value)
		}
		return append(b, '}')
	}
	return append(b, "null"...)
}

// escapes are the escapes of the bytes that JSON does not take as they are; "" for all others.
var escapes = func() (table [256]string) {
	for c := range byte(0x20) {
		table[c] = `\u00` + string("0123456789abcdef"[c>>4]) + string("0123456789abcdef"[c&15])
	}
	for c, short := range map[byte]string{'"': `\"`, '\\': `\\`, '\b': `\b`, '\f': `\f`, '\n': `\n`, '\r': `\r`, '\t': `\t`} {
		table[c] = short
	}
	return table
}()

func appendText(b []byte, s string) []byte {
	b = append(b, '"')
	from := 0
	for i := range len(s) {
		if escape := escapes[s[i]]; escape != "" {
			b = append(append(b, s[from:i]...), escape...)
			from = i + 1
		}
	}
	return append(append(b, s[from:]...), '"')
}
