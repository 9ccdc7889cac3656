package rule

// submissionRules are the rules of what only a server can check of a JobSpec (jobspec.md 8), in the order in which the
// gate looks.
var submissionRules = []Info{
	serverRule("job.meta.agree", "What the request says beside the spec is what the spec says.",
		"Send one spec: its experiment, profile and copy must be equal.",
		told(`The request names the experiment experiments/a, its spec experiments/b.`)),

	serverRule("job.handshake.recipe.name", "The recipe is in the catalogue.",
		"Use a method of the catalogue; a disabled or unpublished one is not in it. Updating the client may help.",
		at(`spec.recipe.name`, `"verl/gpro"`)),
	serverRule("job.handshake.recipe.version", "The recipe's version is the catalogue's.",
		"Write the catalogue's version and digest. In an experiment upgrade the lock (`sf recipe upgrade`) or the client, so that both name one version.",
		at(`spec.recipe.version`, `"0.0.1"`)),
	serverRule("job.handshake.recipe.digest", "The recipe's digest is the catalogue's.",
		"Write the catalogue's digest. In an experiment sync the recipes (`sf recipe sync`) and upgrade its lock; or use the client release that the server is for.",
		at(`spec.recipe.digest`, `"sha256:abababababababababababababababababababababababababababababababab"`)),
	serverRule("job.handshake.framework.kind", "The framework is the recipe's.", "Name the framework that the recipe is for.",
		at(`spec.framework.kind`, `"trl"`)),
	serverRule("job.handshake.framework.version", "The recipe supports the framework version.", "Use one of the supported versions.",
		at(`spec.framework.version`, `"0.0.1"`)),
	serverRule("job.handshake.runtime_id", "The runtime id is the catalogue's for the framework version.",
		"Copy the runtime id from the catalogue (`sf recipe ls <method>`); a runtime that the user brings has none.",
		at(`spec.framework.runtime_id`, `"verl-0.0.1"`)),
	warningOfOurs("job.handshake.recipe.alias", "The recipe is named by its alias and stored under the id that launchers compare.",
		"Write the id that the catalogue lists.",
		told(`The job names verl/alice.tune, which is the recipe verl/tune that alice published.`)),
	serverRule("job.core_version.range", "The client's version is in the recipe's range.",
		"Use a client version within the range, or another version of the recipe.",
		at(`provenance.core_version`, `"0.1.0"`)),

	serverRule("job.framework.image.required", "A recipe whose runtime the user brings has an image.", "Name the image: --image <host>/<repository>:<tag>.",
		told(`A job of custom/custom has no spec.framework.image.`)),
	{
		ID: "job.framework.image.allowlist", Title: "The image comes from a registry that the deployment allows.",
		Fix: "Push the image to an allowed registry, or ask an administrator to add the host.", Source: "jobspec.md 8",
		Deployment: true, Gates: []Gate{Submission},
		Example: at(`spec.framework.image`, `"elsewhere.example/train:1"`),
	},
	{
		ID: "job.framework.image.digest", Title: "The image names its bytes by digest, where the deployment wants that.",
		Fix:    "Add the digest behind the reference: <host>/<repository>@sha256:<64 hex digits>; docker buildx imagetools inspect shows it.",
		Source: "jobspec.md 8 (ours)", Deployment: true, Gates: []Gate{Submission}, Ours: true,
		Example: told(`spec.framework.image is registry.example/train:1, and the server runs with require_image_digest.`),
	},
	warningOfOurs("job.framework.image.unpinned", "The image is named by a tag, which can be moved before the job starts.",
		"Name the image by digest: <host>/<repository>@sha256:<64 hex digits>.",
		at(`spec.framework.image`, `"registry.example/train:1"`)),
	serverRule("job.framework.observability_url.required", "A recipe that is watched elsewhere has an observability_url.", "Add the address of the page that shows the run.",
		told(`A job of custom/custom has no spec.framework.observability_url.`)),
	serverRule("job.framework.observability_url.forbidden", "A recipe that the platform watches has no observability_url.", "Remove observability_url.",
		at(`spec.framework.observability_url`, `"https://metrics.example/run"`)),

	serverRule("job.hyperparams.recipe", "Hyperparameters are the recipe's, of its types, within its bounds.", "Use the parameters that the recipe declares, with values of their types and within their bounds.",
		at(`spec.hyperparams`, `{"learning_rat":0.001}`)),
	warningOfOurs("job.hyperparams.path_key", "A parameter is named by its path and was stored under its name.", "Write the parameter's name.",
		told(`spec.hyperparams has policy.optimizer.kwargs.lr, which is where the recipe keeps its parameter learning_rate.`)),
	serverRule("job.lifecycle.on_success.recipe", "The recipe supports the actions.", "Use an action that the recipe supports, or remove it.",
		at(`spec.lifecycle`, `{"on_success":["deploy"]}`)),
	warningOfOurs("job.resources.roles.recipe", "A role is none of the recipe's.", "Map the recipe's roles; the clients refuse others.",
		at(`spec.resources`, `{"pools":[{"name":"all"}],"roles":{"trainer":"all"}}`)),
	serverRule("job.resources.topology.roles", "With several pools every role of the recipe is mapped.", "Map each role to a pool, or use one pool.",
		at(`spec.resources`, `{"pools":[{"name":"a"},{"name":"b"}],"roles":{"actor":"a"}}`)),
	serverRule("job.resources.topology.idle", "With several pools each carries a role of the recipe.", "Map a role to the pool, or remove it.",
		at(`spec.resources`, `{"pools":[{"name":"a"},{"name":"b"}],"roles":{"actor":"a","rollout":"a"}}`)),
	serverRule("job.resources.topology.single", "A framework whose processes form one world takes one pool.", "Use one pool.",
		told(`A recipe of one distributed world is given two pools.`)),
	serverRule("job.resources.topology.cpu_only", "A pool without GPUs is not part of a GPU world.", "Give the pool GPUs, or use one pool without GPUs alone.",
		inTune(at(`spec.resources`, `{"pools":[{"name":"a"},{"name":"b","gpus_per_node":0,"cpus":8,"memory_gb":32}],"roles":{"actor":"a","rollout":"b"}}`))),
	{
		ID: "job.resources.series.exists", Title: "A pool's series is one that the deployment has.",
		Fix: "Use the series of a hardware profile.", Source: "recipes-and-locks.md 6", Deployment: true, Gates: []Gate{Submission}, Ours: true,
		Example: at(`spec.resources`, `{"pools":[{"name":"all","series":"h900"}]}`),
	},
	deployment(serverRule("job.quota.gpus", "The job's GPUs are within the account's quota.", "Ask for fewer GPUs, wait for a job to end, or ask for more quota.",
		at(`spec.resources`, `{"pools":[{"name":"all","nodes":100,"gpus_per_node":8}]}`))),

	deployment(serverRule("job.quota.jobs", "The account has no more jobs at a time than it may.", "Wait for a job to end, stop one, or ask for more quota.",
		told(`The account may have two jobs at a time, and has two.`))),
	deployment(serverRule("job.quota.profiles", "The hardware is of a profile that the account may use.",
		"Use one of the profiles that the message names, or ask for more quota.",
		told(`The account may use the profile small alone, and a pool's series is h200.`))),

	serverRule("job.plugins.record.unknown", "Each plugin version is published.", "Publish it, or name a plugin and version that are: `sf plugin ls` lists plugins, `sf plugin info <owner>/<name>` versions.",
		at(`spec.plugins`, `[{"id":"alice/nothing","version":"1.0.0","digest":"sha256:abababababababababababababababababababababababababababababababab"}]`)),
	serverRule("job.plugins.record.digest", "Each plugin's digest is the published one.", "Write the published digest. In a project install the plugin again, which writes it into the lock.",
		at(`spec.plugins`, `[{"id":"alice/opsd","version":"1.0.0","digest":"sha256:abababababababababababababababababababababababababababababababab"}]`)),
	serverRule("job.plugins.record.disabled", "No plugin version is disabled.", "Write another version and its digest; an administrator disabled this one.",
		told(`spec.plugins names alice/opsd 1.0.0, which an administrator disabled.`)),
	serverRule("job.plugins.record.revoked", "No plugin version is revoked.", "Write another version and its digest; an administrator revoked this one for good.",
		told(`spec.plugins names alice/opsd 1.0.0, which an administrator revoked.`)),
	serverRule("job.plugins.record.core", "The client's version is in each plugin's range.", "Use a plugin version that supports this client.",
		told(`provenance.core_version is 0.3.56 and a plugin of the job requires core >=0.4.`)),
	serverRule("job.plugins.record.compat", "Each plugin is for the job's dialect, framework and method.", "Use a plugin that is for this job.",
		told(`A job of verl/grpo names a plugin whose plugin.yaml says that it is for trl.`)),
	serverRule("job.plugins.integration", "The job has exactly one framework integration, the recipe's.", "Name the integration that the recipe names, and no other.",
		inTune(at(`spec.plugins`, `[{"id":"tuneplane/framework-trl","version":"0.4.0","digest":"sha256:6e994e6e95bd50e1ab0827cbc8fd72a02b0eadcbbff52c8f351462cbee3fe760"}]`))),
	warningOfOurs("job.plugins.hooks", "The framework's integration runs plugins of this kind.",
		"Leave the plugin out, or use a method whose framework runs it: the launcher refuses what its integration can't run.",
		told(`A job of custom/custom names an algorithm plugin, which tuneplane's integration of custom does not run.`)),
	warningOfOurs("job.plugins.integration.added", "The framework integration was missing and was added from the client release.", "Nothing; the clients add it themselves.",
		inTune(without(`spec.plugins`))),
	serverRule("job.recipe.plugins.provided", "Each algorithm that the recipe uses is among the plugins.", "Add the algorithm's plugin to spec.plugins.",
		inTune(at(`spec.recipe.plugins`, `["opsd"]`))),

	deployment(serverRule("job.model.init_from.exists", "The artifact exists and the account may read it.", "Name an artifact of a run that you may read.",
		at(`spec.model`, `{"init_from":"run/r-404/checkpoint"}`))),
	deployment(serverRule("job.hub.policy", "The model or dataset exists or may be fetched from its hub.", "Use one that the project may use.",
		inTune(at(`spec.model`, `{"base":"hf:nobody/nothing"}`)))),
	deployment(serverRule("job.data.dataset.access", "The dataset exists and the account may read it.", "Name a dataset that you may read.",
		at(`spec.data`, `{"train":{"dataset":"bob/private@v1"}}`))),
	deployment(serverRule("job.data.volumes.access", "The volume exists and the account may read it.", "Name a volume that you may read.",
		at(`spec.data`, `{"volumes":["bob/private"]}`))),
	deployment(serverRule("job.data.environment.access", "The environment or task set exists and the account may read it.", "Name one that you may read.",
		at(`spec.data`, `{"environment":"bob/private@1"}`))),
	serverRule("job.data.output_dataset.owner", "The account may publish the output dataset.", "Publish below your own name, under a version that is not used.",
		at(`spec.data`, `{"output_dataset":"bob/out@v1"}`)),
	deployment(serverRule("job.evaluation.suites.exists", "Each suite is a known benchmark.", "Use a benchmark of the catalogue.",
		at(`spec.evaluation`, `{"suites":["no-such-suite"]}`))),
	deployment(serverRule("job.evaluation.baseline.exists", "The baseline is a run that the account may read.", "Name a run that you may read.",
		at(`spec.evaluation`, `{"suites":["gsm8k"],"baseline":"r-404"}`))),
	{
		ID: "job.reference.missing", Title: "What the job names outside itself exists.",
		Fix: "Correct the name.", Source: "jobspec.md 9", Gates: []Gate{Submission}, Ours: true,
		Example: at(`spec.evaluation`, `{"suites":["gsm8k"],"runner":"no-such-runner"}`),
	},
	warningOfOurs("job.reference.unchecked", "The registry does not hold some of what the job names, so nobody has checked it.",
		"Make sure that the names are right: the platform that runs the job is the first to look.",
		told(`spec.data.train names a dataset, and nothing that the server knows answers for datasets.`)),
	{
		ID: "job.reference.unverified", Title: "What the deployment wants checked could be checked.",
		Fix:    "Ask an administrator: this server is set to refuse such references unless something answers for them.",
		Source: "design.md 9", Deployment: true, Gates: []Gate{Submission}, Ours: true,
		Example: told(`The server is set to refuse unchecked datasets, and nothing answers for the one that the job names.`),
	},
	{
		ID: "catalogue.snapshot", Title: "A catalogue snapshot is {\"recipes\": [...], \"bundled_plugins\": [...]} as taken from an installed client.",
		Fix: "Take the snapshot again from an installed client release.", Source: "wire.md 5.1", Gates: []Gate{Submission}, Ours: true, Fixed: true,
		Example: told(`The file has no key "recipes".`),
	},
}

// serverRule is a rule that needs the catalogue, the library or a quota; the clients' platforms have it too.
func serverRule(id ID, title, fix string, example Example) Info {
	return Info{ID: id, Title: title, Fix: fix, Example: example, Source: "jobspec.md 8", Gates: []Gate{Submission}}
}

// deployment is a rule whose strictness the deployment's settings decide.
func deployment(i Info) Info {
	i.Deployment = true
	return i
}

// warningOfOurs is a rule of gate 2 that only warns.
func warningOfOurs(id ID, title, fix string, example Example) Info {
	return Info{ID: id, Title: title, Fix: fix, Example: example, Source: "jobspec.md 8, 10 (ours)", Gates: []Gate{Submission}, Ours: true, Severity: Warn}
}
