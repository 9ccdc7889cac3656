package rule

// layoutRules are the rules of a pack's layout (packs.md 4).
var layoutRules = []Info{}
