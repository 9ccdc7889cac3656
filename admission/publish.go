package admission

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/gatehouse-registry/gatehouse/admission/name"
	"github.com/gatehouse-registry/gatehouse/admission/pack"
	"github.com/gatehouse-registry/gatehouse/digest"
)

// PublishInput is everything that gate 1 decides on.
type PublishInput struct {
	Policy Policy
	// Report is what the archive checker, pack.ParseArtifact and pack.Check found, merged.
	Report Report
	// Pack is what pack.Check read; nil when the archive was refused before.
	Pack *pack.Pack

	Owner      string // the namespace that is published into
	Repository string // the OCI repository that was pushed to; "" when the route names none
	Principal  string // the account that publishes
	MayWrite   bool   // the account may publish below the owner
	MayPolicy  bool   // the account may publish playbook and prompt packs

	Tag      string            // the tag that is put; "" when the route names none
	ByDigest bool              // the manifest is pushed by digest: it passes the rules and makes no version
	Artifact *pack.OCIArtifact // the OCI manifest; nil over REST, which claims nothing
	Config   []byte            // the config blob that was pushed; nil over REST, which has none

	Known Known
}

// Known is what the registry holds that a pack could clash with. Rows outlive what they name: a version that was
// purged or disabled still counts.
type Known struct {
	Versions []KnownVersion // of the pack's repository
	Names    []string       // the names of all packs of the owner, as published
	TakenID  string         // the id by which clients of the pack's dialect find it; "" for kinds that have none
	TakenBy  string         // who has it, whatever the case of its letters: an <owner>/<name>, or BuiltIn; "" nobody
	Twins    []KnownTwin    // versions of any pack with the same content digest
	Revoked  string         // which revoked version has the same files, and why; "" when none has
}

// BuiltIn is who has a recipe id that comes with the client.
const BuiltIn = "the client's built-in catalogue"

// KnownVersion is a version in the ledger.
type KnownVersion struct {
	Version string
	Kind    pack.Kind
	Tree    digest.Digest
}

// KnownTwin is a version of any pack.
type KnownTwin struct {
	Pack    string // <owner>/<name>
	Version string
	Tree    digest.Digest
}

// CheckPublish is gate 1. It is pure. The decision's Class says how a refusal is answered.
func CheckPublish(in PublishInput) Decision {
	g := publishGate{in: in, report: in.Report}
	g.report.Violations = slices.Clone(in.Report.Violations)
	g.report.Warnings = slices.Clone(in.Report.Warnings)
	g.report.Policy = in.Policy
	g.owner()
	if in.Pack != nil && in.Pack.Manifest != nil {
		g.kind()
		g.name()
		g.version()
		g.clientID()
	}
	if in.Pack != nil {
		g.claims()
		g.twins()
	}
	g.report.ClientsFirst()
	return g.report.Decide(Publish, publishSubject(in.Owner, in.Pack), ValueOf(in.Pack))
}

// publishSubject says what is published.
func publishSubject(owner string, p *pack.Pack) Subject {
	if p == nil {
		return Subject{Name: owner}
	}
	s := Subject{ContentDigest: p.Content().String(), TreeDigest: p.Tree().String()}
	if m := p.Manifest; m != nil {
		s.Name, s.Version, s.Kind, s.Dialect = m.Name, m.Version, string(m.Kind), m.Dialect
		if owner != "" {
			s.Name = owner + "/" + m.Name
		}
	}
	return s
}

type publishGate struct {
	in     PublishInput
	report Report
}

func (g *publishGate) add(id RuleID, field, format string, args ...any) {
	g.report.Add(Violation{Rule: id, Field: field, Message: fmt.Sprintf(format, args...)})
}

// addHint is add with a hint of its own.
func (g *publishGate) addHint(id RuleID, field, hint, format string, args ...any) {
	g.report.Add(Violation{Rule: id, Field: field, Hint: hint, Message: fmt.Sprintf(format, args...)})
}

func (g *publishGate) owner() {
	switch {
	case name.IsReservedOwner(g.in.Owner):
		g.add("publish.owner.reserved", "", "the owner %q is reserved for what ships with the clients", g.in.Owner)
	case !g.in.MayWrite:
		g.add("publish.owner", "", "%.100q may not publish packs of %.100q", g.in.Principal, g.in.Owner)
	}
}

func (g *publishGate) kind() {
	m := g.in.Pack.Manifest
	if m.Kind.AdminOnly() && !g.in.MayPolicy {
		g.add("publish.kind.admin", kindField(m), "%.100q is no administrator; only administrators publish %s packs", g.in.Principal, m.Kind)
	}
	if a := g.in.Artifact; a != nil && m.Kind != "" && a.Kind != m.Kind {
		g.add("publish.kind.artifact", kindField(m), "the artifact type says %s, plugin.yaml says %s", a.Kind, m.Kind)
	}
	for _, v := range g.in.Known.Versions {
		if m.Kind != "" && v.Kind != m.Kind {
			g.add("publish.kind.fixed", kindField(m), "the pack is a %s; its version %q made it a %s for good", m.Kind, v.Version, v.Kind)
			return
		}
	}
}

func kindField(m *pack.Manifest) string { return m.Dialect.Names().KindKey }

// name checks that the name can be a repository, the one that was pushed to, and that nobody takes it for another.
func (g *publishGate) name() {
	m := g.in.Pack.Manifest
	if !name.IsSegment(m.Name) {
		return // a rule of the manifest says so
	}
	repository, err := name.RepositoryName(g.in.Owner, m.Name)
	if err != nil {
		checkName(&g.report, err)
		return
	}
	if g.in.Repository != "" && g.in.Repository != repository {
		g.add("publish.name.repository", "name", "plugin.yaml names the pack %q, which lies in the repository %q; it was pushed to %.255q", m.Name, repository, g.in.Repository)
	}
	for _, other := range g.in.Known.Names {
		if other != m.Name && name.Fold(other) == name.Fold(m.Name) {
			g.add("publish.name.taken", "name", "%s already has a pack %q, which %q would be taken for", g.in.Owner, other, m.Name)
		}
	}
	if a := g.in.Artifact; a != nil && a.Title != m.ArchiveName() {
		g.add("publish.title", "", "the layer's title is %.200q; expected %q", a.Title, m.ArchiveName())
	}
}

// checkName files why a name or owner can't be a repository, unless its length is filed already.
func checkName(r *Report, err error) {
	if has(r, "manifest.name.length") {
		return
	}
	v := Violation{Rule: "publish.name", Field: "name", Message: err.Error()}
	if e, ok := err.(*name.Error); ok {
		v.Field, v.Message, v.Hint = e.Field, e.Message, e.Hint
	}
	r.Add(v)
}

// version checks that the version can be a tag, is the tag, and is new.
func (g *publishGate) version() {
	m := g.in.Pack.Manifest
	if !name.IsSegment(m.Version) {
		return // a rule of the manifest says so
	}
	version, ok := checkVersion(&g.report, m.Version)
	if !ok {
		return
	}
	if g.in.Tag != "" && g.in.Tag != m.Version {
		g.add("publish.version.tag", "version", "plugin.yaml says version %q; the tag is %.128q", m.Version, g.in.Tag)
	}
	if g.in.ByDigest {
		return
	}
	for _, known := range g.in.Known.Versions {
		switch {
		case known.Version == m.Version:
			g.addHint("publish.version.taken", "version", g.takenHint(known), "the version %q is published; versions never change. Its bytes %s", m.Version, g.compare(known))
		case name.Equal(known.Version, m.Version):
			g.add("publish.version.equivalent", "version", "the version %q is published as %q: %s. Its bytes %s", m.Version, known.Version, version.Canonical(), g.compare(known))
		}
	}
}

// has reports whether a rule is broken already.
func has(r *Report, id RuleID) bool {
	return slices.ContainsFunc(r.Violations, func(v Violation) bool { return v.Rule == id })
}

// checkVersion files why a text is no version, and gives it when it is one.
func checkVersion(r *Report, text string) (name.Version, bool) {
	version, err := name.ParseVersion(text)
	if err == nil {
		return version, true
	}
	if has(r, "manifest.version.length") {
		return name.Version{}, false
	}
	v := Violation{Rule: "publish.version", Field: "version", Message: err.Error()}
	if e, ok := err.(*name.VersionError); ok {
		v.Message, v.Hint = e.Message, e.Hint
	}
	r.Add(v)
	return name.Version{}, false
}

// same reports whether a known version has the very files of the pack.
func (g *publishGate) same(known KnownVersion) bool {
	return !g.in.Pack.Tree().IsZero() && known.Tree == g.in.Pack.Tree()
}

func (g *publishGate) compare(known KnownVersion) string {
	if g.same(known) {
		return fmt.Sprintf("are the same (tree %s)", known.Tree)
	}
	return fmt.Sprintf("differ: published tree %s, this tree %s", known.Tree, g.in.Pack.Tree())
}

func (g *publishGate) takenHint(known KnownVersion) string {
	if g.same(known) {
		return "Nothing to do: this very pack is published."
	}
	return "Raise the version in plugin.yaml."
}

// clientID checks that nobody's recipe or benchmark is replaced on the machines of those who sync: clients leave the owner
// out of a recipe's id and join it with a dot in a benchmark's (packs.md 5.5, hole 4).
func (g *publishGate) clientID() {
	if m := g.in.Pack.Manifest; m.Kind.Declarative() && strings.HasSuffix(strings.ToLower(m.Name), syncing) {
		g.add("publish.name.syncing", "name", "found the name %.100q", m.Name)
	}
	id, by := g.in.Known.TakenID, g.in.Known.TakenBy
	if by == "" || by == g.in.Owner+"/"+g.in.Pack.Manifest.Name {
		return
	}
	if g.in.Pack.Benchmark != nil {
		g.add("publish.benchmark.taken", "name", "the benchmark id %q belongs to %s", id, by)
		return
	}
	g.add("publish.recipe.taken", "name", "the recipe id %q belongs to %s", id, by)
}

// syncing ends the name of the folder in which a client makes a pack ready.
const syncing = ".syncing"

// claims compares what the publisher claims with what the bytes say.
func (g *publishGate) claims() {
	p := g.in.Pack
	if a := g.in.Artifact; a != nil {
		if a.Content != p.Content() {
			g.add("digest.content", "", "the manifest claims the content digest %s; the archive has %s", a.Content, p.Content())
		}
		if a.Tree != p.Tree() {
			g.add("digest.tree", "", "the manifest claims the tree digest %s; the archive has %s", a.Tree, p.Tree())
		}
	}
	if g.in.Config == nil || !g.report.OK() {
		return // a refused pack has no config to compare
	}
	want, err := pack.BuildConfig(p)
	if err != nil {
		g.add("digest.config", "", "the archive has no config: %v", err)
		return
	}
	if !bytes.Equal(want, g.in.Config) {
		g.add("digest.config", "", "the config blob is %s, %d bytes; the archive gives %s, %d bytes", digest.FromBytes(g.in.Config), len(g.in.Config), digest.FromBytes(want), len(want))
	}
}

// twins warns of other trees with the same content digest (packs.md 1.4). It is no refusal, which would let one owner block
// another's publish.
func (g *publishGate) twins() {
	if g.in.Known.Revoked != "" {
		g.add("publish.tree.revoked", "", "these are the files of %s", g.in.Known.Revoked)
	}
	for _, twin := range g.in.Known.Twins {
		if twin.Tree != g.in.Pack.Tree() {
			g.add("digest.twin", "", "%s %s has the content digest %s with other files: tree %s there, %s here", twin.Pack, twin.Version, g.in.Pack.Content(), twin.Tree, g.in.Pack.Tree())
		}
	}
}
