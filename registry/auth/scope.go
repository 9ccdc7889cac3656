package auth

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Verb is what may be done to a repository, in the words of the distribution token specification, or to a job.
type Verb string

// The verbs.
const (
	Pull   Verb = "pull"
	Push   Verb = "push"
	Delete Verb = "delete"
	// Report says how far a job has come. No token of the token endpoint is made for it.
	Report Verb = "report"
)

// Verbs lists the verbs of repositories in their fixed order.
var Verbs = []Verb{Pull, Push, Delete}

// ScopeVerbs lists every verb that a robot's scope may have.
var ScopeVerbs = []Verb{Pull, Push, Delete, Report}

// JobScope is what a pattern names a job by: <account>/<job id>.
func JobScope(account, job string) string { return account + "/" + job }

// Scope allows verbs on the repositories, and on the jobs, that a pattern names.
type Scope struct {
	Repository string `json:"repository" yaml:"repository"` // a pattern, see CheckPattern
	Actions    []Verb `json:"actions" yaml:"actions"`       // at least one
}

// What a list of scopes may hold: it is read at every request of its robot.
const (
	MaxScopes  = 64
	maxPattern = 255
)

// CheckPattern refuses what is no pattern of repository names: an exact name, `team/*` (one component more), `team/**`
// (any number more, at least one), `**` (every name).
func CheckPattern(pattern string) error {
	prefix, _, wild := cutWildcard(pattern)
	switch {
	case pattern == "" || len(pattern) > maxPattern:
		return fmt.Errorf("a pattern has 1 to %d bytes, found %d", maxPattern, len(pattern))
	case pattern == "**":
		return nil
	case wild && prefix == "", strings.Contains(prefix, "*"):
		return fmt.Errorf("pattern %.100q: a wildcard is the last component (team/*, team/**) or everything (**)", pattern)
	}
	for component := range strings.SplitSeq(prefix, "/") {
		if !isComponent(component) {
			return fmt.Errorf("pattern %.100q: %.60q is no component of a repository name", pattern, component)
		}
	}
	return nil
}

// isComponent is the grammar of a component: runs of lower-case letters and digits with separators between them.
func isComponent(s string) bool {
	plain := func(c byte) bool { return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' }
	if s == "" || !plain(s[0]) || !plain(s[len(s)-1]) {
		return false
	}
	for i := range len(s) {
		if !plain(s[i]) && !strings.ContainsRune("._-", rune(s[i])) {
			return false
		}
	}
	return true
}

// cutWildcard takes a last component that is a wildcard off a pattern; deep says that it stands for more than one.
func cutWildcard(pattern string) (prefix string, deep, wild bool) {
	if p, ok := strings.CutSuffix(pattern, "/**"); ok {
		return p, true, true
	}
	if p, ok := strings.CutSuffix(pattern, "/*"); ok {
		return p, false, true
	}
	return pattern, false, false
}

// Match reports whether a pattern names the repository. A pattern that is none names nothing.
func Match(pattern, repository string) bool {
	if pattern == "**" {
		return repository != ""
	}
	prefix, deep, wild := cutWildcard(pattern)
	if !wild {
		return pattern == repository
	}
	rest, ok := strings.CutPrefix(repository, prefix+"/")
	return ok && rest != "" && (deep || !strings.Contains(rest, "/"))
}

// MatchAny reports whether one of the patterns names the repository.
func MatchAny(patterns []string, repository string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return Match(p, repository) })
}

// Allows reports whether one of the scopes allows the verb on the repository.
func Allows(scopes []Scope, v Verb, repository string) bool {
	return slices.ContainsFunc(scopes, func(s Scope) bool {
		return slices.Contains(s.Actions, v) && Match(s.Repository, repository)
	})
}

// CheckScopes refuses scopes that are none, all faults together.
func CheckScopes(scopes []Scope) error {
	if len(scopes) == 0 || len(scopes) > MaxScopes {
		return fmt.Errorf("scopes: 1 to %d are needed, found %d", MaxScopes, len(scopes))
	}
	var faults []error
	for i, s := range scopes {
		if err := CheckPattern(s.Repository); err != nil {
			faults = append(faults, fmt.Errorf("scopes[%d].repository: %w", i, err))
		}
		if len(s.Actions) == 0 || len(s.Actions) > len(ScopeVerbs) {
			faults = append(faults, fmt.Errorf("scopes[%d].actions: 1 to %d of pull, push, delete, report are needed, found %d", i, len(ScopeVerbs), len(s.Actions)))
		}
		for _, v := range s.Actions {
			if !slices.Contains(ScopeVerbs, v) {
				faults = append(faults, fmt.Errorf("scopes[%d].actions: %.20q is none of pull, push, delete, report", i, v))
			}
		}
	}
	return errors.Join(faults...)
}
