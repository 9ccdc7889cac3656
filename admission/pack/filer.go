package pack

import "github.com/gatehouse-registry/gatehouse/admission/rule"

// maxListed bounds how many names one message lists, and how many violations of one rule are filed.
const maxListed = 20

// filer files violations, at most maxListed of one rule, so that a hostile pack gets a short answer. The first of a
// rule is always filed: the verdict is that of the whole list.
type filer struct {
	report rule.Report
	filed  map[rule.ID]int
}

// file adds v and reports whether its rule refuses.
func (f *filer) file(v rule.Violation) (refused bool) {
	if f.filed == nil {
		f.filed = make(map[rule.ID]int)
	}
	f.filed[v.Rule]++
	switch n := f.filed[v.Rule]; {
	case n <= maxListed:
		return f.report.Add(v)
	case n == maxListed+1:
		return f.report.Add(rule.Violation{Rule: v.Rule, Field: v.Field, Message: "there are more of these, which are not listed"})
	}
	info, _ := rule.Lookup(v.Rule)
	return info.Severity == rule.Refuse && !f.report.Policy.Softened(v.Rule)
}
