package rule

import (
	"slices"
	"strings"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
)

// jobRules are the rules of a JobSpec by itself (jobspec.md 2 to 7), in the order in which a document is read.
var jobRules = slices.Concat(
	jobTable("jobspec.md 2", jobJSON...),
	jobTable("jobspec.md 3, document and metadata", jobDocument...),
	jobTable("jobspec.md 3, plugins", jobPlugins...),
	jobTable("jobspec.md 3, recipe, source and framework", jobMethod...),
	jobTable("jobspec.md 3, model", jobModel...),
	jobTable("jobspec.md 3, data", jobData...),
	jobTable("jobspec.md 3, resources", jobResources...),
	jobTable("jobspec.md 3, the rest", jobRest...),
	jobTable("jobspec.md 11", jobSecrets...),
)

// jobTable gives rules of one section what they have in common.
func jobTable(source string, rules ...Info) []Info {
	for i := range rules {
		rules[i].Gates = []Gate{Submission}
		rules[i].Source = source
		if rules[i].Ours {
			rules[i].Source += " (ours)"
		}
	}
	return rules
}

var (
	inForge     = []dialect.Dialect{dialect.Forge}
	inTunePlane = []dialect.Dialect{dialect.TunePlane}
)

// segmentFix is how every name of the platform is written.
const segmentFix = "Begin with a letter or digit and use only letters, digits, '.', '_' and '-' (ASCII)."

var jobJSON = []Info{
	{
		ID: "job.json.syntax", Title: "The document is strict JSON in UTF-8: no NaN or Infinity, no byte-order mark, no comma or text too many.",
		Fix: "Correct the JSON at the place named (a JobSpec is JSON, not YAML); leave a value out instead of writing NaN.", Ours: true, Fixed: true,
		Example: whole(`{"apiVersion": "forge/v2", "kind": "TrainingJob",}`),
	},
	{
		ID: "job.json.limit", Title: "The document keeps within the limits of size, number of values and length of integers.",
		Fix: "Make the document smaller.", Ours: true, Fixed: true, Class: TooLarge,
		Example: at("spec.hyperparams", `{"seed":`+strings.Repeat("9", 5000)+`}`),
	},
	{
		ID: "job.json.duplicate_key", Title: "An object names each key once.",
		Fix: "Keep one of the repeated keys; readers differ in which one counts.", Ours: true, Fixed: true,
		Example: at(`spec.source`, `{"exp":"experiments/a","exp":"experiments/b"}`),
	},
	{
		ID: "job.json.number", Title: "A number is within the range of a double, and where an integer is meant it has at most 18 digits.",
		Fix: "Use a smaller number.", Ours: true, Fixed: true,
		Example: at(`spec.hyperparams`, `{"learning_rate":1e999}`),
	},
	{
		ID: "job.json.depth", Title: "The document is nested at most 64 levels deep.", Fix: "Make the document flatter.", Ours: true, Fixed: true,
		Example: at("spec.hyperparams", `{"x":`+strings.Repeat("[", 70)+strings.Repeat("]", 70)+"}"),
	},
	{
		ID: "job.json.string", Title: "Texts hold no lone surrogates and no control characters but tab and line ends.",
		Fix: "Remove the escape, or write the character it stands for.", Ours: true, Fixed: true,
		Example: at(`metadata.display_name`, `"a\u0000b"`),
	},
	{
		ID: "job.report.truncated", Title: "A report lists a bounded number of findings; this one has more.",
		Fix: "Mend what is listed and check again.", Ours: true, Severity: Warn,
		Example: at("spec.plugins", "["+strings.Repeat("1,", 600)+"1]"),
	},
	{
		ID: "job.type.string", Title: "Where text is meant there is no array or object.",
		Fix: "Write a JSON string; the clients would store the Python form of the collection.", Ours: true,
		Example: at(`spec.framework.image`, `["registry.example/train:1"]`),
	},
	{
		ID: "job.type.coerced", Title: "A number or boolean stands where text is meant and was turned into text.",
		Fix: "Write the value in quotes.", Ours: true, Severity: Warn,
		Example: at(`metadata.labels`, `{"team":7}`),
	},
	{
		ID: "job.type.falsy", Title: "An empty value of another type stands for an absent one.",
		Fix: "Leave the field out, or write null.", Ours: true, Severity: Warn,
		Example: at(`spec.model`, `{"base":false}`),
	},
	{
		ID: "job.name.inner_space", Title: "No part of a name has white space around it.",
		Fix: "Remove the white space or line break beside the '/' or '@'.", Ours: true,
		Example: at(`spec.recipe.name`, `"verl\n/grpo"`),
	},
	{
		ID: "job.name.length", Title: "A part of a name has at most 255 bytes, a display name, a label or the path of an experiment at most 1024.",
		Fix: "Use a shorter text.", Ours: true,
		Example: at("metadata.display_name", `"`+strings.Repeat("x", 1025)+`"`),
	},
	{
		ID: "job.unknown_field", Title: "Every key is one that the contract knows.",
		Fix: "Correct the key's spelling or remove it; no reader looks at it.", WarnIn: inForge,
		Example: inTune(at(`spec.hyperparam`, `{"learning_rate":0.001}`)),
	},
}

var jobDocument = []Info{
	{ID: "job.root.object", Title: "The document is an object.", Fix: "Write the JobSpec as one JSON object.", Example: whole(`[]`)},
	{ID: "job.root.required", Title: "apiVersion, kind, metadata, spec and provenance are present.", Fix: "Add the missing section.", Example: without("provenance")},
	{ID: "job.apiversion.type", Title: "apiVersion is a string.", Fix: "Write apiVersion as a string: forge/v2 or tuneplane/v1.", Example: at(`apiVersion`, `2`)},
	{
		ID: "job.apiversion.value", Title: "apiVersion is exactly the dialect's.",
		Fix:     "Use forge/v2 for StarForge and tuneplane/v1 for TunePlane, without white space.",
		Example: at(`apiVersion`, `"forge/v1"`),
	},
	{ID: "job.kind.type", Title: "kind is a string.", Fix: "Write \"kind\": \"TrainingJob\".", Example: at(`kind`, `null`)},
	{ID: "job.kind.value", Title: "kind is exactly TrainingJob.", Fix: "Write \"kind\": \"TrainingJob\"; evaluations and exports are of that kind too.", Example: at(`kind`, `"EvalJob"`)},
	{ID: "job.metadata.object", Title: "metadata is an object.", Fix: "Write metadata as a JSON object.", Example: at(`metadata`, `"demo"`)},
	{ID: "job.metadata.labels.object", Title: "metadata.labels is an object.", Fix: "Write labels as an object of texts, or leave it out.", Example: at(`metadata.labels`, `["a"]`)},
	{ID: "job.metadata.name.required", Title: "metadata.name is present.", Fix: "Name the job; the clients use the last part of the experiment's path.", Example: at(`metadata.name`, `null`)},
	{ID: "job.metadata.name.type", Title: "metadata.name is a string.", Fix: "Write the name in quotes.", Example: at(`metadata.name`, `7`)},
	{ID: "job.metadata.name.segment", Title: "metadata.name is a name.", Fix: segmentFix, Example: at(`metadata.name`, `"my run"`)},
	{
		ID: "job.metadata.project.charset", Title: "metadata.project is empty or consists of letters, digits, '.', '_' and '-'.",
		Fix:     "Use only letters, digits, '.', '_' and '-' (ASCII), and not '.' or '..' alone.",
		Example: at(`metadata.project`, `"my lab"`),
	},
	{ID: "job.metadata.project.type", Title: "metadata.project is a string.", Fix: "Write the project's name in quotes.", Example: at(`metadata.project`, `["lab"]`)},
	{ID: "job.metadata.owner.type", Title: "metadata.owner is a string.", Fix: "Leave metadata.owner out; the server fills it in.", Example: at(`metadata.owner`, `5`)},
	{
		ID: "job.metadata.owner.ignored", Title: "The owner that the client wrote is not used: the server stamps the account.",
		Fix: "Leave metadata.owner out.", Ours: true, Severity: Warn,
		Example: at(`metadata.owner`, `"somebody"`),
	},
	{ID: "job.metadata.display_name.type", Title: "metadata.display_name is a string.", Fix: "Write the display name in quotes.", Example: at(`metadata.display_name`, `true`)},
	{ID: "job.spec.object", Title: "spec is an object.", Fix: "Write spec as a JSON object.", Example: at(`spec`, `"train"`)},
	{ID: "job.spec.empty", Title: "spec is not empty.", Fix: "Add recipe, source, framework and resources to spec.", Example: at(`spec`, `{}`)},
	{ID: "job.spec.required", Title: "spec.recipe, spec.source, spec.framework and spec.resources are present.", Fix: "Add the missing section to spec.", Example: without("spec.resources")},
}

var jobPlugins = []Info{
	{ID: "job.plugins.array", Title: "spec.plugins is an array.", Fix: "Write plugins as an array of {id, version, digest}.", Example: at(`spec.plugins`, `{"id":"alice/opsd"}`)},
	{
		ID: "job.plugins.item.object", Title: "An entry of spec.plugins is an object.", Fix: "Write the entry as {id, version, digest}; plugins.lock.json has it.",
		Example: at(`spec.plugins`, `["alice/opsd@1.0.0"]`),
	},
	{
		ID: "job.plugins.id.required", Title: "A plugin entry has an id.", Fix: "Add \"id\": \"<owner>/<name>\".",
		Example: at(`spec.plugins`, `[{"version":"1.0.0","digest":"sha256:abababababababababababababababababababababababababababababababab"}]`),
	},
	{
		ID: "job.plugins.id.type", Title: "A plugin's id is a string.", Fix: "Write the id in quotes as <owner>/<name>.",
		Example: at(`spec.plugins`, `[{"id":7,"version":"1.0.0","digest":"sha256:abababababababababababababababababababababababababababababababab"}]`),
	},
	{
		ID: "job.plugins.id.format", Title: "A plugin's id is <owner>/<name>.", Fix: "Write the id as <owner>/<name>, without a version.",
		Example: at(`spec.plugins`, `[{"id":"opsd","version":"1.0.0","digest":"sha256:abababababababababababababababababababababababababababababababab"}]`),
	},
	{
		ID: "job.plugins.id.segment", Title: "Owner and name of a plugin's id are names.", Fix: segmentFix,
		Example: at(`spec.plugins`, `[{"id":"alice/-opsd","version":"1.0.0","digest":"sha256:abababababababababababababababababababababababababababababababab"}]`),
	},
	{
		ID: "job.plugins.version.required", Title: "A plugin entry has a version.", Fix: "Add the version that the lock names.",
		Example: at(`spec.plugins`, `[{"id":"alice/opsd","digest":"sha256:abababababababababababababababababababababababababababababababab"}]`),
	},
	{
		ID: "job.plugins.version.type", Title: "A plugin's version is a string.", Fix: "Write the version in quotes.",
		Example: at(`spec.plugins`, `[{"id":"alice/opsd","version":1.0,"digest":"sha256:abababababababababababababababababababababababababababababababab"}]`),
	},
	{
		ID: "job.plugins.version.empty", Title: "A plugin's version is not empty.", Fix: "Name the version; a job runs exact versions only.",
		Example: at(`spec.plugins`, `[{"id":"alice/opsd","version":"","digest":"sha256:abababababababababababababababababababababababababababababababab"}]`),
	},
	{
		ID: "job.plugins.version.segment", Title: "A plugin's version is one that can be published.", Fix: segmentFix, Ours: true,
		Example: at(`spec.plugins`, `[{"id":"alice/opsd","version":">=1","digest":"sha256:abababababababababababababababababababababababababababababababab"}]`),
	},
	{
		ID: "job.plugins.digest.required", Title: "A plugin entry has a digest.", Fix: "Add the content digest that the lock names.",
		Example: at(`spec.plugins`, `[{"id":"alice/opsd","version":"1.0.0"}]`),
	},
	{
		ID: "job.plugins.digest.type", Title: "A plugin's digest is a string.", Fix: "Write the digest in quotes as sha256:<64 hex digits>.",
		Example: at(`spec.plugins`, `[{"id":"alice/opsd","version":"1.0.0","digest":7}]`),
	},
	{
		ID: "job.plugins.digest.prefix", Title: "A plugin's digest begins with sha256:.", Fix: "Copy the digest from plugins.lock.json: sha256:<64 hex digits>.",
		Example: at(`spec.plugins`, `[{"id":"alice/opsd","version":"1.0.0","digest":"abab"}]`),
	},
	{
		ID: "job.plugins.digest.hex", Title: "A plugin's digest is sha256: and 64 lower-case hex digits.",
		Fix: "Copy the digest from plugins.lock.json unchanged.", Ours: true,
		Example: at(`spec.plugins`, `[{"id":"alice/opsd","version":"1.0.0","digest":"sha256:abab"}]`),
	},
	{
		ID: "job.plugins.duplicate", Title: "spec.plugins names no id twice.", Fix: "Keep one version of the plugin.",
		Example: at(`spec.plugins`, `[{"id":"alice/opsd","version":"1.0.0","digest":"sha256:abababababababababababababababababababababababababababababababab"},{"id":"alice/opsd","version":"1.1.0","digest":"sha256:abababababababababababababababababababababababababababababababab"}]`),
	},
	{
		ID: "job.plugins.leaf_collision", Title: "No two plugins of different owners have the same name.",
		Fix:     "Use one of them: both would be injected into one directory.",
		Example: at(`spec.plugins`, `[{"id":"alice/opsd","version":"1.0.0","digest":"sha256:abababababababababababababababababababababababababababababababab"},{"id":"bob/opsd","version":"1.0.0","digest":"sha256:abababababababababababababababababababababababababababababababab"}]`),
	},
	{
		ID: "job.plugins.leaf_collision.fold", Title: "No two plugins' names are equal but for case.",
		Fix: "Use one of them: they would be one directory on some file systems.", Ours: true,
		Example: at(`spec.plugins`, `[{"id":"alice/opsd","version":"1.0.0","digest":"sha256:abababababababababababababababababababababababababababababababab"},{"id":"bob/OPSD","version":"1.0.0","digest":"sha256:abababababababababababababababababababababababababababababababab"}]`),
	},
}

var jobMethod = []Info{
	{ID: "job.recipe.object", Title: "spec.recipe is an object.", Fix: "Write recipe as {name, version, digest}.", Example: at(`spec.recipe`, `"verl/grpo"`)},
	{ID: "job.recipe.empty", Title: "spec.recipe is not empty.", Fix: "Name the recipe: {name, version, digest}.", Example: at(`spec.recipe`, `{}`)},
	{ID: "job.recipe.name.required", Title: "spec.recipe.name is present.", Fix: "Add the recipe's name: <framework>/<method>.", Example: at(`spec.recipe.name`, `null`)},
	{ID: "job.recipe.name.type", Title: "spec.recipe.name is a string.", Fix: "Write the name in quotes as <framework>/<method>.", Example: at(`spec.recipe.name`, `7`)},
	{ID: "job.recipe.name.format", Title: "spec.recipe.name is <framework>/<method>.", Fix: "Write exactly two parts, such as nemo-rl/grpo.", Example: at(`spec.recipe.name`, `"grpo"`)},
	{ID: "job.recipe.name.segment", Title: "Both parts of spec.recipe.name are names.", Fix: segmentFix, Example: at(`spec.recipe.name`, `"verl/gr po"`)},
	{ID: "job.recipe.plugins.array", Title: "spec.recipe.plugins is an array.", Fix: "Write the algorithms' names as an array of strings.", Example: at(`spec.recipe.plugins`, `"opsd"`)},
	{ID: "job.recipe.plugins.segment", Title: "An entry of spec.recipe.plugins is a name.", Fix: segmentFix, Example: at(`spec.recipe.plugins`, `["alice/opsd"]`)},
	{ID: "job.recipe.version.required", Title: "spec.recipe.version is present.", Fix: "Add the version that the catalogue lists.", Example: at(`spec.recipe.version`, `null`)},
	{ID: "job.recipe.version.type", Title: "spec.recipe.version is a string.", Fix: "Write the version in quotes.", Example: at(`spec.recipe.version`, `0.9`)},
	{ID: "job.recipe.version.empty", Title: "spec.recipe.version is not empty.", Fix: "Name the version that the catalogue lists.", Example: at(`spec.recipe.version`, `""`)},
	{ID: "job.recipe.digest.required", Title: "spec.recipe.digest is present.", Fix: "Add the recipe digest that the catalogue lists.", Example: at(`spec.recipe.digest`, `null`)},
	{ID: "job.recipe.digest.type", Title: "spec.recipe.digest is a string.", Fix: "Write the digest in quotes as sha256:<64 hex digits>.", Example: at(`spec.recipe.digest`, `7`)},
	{ID: "job.recipe.digest.empty", Title: "spec.recipe.digest is not empty.", Fix: "Add the recipe digest that the catalogue lists.", Example: at(`spec.recipe.digest`, `""`)},
	{
		ID: "job.recipe.digest.hex", Title: "spec.recipe.digest is sha256: and 64 lower-case hex digits.",
		Fix: "Copy the digest from the catalogue unchanged.", Ours: true,
		Example: at(`spec.recipe.digest`, `"sha256:…"`),
	},
	{ID: "job.source.object", Title: "spec.source is an object.", Fix: "Write source as {\"exp\": \"experiments/<name>\"}.", Example: at(`spec.source`, `"experiments/demo"`)},
	{ID: "job.source.empty", Title: "spec.source is not empty.", Fix: "Name the experiment: {\"exp\": \"experiments/<name>\"}.", Example: at(`spec.source`, `{}`)},
	{ID: "job.source.entrypoint", Title: "spec.source.entrypoint is empty: the recipe decides what runs.", Fix: "Leave entrypoint out.", Example: at(`spec.source.entrypoint`, `"train.py"`)},
	{ID: "job.source.exp.required", Title: "spec.source.exp is present.", Fix: "Add the experiment's path, such as experiments/my-grpo.", Example: at(`spec.source.exp`, `null`)},
	{ID: "job.source.exp.type", Title: "spec.source.exp is a string.", Fix: "Write the path in quotes.", Example: at(`spec.source.exp`, `["experiments","demo"]`)},
	{
		ID: "job.source.exp.absolute", Title: "spec.source.exp is relative.", Fix: "Write the path relative to the project's folder, such as experiments/my-grpo.",
		Example: at(`spec.source.exp`, `"/home/alice/experiments/demo"`),
	},
	{ID: "job.source.exp.empty", Title: "spec.source.exp is not empty.", Fix: "Write the experiment's path, such as experiments/my-grpo.", Example: at(`spec.source.exp`, `""`)},
	{ID: "job.source.exp.segment", Title: "Every part of spec.source.exp is a name.", Fix: segmentFix, Example: at(`spec.source.exp`, `"experiments/../demo"`)},
	{
		ID: "job.source.exp.reserved", Title: "spec.source.exp does not lie in a folder of the platform's own, such as forge_plugins or .tuneplane.",
		Fix: "Move the experiment to a folder of the project, such as experiments/my-grpo; a launch would refuse it where it is.", Ours: true, Fixed: true,
		Example: at(`spec.source.exp`, `"forge_plugins/demo"`),
	},
	{ID: "job.framework.object", Title: "spec.framework is an object.", Fix: "Write framework as {kind, version, runtime_id}.", Example: at(`spec.framework`, `"verl"`)},
	{ID: "job.framework.empty", Title: "spec.framework is not empty.", Fix: "Name the framework: {kind, version, runtime_id}.", Example: at(`spec.framework`, `{}`)},
	{ID: "job.framework.kind.required", Title: "spec.framework.kind is present.", Fix: "Add the recipe's framework, such as nemo-rl.", Example: at(`spec.framework.kind`, `null`)},
	{ID: "job.framework.kind.type", Title: "spec.framework.kind is a string.", Fix: "Write the framework's name in quotes.", Example: at(`spec.framework.kind`, `7`)},
	{ID: "job.framework.kind.segment", Title: "spec.framework.kind is a name.", Fix: segmentFix, Example: at(`spec.framework.kind`, `"verl/grpo"`)},
	{ID: "job.framework.version.required", Title: "spec.framework.version is present.", Fix: "Add the framework version that the lock names.", Example: at(`spec.framework.version`, `null`)},
	{ID: "job.framework.version.type", Title: "spec.framework.version is a string.", Fix: "Write the version in quotes.", Example: at(`spec.framework.version`, `0.9`)},
	{ID: "job.framework.version.empty", Title: "spec.framework.version is not empty.", Fix: "Name a framework version that the recipe supports.", Example: at(`spec.framework.version`, `" "`)},
	{ID: "job.framework.runtime_id.segment", Title: "spec.framework.runtime_id is empty or a name.", Fix: segmentFix, Example: at(`spec.framework.runtime_id`, `"verl 0.9.0"`)},
	{
		ID: "job.framework.image.reference", Title: "spec.framework.image has no white space, and an '@' in it begins a sha256 digest.",
		Fix: "Write <host>/<repository>:<tag>, or pin it with @sha256:<64 lower-case hex digits>.", Ours: true,
		Example: at(`spec.framework.image`, `"registry.example/train@sha256:abc"`),
	},
	{
		ID: "job.framework.observability_url.url", Title: "spec.framework.observability_url is an http or https link.",
		Fix: "Write http:// or https:// and a host, without white space.", Ours: true,
		Example: at(`spec.framework.observability_url`, `"javascript:alert(1)"`),
	},
}

var jobSecrets = []Info{
	{
		ID: "job.secret.userinfo", Title: "No address carries a user name and password.",
		Fix: "Remove user:password@; a spec is stored and shown. Give the job its credentials through the platform.", Ours: true,
		Example: at(`spec.framework.observability_url`, `"https://alice:secret@metrics.example/run"`),
	},
	{
		ID: "job.secret.token", Title: "A value looks like a credential.",
		Fix: "Remove it: a spec is stored, shown and written into the job's directory. Then revoke the credential.", Ours: true, Severity: Warn,
		Example: at("spec.hyperparams", `{"hf_token":"hf_`+strings.Repeat("A", 34)+`"}`),
	},
}
