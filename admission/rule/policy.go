package rule

import (
	"fmt"
	"maps"
	"slices"
)

// Policy is what an administrator decided about rules: which of them only warn, and which only report what they would
// refuse. The zero Policy changes nothing.
type Policy struct{ soft, audit map[ID]bool }

// Soften is the policy that turns the given rules into warnings. It fails for a rule that is unknown or that
// may not be softened.
func Soften(ids ...ID) (Policy, error) {
	p := Policy{soft: make(map[ID]bool, len(ids))}
	for _, id := range ids {
		info, ok := Lookup(id)
		if !ok {
			return Policy{}, fmt.Errorf("no rule is called %q", id)
		}
		if !info.Softenable() {
			return Policy{}, fmt.Errorf("rule %s can't be turned into a warning: it is a rule of the clients, or its breach would harm others", id)
		}
		p.soft[id] = true
	}
	return p, nil
}

// SoftenAll is the policy that turns every rule of ours into a warning that may be: what is left is what the clients refuse
// too, and what would harm others.
func SoftenAll() Policy {
	p := Policy{soft: make(map[ID]bool)}
	for _, info := range All() {
		if info.Softenable() {
			p.soft[info.ID] = true
		}
	}
	return p
}

// Audit is p with the given rules in audit mode: a breach is a warning marked so, that counts what the rule would refuse. It
// fails for a rule that is unknown, that is softened already, or that is not Auditable.
func (p Policy) Audit(ids ...ID) (Policy, error) {
	p.audit = make(map[ID]bool, len(ids))
	for _, id := range ids {
		info, ok := Lookup(id)
		switch {
		case !ok:
			return Policy{}, fmt.Errorf("no rule is called %q", id)
		case p.soft[id]:
			return Policy{}, fmt.Errorf("rule %s only warns already; audit mode is for a rule that would refuse", id)
		case !info.Auditable():
			return Policy{}, fmt.Errorf("rule %s can't be put in audit mode: it is a rule of the clients, its breach would harm others, or it only warns", id)
		}
		p.audit[id] = true
	}
	return p, nil
}

// Soft lists the rules that the policy turns into warnings, sorted by id.
func (p Policy) Soft() []ID { return slices.Sorted(maps.Keys(p.soft)) }

// Softened reports whether the policy turns the rule into a warning.
func (p Policy) Softened(id ID) bool { return p.soft[id] }

// Audited reports whether the policy lets the rule report without refusing.
func (p Policy) Audited(id ID) bool { return p.audit[id] }
