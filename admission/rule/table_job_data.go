package rule

// referenceFix is how a dataset, environment or task set is named.
const referenceFix = "Write <owner>/<name>@<version>, each part a name."

var jobModel = []Info{
	{ID: "job.model.object", Title: "spec.model is an object.", Fix: "Write model as an object, or leave it out.", Example: at(`spec.model`, `"Qwen/Qwen3-8B"`)},
	{
		ID: "job.model.init_from.type", Title: "spec.model.init_from is a string.",
		Fix:     "Write run/<run id>/<kind>, if need be with @step=<number>.",
		Example: at(`spec.model.init_from`, `{"run_id":"r-1","kind":"checkpoint"}`),
	},
	{
		ID: "job.model.init_from.object", Title: "The object form of init_from has run_id, kind, and whole numbers for step and attempt.",
		Fix: "Write {\"run_id\": ..., \"kind\": ..., \"step\": <number>}, or the text run/<run id>/<kind>@step=<number>.", Dialects: inTunePlane,
		Example: inTune(at(`spec.model.init_from`, `{"run_id":"r-1"}`)),
	},
	{
		ID: "job.model.init_from.format", Title: "spec.model.init_from is run/<run id>/<kind>.", Fix: "Write exactly run/<run id>/<kind>, such as run/r-1/checkpoint.",
		Example: at(`spec.model.init_from`, `"r-1/checkpoint"`),
	},
	{
		ID: "job.model.init_from.qualifier", Title: "What follows '@' in init_from is step=<number>; tuneplane also takes attempt=<number>.",
		Fix:     "Write @step=<number> in ASCII digits without white space; tuneplane: @attempt=<number>,step=<number>.",
		Example: at(`spec.model.init_from`, `"run/r-1/checkpoint@500"`),
	},
	{ID: "job.model.init_from.segment", Title: "Run id and kind of init_from are names.", Fix: segmentFix, Example: at(`spec.model.init_from`, `"run/<run id>/checkpoint"`)},
	{
		ID: "job.model.base.hub", Title: "spec.model.base names a hub that exists.", Fix: "Use tp:, hf: or ms: before the name, or none for this platform.", Dialects: inTunePlane,
		Example: inTune(at(`spec.model.base`, `"github:alice/model"`)),
	},
	{
		ID: "job.model.base.reference", Title: "spec.model.base is a path or [<hub>:]<namespace>/<name>[@<revision>].",
		Fix: "Write <namespace>/<name>; only Hugging Face models may have a single part.", Dialects: inTunePlane,
		Example: inTune(at(`spec.model.base`, `"gpt2"`)),
	},
	{
		ID: "job.model.base.revision", Title: "The revision of spec.model.base is spelled with '@' and is valid.",
		Fix: "Write @<revision> behind the name.", Dialects: inTunePlane,
		Example: inTune(at(`spec.model.base`, `"hf:Qwen/Qwen3-8B:main"`)),
	},
	{ID: "job.model.peft.object", Title: "spec.model.peft is an object.", Fix: "Write peft as {kind, dim, alpha}, or leave it out.", Example: at(`spec.model.peft`, `"lora"`)},
	{
		ID: "job.model.peft.values", Title: "dim and alpha of peft are positive whole numbers or null.", Fix: "Write a whole number above 0, or leave it out.", Ours: true,
		Example: at(`spec.model.peft`, `{"kind":"lora","dim":"8"}`),
	},
}

var jobData = []Info{
	{ID: "job.data.object", Title: "spec.data is an object.", Fix: "Write data as an object, or leave it out.", Example: at(`spec.data`, `"alice/gsm8k"`)},
	{ID: "job.data.volumes.array", Title: "spec.data.volumes is an array.", Fix: "Write volumes as an array of \"<owner>/<name>\".", Example: at(`spec.data.volumes`, `"alice/corpus"`)},
	{
		ID: "job.data.volumes.version", Title: "A volume has no version.", Fix: "Remove the '@' and what follows: a volume is what it holds now.",
		Example: at(`spec.data.volumes`, `["alice/corpus@v1"]`),
	},
	{ID: "job.data.volumes.format", Title: "A volume is <owner>/<name>.", Fix: "Write <owner>/<name>, not a path.", Example: at(`spec.data.volumes`, `["corpus"]`)},
	{
		ID: "job.data.volumes.absolute", Title: "A volume is no path.",
		Fix: "Write <owner>/<name> without a leading '/'; the clients would take /etc/ssl for the volume etc/ssl.", Ours: true,
		Example: at(`spec.data.volumes`, `["/etc/ssl"]`),
	},
	{ID: "job.data.volumes.segment", Title: "Owner and name of a volume are names.", Fix: segmentFix, Example: at(`spec.data.volumes`, `["alice/.ssh"]`)},
	{
		ID: "job.data.volumes.leaf_collision", Title: "No two volumes of different owners have the same name.", Fix: "Use one of them: both would be mounted at one path.",
		Example: at(`spec.data.volumes`, `["alice/corpus","bob/corpus"]`),
	},
	{
		ID: "job.data.output_dataset.hub", Title: "spec.data.output_dataset has no hub prefix.", Fix: "Write <owner>/<name>@<version>; a job publishes on this platform only.", Dialects: inTunePlane,
		Example: inTune(at(`spec.data.output_dataset`, `"hf:alice/out@v1"`)),
	},
	{ID: "job.data.output_dataset.format", Title: "spec.data.output_dataset is <owner>/<name>@<version>.", Fix: referenceFix, Example: at(`spec.data.output_dataset`, `"out@v1"`)},
	{
		ID: "job.data.output_dataset.version", Title: "spec.data.output_dataset names the version to publish.", Fix: "Add @<version>: a dataset version is written once.",
		Example: at(`spec.data.output_dataset`, `"alice/out"`),
	},
	{ID: "job.data.environment.format", Title: "spec.data.environment is <owner>/<name>[@<version>].", Fix: referenceFix, Example: at(`spec.data.environment`, `"math-env"`)},
	{
		ID: "job.data.environment.unpinned", Title: "spec.data.environment names no version, so the newest at admission is used.",
		Fix: "Add @<version> to run the same environment again.", Ours: true, Severity: Warn,
		Example: at(`spec.data.environment`, `"alice/math-env"`),
	},
	{ID: "job.data.taskset.format", Title: "spec.data.taskset is <owner>/<name>@<version>.", Fix: referenceFix, Dialects: inTunePlane, Example: inTune(at(`spec.data.taskset`, `"tasks@v1"`))},
	{
		ID: "job.data.taskset.version", Title: "spec.data.taskset names a version other than latest.", Fix: "Add @<version>; latest moves.", Dialects: inTunePlane,
		Example: inTune(at(`spec.data.taskset`, `"alice/tasks@latest"`)),
	},
	{
		ID: "job.data.corpus.reference", Title: "spec.data.corpus is <owner>/<name>[@<version>].", Fix: "Write <owner>/<name>@<version>, not a path.", Ours: true, Dialects: inForge,
		Example: at(`spec.data.corpus`, `"/data/handbook"`),
	},
	{
		ID: "job.data.ref.object", Title: "spec.data.train and spec.data.validation are objects.", Fix: "Write {\"dataset\": \"<owner>/<name>@<version>\"}, if need be with split and path, or leave it out.",
		Example: at(`spec.data.train`, `"alice/gsm8k@v1"`),
	},
	{
		ID: "job.data.dataset.reference", Title: "A dataset is <owner>/<name>[@<version>]; tuneplane also takes a hub before it.",
		Fix: "Write <owner>/<name>@<version>, not a path; a file on the cluster goes into path.", Ours: true, OursIn: inForge,
		Example: at(`spec.data.train`, `{"dataset":"gsm8k"}`),
	},
	{
		ID: "job.data.dataset.hub", Title: "A dataset names a hub that exists.", Fix: "Use tp:, hf: or ms: before the name, or none for this platform.", Dialects: inTunePlane,
		Example: inTune(at(`spec.data.train`, `{"dataset":"kaggle:alice/gsm8k"}`)),
	},
	{
		ID: "job.data.dataset.revision", Title: "The revision of a dataset is spelled with '@' and is valid.", Fix: "Write @<revision> behind the name.", Dialects: inTunePlane,
		Example: inTune(at(`spec.data.train`, `{"dataset":"hf:openai/gsm8k@-1"}`)),
	},
	{
		ID: "job.data.path.relative", Title: "A data path has no '..', and with a dataset it is relative.",
		Fix: "Write the path inside the dataset, such as train.parquet.", Ours: true,
		Example: at(`spec.data.train`, `{"dataset":"alice/gsm8k@v1","path":"../secret.parquet"}`),
	},
	{ID: "job.data.quality.object", Title: "spec.data.quality is an object.", Fix: "Write quality as an object, or leave it out.", Example: at(`spec.data.quality`, `0.1`)},
	{ID: "job.data.quality.overlap_with.format", Title: "overlap_with is <owner>/<name>[@<version>].", Fix: referenceFix, Example: at(`spec.data.quality`, `{"overlap_with":"gsm8k"}`)},
	{ID: "job.data.quality.type", Title: "A ratio is a number or null.", Fix: "Write the ratio as a number without quotes.", Example: at(`spec.data.quality`, `{"max_duplicate_ratio":"0.1"}`)},
	{ID: "job.data.quality.range", Title: "A ratio is between 0 and 1.", Fix: "Write a number from 0 to 1.", Example: at(`spec.data.quality`, `{"max_duplicate_ratio":10}`)},
	{
		ID: "job.data.quality.overlap_with.required", Title: "max_overlap_ratio says with which dataset the overlap is measured.", Fix: "Add overlap_with, or remove max_overlap_ratio.",
		Example: at(`spec.data.quality`, `{"max_overlap_ratio":0.1}`),
	},
	{
		ID: "job.data.quality.group_key.required", Title: "max_group_leak_ratio says what a group is.",
		Fix: "Add group_key, or remove max_group_leak_ratio.", Dialects: inTunePlane,
		Example: inTune(at(`spec.data.quality`, `{"max_group_leak_ratio":0.1}`)),
	},
}
