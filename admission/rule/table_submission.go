package rule

// submissionRules are the rules of what only a server can check of a JobSpec (jobspec.md 8).
var submissionRules = []Info{}
