package catalogue

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/nearest"
	"github.com/gatehouse-registry/gatehouse/admission/pep440"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
)

// Claim is what a job says of its recipe and runtime. Empty parts other than RuntimeID could not be read and are not
// compared.
type Claim struct {
	Recipe, Version, Digest string
	Kind, FrameworkVersion  string
	RuntimeID               string // "" for a runtime that the user brings
	CoreVersion             string
}

// Handshake compares a claim with the catalogue: recipe name, version, digest and runtime id (the four-way
// handshake), framework and framework version, and the range of client versions. It returns the recipe whenever its
// name is known, and every difference, each with both sides.
func (c *Catalogue) Handshake(claim Claim) (e Entry, found []rule.Violation, ok bool) {
	e, _, ok = c.Resolve(claim.Recipe)
	if !ok {
		return e, []rule.Violation{{
			Rule: "job.handshake.recipe.name", Field: "spec.recipe.name",
			Message: fmt.Sprintf("the recipe %.100q is not in the catalogue of %s %s%s", claim.Recipe, c.dialect, c.release, c.Near(claim.Recipe)),
		}}, false
	}
	add := func(id rule.ID, field, format string, args ...any) {
		found = append(found, rule.Violation{Rule: id, Field: field, Message: fmt.Sprintf(format, args...)})
	}
	if claim.Version != "" && claim.Version != e.Version {
		add("job.handshake.recipe.version", "spec.recipe.version", "the job names version %.100q of %s, the catalogue of %s %s has %s", claim.Version, e.Name, c.dialect, c.release, e.Version)
	}
	if claim.Digest != "" && claim.Digest != e.Digest {
		add("job.handshake.recipe.digest", "spec.recipe.digest", "the job names %.100q for %s, the catalogue of %s %s has %s%s", claim.Digest, e.Name, c.dialect, c.release, e.Digest, c.elsewhere(claim))
	}
	if claim.Kind != "" && (claim.Kind != e.Framework || claim.Kind != e.Adapter) {
		add("job.handshake.framework.kind", "spec.framework.kind", "the job names the framework %.100q, the recipe %s is for %s", claim.Kind, e.Name, e.Framework)
	}
	if claim.FrameworkVersion != "" {
		found = append(found, e.runtime(claim)...)
	}
	return e, append(found, e.core(claim.CoreVersion)...), true
}

// runtime compares the framework version and its runtime id.
func (e Entry) runtime(claim Claim) []rule.Violation {
	variant, ok := e.Variant(claim.FrameworkVersion)
	if !ok {
		return []rule.Violation{{
			Rule: "job.handshake.framework.version", Field: "spec.framework.version",
			Message: fmt.Sprintf("the job names %s %.100q, the recipe %s supports %s", e.Framework, claim.FrameworkVersion, e.Name, strings.Join(e.Supported(), ", ")),
		}}
	}
	if claim.RuntimeID != variant.RuntimeID {
		return []rule.Violation{{
			Rule: "job.handshake.runtime_id", Field: "spec.framework.runtime_id",
			Message: fmt.Sprintf("the job names the runtime %.100q, the catalogue has %q for %s %s", claim.RuntimeID, variant.RuntimeID, e.Framework, variant.Version),
		}}
	}
	return nil
}

// core asks that the client's version is in the recipe's range, pre-releases allowed.
func (e Entry) core(version string) []rule.Violation {
	if version == "" || e.CoreRequires == "" {
		return nil
	}
	in, err := InRange(version, e.CoreRequires)
	if err == nil && in {
		return nil
	}
	message := fmt.Sprintf("the recipe %s requires the core version %.100q, the job was made with %.100q", e.Name, e.CoreRequires, version)
	if err != nil {
		message += ": " + err.Error()
	}
	return []rule.Violation{{Rule: "job.core_version.range", Field: "provenance.core_version", Message: message}}
}

// InRange reports whether a version is in a range as PEP 440 says, pre-releases allowed (jobspec.md 8).
func InRange(version, specifiers string) (bool, error) {
	v, err := pep440.ParseVersion(version)
	if err != nil {
		return false, err
	}
	set, err := pep440.ParseSpecifierSet(specifiers)
	if err != nil {
		return false, err
	}
	return set.Contains(v, true), nil
}

// elsewhere says of what the digest that a job names is the right one: the recipe in another client release, of either
// dialect, or another recipe.
func (c *Catalogue) elsewhere(claim Claim) string {
	if e, ok := c.Lookup(claim.Recipe); ok && e.Pack != nil {
		return fmt.Sprintf(" (%s %s is the newest enabled version of the pack: sync, and make the job anew)", e.Pack.ID(), e.Pack.Version)
	}
	var releases []string
	for _, d := range []dialect.Dialect{c.dialect, c.dialect.Other()} {
		for _, release := range releasesWith(d, claim.Recipe, claim.Digest) {
			if d != c.dialect || release != c.release {
				releases = append(releases, fmt.Sprintf("%s %s", d, release))
			}
		}
	}
	if len(releases) > 0 {
		return fmt.Sprintf(" (what the job names is its digest in %s)", strings.Join(releases, ", "))
	}
	if i := slices.IndexFunc(c.entries, func(e Entry) bool { return e.Digest == claim.Digest }); i >= 0 {
		return fmt.Sprintf(" (what the job names is the digest of %s)", c.entries[i].Name)
	}
	return ""
}

// maxNear is how many names a refusal lists.
const maxNear = 8

// Near is the end of a message about a recipe that is not there: it says what became of it, or names the recipe that was
// meant, or else recipes of the same framework.
func (c *Catalogue) Near(recipe string) string {
	var all, same []string
	for _, e := range c.entries {
		all = append(all, e.Name)
	}
	if c.part != nil {
		if c.part.Note != "" {
			return "; " + c.part.Note
		}
		all = append(all, c.part.Near...)
	}
	for _, name := range all {
		if framework(name) == framework(recipe) {
			same = append(same, name)
		}
	}
	if word := nearest.Word(recipe, all); word != "" {
		return "; did you mean " + word + "?"
	}
	more := ""
	switch {
	case len(same) == 0:
		return ""
	case len(same) > maxNear:
		same, more = same[:maxNear], ", ..."
	}
	return "; it has " + strings.Join(same, ", ") + more
}
