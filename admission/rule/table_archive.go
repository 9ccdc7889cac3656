package rule

// archiveRules are the rules of archives (corpus/EXPECT.md, design.md 9).
var archiveRules = []Info{}
