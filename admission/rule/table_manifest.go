package rule

import "github.com/gatehouse-registry/gatehouse/admission/dialect"

// packGates are the gates that look at a pack itself: publish and launch.
var packGates = []Gate{Publish, Launch}

var (
	onlyForge     = []dialect.Dialect{dialect.Forge}
	onlyTunePlane = []dialect.Dialect{dialect.TunePlane}
)

// manifestRules are the rules of plugin.yaml (packs.md 3).
var manifestRules = []Info{
	{
		ID: "manifest.missing", Title: "A pack has a plugin.yaml in its root.",
		Fix:    "Put plugin.yaml into the root of the pack, as a file of exactly that name.",
		Source: "packs.md 3.2", Gates: packGates,
	},
	{
		ID: "manifest.limit", Title: "plugin.yaml keeps within its size limit.",
		Fix:    "Move long texts to README.md.",
		Source: "admission/limit", Gates: packGates, Ours: true, Fixed: true, Class: TooLarge,
	},
	{
		ID: "manifest.root", Title: "plugin.yaml holds one object.",
		Fix:    "Write fields such as `name: my-pack`, one a line.",
		Source: "packs.md 2", Gates: packGates,
	},
	{
		ID: "manifest.key", Title: "Every key of plugin.yaml is a text.",
		Fix:    "Put the key in quotes, or remove it.",
		Source: "packs.md 3.2", Gates: packGates, Dialects: onlyTunePlane,
	},
	{
		ID: "manifest.field.unknown", Title: "plugin.yaml has only fields that tuneplane knows.",
		Fix:    "Remove the fields, or correct their spelling.",
		Source: "packs.md 3.2", Gates: packGates, Dialects: onlyTunePlane,
	},
	{
		ID: "manifest.field.ignored", Title: "plugin.yaml has only fields that forge reads.",
		Fix:    "Remove the field, or correct its spelling.",
		Source: "packs.md 3.2", Gates: packGates, Dialects: onlyForge, Severity: Warn,
	},
	{
		ID: "manifest.text", Title: "Texts of plugin.yaml are Unicode.",
		Fix:    "Write the character itself in place of its two escapes.",
		Source: "packs.md 5.2 (crash)", Gates: packGates, Ours: true, Fixed: true,
	},
	{
		ID: "manifest.schema", Title: "schema names the contract the pack is written for.",
		Fix:    "Write `schema: forge/plugin/v1` or `schema: tuneplane/plugin/v1`.",
		Source: "packs.md 3.2", Gates: packGates,
	},
	{
		ID: "manifest.name", Title: "name is a name.",
		Fix:    "Begin with a letter or digit and use only ASCII letters, digits, '.', '_' and '-'.",
		Source: "packs.md 3.2", Gates: packGates,
	},
	{
		ID: "manifest.name.length", Title: "name has at most 128 characters.",
		Fix:    "Choose a shorter name.",
		Source: "packs.md 13.8", Gates: packGates, Ours: true,
	},
	{
		ID: "manifest.version", Title: "version is a version.",
		Fix:    "Write a version such as \"1.2.0\": begin with a letter or digit, then only ASCII letters, digits, '.', '_' and '-'.",
		Source: "packs.md 3.2", Gates: packGates,
	},
	{
		ID: "manifest.version.length", Title: "version has at most 128 characters.",
		Fix:    "Choose a shorter version.",
		Source: "packs.md 13.8", Gates: packGates, Ours: true,
	},
	{
		ID: "manifest.kind", Title: "The kind (tuneplane: the capability) is one the dialect has.",
		Fix:    "Write one of the kinds that the message lists.",
		Source: "packs.md 3.1", Gates: packGates,
	},
	{
		ID: "manifest.execution", Title: "execution stands where a capability can run in two places, and only there.",
		Fix:    "Write `execution: local` or `execution: job` for data-prep, and leave it out otherwise.",
		Source: "packs.md 3.1", Gates: packGates, Dialects: onlyTunePlane,
	},
	{
		ID: "manifest.entrypoint", Title: "A pack that is imported names its entrypoint, and no other pack does.",
		Fix:    "Write `entrypoint: module.path:callable`, or remove the field.",
		Source: "packs.md 3.2", Gates: packGates,
	},
	{
		ID: "manifest.load", Title: "load is eager or deferred.",
		Fix:    "Write `load: eager` or `load: deferred`, or remove the field.",
		Source: "packs.md 3.2", Gates: packGates,
	},
	{
		ID: "manifest.requires", Title: "requires is an object.",
		Fix:    "Write for example `requires: {core: \">=0.3,<1\"}`.",
		Source: "packs.md 3.2", Gates: packGates,
	},
	{
		ID: "manifest.requires.core", Title: "requires.core is a set of PEP 440 specifiers.",
		Fix:    "Write for example `core: \">=0.3,<1\"`.",
		Source: "packs.md 3.2", Gates: packGates,
	},
	{
		ID: "manifest.requires.python", Title: "requires.python is a set of PEP 440 specifiers.",
		Fix:    "Write for example `python: \">=3.12\"`.",
		Source: "packs.md 3.2", Gates: packGates, Dialects: onlyTunePlane,
	},
	{
		ID: "manifest.requires.frameworks", Title: "requires.frameworks maps framework names to PEP 440 specifiers.",
		Fix:    "Write for example `frameworks: {trl: \">=1\"}`.",
		Source: "packs.md 3.2", Gates: packGates, Dialects: onlyTunePlane,
	},
	{
		ID: "manifest.requires.list", Title: "requires.methods and requires.backends are lists of texts.",
		Fix:    "Write for example `methods: [trl/sft]`.",
		Source: "packs.md 3.2", Gates: packGates, Dialects: onlyTunePlane,
	},
	{
		ID: "manifest.scope", Title: "scope is entrypoint.",
		Fix:    "Remove the field.",
		Source: "packs.md 3.2", Gates: packGates, Dialects: onlyTunePlane,
	},
	{
		ID: "manifest.api", Title: "api is the provider contract that the client speaks.",
		Fix:    "Write `api: \"1\"`, or remove the field.",
		Source: "packs.md 3.2", Gates: packGates, Dialects: onlyTunePlane,
	},
	{
		ID: "manifest.wheel", Title: "wheel and provider come together, on a kind with an entrypoint, and instead of one.",
		Fix:    "Declare wheel: the name of a .whl file in the root, and provider: its entry point, without an entrypoint.",
		Source: "packs.md 3.2", Gates: packGates, Dialects: onlyTunePlane,
	},
	{
		ID: "manifest.icon", Title: "icon is an emoji or short text; in tuneplane it may be the path of a PNG in the pack.",
		Fix:    "Use one emoji, or at most 8 characters.",
		Source: "packs.md 3.2", Gates: packGates,
	},
	{
		ID: "manifest.homepage", Title: "homepage is an http or https address.",
		Fix:    "Begin with https://, or remove the field.",
		Source: "packs.md 3.2", Gates: packGates,
	},
	{
		ID: "manifest.keywords", Title: "keywords is a list of at most 12 words.",
		Fix:    "Write for example `keywords: [grpo, math]`, with at most 12 words.",
		Source: "packs.md 3.2", Gates: packGates,
	},
}
