package rule

// launchRules are the rules of gate 3 (design.md 3, launch.md).
var launchRules = []Info{}
