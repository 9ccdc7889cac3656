package rule

import "strings"

// yamlRules are the rules of YAML as the clients read it (packs.md 2), and those of ours on top (corpus/EXPECT.md).
var yamlRules = []Info{
	{
		ID: "yaml.syntax", Title: "The file is one YAML document.", Fix: "Correct the YAML at the place named.",
		Source: "packs.md 2", Gates: documentGates,
		Example: whole(`name: [a`),
	},
	{
		ID: "yaml.encoding", Title: "The file is UTF-8.", Fix: "Save the file as UTF-8.",
		Source: "packs.md 2 (the clients crash)", Gates: documentGates,
		Example: told(`The file is saved as Latin-1 and holds an é.`),
	},
	{
		ID: "yaml.character", Title: "The file holds no control characters and no other characters that YAML forbids.",
		Fix: "Remove the character, or write it as an escape in double quotes.", Source: "packs.md 2", Gates: documentGates,
		Example: told(`A text of the file holds a NUL.`),
	},
	{
		ID: "yaml.value", Title: "Every scalar has a value of its type: dates exist, integers have at most 4300 digits.",
		Fix: "Correct the value, or put it in quotes if it is a text.", Source: "packs.md 2 (the clients crash)", Gates: documentGates,
		Example: whole(`released: 2026-02-30`),
	},
	{
		ID: "yaml.key", Title: "Keys are scalars.", Fix: "Use a text as the key.",
		Source: "packs.md 2", Gates: documentGates,
		Example: whole(`[a]: b`),
	},
	{
		ID: "yaml.recursion", Title: "A document is nested no deeper than the clients' reader can follow.",
		Fix: "Make the document flatter.", Source: "packs.md 2 (the clients crash)", Gates: documentGates,
		Example: whole("x: " + strings.Repeat("[", 2000) + strings.Repeat("]", 2000)),
	},
	{
		ID: "yaml.limit", Title: "A document keeps within the limits of size and number of values.",
		Fix: "Make the document smaller.", Source: "admission/limit", Gates: documentGates, Ours: true, Fixed: true, Class: TooLarge,
		Example: told(`The file has 2 MiB.`),
	},
	{
		ID: "yaml.depth", Title: "A document is nested at most 64 levels deep.", Fix: "Make the document flatter.",
		Source: "admission/limit (ours)", Gates: documentGates, Ours: true,
		Example: whole("x: " + strings.Repeat("[", 70) + strings.Repeat("]", 70)),
	},
	{
		ID: "yaml.alias", Title: "A document has no anchors, aliases or merge keys.", Fix: "Write the value out at each place.",
		Source: "corpus/EXPECT.md (ours)", Gates: documentGates, Ours: true,
		Example: whole(`a: &x 1
b: *x`),
	},
	{
		ID: "yaml.alias.cycle", Title: "No value holds an alias to itself.", Fix: "Remove the alias.",
		Source: "corpus/EXPECT.md (ours)", Gates: documentGates, Ours: true, Fixed: true,
		Example: whole(`a: &x [*x]`),
	},
	{
		ID: "yaml.alias.bomb", Title: "Aliases do not stand for more values than a document may hold.",
		Fix: "Write out what is needed, and no more.", Source: "corpus/EXPECT.md (ours)", Gates: documentGates, Ours: true, Fixed: true,
		Example: told(`Nine lists, each of nine aliases of the one before.`),
	},
	{
		ID: "yaml.tag", Title: "Values carry no explicit tags.", Fix: "Remove the tag; put a text in quotes.",
		Source: "corpus/EXPECT.md (ours)", Gates: documentGates, Ours: true,
		Example: whole(`name: !!str grad-clip`),
	},
	{
		ID: "yaml.tag.unknown", Title: "A tag is one that the clients know.", Fix: "Remove the tag.",
		Source: "packs.md 2", Gates: documentGates,
		Example: whole(`name: !python/object x`),
	},
	{
		ID: "yaml.duplicate_key", Title: "A map names each key once.", Fix: "Keep one of the repeated keys.",
		Source: "packs.md 2 (ours)", Gates: documentGates, Ours: true,
		Example: whole(`name: a
name: b`),
	},
	{
		ID: "yaml.scalar", Title: "A text without quotes is read as the text that was written.", Fix: "Put the text in quotes.",
		Source: "corpus/EXPECT.md (ours)", Gates: documentGates, Ours: true,
		Example: told(`plugin.yaml says name: NO, which YAML reads as false.`),
	},
	{
		ID: "yaml.scalar.unquoted", Title: "A text that YAML would read as a number, a date or a boolean stands in quotes.",
		Fix: "Put the text in quotes.", Source: "corpus/EXPECT.md (ours)", Gates: documentGates, Severity: Warn, Ours: true,
		Example: told(`plugin.yaml says version: 1.10, which YAML reads as the number 1.1.`),
	},
}
