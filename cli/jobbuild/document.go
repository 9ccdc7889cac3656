package jobbuild

import (
	"slices"
	"strings"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/jobspec"
	"github.com/gatehouse-registry/gatehouse/admission/lock"
	"github.com/gatehouse-registry/gatehouse/admission/pyjson"
	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
)

// ownRules are the rules of the JobSpec's reader that the clients apply while they build, by the beginning of their ids. The
// others they leave to the server, above all whether plugins clash (recipes-and-locks.md 2) and what a hub reference is.
var ownRules = []string{
	"job.source.exp.", "job.framework.image.reference", "job.model.init_from.", "job.data.volumes.", "job.data.taskset.", "job.evaluation.",
	"job.plugins.id.", "job.plugins.version.required", "job.plugins.version.type", "job.plugins.version.empty",
	"job.plugins.digest.required", "job.plugins.digest.type", "job.plugins.digest.prefix",
}

// left are rules with such a beginning that are ours alone.
var left = []rule.ID{"job.data.volumes.absolute"}

// fromDocument takes the parts that the clients read by the rules of a JobSpec document: a document that holds only them is
// read here by the same reader as gate 2's, so that there is one reading of each.
func (b *builder) fromDocument(spec *jobspec.Spec) {
	read, report := jobspec.Decode(b.document(), jobspec.Options{Dialect: b.in.Dialect}, rule.Report{})
	for _, v := range report.Violations {
		if slices.ContainsFunc(ownRules, func(prefix string) bool { return strings.HasPrefix(string(v.Rule), prefix) }) && !slices.Contains(left, v.Rule) {
			v.Line, v.Column, v.Pointer = 0, 0, ""
			b.report.Add(v)
		}
	}
	if read == nil {
		return
	}
	spec.Model.InitFrom = read.Model.InitFrom
	spec.Data.Volumes = read.Data.Volumes
	spec.Data.Taskset = read.Data.Taskset
	spec.Evaluation = read.Evaluation
	spec.Plugins = b.plugins()
}

// document holds what fromDocument reads.
func (b *builder) document() *pyvalue.Value {
	text := pyvalue.NewStr
	data := object("volumes", textList(b.volumes()))
	if b.in.Dialect == dialect.TunePlane && b.opt.Taskset != "" {
		data.Items = append(data.Items, pyvalue.Item{Key: text("taskset"), Value: text(b.opt.Taskset)})
	}
	model := object()
	if b.opt.InitFrom != "" {
		model = object("init_from", text(b.opt.InitFrom))
	}
	spec := object(
		"recipe", object("name", text("a/b"), "version", text("1"), "digest", text("sha256:"+strings.Repeat("0", 64))),
		"source", object("exp", text(b.in.Exp)),
		"framework", object("kind", text("a"), "version", text("1"), "image", text(pyvalue.Strip(b.opt.Image))),
		"model", model, "data", data,
		"resources", object("pools", &pyvalue.Value{Kind: pyvalue.List, List: []*pyvalue.Value{object("name", text("all"))}}),
		"evaluation", b.evaluation(),
		"plugins", b.pluginList(),
	)
	return object(
		"apiVersion", text(b.in.Dialect.Names().JobSpec), "kind", text(jobspec.Kind), "metadata", object("name", text("a")),
		"spec", spec, "provenance", object("core_version", text("1")),
	)
}

// object is a mapping of keys, which are texts, and values.
func object(pairs ...any) *pyvalue.Value {
	v := &pyvalue.Value{Kind: pyvalue.Map}
	for i := 0; i < len(pairs); i += 2 {
		v.Items = append(v.Items, pyvalue.Item{Key: pyvalue.NewStr(pairs[i].(string)), Value: pairs[i+1].(*pyvalue.Value)})
	}
	return v
}

func textList(list []string) *pyvalue.Value {
	v := &pyvalue.Value{Kind: pyvalue.List}
	for _, s := range list {
		v.List = append(v.List, pyvalue.NewStr(s))
	}
	return v
}

// volumes are those of config.yaml, then those of the command line, each once.
func (b *builder) volumes() []string {
	var all []string
	add := func(text string) {
		if text = pyvalue.Strip(text); text != "" && !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	data := b.in.Config.Get("data")
	if data.Truthy() && data.Kind != pyvalue.Map {
		b.hinted("submit.config", "data", "Write data: with train, validation or volumes below it, or remove it.", "config.yaml: found %s, expected a mapping", data.TypeName())
		data = nil
	}
	switch declared := data.Get("volumes"); {
	case declared == nil:
	case declared.Kind == pyvalue.Str:
		add(declared.Text)
	case declared.Kind == pyvalue.List:
		for _, v := range declared.List {
			add(v.TextOf())
		}
	}
	for _, text := range b.opt.Volumes {
		add(text)
	}
	return all
}

// evaluation is the section eval of config.yaml without the keys that no contract has: the clients drop them here
// (jobspec.md 4). A metric without its benchmark is refused as the clients do, though gate 2 could complete it.
func (b *builder) evaluation() *pyvalue.Value {
	section := b.in.Config.Get("eval")
	if section == nil || section.Kind != pyvalue.Map {
		return object()
	}
	if gates := section.Get("gates"); gates != nil && gates.Kind == pyvalue.List {
		for _, gate := range gates.List {
			if metric := gate.Get("metric"); metric != nil && metric.Kind == pyvalue.Str && metric.Text != "" && !strings.Contains(metric.Text, "/") {
				b.bad("job.evaluation.gate.metric.format", "spec.evaluation.gates", "found the metric %.100q, expected <benchmark>/<key>, such as gsm8k/exact_match", metric.Text)
			}
		}
	}
	return section
}

// pluginList is the plugins lock as a document, whose values keep their types.
func (b *builder) pluginList() *pyvalue.Value {
	none := &pyvalue.Value{Kind: pyvalue.List}
	if len(b.in.Plugins.Entries) == 0 {
		return none
	}
	text, err := b.in.Plugins.Encode()
	if err != nil {
		b.bad("submit.lock", lock.PluginsFile, "%s", err)
		return none
	}
	// What a client's own writer wrote can be read; what this reader finds odd in it is the server's to say.
	doc, _ := pyjson.Load(text, pyjson.Options{})
	if list := doc.Get("plugins"); list != nil {
		return list
	}
	return none
}

// plugins are the locked triples in the order of the lock, then the bundled integration unless its id is locked.
func (b *builder) plugins() []jobspec.Plugin {
	var all []jobspec.Plugin
	for _, p := range b.in.Plugins.Entries {
		parts := strings.FieldsFunc(pyvalue.Strip(p.ID()), func(r rune) bool { return r == '/' })
		all = append(all, jobspec.Plugin{ID: strings.Join(parts, "/"), Version: pyvalue.Strip(p.Version()), Digest: pyvalue.Strip(p.Digest())})
	}
	bundled := b.in.Recipe.Bundled
	if bundled == nil || slices.ContainsFunc(all, func(p jobspec.Plugin) bool { return p.ID == bundled.ID }) {
		return all
	}
	return append(all, *bundled)
}
