package rule

import "strings"

// jsonRules are the rules of JSON documents that have no family of their own: JSON as the clients read it
// (jobspec.md 2, packs.md 7) and what two readers could take in two ways.
var jsonRules = []Info{
	{
		ID: "json.syntax", Title: "The document is JSON, with nothing after it.", Fix: "Correct the JSON at the place named.",
		Source: "jobspec.md 2", Gates: documentGates,
		Example: whole(`{"a": 1,}`),
	},
	{
		ID: "json.encoding", Title: "The document is UTF-8 without a byte-order mark.", Fix: "Save the file as UTF-8 without a byte-order mark.",
		Source: "jobspec.md 2", Gates: documentGates,
		Example: told(`The file begins with a byte-order mark.`),
	},
	{
		ID: "json.limit", Title: "The document keeps within the limits of size, depth, number of values and length of integers.",
		Fix: "Make the document smaller or flatter.", Source: "jobspec.md 2, admission/limit", Gates: documentGates,
		Ours: true, Fixed: true, Class: TooLarge,
		Example: whole(`{"a": ` + strings.Repeat("9", 5000) + `}`),
	},
	{
		ID: "json.duplicate_key", Title: "An object names each key once.", Fix: "Keep one of the repeated keys.",
		Source: "jobspec.md 2 (ours)", Gates: documentGates, Ours: true,
		Example: whole(`{"a": 1, "a": 2}`),
	},
	{
		ID: "json.constant", Title: "NaN and infinities do not stand in a document.", Fix: "Use a finite number, or null.",
		Source: "jobspec.md 2 (ours)", Gates: documentGates, Ours: true,
		Example: whole(`{"a": NaN}`),
	},
	{
		ID: "json.number", Title: "A number is within the range of a double.", Fix: "Use a finite number.",
		Source: "jobspec.md 2 (ours)", Gates: documentGates, Ours: true,
		Example: whole(`{"a": 1e999}`),
	},
	{
		ID: "json.depth", Title: "A document is nested at most 64 levels deep.", Fix: "Make the document flatter.",
		Source: "jobspec.md 2 (ours)", Gates: documentGates, Ours: true,
		Example: whole(`{"a": ` + strings.Repeat("[", 70) + strings.Repeat("]", 70) + `}`),
	},
	{
		ID: "json.string", Title: "Texts hold no lone surrogates and no control characters.", Fix: "Remove the escape, or write the character it stands for.",
		Source: "jobspec.md 2 (ours)", Gates: documentGates, Ours: true,
		Example: whole(`{"a": "\ud800"}`),
	},
}

// documentGates are the gates at which documents inside packs and jobs are read.
var documentGates = []Gate{Publish, Submission, Launch}
