package rule

// documentRules are the rules of recipe.yaml, benchmark.yaml and integration.json (packs.md 5, 6, 8).
var documentRules = []Info{}
