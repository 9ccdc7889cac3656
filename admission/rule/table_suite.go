package rule

import "github.com/gatehouse-registry/gatehouse/admission/dialect"

// suiteRules are the rules of environments, tasksets, rubrics, solutions and data preparation scripts (packs.md 7 to 11) and of
// how suites are uploaded (wire.md 7). Those without a note are the clients' own.
var suiteRules = []Info{
	{
		ID: "environment.root", Title: "manifest.json holds one object.",
		Fix:    "Write {\"schema\": …, \"protocol\": …, \"verifier\": {…}}.",
		Source: "packs.md 7", Gates: suiteGates,
		Example: Example{Value: `[]`},
	},
	{
		ID: "environment.schema", Title: "manifest.json names the schema of its dialect.",
		Fix:    "Write forge/environment/v1 for StarForge, tuneplane/environment/v1 for TunePlane.",
		Source: "packs.md 7", Gates: suiteGates,
		Example: Example{Value: `{"schema": "environment/v1", "protocol": "openenv", "verifier": {"kind": "plugin", "ref": "a/p"}}`},
	},
	{
		ID: "environment.protocol", Title: "The protocol is one that the dialect's clients know.",
		Fix:    "Choose a protocol that the message lists.",
		Source: "packs.md 7", Gates: suiteGates,
		Example: Example{Value: `{"schema": "forge/environment/v1", "protocol": "gym", "verifier": {"kind": "plugin", "ref": "a/p"}}`},
	},
	{
		ID: "environment.deployment", Title: "The deployment is local, remote or container, and local for nemo-gym.",
		Fix:    "Write the word as it stands, without blanks.",
		Source: "packs.md 7", Gates: suiteGates, Dialects: []dialect.Dialect{dialect.TunePlane},
		Example: Example{Dialect: dialect.TunePlane, Value: `{"schema": "tuneplane/environment/v1", "protocol": "openenv", "deployment": "Local", "verifier": {"kind": "plugin", "ref": "a/p"}}`},
	},
	{
		ID: "environment.verifier", Title: "The verifier is an object.",
		Fix:    "Write {\"kind\": \"rubric\", \"ref\": \"<owner>/<name>\"}, or another kind.",
		Source: "packs.md 7", Gates: suiteGates,
		Example: Example{Value: `{"schema": "forge/environment/v1", "protocol": "openenv"}`},
	},
	{
		ID: "environment.verifier.kind", Title: "The kind of the verifier is one that the dialect's clients know.",
		Fix:    "Choose a kind that the message lists; self only where the environment runs outside the job.",
		Source: "packs.md 7", Gates: suiteGates,
		Example: Example{Value: `{"schema": "forge/environment/v1", "protocol": "openenv", "verifier": {"kind": "self"}}`},
	},
	{
		ID: "environment.verifier.ref", Title: "The verifier names what decides, unless it is the environment itself.",
		Fix:    "Give ref: a rubric as <owner>/<name>, a plugin, or an address.",
		Source: "packs.md 7", Gates: suiteGates,
		Example: Example{Value: `{"schema": "forge/environment/v1", "protocol": "openenv", "verifier": {"kind": "rubric", "ref": "quality"}}`},
	},
	{
		ID: "environment.tools", Title: "The tools are a list of objects with a name and an endpoint.",
		Fix:    "Write [{\"name\": \"look\", \"endpoint\": \"/look\"}], or leave tools out.",
		Source: "packs.md 7", Gates: suiteGates,
		Example: Example{Value: `{"schema": "forge/environment/v1", "protocol": "openenv", "verifier": {"kind": "plugin", "ref": "a/p"}, "tools": [{"name": "look"}]}`},
	},
	{
		ID: "environment.tools.unique", Title: "No two tools have one name.",
		Fix:    "Rename one of the two.",
		Source: "packs.md 7", Gates: suiteGates,
		Example: Example{Value: `{"schema": "forge/environment/v1", "protocol": "openenv", "verifier": {"kind": "plugin", "ref": "a/p"}, "tools": [{"name": "x", "endpoint": "/a"}, {"name": "x", "endpoint": "/b"}]}`},
	},
	{
		ID: "environment.harness", Title: "The harness is an object; nemo-gym needs its plugin and entrypoint.",
		Fix:    "Write {\"plugin\": \"<owner>/<name>\", \"entrypoint\": \"module:ClassName\"}.",
		Source: "packs.md 7", Gates: suiteGates,
		Example: Example{Value: `{"schema": "forge/environment/v1", "protocol": "nemo-gym", "verifier": {"kind": "plugin", "ref": "a/p"}}`},
	},
	{
		ID: "environment.domain", Title: "The domain of a nemo-gym environment is one that NeMo Gym knows.",
		Fix:    "Choose a domain that the message lists, or leave it out.",
		Source: "packs.md 7", Gates: suiteGates,
		Example: Example{Value: `{"schema": "forge/environment/v1", "protocol": "nemo-gym", "verifier": {"kind": "plugin", "ref": "a/p"}, "harness": {"plugin": "a/h", "entrypoint": "m:C"}, "domain": "maths"}`},
	},
	{
		ID: "environment.image", Title: "An image stands where one runs the environment.",
		Fix:    "Give image for openenv-image (StarForge) or a container deployment (TunePlane), and nowhere else in TunePlane.",
		Source: "packs.md 7", Gates: suiteGates,
		Example: Example{Value: `{"schema": "forge/environment/v1", "protocol": "openenv-image", "verifier": {"kind": "plugin", "ref": "a/p"}}`},
	},
	{
		ID: "environment.image_port", Title: "The image's port is 1 to 65535 and stands only with a container.",
		Fix:    "Write a whole number, or leave the field out for the platform's default.",
		Source: "packs.md 7", Gates: suiteGates, Dialects: []dialect.Dialect{dialect.TunePlane},
		Example: Example{Dialect: dialect.TunePlane, Value: `{"schema": "tuneplane/environment/v1", "protocol": "openenv", "deployment": "container", "image": "i", "image_port": 0, "verifier": {"kind": "self"}}`},
	},
	{
		ID: "environment.endpoint", Title: "An address or a fleet stands where the environment runs elsewhere, and never both.",
		Fix:    "Give one of endpoint and fleet for openenv-remote (StarForge) or a remote deployment (TunePlane), and none otherwise.",
		Source: "packs.md 7", Gates: suiteGates,
		Example: Example{Value: `{"schema": "forge/environment/v1", "protocol": "openenv", "verifier": {"kind": "plugin", "ref": "a/p"}, "endpoint": "http://box:8080"}`},
	},
	{
		ID: "environment.sandbox", Title: "The sandbox is an object.",
		Fix:    "Write {\"required\": true}, or leave it out.",
		Source: "packs.md 7", Gates: suiteGates,
		Example: Example{Value: `{"schema": "forge/environment/v1", "protocol": "openenv", "verifier": {"kind": "plugin", "ref": "a/p"}, "sandbox": "yes"}`},
	},
	{
		ID: "environment.ignored", Title: "manifest.json has only fields that the clients read.",
		Fix:    "Remove the field, or correct its spelling.",
		Source: "packs.md 7 (ours)", Gates: suiteGates, Severity: Warn, Ours: true,
		Example: Example{Value: `{"schema": "forge/environment/v1", "protocol": "openenv", "verifier": {"kind": "plugin", "ref": "a/p"}, "tool": []}`},
	},
	{
		ID: "environment.files", Title: "An environment has its manifest.json, and its tasks.jsonl where tasks are served from it.",
		Fix:    "Put the file into the folder that is pushed, under exactly that name.",
		Source: "packs.md 7", Gates: suiteGates,
		Example: Example{Text: "a push of a folder without manifest.json"},
	},
	{
		ID: "tasks.limit", Title: "tasks.jsonl and its rows keep within their limits.",
		Fix:    "Split the environment, or move large texts to files of their own.",
		Source: "admission/limit", Gates: suiteGates, Ours: true, Fixed: true, Class: TooLarge,
		Example: Example{Text: "a row of 5 MiB"},
	},
	{
		ID: "tasks.encoding", Title: "tasks.jsonl is UTF-8.",
		Fix:    "Save the file as UTF-8.",
		Source: "packs.md 7", Gates: suiteGates,
		Example: Example{Text: "a line with the byte FF"},
	},
	{
		ID: "tasks.row", Title: "Every line of tasks.jsonl that is not blank is a JSON object with an id and a prompt.",
		Fix:    "Write {\"id\": \"t1\", \"prompt\": \"…\"}, one a line.",
		Source: "packs.md 7", Gates: suiteGates,
		Example: Example{Value: `{"id": "t1"}`},
	},
	{
		ID: "tasks.split", Title: "The split of a task is train or eval.",
		Fix:    "Write one of the two, or leave split out for train.",
		Source: "packs.md 7", Gates: suiteGates,
		Example: Example{Value: `{"id": "t1", "prompt": "p", "split": "test"}`},
	},
	{
		ID: "tasks.split.empty", Title: "The half that is asked for has a task.",
		Fix:    "Give some rows \"split\": \"eval\".",
		Source: "packs.md 7", Gates: suiteGates,
		Example: Example{Text: "an evaluation of an environment whose tasks are all of train"},
	},
	{
		ID: "tasks.metadata", Title: "The metadata of a task is an object.",
		Fix:    "Write an object, or leave it out: the clients drop anything else.",
		Source: "packs.md 7 (ours)", Gates: suiteGates, Severity: Warn, Ours: true,
		Example: Example{Value: `{"id": "t1", "prompt": "p", "metadata": [1]}`},
	},
	{
		ID: "tasks.unique", Title: "No two tasks have one id.",
		Fix:    "Rename one of the two, unless the repetition is meant.",
		Source: "packs.md 7 (ours)", Gates: suiteGates, Severity: Warn, Ours: true,
		Example: Example{Value: `{"id": "t1", "prompt": "p"}
{"id": "t1", "prompt": "q"}`},
	},
	{
		ID: "tasks.string", Title: "The texts of a task hold no lone surrogates and no control characters.",
		Fix:    "Remove the escape, unless it is meant.",
		Source: "packs.md 7 (ours)", Gates: suiteGates, Severity: Warn, Ours: true,
		Example: Example{Value: `{"id": "t1", "prompt": "\u0007"}`},
	},
	{
		ID: "taskset.root", Title: "taskset.json is an object of exactly schema, format and tasks.",
		Fix:    "Remove what else it holds; `sf taskset build` writes one.",
		Source: "packs.md 11", Gates: suiteGates, Dialects: []dialect.Dialect{dialect.TunePlane},
		Example: Example{Value: `{"schema": "tuneplane/taskset/v1"}`},
	},
	{
		ID: "taskset.schema", Title: "taskset.json names the schema and format that its reader knows.",
		Fix:    "Write tuneplane/taskset/v1 and harbor.",
		Source: "packs.md 11", Gates: suiteGates, Dialects: []dialect.Dialect{dialect.TunePlane},
		Example: Example{Value: `{"schema": "tuneplane/taskset/v1", "format": "x", "tasks": [{"id": "t1", "path": "t1", "split": "eval", "sha256": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}]}`},
	},
	{
		ID: "taskset.tasks", Title: "A taskset has 1 to 10000 tasks.",
		Fix:    "List at least one task; split a larger set.",
		Source: "packs.md 11", Gates: suiteGates, Dialects: []dialect.Dialect{dialect.TunePlane},
		Example: Example{Value: `{"schema": "tuneplane/taskset/v1", "format": "harbor", "tasks": []}`},
	},
	{
		ID: "taskset.task", Title: "A task is an object of exactly id, path, split and sha256, all texts.",
		Fix:    "Write the four fields; `sf taskset build` does.",
		Source: "packs.md 11", Gates: suiteGates, Dialects: []dialect.Dialect{dialect.TunePlane},
		Example: Example{Value: `{"schema": "tuneplane/taskset/v1", "format": "harbor", "tasks": [{"id": "t1"}]}`},
	},
	{
		ID: "taskset.task.id", Title: "The id of a task is one path-safe name.",
		Fix:    "Begin with a letter or digit and use only ASCII letters, digits, '.', '_' and '-'.",
		Source: "packs.md 11, 12", Gates: suiteGates, Dialects: []dialect.Dialect{dialect.TunePlane},
		Example: Example{Value: `{"schema": "tuneplane/taskset/v1", "format": "harbor", "tasks": [{"id": "t 1", "path": "t 1", "split": "eval", "sha256": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}]}`},
	},
	{
		ID: "taskset.task.path", Title: "The path of a task is a plain relative folder called as its id.",
		Fix:    "Write the folder from the root of the taskset, such as group/t1 for the task t1.",
		Source: "packs.md 11", Gates: suiteGates, Dialects: []dialect.Dialect{dialect.TunePlane},
		Example: Example{Value: `{"schema": "tuneplane/taskset/v1", "format": "harbor", "tasks": [{"id": "t1", "path": "../t1", "split": "eval", "sha256": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}]}`},
	},
	{
		ID: "taskset.task.split", Title: "The split of a task is train or eval.",
		Fix:    "Write one of the two.",
		Source: "packs.md 11", Gates: suiteGates, Dialects: []dialect.Dialect{dialect.TunePlane},
		Example: Example{Value: `{"schema": "tuneplane/taskset/v1", "format": "harbor", "tasks": [{"id": "t1", "path": "t1", "split": "test", "sha256": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}]}`},
	},
	{
		ID: "taskset.task.sha256", Title: "The digest of a task is 64 lower-case hex digits.",
		Fix:    "Let `sf taskset build` write it.",
		Source: "packs.md 11", Gates: suiteGates, Dialects: []dialect.Dialect{dialect.TunePlane},
		Example: Example{Value: `{"schema": "tuneplane/taskset/v1", "format": "harbor", "tasks": [{"id": "t1", "path": "t1", "split": "eval", "sha256": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}]}`},
	},
	{
		ID: "taskset.unique", Title: "Ids and folders of tasks are distinct, and no folder lies in another task's.",
		Fix:    "Rename or move one of the two.",
		Source: "packs.md 11", Gates: suiteGates, Dialects: []dialect.Dialect{dialect.TunePlane},
		Example: Example{Value: `{"schema": "tuneplane/taskset/v1", "format": "harbor", "tasks": [{"id": "t1", "path": "t1", "split": "eval", "sha256": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}, {"id": "t1", "path": "x/t1", "split": "eval", "sha256": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}]}`},
	},
	{
		ID: "taskset.file", Title: "A taskset is regular files alone: taskset.json and the folders of its tasks.",
		Fix:    "Replace links by copies; taskset.json stands in the root.",
		Source: "packs.md 11", Gates: suiteGates, Dialects: []dialect.Dialect{dialect.TunePlane},
		Example: Example{Text: "a link in a task's folder"},
	},
	{
		ID: "taskset.marker", Title: "Each task has its task.toml.",
		Fix:    "Add the file to the task's folder.",
		Source: "packs.md 11", Gates: suiteGates, Dialects: []dialect.Dialect{dialect.TunePlane},
		Example: Example{Text: "a task whose folder has no task.toml"},
	},
	{
		ID: "taskset.digest", Title: "The files of a task have the digest that taskset.json names.",
		Fix:    "Build taskset.json anew after a change: `sf taskset build --force`.",
		Source: "packs.md 11", Gates: suiteGates, Dialects: []dialect.Dialect{dialect.TunePlane},
		Example: Example{Text: "a file that was changed after taskset.json was written"},
	},
	{
		ID: "taskset.extra", Title: "Every file that is uploaded belongs to a task.",
		Fix:    "Move the file into a task's folder, or leave it out.",
		Source: "packs.md 11 (ours)", Gates: suiteGates, Dialects: []dialect.Dialect{dialect.TunePlane}, Severity: Warn, Ours: true,
		Example: Example{Text: "a README.md beside the folders of the tasks"},
	},
	{
		ID: "suite.index", Title: "index.json lists files as {name, size, sha256}.",
		Fix:    "Let the client write it: `sf env push` or `sf taskset push`.",
		Source: "wire.md 7", Gates: suiteGates,
		Example: Example{Value: `{"files": [{"name": "a"}]}`},
	},
	{
		ID: "suite.limit", Title: "A version has at most 10000 files.",
		Fix:    "Pack small files into archives, or split the suite.",
		Source: "admission/limit", Gates: suiteGates, Ours: true, Fixed: true, Class: TooLarge,
		Example: Example{Text: "a folder of 100000 files"},
	},
	{
		ID: "suite.file.path", Title: "A file's name is a plain relative path.",
		Fix:    "Write the path from the root of the folder, without empty elements, '.' and '..'.",
		Source: "wire.md 7 (ours)", Gates: suiteGates, Ours: true, Fixed: true,
		Example: Example{Value: `{"files": [{"name": "../x", "size": 0, "sha256": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}]}`},
	},
	{
		ID: "suite.file.name", Title: "A file's name is UTF-8 without control characters and backslashes.",
		Fix:    "Rename the file.",
		Source: "wire.md 7 (ours)", Gates: suiteGates, Ours: true, Fixed: true,
		Example: Example{Value: `{"files": [{"name": "a\\b", "size": 0, "sha256": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}]}`},
	},
	{
		ID: "suite.file.length", Title: "A file's name keeps within the limits of paths.",
		Fix:    "Shorten the path to 1024 bytes, each element to 255.",
		Source: "admission/limit", Gates: suiteGates, Ours: true, Fixed: true, Class: TooLarge,
		Example: Example{Text: "a name of 2000 letters"},
	},
	{
		ID: "suite.file.unique", Title: "No name comes twice, and none is a file and a folder.",
		Fix:    "Keep one of the two.",
		Source: "wire.md 7 (ours)", Gates: suiteGates, Ours: true, Fixed: true,
		Example: Example{Value: `{"files": [{"name": "a", "size": 0, "sha256": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}, {"name": "a/b", "size": 0, "sha256": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}]}`},
	},
	{
		ID: "rubric.limit", Title: "A rubric has at most 64 KiB.",
		Fix:    "Shorten the text.",
		Source: "issue of rubrics, admission/limit", Gates: suiteGates, Ours: true, Fixed: true, Class: TooLarge,
		Example: Example{Text: "a text of 70 KiB"},
	},
	{
		ID: "rubric.text", Title: "A rubric is UTF-8 text that says something.",
		Fix:    "Save it as UTF-8 without a byte-order mark, control characters or NUL.",
		Source: "packs.md 10 (ours)", Gates: suiteGates, Ours: true, Fixed: true,
		Example: Example{Text: "an empty file"},
	},
	{
		ID: "solution.root", Title: "solution.yaml holds one object.",
		Fix:    "Write fields such as `name: my-solution`, one a line.",
		Source: "packs.md 11", Gates: suiteGates, Dialects: []dialect.Dialect{dialect.TunePlane},
		Example: Example{Value: `- a`},
	},
	{
		ID: "solution.limit", Title: "solution.yaml keeps within its size limit.",
		Fix:    "Move long texts to README.md.",
		Source: "admission/limit", Gates: suiteGates, Dialects: []dialect.Dialect{dialect.TunePlane}, Ours: true, Fixed: true, Class: TooLarge,
		Example: Example{Text: "a file of 2 MiB"},
	},
	{
		ID: "solution.schema", Title: "solution.yaml names its schema.",
		Fix:    "Write schema: tuneplane/solution/v1.",
		Source: "packs.md 11", Gates: suiteGates, Dialects: []dialect.Dialect{dialect.TunePlane},
		Example: Example{Value: `schema: solution/v1
name: demo
title: Demo
recipe: trl/sft`},
	},
	{
		ID: "solution.missing", Title: "solution.yaml has every required field.",
		Fix:    "Write schema, name and title.",
		Source: "packs.md 11", Gates: suiteGates, Dialects: []dialect.Dialect{dialect.TunePlane},
		Example: Example{Value: `schema: tuneplane/solution/v1
name: demo
recipe: trl/sft`},
	},
	{
		ID: "solution.name", Title: "The solution has the name of its folder.",
		Fix:    "Rename the folder, or write its name.",
		Source: "packs.md 11", Gates: suiteGates, Dialects: []dialect.Dialect{dialect.TunePlane},
		Example: Example{Text: "the solution demo in the folder other"},
	},
	{
		ID: "solution.start", Title: "A solution names a recipe or an environment.",
		Fix:    "Write recipe: <framework>/<method>, or environment: <owner>/<name>@<version>.",
		Source: "packs.md 11", Gates: suiteGates, Dialects: []dialect.Dialect{dialect.TunePlane},
		Example: Example{Value: `schema: tuneplane/solution/v1
name: demo
title: Demo`},
	},
	{
		ID: "solution.benchmarks", Title: "The benchmarks are a list.",
		Fix:    "Write benchmarks: [gsm8k].",
		Source: "packs.md 11", Gates: suiteGates, Dialects: []dialect.Dialect{dialect.TunePlane},
		Example: Example{Value: `schema: tuneplane/solution/v1
name: demo
title: Demo
recipe: trl/sft
benchmarks: gsm8k`},
	},
	{
		ID: "solution.keywords", Title: "The keywords are a list.",
		Fix:    "Write a list of words in brackets.",
		Source: "packs.md 11", Gates: suiteGates, Dialects: []dialect.Dialect{dialect.TunePlane},
		Example: Example{Value: `schema: tuneplane/solution/v1
name: demo
title: Demo
recipe: trl/sft
keywords: 5`},
	},
	{
		ID: "solution.letters", Title: "The keywords are no text, which falls into its letters.",
		Fix:    "Write a list of words in brackets.",
		Source: "packs.md 11 (ours)", Gates: suiteGates, Dialects: []dialect.Dialect{dialect.TunePlane}, Severity: Warn, Ours: true,
		Example: Example{Value: `schema: tuneplane/solution/v1
name: demo
title: Demo
recipe: trl/sft
keywords: abc`},
	},
	{
		ID: "solution.data_format", Title: "The data format is one that the platform checks.",
		Fix:    "Choose a format that the message lists.",
		Source: "packs.md 11", Gates: suiteGates, Dialects: []dialect.Dialect{dialect.TunePlane},
		Example: Example{Value: `schema: tuneplane/solution/v1
name: demo
title: Demo
recipe: trl/sft
data_format: chat`},
	},
	{
		ID: "solution.acceptance", Title: "The acceptance is an object.",
		Fix:    "Write acceptance: {baseline: prompt, metrics: […]}.",
		Source: "packs.md 11", Gates: suiteGates, Dialects: []dialect.Dialect{dialect.TunePlane},
		Example: Example{Value: `schema: tuneplane/solution/v1
name: demo
title: Demo
recipe: trl/sft
acceptance: strict`},
	},
	{
		ID: "solution.acceptance.metrics", Title: "The metrics of the acceptance have a key, a min_delta of 0 or more and a direction.",
		Fix:    "Write [{key: pass_rate, min_delta: 0.02, direction: higher}].",
		Source: "packs.md 11", Gates: suiteGates, Dialects: []dialect.Dialect{dialect.TunePlane},
		Example: Example{Value: `schema: tuneplane/solution/v1
name: demo
title: Demo
recipe: trl/sft
acceptance: {metrics: [{key: a, min_delta: -1}]}`},
	},
	{
		ID: "solution.acceptance.sample_min", Title: "sample_min is a whole number of 0 or more.",
		Fix:    "Write a number such as 200.",
		Source: "packs.md 11", Gates: suiteGates, Dialects: []dialect.Dialect{dialect.TunePlane},
		Example: Example{Value: `schema: tuneplane/solution/v1
name: demo
title: Demo
recipe: trl/sft
acceptance: {sample_min: many}`},
	},
	{
		ID: "solution.ignored", Title: "solution.yaml has only fields that the client reads.",
		Fix:    "Remove the field, or correct its spelling.",
		Source: "packs.md 11 (ours)", Gates: suiteGates, Dialects: []dialect.Dialect{dialect.TunePlane}, Severity: Warn, Ours: true,
		Example: Example{Value: `schema: tuneplane/solution/v1
name: demo
title: Demo
recipe: trl/sft
recipes: x`},
	},
	{
		ID: "dataprep.encoding", Title: "A data preparation script is UTF-8.",
		Fix:    "Save the file as UTF-8.",
		Source: "packs.md 9", Gates: suiteGates,
		Example: Example{Text: "a prepare_x.py with the byte FF"},
	},
	{
		ID: "dataprep.limit", Title: "A data preparation script keeps within 1 MiB.",
		Fix:    "Move data out of the script.",
		Source: "admission/limit", Gates: suiteGates, Ours: true, Fixed: true, Class: TooLarge,
		Example: Example{Text: "a prepare_x.py of 2 MiB"},
	},
}

// suiteGates are where suites are checked: a job only names what has passed.
var suiteGates = []Gate{Publish}
