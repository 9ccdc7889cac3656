package pack

import (
	"fmt"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/digest/tree"
)

// RecipeOptions say how a recipe.yaml is read. The zero RecipeOptions take the dialect from the file.
type RecipeOptions struct {
	Policy rule.Policy
	// Dialect is the dialect to read in; "" takes the one that artifacts.version names, else forge.
	Dialect dialect.Dialect
	// Name is the name of the pack, which the recipe must have too; "" compares nothing.
	Name string
}

// ParseRecipe reads a recipe.yaml alone (packs.md 5.3, 5.4): everything but its template folder. The report holds
// every violation: first those of the clients' own rules in the order in which the client checks, so that the first
// is the one it would show, then ours. The recipe is nil exactly when src is no YAML object; otherwise it holds what
// could be read, and only an OK report says that it is whole.
func ParseRecipe(src []byte, opt RecipeOptions) (*Recipe, rule.Report) {
	r := newRecipeReader(opt, nil)
	recipe := r.read(src)
	return recipe, r.finish()
}

// ReadRecipe reads the recipe.yaml in the root of a pack, and its template folder. Beyond ParseRecipe it refuses a
// pack without the file and a recipe without its template, and computes the template digest. An error means that the
// pack's bytes could not be read.
func ReadRecipe(t tree.Tree, opt RecipeOptions) (*Recipe, rule.Report, error) {
	r := newRecipeReader(opt, t)
	src, ok, err := r.source(t, RecipeFile, "recipe.file", "recipe.limit")
	if err != nil || !ok {
		return nil, r.finish(), err
	}
	recipe := r.read(src)
	return recipe, r.finish(), r.err
}

// recipeReader carries one reading of a recipe.yaml.
type recipeReader struct {
	document
	opt  RecipeOptions
	tree tree.Tree // nil when only the document is at hand
	root *pyvalue.Value
	out  Recipe
	err  error // of reading the template
}

func newRecipeReader(opt RecipeOptions, t tree.Tree) *recipeReader {
	r := &recipeReader{opt: opt, tree: t, document: document{file: RecipeFile}}
	r.report.Policy = opt.Policy
	return r
}

func (r *recipeReader) read(src []byte) *Recipe {
	r.root = r.load(src, r.opt.Policy, "recipe.limit", "recipe.root")
	if r.root == nil {
		return nil
	}
	r.settleDialect()
	r.fields()
	r.place()
	r.ignoredKeys("recipe.ignored", r.root, recipeKeys)
	return &r.out
}

// settleDialect takes the dialect that was asked for, else the one that the document names.
func (r *recipeReader) settleDialect() {
	d := r.opt.Dialect
	if d == "" {
		named := r.root.Get("artifacts").Get("version").TextOf()
		var ok bool
		if d, ok = dialect.Detect(named, func(n dialect.Names) string { return n.Artifacts }); !ok {
			d = dialect.Forge
		}
	}
	r.dialect, r.out.Dialect, r.report.Dialect = d, d, d
}

// recipeKeys are the keys of the document that the client reads, the required ones first.
var recipeKeys = []string{
	"framework", "entrypoint", "template", "metrics", "artifacts", "lifecycle", "lifecycle_resources",
	"name", "version", "adapter_options", "runtime", "title", "summary", "config_section", "plugins", "roles", "category", "modalities",
	"requires", "contract_version", "params", "validation", "i18n", "source", "owner", "digest", "manifest_digest", "template_digest",
}

// requiredKeys is how many of recipeKeys the client asks for together, before it looks at any of them.
const requiredKeys = 7

// fields reads the document in the order in which the client does.
func (r *recipeReader) fields() {
	r.name()
	r.version()
	for _, key := range recipeKeys[:requiredKeys] {
		if !r.root.Has(key) {
			r.missing(key)
		}
	}
	params := r.paramsObject()
	r.framework()
	r.template()
	r.adapterOptions()
	r.lifecycle()
	r.runtime()
	r.coreRequires()
	if r.out.Framework != "" && r.out.Framework != frameworkCustom {
		r.frameworkVersions()
	}
	paramTexts := r.i18n(params)
	r.params(params, paramTexts)
	if v := r.root.Get("entrypoint"); v != nil {
		r.out.Entrypoint, _ = r.entrypoint("recipe.entrypoint", "entrypoint", v)
	}
	r.metrics()
	r.artifacts()
	r.displayTexts()
	r.out.Plugins = r.letters("plugins")
	r.out.Roles = r.letters("roles")
	r.category()
	r.modalities()
	r.validation()
}

// missing files the absence of a required key, with the key that was probably meant as the hint.
func (r *recipeReader) missing(key string) {
	v := rule.Violation{Rule: "recipe.missing", Field: key, File: r.file, Line: r.root.Line, Column: r.root.Column, Message: fmt.Sprintf("the required field %s is missing", key)}
	if like := lookAlike(r.root, key, recipeKeys); like != "" {
		v.Hint = hintRename(like, key)
	}
	r.add(v)
}

func (r *recipeReader) name() {
	if !r.root.Has("name") {
		r.missing("name")
		return
	}
	r.out.Name, _ = r.segment("recipe.name", "name", r.text(r.root, "name"), r.root.Get("name"))
}

func (r *recipeReader) version() {
	if !r.root.Has("version") {
		r.missing("version")
		return
	}
	if r.out.Version = r.text(r.root, "version"); r.out.Version == "" {
		r.fault("recipe.version", "version", r.root.Get("version"), "the version reads as empty (found %s)", found(r.root.Get("version")))
	}
}

func (r *recipeReader) framework() {
	if v := r.root.Get("framework"); v != nil {
		r.out.Framework, _ = r.segment("recipe.framework", "framework", r.text(r.root, "framework"), v)
	}
}

func (r *recipeReader) template() {
	v := r.root.Get("template")
	if v == nil {
		return
	}
	r.out.Template = v.TextOf()
	if r.out.Template == "" || !isInside(r.out.Template) {
		r.fault("recipe.template", "template", v, "found %.100q, expected the relative path of a folder in the pack, without \"..\"", r.out.Template)
		r.out.Template = ""
	}
}

// orchestrators are what tuneplane forms around a recipe's processes; absent or empty stands for none of them.
var orchestrators = []string{"process-group", "ray"}

func (r *recipeReader) adapterOptions() {
	options, ok := r.object("recipe.adapter_options", "adapter_options", r.root.Get("adapter_options"), r.root)
	if !ok {
		return
	}
	for _, it := range options.Items {
		r.out.AdapterOptions.set(it.Key.PyStr(), Raw{it.Value})
	}
	observability := options.Get("observability")
	if got := observability.TextOf(); got != "platform" && got != "external" {
		r.fault("recipe.adapter_options", "adapter_options.observability", or(observability, options), "found %s, expected platform or external", found(observability))
	}
	if r.dialect != dialect.TunePlane {
		return
	}
	orchestrator := options.Get("orchestrator")
	if got := orchestrator.TextOf(); got != "" && !oneOf(got, orchestrators) {
		r.fault("recipe.adapter_options", "adapter_options.orchestrator", orchestrator, "found %.100q, expected process-group or ray, or leave it out", got)
	}
	if v := options.Get("ray_cluster_profile"); v != nil {
		r.fault("recipe.adapter_options", "adapter_options.ray_cluster_profile", v, "the option is retired: declare adapter_options.orchestrator as ray instead")
	}
}

func (r *recipeReader) coreRequires() {
	requires := r.root.Get("requires")
	r.out.CoreRequires = defaultCoreRequires
	if !requires.Truthy() {
		return
	}
	if requires, ok := r.object("recipe.requires", "requires", requires, r.root); ok {
		core := requires.Get("core")
		if !core.Truthy() {
			return
		}
		r.out.CoreRequires = core.TextOf()
		r.specifiers("recipe.requires", "requires.core", r.out.CoreRequires, core)
	}
}

// defaultCoreRequires is the range of client versions of a recipe that states none.
const defaultCoreRequires = ">=0.1,<1"

func (r *recipeReader) displayTexts() {
	r.out.Title = r.root.Get("title").TextOf()
	r.out.Summary = r.root.Get("summary").TextOf()
	r.out.ConfigSection = r.root.Get("config_section").TextOf()
	if r.out.ContractVersion = r.root.Get("contract_version").TextOf(); r.out.ContractVersion == "" {
		r.out.ContractVersion = "1.0.0"
	}
}

// letters reads plugins and roles: str() of whatever a loop over the value takes, so a text falls into its letters.
func (r *recipeReader) letters(field string) []string {
	v := r.root.Get(field)
	items, ok := iterated(v)
	if !ok {
		r.fault("recipe.list", "", v, "%s is %s, expected a list of names", field, found(v))
	}
	all := []string{}
	for _, it := range items {
		all = append(all, it.PyStr())
	}
	if v != nil && v.Kind == pyvalue.Str && len(all) > 1 {
		r.fault("recipe.letters", field, v, "the text %.100q is read as the list of its letters", v.Text)
	}
	return all
}

// recipeCategories says in which dialects a category is known.
var recipeCategories = map[dialect.Dialect][]string{
	dialect.Forge:     {"supervised", "sft", "preference", "reward-model", "rl", "distillation", "evaluation", "custom"},
	dialect.TunePlane: {"supervised", "sft", "preference", "reward-model", "representation", "rl", "distillation", "evaluation", "custom"},
}

func (r *recipeReader) category() {
	v := r.root.Get("category")
	r.out.Category = v.TextOf()
	if known := recipeCategories[r.dialect]; r.out.Category != "" && !oneOf(r.out.Category, known) {
		r.fault("recipe.category", "category", v, "unknown category %.100q, expected one of %s", r.out.Category, quoteList(known))
	}
}

// modalities are what a recipe takes as data, in the order in which tuneplane keeps them.
var modalities = []string{"text", "image", "video", "audio"}

func (r *recipeReader) modalities() {
	if r.dialect != dialect.TunePlane {
		return
	}
	r.out.Modalities = []string{"text"}
	v := r.root.Get("modalities")
	if v == nil || v.Kind == pyvalue.None {
		return
	}
	items := v.List
	if v.Kind == pyvalue.Str {
		items = []*pyvalue.Value{v}
	} else if !isSequence(v) {
		r.fault("recipe.modalities", "modalities", v, "found %s, expected a list of %s", found(v), quoteList(modalities))
		return
	}
	given := make(map[string]bool)
	for _, it := range items {
		s := it.TextOf()
		given[s] = true
		if !oneOf(s, modalities) {
			r.fault("recipe.modalities", "modalities", it, "unknown modality %.100q, expected one of %s", s, quoteList(modalities))
		}
	}
	if len(given) == 0 {
		r.fault("recipe.modalities", "modalities", v, "the list is empty: leave the field out to say text only")
		return
	}
	r.out.Modalities = []string{}
	for _, m := range modalities {
		if given[m] {
			r.out.Modalities = append(r.out.Modalities, m)
		}
	}
}

// Values of the validation block.
var (
	sampleKinds     = []string{"conversation", "preference", "completion", "none"}
	rewardSemantics = []string{"scalar", "binary", "margin", "none"}
)

func (r *recipeReader) validation() {
	out := &r.out.Validation
	*out = Validation{SampleKind: "none", RewardSemantics: "none", ObserverVersions: []string{}}
	v := r.root.Get("validation")
	if v == nil || v.Kind == pyvalue.None {
		return
	}
	block, ok := r.object("recipe.validation", "validation", v, r.root)
	if !ok {
		return
	}
	if items, ok := r.sequence("recipe.validation", "validation.observer_versions", block.Get("observer_versions")); ok {
		out.ObserverVersions = texts(items)
	}
	out.SampleKind = r.choice(block, "sample_kind", sampleKinds)
	out.RewardSemantics = r.choice(block, "reward_semantics", rewardSemantics)
	if out.SampleKind == "none" && out.RewardSemantics != "none" && out.RewardSemantics != "" {
		r.fault("recipe.validation", "validation.reward_semantics", block.Get("reward_semantics"), "found %q, expected none because sample_kind is none", out.RewardSemantics)
	}
}

// choice reads one of the validation block's closed sets; a refused value reads as "".
func (r *recipeReader) choice(block *pyvalue.Value, key string, known []string) string {
	v := block.Get(key)
	if !v.Truthy() {
		return "none"
	}
	s := v.TextOf()
	if !oneOf(s, known) {
		r.fault("recipe.validation", "validation."+key, v, "found %.100q, expected one of %s", s, quoteList(known))
		return ""
	}
	return s
}
