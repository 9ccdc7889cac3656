package jobbuild

import (
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/gatehouse-registry/gatehouse/admission/jobspec"
	"github.com/gatehouse-registry/gatehouse/admission/nearest"
	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
)

// ruleProfile is the rule of what --profile may say.
const ruleProfile rule.ID = "submit.profile"

// Profile is a kind of hardware that the server has.
type Profile struct {
	Name        string
	Series      string // "" is the name
	Nodes       int    // of its whole shape; 0 is 1
	GPUsPerNode int    // 0 is 1
}

// expression is one --profile.
type expression struct {
	text  string
	roles []string
	shape Profile
	gpus  int64 // 0: the profile's whole shape
}

// resources turns the --profile expressions into pools and roles (recipes-and-locks.md 6) and gives the job's profile: that of
// the first expression.
func (b *builder) resources(spec *jobspec.Spec) string {
	if len(b.opt.Profiles) == 0 {
		b.bad(ruleProfile, "--profile", "none is given and the experiment's file cluster names none, expected one of %s", b.profileNames())
		return ""
	}
	before := len(b.report.Violations)
	var all []expression
	for _, text := range b.opt.Profiles {
		if e, ok := b.expression(text); ok {
			all = append(all, e)
		}
	}
	if len(b.report.Violations) > before {
		return ""
	}
	var roles []jobspec.Role
	for _, e := range all {
		pool, ok := b.pool(e, len(all) > 1)
		if !ok {
			continue
		}
		spec.Resources.Pools = append(spec.Resources.Pools, pool)
		for _, name := range e.roles {
			switch {
			case !slices.ContainsFunc(roles, func(r jobspec.Role) bool { return r.Name == name }):
				roles = append(roles, jobspec.Role{Name: name, Pool: pool.Name})
			case len(all) > 1: // one expression may repeat itself
				b.bad(ruleProfile, "--profile", "%.100q names the role %.60q, which is mapped already, expected each role once", e.text, name)
			}
		}
	}
	spec.Resources.Roles = b.roles(spec.Resources.Pools, roles)
	return all[0].shape.Name
}

// expression reads [<role>,…=]<profile>[:<gpus>].
func (b *builder) expression(text string) (expression, bool) {
	e := expression{text: text}
	rest := pyvalue.Strip(text)
	if before, after, named := strings.Cut(rest, "="); named {
		rest = after
		for role := range strings.SplitSeq(before, ",") {
			if role = pyvalue.Strip(role); strings.Contains(role, ":") {
				b.bad(ruleProfile, "--profile", "%.100q names the role %.60q, expected a name without ':'", text, role)
				return e, false
			} else if role != "" {
				e.roles = append(e.roles, role)
			}
		}
		if len(e.roles) == 0 && pyvalue.Strip(before) != "" {
			b.bad(ruleProfile, "--profile", "%.100q names no role before the '=', expected such as actor,rollout=h200:8", text)
			return e, false
		}
	}
	name, count, counted := strings.Cut(rest, ":")
	name, count = pyvalue.Strip(name), pyvalue.Strip(count)
	if name == "" {
		b.bad(ruleProfile, "--profile", "%.100q names no profile, expected [<role>,…=]<profile>[:<gpus>]", text)
		return e, false
	}
	if counted {
		var ok bool
		if e.gpus, ok = gpuCount(count); !ok {
			b.bad(ruleProfile, "--profile", "%.100q asks for %.40q GPUs, expected a whole number above 0, such as h200:4", text, count)
			return e, false
		}
	}
	i := slices.IndexFunc(b.in.Profiles, func(p Profile) bool { return p.Name == name })
	if i < 0 {
		b.unknownProfile(text, name)
		return e, false
	}
	e.shape = b.in.Profiles[i]
	return e, true
}

// gpuCount reads a number of GPUs as the clients do, digits of every script among them.
func gpuCount(s string) (int64, bool) {
	if strings.ContainsFunc(s, func(r rune) bool { return !unicode.Is(unicode.Nd, r) }) {
		return 0, false
	}
	n, ok := pyvalue.ParseInt(pyvalue.NewStr(s))
	if !ok || n.Sign() <= 0 || !n.IsInt64() || n.Int64() > math.MaxInt32 {
		return 0, false
	}
	return n.Int64(), true
}

func (b *builder) unknownProfile(text, name string) {
	names := make([]string, len(b.in.Profiles))
	for i, p := range b.in.Profiles {
		names[i] = p.Name
	}
	meant := ""
	if near := nearest.Word(name, names); near != "" {
		meant = "; was " + near + " meant?"
	}
	b.bad(ruleProfile, "--profile", "%.100q: the server has no profile %.60q, expected one of %s%s", text, name, b.profileNames(), meant)
}

// profileNames lists what the server has.
func (b *builder) profileNames() string {
	if len(b.in.Profiles) == 0 {
		return "none (the server publishes no profile)"
	}
	names := make([]string, len(b.in.Profiles))
	for i, p := range b.in.Profiles {
		names[i] = p.Name
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// pool is the pool of an expression; several says that it is one of several, which are told apart by their roles.
func (b *builder) pool(e expression, several bool) (jobspec.Pool, bool) {
	perNode, nodes := int64(max(e.shape.GPUsPerNode, 1)), int64(max(e.shape.Nodes, 1))
	switch {
	case several && len(e.roles) == 0:
		b.bad(ruleProfile, "--profile", "%.100q maps no role, expected <role>=%s when there are several pools; the roles of %s are %s",
			e.text, e.shape.Name, b.in.Recipe.Name, strings.Join(b.in.Recipe.Roles, ", "))
		return jobspec.Pool{}, false
	case e.gpus == 0:
	case e.gpus <= perNode:
		nodes, perNode = 1, e.gpus
	case e.gpus%perNode == 0:
		nodes = e.gpus / perNode
	default:
		b.bad(ruleProfile, "--profile", "%.100q asks for %d GPUs, expected at most %d (one node of %s) or a multiple of it (whole nodes)",
			e.text, e.gpus, perNode, e.shape.Name)
		return jobspec.Pool{}, false
	}
	pool := jobspec.Pool{Name: "all", Nodes: nodes, GPUsPerNode: perNode, Series: e.shape.Series}
	if pool.Series == "" {
		pool.Series = e.shape.Name
	}
	if len(e.roles) > 0 {
		pool.Name = e.roles[0]
	}
	return pool, true
}

// roles are the mapped roles: those that were named, else all of the recipe on the one pool.
func (b *builder) roles(pools []jobspec.Pool, named []jobspec.Role) []jobspec.Role {
	if len(named) == 0 && len(pools) == 1 {
		for _, role := range b.in.Recipe.Roles {
			named = append(named, jobspec.Role{Name: role, Pool: pools[0].Name})
		}
		return named
	}
	for _, role := range named {
		if b.validate() && b.in.Recipe.Roles != nil && !slices.Contains(b.in.Recipe.Roles, role.Name) {
			b.hinted("submit.role", "--profile", "Name one of the recipe's roles, or none to put all of them on one pool.",
				"found the role %.60q, expected one of %s, which %s has", role.Name, orNone(b.in.Recipe.Roles), b.in.Recipe.Name)
		}
	}
	return named
}

// orNone lists names.
func orNone(names []string) string {
	if len(names) == 0 {
		return "(none)"
	}
	return strings.Join(names, ", ")
}
