package admission

import (
	"fmt"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/jobspec"
	"github.com/gatehouse-registry/gatehouse/admission/nearest"
	"github.com/gatehouse-registry/gatehouse/digest"
)

// PluginAdvice is what helps to mend a triple that a job can't use. Parts that nobody knows are empty.
type PluginAdvice struct {
	ID       string        // the plugin that was meant: the job's own id when there is one, else one of a like name that the account may read
	Version  string        // its newest enabled version for the job's dialect
	None     bool          // it has no enabled version for the job's dialect
	Content  digest.Digest // of that version
	DigestOf string        // the version of the plugin whose digest the job names
}

// advise asks for advice, of which the zero PluginAdvice has none.
func (g *submissionGate) advise(p jobspec.Plugin) PluginAdvice {
	if g.in.Advise == nil {
		return PluginAdvice{}
	}
	return g.in.Advise(p)
}

// use says which version there is, ready to be copied; "" when that is not known.
func (a PluginAdvice) use(d dialect.Dialect) string {
	switch {
	case a.Version != "":
		return fmt.Sprintf("the newest enabled version is %s, digest %s", a.Version, a.Content)
	case a.None:
		return fmt.Sprintf("no version for %s is enabled", d)
	}
	return ""
}

// after is text behind a mark, "" when there is none.
func after(mark, text string) string {
	if text == "" {
		return ""
	}
	return mark + text
}

// disabled files a version that nobody may use, with the one that may be used instead.
func (g *submissionGate) disabled(field string, ref PluginRef, p jobspec.Plugin, r PluginRecord) {
	a := g.advise(p)
	rule, is := RuleID("job.plugins.record.disabled"), "disabled"
	if r.Revoked {
		rule, is = "job.plugins.record.revoked", "revoked"
	}
	g.add(rule, field+".version", "the plugin %s is %s%s%s", ref, is, after(": ", r.Reason), after("; ", a.use(g.spec.Dialect)))
}

// unpublished files a version that is not there: at the id when that is not there either, with the id that was meant.
func (g *submissionGate) unpublished(field string, ref PluginRef, p jobspec.Plugin) {
	if has := g.shipped(ref.ID); has != "" {
		g.add("job.plugins.record.unknown", field+".version", "the plugin %s is not published%s", ref, has)
		return
	}
	a := g.advise(p)
	switch {
	case g.in.Advise == nil:
		g.add("job.plugins.record.unknown", field+".version", "the plugin %s is not published", ref)
	case a.ID == ref.ID:
		g.add("job.plugins.record.unknown", field+".version", "the plugin %s is not published%s", ref, after("; ", a.use(g.spec.Dialect)))
	default:
		instead := ""
		if a.ID != "" {
			instead = fmt.Sprintf("; did you mean %s%s?", a.ID, after(", of which ", a.use(g.spec.Dialect)))
		} else if near := g.nearShipped(ref.ID); near != "" {
			instead = "; did you mean " + near + "?" + g.shipped(near)
		}
		g.add("job.plugins.record.unknown", field+".id", "the plugin %s is not published%s", ref, instead)
	}
}

// otherDigest files a digest that is not the published one, and says whose it is where that is known.
func (g *submissionGate) otherDigest(field string, ref PluginRef, p jobspec.Plugin, r PluginRecord) {
	whose := ""
	switch p.Digest {
	case r.Tree.String():
		whose = "; what the job names is the tree digest of that version, a triple has its content digest"
	case r.Manifest.String():
		whose = "; what the job names is the digest of that version's manifest in the registry, a triple has its content digest"
	default:
		if a := g.advise(p); a.DigestOf != "" {
			whose = "; what the job names is the digest of version " + a.DigestOf
		}
	}
	g.add("job.plugins.record.digest", field+".digest", "the job names %.100q for %s, published is %s%s", p.Digest, ref, r.Content, whose)
}

// maxGuesses is up to how many violations a near id is looked for: a job can name thousands, which nobody mends one by one.
const maxGuesses = 50

// nearShipped is the package of the client release that an id was meant to be, "" when none is near.
func (g *submissionGate) nearShipped(id string) string {
	if g.in.Catalogue == nil || len(g.report.Violations) > maxGuesses {
		return ""
	}
	var ids []string
	for _, b := range g.in.Catalogue.Bundled() {
		ids = append(ids, b.ID)
	}
	return nearest.Mistyped(id, ids)
}
