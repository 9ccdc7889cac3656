package rule

// jobPackageRules are the rules of what a job brings along (recipes-and-locks.md 8). How its archive is written is judged by
// the rules of archives; these say what may lie where.
var jobPackageRules = []Info{
	jobPackageRule("jobpackage.reserved", "Nothing in a job package has a name that the platform gives to its own files.",
		"Leave .starforge, .tuneplane, forge_plugins and tuneplane_plugins at the project's top out of the package: the platform writes them.",
		told(`The package holds forge_plugins/grad-clip/main.py.`)),
	jobPackageRule("jobpackage.outside", "A job package holds files below the experiment, common and configs, and nothing else.",
		"Pack the experiment that the spec names, common and configs alone: `sf submit EXPERIMENT` does.",
		told(`The package holds .env at its top.`)),
	jobPackageRule("jobpackage.experiment", "A job package holds files of the experiment.",
		"Pack the folder that spec.source.exp names: `sf submit EXPERIMENT` does.",
		told(`The spec names experiments/demo and the package holds nothing below it.`)),
}

func jobPackageRule(id ID, title, fix string, example Example) Info {
	return Info{ID: id, Example: example, Title: title, Fix: fix, Source: "recipes-and-locks.md 8", Gates: []Gate{Submission}, Ours: true, Fixed: true}
}
