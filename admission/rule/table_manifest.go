package rule

import (
	"strings"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
)

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
		Example: told(`The archive holds main.py and README.md, and no plugin.yaml.`),
	},
	{
		ID: "manifest.limit", Title: "plugin.yaml keeps within its size limit.",
		Fix:    "Move long texts to README.md.",
		Source: "admission/limit", Gates: packGates, Ours: true, Fixed: true, Class: TooLarge,
		Example: told(`plugin.yaml has 300 KiB.`),
	},
	{
		ID: "manifest.root", Title: "plugin.yaml holds one object.",
		Fix:    "Write fields such as `name: my-pack`, one a line.",
		Source: "packs.md 2", Gates: packGates,
		Example: whole(`- name: grad-clip`),
	},
	{
		ID: "manifest.key", Title: "Every key of plugin.yaml is a text.",
		Fix:    "Put the key in quotes, or remove it.",
		Source: "packs.md 3.2", Gates: packGates, Dialects: onlyTunePlane,
		Example: whole(`1: x`),
	},
	{
		ID: "manifest.field.unknown", Title: "plugin.yaml has only fields that tuneplane knows.",
		Fix:    "Remove the fields, or correct their spelling.",
		Source: "packs.md 3.2", Gates: packGates, Dialects: onlyTunePlane,
		Example: inTune(at(`entrypiont`, `"main:install"`)),
	},
	{
		ID: "manifest.field.ignored", Title: "plugin.yaml has only fields that forge reads.",
		Fix:    "Remove the field, or correct its spelling.",
		Source: "packs.md 3.2", Gates: packGates, Dialects: onlyForge, Severity: Warn,
		Example: at(`entrypiont`, `"main:install"`),
	},
	{
		ID: "manifest.text", Title: "Texts of plugin.yaml are Unicode.",
		Fix:    "Write the character itself in place of its two escapes.",
		Source: "packs.md 5.2 (crash)", Gates: packGates, Ours: true, Fixed: true,
		Example: at(`name`, `"a\ud800"`),
	},
	{
		ID: "manifest.schema", Title: "schema names the contract the pack is written for.",
		Fix:    "Write `schema: forge/plugin/v1` or `schema: tuneplane/plugin/v1`.",
		Source: "packs.md 3.2", Gates: packGates,
		Example: at(`schema`, `"forge/plugin/v9"`),
	},
	{
		ID: "manifest.name", Title: "name is a name.",
		Fix:    "Begin with a letter or digit and use only ASCII letters, digits, '.', '_' and '-'.",
		Source: "packs.md 3.2", Gates: packGates,
		Example: at(`name`, `"grad clip"`),
	},
	{
		ID: "manifest.name.length", Title: "name has at most 128 characters.",
		Fix:    "Choose a shorter name.",
		Source: "packs.md 13.8", Gates: packGates, Ours: true,
		Example: at(`name`, `"`+strings.Repeat("x", 129)+`"`),
	},
	{
		ID: "manifest.version", Title: "version is a version.",
		Fix:    "Write a version such as \"1.2.0\": begin with a letter or digit, then only ASCII letters, digits, '.', '_' and '-'.",
		Source: "packs.md 3.2", Gates: packGates,
		Example: at(`version`, `">=1"`),
	},
	{
		ID: "manifest.version.length", Title: "version has at most 128 characters.",
		Fix:    "Choose a shorter version.",
		Source: "packs.md 13.8", Gates: packGates, Ours: true,
		Example: at(`version`, `"`+strings.Repeat("1", 129)+`"`),
	},
	{
		ID: "manifest.kind", Title: "The kind (tuneplane: the capability) is one the dialect has.",
		Fix:    "Write one of the kinds that the message lists.",
		Source: "packs.md 3.1", Gates: packGates,
		Example: at(`kind`, `"method"`),
	},
	{
		ID: "manifest.execution", Title: "execution stands where a capability can run in two places, and only there.",
		Fix:    "Write `execution: local` or `execution: job` for data-prep, and leave it out otherwise.",
		Source: "packs.md 3.1", Gates: packGates, Dialects: onlyTunePlane,
		Example: inTune(at(`execution`, `"launcher"`)),
	},
	{
		ID: "manifest.entrypoint", Title: "A pack that is imported names its entrypoint, and no other pack does.",
		Fix:    "Write `entrypoint: module.path:callable`, or remove the field.",
		Source: "packs.md 3.2", Gates: packGates,
		Example: at(`entrypoint`, `null`),
	},
	{
		ID: "manifest.load", Title: "load is eager or deferred.",
		Fix:    "Write `load: eager` or `load: deferred`, or remove the field.",
		Source: "packs.md 3.2", Gates: packGates,
		Example: at(`load`, `"lazy"`),
	},
	{
		ID: "manifest.requires", Title: "requires is an object.",
		Fix:    "Write for example `requires: {core: \">=0.3,<1\"}`.",
		Source: "packs.md 3.2", Gates: packGates,
		Example: at(`requires`, `["torch"]`),
	},
	{
		ID: "manifest.requires.core", Title: "requires.core is a set of PEP 440 specifiers.",
		Fix:    "Write for example `core: \">=0.3,<1\"`.",
		Source: "packs.md 3.2", Gates: packGates,
		Example: at(`requires`, `{"core":"0.3 or later"}`),
	},
	{
		ID: "manifest.requires.python", Title: "requires.python is a set of PEP 440 specifiers.",
		Fix:    "Write for example `python: \">=3.12\"`.",
		Source: "packs.md 3.2", Gates: packGates, Dialects: onlyTunePlane,
		Example: inTune(at(`requires`, `{"python":"3.11+"}`)),
	},
	{
		ID: "manifest.requires.frameworks", Title: "requires.frameworks maps framework names to PEP 440 specifiers.",
		Fix:    "Write for example `frameworks: {trl: \">=1\"}`.",
		Source: "packs.md 3.2", Gates: packGates, Dialects: onlyTunePlane,
		Example: inTune(at(`requires`, `{"frameworks":{"verl":"newest"}}`)),
	},
	{
		ID: "manifest.requires.list", Title: "requires.methods and requires.backends are lists of texts.",
		Fix:    "Write for example `methods: [trl/sft]`.",
		Source: "packs.md 3.2", Gates: packGates, Dialects: onlyTunePlane,
		Example: inTune(at(`requires`, `{"methods":"verl/grpo"}`)),
	},
	{
		ID: "manifest.scope", Title: "scope is entrypoint.",
		Fix:    "Remove the field.",
		Source: "packs.md 3.2", Gates: packGates, Dialects: onlyTunePlane,
		Example: told(`A plugin.yaml of tuneplane with a provider says scope: module.`),
	},
	{
		ID: "manifest.api", Title: "api is the provider contract that the client speaks.",
		Fix:    "Write `api: \"1\"`, or remove the field.",
		Source: "packs.md 3.2", Gates: packGates, Dialects: onlyTunePlane,
		Example: told(`A plugin.yaml of tuneplane with a provider says api: tuneplane/provider/v9.`),
	},
	{
		ID: "manifest.wheel", Title: "wheel and provider come together, on a kind with an entrypoint, and instead of one.",
		Fix:    "Declare wheel: the name of a .whl file in the root, and provider: its entry point, without an entrypoint.",
		Source: "packs.md 3.2", Gates: packGates, Dialects: onlyTunePlane,
		Example: inTune(at(`wheel`, `"dist/x-1.0-py3-none-any.whl"`)),
	},
	{
		ID: "manifest.icon", Title: "icon is an emoji or short text; in tuneplane it may be the path of a PNG in the pack.",
		Fix:    "Use one emoji, or at most 8 characters.",
		Source: "packs.md 3.2", Gates: packGates,
		Example: at(`icon`, `["rocket"]`),
	},
	{
		ID: "manifest.homepage", Title: "homepage is an http or https address.",
		Fix:    "Begin with https://, or remove the field.",
		Source: "packs.md 3.2", Gates: packGates,
		Example: at(`homepage`, `"ftp://example.org"`),
	},
	{
		ID: "manifest.keywords", Title: "keywords is a list of at most 12 words.",
		Fix:    "Write for example `keywords: [grpo, math]`, with at most 12 words.",
		Source: "packs.md 3.2", Gates: packGates,
		Example: at(`keywords`, `"rl, clip"`),
	},
}
