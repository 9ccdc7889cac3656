package rule

// manifestRules are the rules of plugin.yaml (packs.md 3).
var manifestRules = []Info{}
