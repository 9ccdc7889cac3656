package rule

// layoutRules are the rules of a pack's layout (packs.md 4, 8, 13).
var layoutRules = []Info{
	{
		ID: "layout.declarative", Title: "A pack that the platform only reads holds no executable file outside template/.",
		Fix:    "Move what users should get to template/, remove it, or publish a plugin of an executable kind.",
		Source: "packs.md 4.1", Gates: packGates,
		Example: told(`A recipe pack holds run.sh in its root.`),
	},
	{
		ID: "layout.declarative.link", Title: "A pack that the platform only reads holds no links.",
		Fix:    "Put a copy of the file in place of the link.",
		Source: "packs.md 13.3", Gates: packGates, Ours: true,
		Example: told(`A benchmark pack holds a symbolic link data -> ../data.`),
	},
	{
		ID: "layout.declarative.magic", Title: "A pack that the platform only reads holds no script or binary outside template/, whatever its name.",
		Fix:    "Move the file to template/, remove it, or remove its #! line.",
		Source: "packs.md 13.9, design.md 9", Gates: packGates, Ours: true,
		Example: told(`A benchmark pack holds notes.txt, which begins with #!/bin/sh.`),
	},
	{
		ID: "layout.declarative.mode", Title: "No file of a pack that the platform only reads is marked as executable.",
		Fix:    "Run chmod -x on the files, if their file system keeps modes.",
		Source: "packs.md 13.9, design.md 9", Gates: packGates, Severity: Warn, Ours: true,
		Example: told(`A recipe pack holds README.md with the mode 0755.`),
	},
	{
		ID: "layout.template", Title: "template is a real folder.",
		Fix:    "Put a folder in place of the link or file.",
		Source: "packs.md 4.1 (hole 3), 13.3", Gates: packGates, Ours: true,
		Example: told(`In a recipe pack template is a symbolic link.`),
	},
	{
		ID: "layout.reserved", Title: "No top-level name of a plugin is reserved by its platform.",
		Fix:    "Rename the file or folder, or move it into a package of its own.",
		Source: "packs.md 4.2", Gates: packGates,
		Example: told(`An algorithm holds a folder starforge in its root.`),
	},
	{
		ID: "layout.reserved.shadow", Title: "Nothing in a plugin's root is imported in place of a module of either platform.",
		Fix:    "Rename the file or folder, or move it into a package of its own.",
		Source: "packs.md 13.7", Gates: packGates, Ours: true,
		Example: told(`An algorithm holds starforge.pyc in its root.`),
	},
	{
		ID: "layout.entrypoint", Title: "The entrypoint's module is in the pack.",
		Fix:    "Correct the spelling of the module, or add the file.",
		Source: "packs.md 4.2", Gates: packGates,
		Example: told(`entrypoint is main:install and the pack holds no main.py.`),
	},
	{
		ID: "layout.behind_link", Title: "A file that a pack names is in the published pack under that name.",
		Fix:    "Put a copy of the folder in place of the link.",
		Source: "packs.md 1.3, 1.5, 4.2", Gates: packGates, Ours: true,
		Example: told(`entrypoint is pkg.main:install and pkg is a symbolic link to src.`),
	},
	{
		ID: "layout.icon", Title: "The icon that the manifest names is a small PNG in the pack.",
		Fix:    "Add a PNG of at most 64 KiB and 512 x 512 pixels, not as a link, or use an emoji.",
		Source: "packs.md 4.3", Gates: packGates, Dialects: onlyTunePlane,
		Example: told(`icon is icon.png, which holds a JPEG.`),
	},
	{
		ID: "layout.wheel", Title: "The provider wheel is a pure Python wheel with the one entry point that the manifest names.",
		Fix:    "Build the wheel again from a pure Python project that declares the entry point.",
		Source: "packs.md 4.4", Gates: packGates, Dialects: onlyTunePlane,
		Example: told(`The wheel has no entry point of the provider that plugin.yaml names.`),
	},
	{
		ID: "layout.wheel.form", Title: "The provider wheel is a zip that every reader sees alike, with a directory of bounded size.",
		Fix:    "Build the wheel again with a usual tool; nothing may stand before, after or between its parts.",
		Source: "design.md 9", Gates: packGates, Dialects: onlyTunePlane, Ours: true, Fixed: true,
		Example: told(`The wheel is a zip with bytes before its first member.`),
	},
	{
		ID: "layout.wheel.reserved", Title: "The provider wheel holds no module that is reserved by its platform.",
		Fix:    "Rename the modules in the wheel.",
		Source: "packs.md 4.4", Gates: packGates, Dialects: onlyTunePlane,
		Example: told(`The wheel holds a package tuneplane.`),
	},
	{
		ID: "layout.wheel.shadow", Title: "Nothing in the provider wheel is imported in place of a module of either platform.",
		Fix:    "Rename the modules in the wheel.",
		Source: "packs.md 13.7", Gates: packGates, Dialects: onlyTunePlane, Ours: true,
		Example: told(`The wheel holds yaml.py at its top.`),
	},
	{
		ID: "layout.integration.missing", Title: "A framework integration has an integration.json in its root.",
		Fix:    "Add the file integration.json.",
		Source: "packs.md 4.5", Gates: packGates, Dialects: onlyTunePlane,
		Example: told(`A framework integration holds no integration.json.`),
	},
	{
		ID: "layout.integration", Title: "integration.json follows the contract of integrations.",
		Fix:    "Correct what the message names.",
		Source: "packs.md 8", Gates: packGates, Dialects: onlyTunePlane,
		Example: told(`integration.json has a key that the contract does not know.`),
	},
	{
		ID: "layout.integration.compiler", Title: "The compilers that integration.json names are in the pack.",
		Fix:    "Correct the path, or add the file.",
		Source: "packs.md 4.5", Gates: packGates, Dialects: onlyTunePlane,
		Example: told(`integration.json names compilers/train.py, which the pack does not hold.`),
	},
}
