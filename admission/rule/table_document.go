package rule

import "github.com/gatehouse-registry/gatehouse/admission/dialect"

// documentRules are the rules of recipe.yaml (packs.md 5) and benchmark.yaml (packs.md 6), the documents that declarative
// packs are about.
var documentRules = append(append([]Info{}, recipeRules...), benchmarkRules...)

// recipeRules without a note are the clients' own.
var recipeRules = []Info{
	{
		ID: "recipe.file", Title: "A recipe pack has a recipe.yaml in its root.",
		Fix:    "Put recipe.yaml into the root of the pack, as a file of exactly that name.",
		Source: "packs.md 5.5, 13.4", Gates: packGates, Ours: true,
		Example: told(`The archive of a recipe pack holds recipe.yml.`),
	},
	{
		ID: "recipe.limit", Title: "recipe.yaml keeps within its limits.",
		Fix:    "Move long texts to README.md and data to files of the template.",
		Source: "admission/limit", Gates: packGates, Ours: true, Fixed: true, Class: TooLarge,
		Example: told(`recipe.yaml has 2 MiB.`),
	},
	{
		ID: "recipe.root", Title: "recipe.yaml holds one object.",
		Fix:    "Write fields such as `name: my-recipe`, one a line.",
		Source: "packs.md 2", Gates: packGates,
		Example: whole(`- tiny-sft`),
	},
	{
		ID: "recipe.missing", Title: "recipe.yaml has every required field.",
		Fix:    "Add the field; `sf plugin new --kind recipe NAME` writes a recipe that has them all.",
		Source: "packs.md 5.3", Gates: packGates,
		Example: without(`template`),
	},
	{
		ID: "recipe.ignored", Title: "recipe.yaml has only fields that the clients read.",
		Fix:    "Remove the field, or correct its spelling; it changes the recipe's digest all the same.",
		Source: "packs.md 5.3 (ours)", Gates: packGates, Severity: Warn, Ours: true,
		Example: at(`titel`, `"Tiny"`),
	},
	{
		ID: "recipe.name", Title: "The recipe's name is one path-safe name.",
		Fix:    "Begin with a letter or digit and use only ASCII letters, digits, '.', '_' and '-'.",
		Source: "packs.md 5.3, 12", Gates: packGates,
		Example: at(`name`, `"tiny sft"`),
	},
	{
		ID: "recipe.name.pack", Title: "The recipe has the name of its pack.",
		Fix:    "Write the name of plugin.yaml into recipe.yaml; a differing one breaks the catalogue of every client that syncs.",
		Source: "packs.md 5.3, 5.5", Gates: packGates,
		Example: told(`plugin.yaml says name: tiny-sft, recipe.yaml says name: tiny.`),
	},
	{
		ID: "recipe.version", Title: "The recipe's version is not empty.",
		Fix:    "Write a version in quotes, such as \"1.0.0\".",
		Source: "packs.md 5.3", Gates: packGates,
		Example: at(`version`, `""`),
	},
	{
		ID: "recipe.framework", Title: "The framework is one path-safe name.",
		Fix:    "Name the framework, such as trl, or custom for an environment of your own.",
		Source: "packs.md 5.3, 12", Gates: packGates,
		Example: at(`framework`, `"trl/sft"`),
	},
	{
		ID: "recipe.framework.blank", Title: "The framework has no white space around it.",
		Fix:    "Remove the blanks: the client compares the framework as it is written.",
		Source: "packs.md 5.3", Gates: packGates,
		Example: at(`framework`, `" custom "`),
	},
	{
		ID: "recipe.template", Title: "The template is a folder of the pack, named by a relative path.",
		Fix:    "Name a folder of the pack that holds at least one file, such as template.",
		Source: "packs.md 5.3", Gates: packGates,
		Example: at(`template`, `"../template"`),
	},
	{
		ID: "recipe.template.link", Title: "The template is a real folder.",
		Fix:    "Copy the files into the folder that recipe.yaml names.",
		Source: "packs.md 4.1, 13.3 (ours)", Gates: packGates, Ours: true,
		Example: told(`template is a symbolic link to another folder.`),
	},
	{
		ID: "recipe.template.outside", Title: "The template lies in the pack.",
		Fix:    "Copy the files into a folder of the pack.",
		Source: "packs.md 4.1, 13.3; design.md 9", Gates: packGates, Ours: true, Fixed: true,
		Example: told(`template is ../common.`),
	},
	{
		ID: "recipe.template.empty", Title: "The template holds a file that counts.",
		Fix:    "Add a file, such as template/config.yaml: an archive holds no empty folders.",
		Source: "packs.md 5.3 (ours)", Gates: packGates, Ours: true,
		Example: told(`template holds nothing but __pycache__.`),
	},
	{
		ID: "recipe.entrypoint", Title: "The entrypoint says what to start, inside the experiment.",
		Fix:    "Write {kind: module|file|experiment, value: …}; a value that is no module is a relative path.",
		Source: "packs.md 5.3", Gates: packGates,
		Example: at(`entrypoint`, `{"kind":"binary","value":"train"}`),
	},
	{
		ID: "recipe.adapter_options", Title: "The adapter options say who observes the job, in values that the clients know.",
		Fix:    "Write adapter_options: {observability: platform} or external.",
		Source: "packs.md 5.3", Gates: packGates,
		Example: at(`adapter_options`, `{"observability":"nobody"}`),
	},
	{
		ID: "recipe.lifecycle", Title: "The lifecycle maps actions to entrypoints.",
		Fix:    "Write {action: {kind: …, value: …}}, or {} for none.",
		Source: "packs.md 5.3", Gates: packGates,
		Example: at(`lifecycle`, `["export"]`),
	},
	{
		ID: "recipe.lifecycle_resources", Title: "The lifecycle resources give a number of GPUs for each action of the lifecycle.",
		Fix:    "Name exactly the actions of lifecycle, each with an integer of 0 or more.",
		Source: "packs.md 5.3", Gates: packGates,
		Example: at(`lifecycle_resources`, `{"export":"two"}`),
	},
	{
		ID: "recipe.runtime", Title: "The runtime holds the framework versions and a default among them.",
		Fix:    "Write runtime: {default_version: V, versions: {V: {…}}}, with V in quotes.",
		Source: "packs.md 5.3", Gates: packGates,
		Example: at(`runtime`, `{"default_version":"9.9","versions":{"1.0":{}}}`),
	},
	{
		ID: "recipe.runtime.exact", Title: "A framework version names one release, unless the framework is custom.",
		Fix:    "Write three numbers such as \"1.10.0\", or a whole git commit of 40 lower-case hex digits.",
		Source: "packs.md 5.3", Gates: packGates,
		Example: told(`A recipe of trl offers the framework version >=0.20.`),
	},
	{
		ID: "recipe.runtime.id", Title: "A framework version names a runtime of its own, unless the framework is custom.",
		Fix:    "Give each version a runtime_id such as trl-1.10.0.",
		Source: "packs.md 5.3", Gates: packGates,
		Example: told(`A recipe of trl gives no runtime_id for a framework version.`),
	},
	{
		ID: "recipe.runtime.source", Title: "A framework version says in one way where its environment comes from.",
		Fix:    "Give a source of kind oci with the image's reference, or set deployment_artifact.",
		Source: "packs.md 5.3", Gates: packGates,
		Example: told(`A framework version has both an image and a project.`),
	},
	{
		ID: "recipe.runtime.requires", Title: "A verl, trl or pytorch version has its exact requirement.",
		Fix:    "Add the requirement that the message names to requires.",
		Source: "packs.md 5.3", Gates: packGates, Dialects: []dialect.Dialect{dialect.Forge},
		Example: told(`A recipe of trl has no requirement trl==0.20.0 for the framework version 0.20.0.`),
	},
	{
		ID: "recipe.requires", Title: "The range of client versions can be read.",
		Fix:    "Write requires: {core: '>=0.3,<1'}.",
		Source: "packs.md 5.3", Gates: packGates,
		Example: at(`requires`, `{"core":"0.3 or later"}`),
	},
	{
		ID: "recipe.metrics", Title: "The metrics name what to watch and the names that frameworks give it.",
		Fix:    "Write metrics: {primary: [train/loss], aliases: {}}.",
		Source: "packs.md 5.4", Gates: packGates,
		Example: at(`metrics`, `{"primary":[],"aliases":{}}`),
	},
	{
		ID: "recipe.metrics.semantics", Title: "A metric's semantics are a direction and a display that the clients know.",
		Fix:    "Write {direction: higher|lower|neutral, display: ratio|number}.",
		Source: "packs.md 5.4", Gates: packGates,
		Example: at(`metrics`, `{"primary":["loss"],"aliases":{},"semantics":{"loss":{"direction":"down"}}}`),
	},
	{
		ID: "recipe.metrics.objective", Title: "The objective lists declared metrics that rank runs in one direction.",
		Fix:    "List metrics of primary or aliases whose direction is the same and not neutral, or leave objective out.",
		Source: "packs.md 5.4", Gates: packGates, Dialects: []dialect.Dialect{dialect.TunePlane},
		Example: at(`metrics`, `{"primary":["loss"],"aliases":{},"objective":["accuracy"]}`),
	},
	{
		ID: "recipe.metrics.equivalences", Title: "An equivalence groups declared metrics that carry one number, and says why.",
		Fix:    "Write {keys: [a, b], reason: unshaped_reward|no_critic|no_aborted_rollouts}, each metric in one group.",
		Source: "packs.md 5.4", Gates: packGates, Dialects: []dialect.Dialect{dialect.TunePlane},
		Example: told(`metrics.equivalences names a metric that nothing declares.`),
	},
	{
		ID: "recipe.artifacts", Title: "The artifacts say where a run leaves its results and in which formats.",
		Fix:    "Give version, the lists checkpoints, logs, exports and evaluations, and formats for checkpoint, log, hf_export and eval_report.",
		Source: "packs.md 5.3", Gates: packGates,
		Example: at(`artifacts`, `{"version":"v9"}`),
	},
	{
		ID: "recipe.list", Title: "plugins and roles are lists.",
		Fix:    "Write a list of names in brackets.",
		Source: "packs.md 5.3", Gates: packGates,
		Example: at(`roles`, `5`),
	},
	{
		ID: "recipe.letters", Title: "plugins and roles are no text, which falls into its letters.",
		Fix:    "Write a list of names in brackets.",
		Source: "packs.md 5.3 (ours)", Gates: packGates, Severity: Warn, Ours: true,
		Example: at(`roles`, `"actor"`),
	},
	{
		ID: "recipe.category", Title: "The category is one that the dialect's clients know.",
		Fix:    "Choose a category that the message lists, or leave it out.",
		Source: "packs.md 5.3", Gates: packGates,
		Example: at(`category`, `"cooking"`),
	},
	{
		ID: "recipe.modalities", Title: "The modalities are some of text, image, video and audio.",
		Fix:    "Write a list such as [text, image], or leave it out for text.",
		Source: "packs.md 5.3", Gates: packGates, Dialects: []dialect.Dialect{dialect.TunePlane},
		Example: at(`modalities`, `["smell"]`),
	},
	{
		ID: "recipe.params", Title: "The parameters are an object.",
		Fix:    "Write params: {learning_rate: {type: float, path: optim.lr}}.",
		Source: "packs.md 5.3", Gates: packGates,
		Example: at(`params`, `["lr"]`),
	},
	{
		ID: "recipe.param", Title: "A parameter is an object with a known type and lists where lists belong.",
		Fix:    "Write {type: int|float|bool|str|enum, path: …, choices: […]}.",
		Source: "packs.md 5.3", Gates: packGates,
		Example: at(`params`, `{"lr":{"type":"double"}}`),
	},
	{
		ID: "recipe.param.name", Title: "The name of a parameter is a text.",
		Fix:    "Put the name in quotes.",
		Source: "packs.md 5.3 (ours)", Gates: packGates, Ours: true,
		Example: told(`A key of params is the number 1.`),
	},
	{
		ID: "recipe.param.default", Title: "A parameter accepts its own default.",
		Fix:    "Correct the default; write 1.0e-5 for a small number, since YAML reads 1e-5 as a text.",
		Source: "packs.md 5.3 (ours)", Gates: packGates, Severity: Warn, Ours: true,
		Example: at(`params`, `{"lr":{"type":"float","default":"small"}}`),
	},
	{
		ID: "recipe.param.bound", Title: "The bounds of a number are numbers.",
		Fix:    "Write a number; 1.0e-5, not 1e-5, which YAML reads as a text.",
		Source: "packs.md 5.3 (ours)", Gates: packGates, Severity: Warn, Ours: true,
		Example: at(`params`, `{"lr":{"type":"float","min":"small"}}`),
	},
	{
		ID: "recipe.validation", Title: "The validation block has values that the clients know.",
		Fix:    "Give sample_kind and reward_semantics from the sets that the message lists.",
		Source: "packs.md 5.3", Gates: packGates,
		Example: at(`validation`, `{"reward_semantics":"perhaps"}`),
	},
	{
		ID: "recipe.i18n", Title: "Translations are of title, summary, and of doc and group of declared parameters.",
		Fix:    "Write {zh: {title: …, summary: …, params: {name: {doc: …, group: …}}}}.",
		Source: "packs.md 5.3", Gates: packGates,
		Example: at(`i18n`, `{"zh":{"name":"x"}}`),
	},
	{
		ID: "recipe.hashable", Title: "The document can be written as canonical JSON, which the recipe's digest is made of.",
		Fix:    "Put dates in quotes, and write no sets, binary values or keys of several types in one object.",
		Source: "packs.md 5.2", Gates: packGates,
		Example: at(`summary`, `"a\ud800"`),
	},
}

// benchmarkRules without a note are the clients' own.
var benchmarkRules = []Info{
	{
		ID: "benchmark.file", Title: "A benchmark pack has a benchmark.yaml in its root.",
		Fix:    "Put benchmark.yaml into the root of the pack, as a file of exactly that name.",
		Source: "packs.md 5.5, 13.4", Gates: packGates, Ours: true,
		Example: told(`The archive of a benchmark pack holds bench.yaml.`),
	},
	{
		ID: "benchmark.limit", Title: "benchmark.yaml keeps within its size limit.",
		Fix:    "Move long texts to README.md.",
		Source: "admission/limit", Gates: packGates, Ours: true, Fixed: true, Class: TooLarge,
		Example: told(`benchmark.yaml has 2 MiB.`),
	},
	{
		ID: "benchmark.root", Title: "benchmark.yaml holds one object.",
		Fix:    "Write fields such as `name: my-benchmark`, one a line.",
		Source: "packs.md 6", Gates: packGates,
		Example: whole(`- arithmetic`),
	},
	{
		ID: "benchmark.ignored", Title: "benchmark.yaml has only fields that the clients read.",
		Fix:    "Remove the field, or correct its spelling.",
		Source: "packs.md 6 (ours)", Gates: packGates, Severity: Warn, Ours: true,
		Example: at(`titel`, `"Sums"`),
	},
	{
		ID: "benchmark.schema", Title: "benchmark.yaml names the schema of its dialect.",
		Fix:    "Write schema: forge/benchmark/v1 or tuneplane/benchmark/v1.",
		Source: "packs.md 6", Gates: packGates,
		Example: at(`schema`, `"forge/benchmark/v9"`),
	},
	{
		ID: "benchmark.name", Title: "The benchmark's name is one path-safe name.",
		Fix:    "Begin with a letter or digit and use only ASCII letters, digits, '.', '_' and '-'.",
		Source: "packs.md 6, 12", Gates: packGates,
		Example: at(`name`, `"a b"`),
	},
	{
		ID: "benchmark.name.pack", Title: "The benchmark has the name of its pack.",
		Fix:    "Write the name of plugin.yaml into benchmark.yaml; a differing one breaks the catalogue of every client that syncs.",
		Source: "packs.md 5.5, 6", Gates: packGates,
		Example: told(`plugin.yaml says name: arithmetic, benchmark.yaml says name: sums.`),
	},
	{
		ID: "benchmark.runner", Title: "The runner is not empty.",
		Fix:    "Name the runner, such as lm-eval.",
		Source: "packs.md 6", Gates: packGates,
		Example: at(`runner`, `""`),
	},
	{
		ID: "benchmark.suites", Title: "The suites are a list of at least one.",
		Fix:    "Write suites: [gsm8k].",
		Source: "packs.md 6", Gates: packGates,
		Example: at(`suites`, `[]`),
	},
	{
		ID: "benchmark.metrics", Title: "The metrics are a list of at least one, with a key each and one primary at most.",
		Fix:    "Write metrics: [{key: acc, direction: higher}].",
		Source: "packs.md 6", Gates: packGates,
		Example: at(`metrics`, `[{"label":"Accuracy"}]`),
	},
	{
		ID: "benchmark.rubric", Title: "A benchmark with the runner judge names its rubric.",
		Fix:    "Write rubric: <owner>/<name>.",
		Source: "packs.md 6", Gates: packGates,
		Example: at(`runner`, `"judge"`),
	},
	{
		ID: "benchmark.list", Title: "The keywords are a list.",
		Fix:    "Write a list of words in brackets.",
		Source: "packs.md 6", Gates: packGates,
		Example: at(`keywords`, `5`),
	},
	{
		ID: "benchmark.letters", Title: "The keywords are no text, which falls into its letters.",
		Fix:    "Write a list of words in brackets.",
		Source: "packs.md 6 (ours)", Gates: packGates, Severity: Warn, Ours: true,
		Example: at(`keywords`, `"sums"`),
	},
	{
		ID: "benchmark.i18n", Title: "Translations are of title and summary, and of the labels of metrics.",
		Fix:    "Write {zh: {title: …, summary: …}}, and {zh: {label: …}} in a metric.",
		Source: "packs.md 6", Gates: packGates,
		Example: at(`i18n`, `{"zh":{"name":"x"}}`),
	},
	{
		ID: "benchmark.integer", Title: "num_fewshot and limit are integers.",
		Fix:    "Write a number such as 5, or leave the field out.",
		Source: "packs.md 6", Gates: packGates,
		Example: at(`num_fewshot`, `"five"`),
	},
}
