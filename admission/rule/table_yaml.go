package rule

// yamlRules are the rules of YAML as the clients read it (packs.md 2).
var yamlRules = []Info{}
