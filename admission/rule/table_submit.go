package rule

import "github.com/gatehouse-registry/gatehouse/admission/dialect"

// submitRules are what `sf submit` asks on the laptop, before any gate hears of the job, in the order in which it looks.
var submitRules = []Info{
	submitRule("submit.profile", "Every --profile is [<role>,…=]<profile>[:<gpus>] with a profile of the server's.",
		"Choose one of the server's profiles; with several, map roles: --profile actor,rollout=h200:8 --profile teacher=h200:4.", "--profile h200:12 where a node has 8 GPUs"),
	submitRule("submit.role", "Roles that --profile maps are the recipe's.", "Name one of the recipe's roles.", "--profile driver=h200 for a recipe with the role trainer"),
	submitRule("submit.provenance", "The project is in git, and its changes are committed.",
		"Commit the changes and submit again, or pass --allow-dirty to submit them all the same.", "an edited config.yaml that is not committed"),
	submitRule("submit.project", "The project has a name of the clients' grammar.", "Correct name in the project's marker file.", "name: my project"),
	submitRule("submit.lock", "The experiment's locks can be read and fit the catalogue.", "Run sf recipe upgrade EXPERIMENT, or submit with --upgrade-recipe.", "a recipe.lock.json whose runtime_id the catalogue no longer has"),
	submitRule("submit.config", "The experiment's config.yaml can be read.", "Correct the file at the line that is named.", "data: [a, b]"),
	forgeOnly(submitRule("submit.framework", "The project's client knows the framework's configs.",
		"Submit with --no-validate if the config is right: the gate and the framework still look at it.", "an experiment of openrlhf in a forge project")),
	submitRule("submit.input", "The inputs that the framework can't do without are given.", "Add the option.", "a verl recipe without --train-data"),
	submitRule("submit.reference", "References of the command line and of config.yaml are <owner>/<name>[@<version>].",
		"Write the owner, the name and the version.", "--train-dataset gsm8k"),
	submitRule("submit.set", "Every --set is <parameter>=<value>.", "Write the parameter, =, and the value.", "--set =1"),
	{
		ID: "submit.set.finite", Title: "Hyperparameters are finite numbers.", Fix: "Give a finite number: JSON has no NaN and no infinity.",
		Source: "recipes-and-locks.md 0.11, 9", Gates: []Gate{Submission}, Ours: true, Fixed: true, Example: Example{Text: "--set lr=nan"},
	},
	submitRule("submit.package.secret", "No file of the package has a name like a secret's.",
		"Move it out of the experiment, or add it to .gitignore; if the job needs it and it holds no secret, rename it.", "experiments/x/.env"),
	submitRule("submit.package.file", "Every file of the package is there and is a regular file.",
		"If it was deleted or replaced, run git add -A and commit; else move it out of the experiment, common/ and configs/.", "a file that was deleted and not committed"),
	{
		ID: "submit.package.link", Title: "A link in the package leads to a file of the package.",
		Fix:    "Put a copy of the file in the place of the link, or let it lead to a file in the experiment, common/ or configs/.",
		Source: "recipes-and-locks.md 8", Gates: []Gate{Submission}, Ours: true, Fixed: true, Example: Example{Text: "experiments/x/data -> /etc/hosts"},
	},
	submitRule("submit.package.empty", "The package has files.", "Check that the experiment's files are there and that git does not ignore them.", "an experiment that .gitignore names"),
	submitRule("submit.package.size", "The package is within its limits.",
		"Keep what the job makes or downloads out of the experiment: add it to .gitignore, or move it.", "a checkpoint in experiments/x"),
	forgeOnly(submitRule("submit.header", "The job fits into the request's headers.", "Make the hyperparameters or the eval section smaller.", "a spec of 1 MiB")),
}

// submitRule is a rule that the real clients apply before they send anything.
func submitRule(id ID, title, fix, example string) Info {
	return Info{ID: id, Title: title, Fix: fix, Source: "recipes-and-locks.md 6, 8", Gates: []Gate{Submission}, Example: Example{Text: example}}
}

// forgeOnly is a rule that tuneplane does not have.
func forgeOnly(i Info) Info {
	i.Dialects = []dialect.Dialect{dialect.Forge}
	return i
}
