package rule

// publishRules are the rules of gate 1 beyond the pack itself: names, versions, claims (design.md 2, 3).
var publishRules = []Info{}
