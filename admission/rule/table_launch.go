package rule

// launchOnly is the gate at which a job directory is looked at.
var launchOnly = []Gate{Launch}

// launchRules are the rules of gate 3 (design.md 3, 6; launch.md). A breach of a launch.receipt or launch.digest rule
// means that a signature or bytes are not what they claim to be: exit code 7, where all others are 3.
var launchRules = []Info{
	{
		ID: "launch.spec.missing", Title: "The job directory holds the spec in its dialect's folder.",
		Fix:    "Name the spec that the server wrote: JOB/.starforge/jobspec.json or JOB/.tuneplane/jobspec.json.",
		Source: "launch.md 1", Gates: launchOnly,
		Example: told(`--jobspec names a file that is not there.`),
	},
	{
		ID: "launch.spec.file", Title: "The spec is a regular file of at most 1 MiB.",
		Fix:    "Put the spec itself where it belongs, as the server sent it.",
		Source: "design.md 6", Gates: launchOnly, Ours: true, Fixed: true,
		Example: told(`JOB/.starforge/jobspec.json is a symbolic link.`),
	},
	{
		ID: "launch.spec.folder", Title: "The spec's folder holds regular files only, within the limits of a job.",
		Fix:    "Remove links and special files from the folder.",
		Source: "design.md 6", Gates: launchOnly, Ours: true, Fixed: true,
		Example: told(`JOB/.starforge holds a socket.`),
	},
	{
		ID: "launch.receipt.missing", Title: "A job comes with a receipt.",
		Fix:    "Put the receipt that the registry gave out beside the job directory as JOB.receipt.json or name it with --receipt, and the registry's key with --trust; or let --receipt-from-server fetch it.",
		Source: "design.md 6", Gates: launchOnly, Ours: true, Fixed: true,
		Example: told(`There is neither --receipt nor JOB.receipt.json, and --receipt-from-server is not given.`),
	},
	{
		ID: "launch.receipt.malformed", Title: "The receipt is a DSSE envelope with a receipt in it.",
		Fix:    "Fetch the receipt from the registry again.",
		Source: "design.md 3.2", Gates: launchOnly, Ours: true, Fixed: true,
		Example: told(`The receipt is an HTML page.`),
	},
	{
		ID: "launch.receipt.untrusted", Title: "A trusted key signed the receipt.",
		Fix:    "Trust the key that `sf admin key show` prints on the registry (--trust FILE), or fetch the receipt from the registry whose key is trusted (--receipt-from-server).",
		Source: "design.md 6", Gates: launchOnly, Ours: true, Fixed: true,
		Example: told(`A registry that the node does not trust signed the receipt.`),
	},
	{
		ID: "launch.receipt.audience", Title: "The receipt is for the registry that the launch asks of.",
		Fix:    "Submit the job to that registry.",
		Source: "design.md 6", Gates: launchOnly, Ours: true, Fixed: true,
		Example: told(`The receipt is of another registry than --trust is for.`),
	},
	{
		ID: "launch.receipt.job", Title: "The receipt is of the job that the launch asks for.",
		Fix:    "Name the receipt and the job directory of that job, or correct --job.",
		Source: "design.md 6", Gates: launchOnly, Ours: true, Fixed: true,
		Example: told(`--job names another job than the receipt does.`),
	},
	{
		ID: "launch.receipt.transport", Title: "A receipt is asked for over TLS.",
		Fix:    "Sign in at the registry's https address (or set GATEHOUSE_SERVER to it), or bring the receipt as a file with --receipt and --trust.",
		Source: "design.md 6", Gates: launchOnly, Ours: true, Fixed: true,
		Example: told(`--receipt-from-server where the node is signed in at http://registry.example.org.`),
	},
	{
		ID: "launch.receipt.expired", Title: "The receipt has not expired.",
		Fix:    "Submit the job again.",
		Source: "design.md 6", Gates: launchOnly, Ours: true, Fixed: true,
		Example: told(`The receipt is of six weeks ago.`),
	},
	{
		ID: "launch.receipt.spec", Title: "The spec is, byte for byte and in its dialect, the one that was admitted.",
		Fix:    "Put back the spec that the registry stored, or submit the changed one.",
		Source: "design.md 3", Gates: launchOnly, Ours: true, Fixed: true,
		Example: told(`Somebody edited JOB/.starforge/jobspec.json after it was admitted.`),
	},
	{
		ID: "launch.revoked", Title: "The registry has not revoked what the job pins.",
		Fix:    "Pin a version that is not revoked and submit again: a revocation is final.",
		Source: "docs/runs.md", Gates: launchOnly, Ours: true, Fixed: true,
		Example: told(`An administrator revoked alice/grad-clip 1.0.0 after the job was admitted.`),
	},
	{
		ID: "launch.denylist.missing", Title: "Where the launch requires it, the registry's list of revoked versions can be had.",
		Fix:    "Let the node reach its registry (sf node show, sf login), or launch with --deny-list prefer.",
		Source: "docs/runs.md", Gates: launchOnly, Ours: true, Fixed: true,
		Example: told(`--deny-list require, the cache holds no list and the registry does not answer.`),
	},
	{
		ID: "launch.denylist.malformed", Title: "The list of revoked versions is a DSSE envelope with such a list in it.",
		Fix:    "See what answers at the registry's address.",
		Source: "docs/runs.md", Gates: launchOnly, Ours: true, Fixed: true,
		Example: told(`--deny-list require, and a proxy answers with an HTML page.`),
	},
	{
		ID: "launch.denylist.untrusted", Title: "A trusted key signed the list of revoked versions.",
		Fix:    "Trust the key that `sf admin key show` prints on the registry (--trust FILE).",
		Source: "docs/runs.md", Gates: launchOnly, Ours: true, Fixed: true,
		Example: told(`--deny-list require, and a registry that the node does not trust signed the list.`),
	},
	{
		ID: "launch.denylist.audience", Title: "The list of revoked versions is of the registry that the receipt is of.",
		Fix:    "Ask the registry that admitted the job: join it with sf node join, or set GATEHOUSE_SERVER.",
		Source: "docs/runs.md", Gates: launchOnly, Ours: true, Fixed: true,
		Example: told(`--deny-list require, and the node asks another registry than admitted the job.`),
	},
	{
		ID: "launch.denylist.expired", Title: "The list of revoked versions has not expired.",
		Fix:    "Let the node reach its registry, and see that both clocks are right.",
		Source: "docs/runs.md", Gates: launchOnly, Ours: true, Fixed: true,
		Example: told(`--deny-list require, the cache's list is of yesterday and the registry does not answer.`),
	},
	{
		ID: "launch.denylist.older", Title: "The registry sends no older list of revoked versions than this node has seen.",
		Fix:    "See who answers at the registry's address: somebody replays an old list. After a registry was restored from a backup, revoke again or remove the node's copy.",
		Source: "docs/runs.md", Gates: launchOnly, Ours: true, Fixed: true,
		Example: told(`--deny-list require, the node has seen list 7 and is sent list 5.`),
	},
	{
		ID: "launch.package.missing", Title: "A job that is launched from its package has one: the receipt pins it, and it can be read.",
		Fix:    "Submit the job with its package (sf submit EXPERIMENT), name the file that holds it (--from-package=FILE), or leave --from-package out.",
		Source: "design.md 6", Gates: launchOnly, Ours: true, Fixed: true,
		Example: told(`The job was submitted by its spec alone and is launched with --from-package.`),
	},
	{
		ID: "launch.package.digest", Title: "The job package is, byte for byte, the one that was admitted.",
		Fix:    "Take the package that was submitted, or let the registry send it (--from-package without a file).",
		Source: "design.md 3", Gates: launchOnly, Ours: true, Fixed: true,
		Example: told(`The file that --from-package names holds another package than the receipt pins.`),
	},
	{
		ID: "launch.package.content", Title: "The job package is one that gate 2 admits.",
		Fix:    "Submit the job again with a package that `sf submit` makes.",
		Source: "design.md 6", Gates: launchOnly, Ours: true, Fixed: true,
		Example: told(`The package holds a link that leads out of it.`),
	},
	{
		ID: "launch.digest.pin", Title: "Receipt and spec pin the same plugins, by version and content digest.",
		Fix:    "Submit the job again.",
		Source: "design.md 6", Gates: launchOnly, Ours: true, Fixed: true,
		Example: told(`The spec locks alice/grad-clip 1.0.0, the receipt pins 1.1.0.`),
	},
	{
		ID: "launch.digest.content", Title: "What was injected has the content digest that is pinned.",
		Fix:    "Inject the published version again; to run changed code publish it under a new version.",
		Source: "launch.md 3", Gates: launchOnly,
		Example: told(`A byte of JOB/forge_plugins/grad-clip/main.py was changed.`),
	},
	{
		ID: "launch.digest.tree", Title: "What was injected is file for file the published tree, not only by its content digest.",
		Fix:    "Inject the published version again.",
		Source: "design.md 2, packs.md 1.4", Gates: launchOnly, Ours: true, Fixed: true,
		Example: told(`JOB/forge_plugins/grad-clip holds a file that the published pack does not.`),
	},
	{
		ID: "launch.digest.copy", Title: "The copy that the job reads has both digests that are pinned.",
		Fix:    "Launch again; when it happens again, remove the node's cache.",
		Source: "design.md 6", Gates: launchOnly, Ours: true, Fixed: true,
		Example: told(`The node's cache holds other bytes than are pinned.`),
	},
	{
		ID: "launch.digest.recipe", Title: "The recipe pack that the spec names has the recipe digest that the spec locks.",
		Fix:    "Inject the recipe pack that was locked, or lock this one and submit again.",
		Source: "launch.md 1", Gates: launchOnly,
		Example: told(`The recipe.yaml of the job differs from the one that the spec locks.`),
	},
	{
		ID: "launch.plugin.missing", Title: "Every plugin that the spec names lies in the job directory, as a folder with its name.",
		Fix:    "Inject the plugin, or take it out of spec.plugins and submit again.",
		Source: "launch.md 3", Gates: launchOnly,
		Example: told(`JOB/forge_plugins has no folder grad-clip.`),
	},
	{
		ID: "launch.plugin.link", Title: "An injected pack is a real folder and holds no link to a folder, to nothing or to the outside.",
		Fix:    "Replace the link by what it leads to, as it was published.",
		Source: "launch.md 4", Gates: launchOnly, Ours: true, Fixed: true,
		Example: told(`JOB/forge_plugins/grad-clip is a symbolic link.`),
	},
	{
		ID: "launch.plugin.special", Title: "An injected pack holds no FIFO, socket or device.",
		Fix:    "Remove it.",
		Source: "launch.md 4", Gates: launchOnly, Ours: true, Fixed: true,
		Example: told(`JOB/forge_plugins/grad-clip holds a FIFO.`),
	},
	{
		ID: "launch.plugin.unreadable", Title: "An injected pack can be read, within the limits of a pack.",
		Fix:    "Inject the published version again, readable for the job's user.",
		Source: "design.md 6", Gates: launchOnly, Ours: true, Fixed: true,
		Example: told(`JOB/forge_plugins/grad-clip may not be read.`),
	},
	{
		ID: "launch.identity", Title: "plugin.yaml has the name and version under which the pack is pinned.",
		Fix:    "Publish the pack under the name and version that its plugin.yaml says.",
		Source: "launch.md 3", Gates: launchOnly, Ours: true, OursIn: inForge,
		Example: told(`plugin.yaml says version: "1.1.0" where 1.0.0 is pinned.`),
	},
	{
		ID: "launch.kind", Title: "plugin.yaml has the kind under which the pack was published, and the job's dialect.",
		Fix:    "Pin a pack of the job's own platform.",
		Source: "design.md 3", Gates: launchOnly, Ours: true, Fixed: true,
		Example: told(`plugin.yaml says kind: metric where an algorithm is pinned.`),
	},
	{
		ID: "launch.requires.core", Title: "The client that runs the job meets every plugin's requires.core.",
		Fix:    "Pin a version of the plugin that supports this client, or run the job with a client that it supports.",
		Source: "launch.md 3", Gates: launchOnly,
		Example: told(`The plugin requires core >=0.4 and the node runs 0.3.56.`),
	},
	{
		ID: "launch.import.collision", Title: "No two plugins of a job own one import name.",
		Fix:    "Rename the module in one of the plugins and publish it again.",
		Source: "launch.md 3", Gates: launchOnly, Ours: true, OursIn: inForge,
		Example: told(`Two plugins of the job hold main.py in their roots.`),
	},
	{
		ID: "launch.recipe.missing", Title: "Every recipe pack that the receipt pins lies in the job directory.",
		Fix:    "Inject the recipe pack.",
		Source: "design.md 6", Gates: launchOnly, Ours: true, Fixed: true,
		Example: told(`The receipt pins a recipe pack that JOB/forge_recipes lacks.`),
	},
	{
		ID: "launch.recipe.ambiguous", Title: "One recipe pack of the job directory has the id that the spec names.",
		Fix:    "Leave the one that was locked.",
		Source: "launch.md 1", Gates: launchOnly, Ours: true, Fixed: true,
		Example: told(`Two recipe packs of the job have the id trl/tiny-sft.`),
	},
	{
		ID: "launch.recipe.unpinned", Title: "The receipt pins the recipe pack that the job brings along, templates and all.",
		Fix:    "Publish the recipe pack and submit again: until then only its recipe.yaml is proven.",
		Source: "launch.md 1", Gates: launchOnly, Severity: Warn,
		Example: told(`The job brings a recipe pack that its receipt does not name.`),
	},
	{
		ID: "launch.bind", Title: "What the job sees of its directory are real files and folders, none of them in place of what is pinned.",
		Fix:    "Choose another name for the experiment, or replace the link by what it leads to.",
		Source: "design.md 6", Gates: launchOnly, Ours: true, Fixed: true,
		Example: told(`JOB/configs is a symbolic link.`),
	},
	{
		ID: "launch.protection", Title: "The node lets the agent give the job a root of its own.",
		Fix:    "Allow mount namespaces (root, or unprivileged user namespaces), or accept a private copy with --allow private-copy.",
		Source: "design.md 6", Gates: launchOnly, Ours: true, Fixed: true,
		Example: told(`The node gives no user namespaces, and --allow private-copy is not given.`),
	},
}
