package rule

// jobRules are the rules of a JobSpec by itself (jobspec.md 2 to 7).
var jobRules = []Info{}
