package admission

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gatehouse-registry/gatehouse/admission/catalogue"
	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/jobspec"
	"github.com/gatehouse-registry/gatehouse/admission/pack"
	"github.com/gatehouse-registry/gatehouse/admission/receipt"
	"github.com/gatehouse-registry/gatehouse/digest"
)

// plugins checks every triple against the library or, for what ships in the client, the catalogue, and pins it.
func (g *submissionGate) plugins() {
	g.addIntegration()
	kinds := make(map[string]pack.Kind) // by id, of the plugins that are known
	for i, p := range g.spec.Plugins {
		ref := PluginRef{p.ID, p.Version}
		if ref.ID == "" || ref.Version == "" {
			continue // could not be read; the report says so
		}
		field := fmt.Sprintf("spec.plugins[%d]", i)
		if record, ok := g.in.Plugins[ref]; ok {
			kinds[p.ID] = record.Kind
			g.record(field, ref, p, record)
			continue
		}
		if g.bundled(field, ref, p) {
			kinds[p.ID] = pack.KindFrameworkIntegration
		}
	}
	if g.spec.Dialect == dialect.TunePlane && g.structured {
		g.integration(kinds)
		g.algorithms(kinds)
		g.hooks(kinds)
	}
}

// hooks warns of plugins of a kind that the framework's integration runs none of. It is no refusal: the platform takes such
// jobs, and an integration that the registry doesn't know may run them.
func (g *submissionGate) hooks(kinds map[string]pack.Kind) {
	if !g.entry.ok {
		return
	}
	hooks, known := g.in.Catalogue.Hooks(g.entry.Framework)
	if !known {
		return
	}
	runs := map[pack.Kind]bool{pack.KindAlgorithm: hooks.Algorithms, pack.KindDataPrepJob: hooks.DataPrepJobs}
	for i, p := range g.spec.Plugins {
		if does, asked := runs[kinds[p.ID]]; asked && !does {
			g.add("job.plugins.hooks", fmt.Sprintf("spec.plugins[%d].id", i), "the plugin %s is of the kind %s, which jobs of the framework %s do not run", p.ID, kinds[p.ID], g.entry.Framework)
		}
	}
}

// record compares a triple with its published version.
func (g *submissionGate) record(field string, ref PluginRef, p jobspec.Plugin, r PluginRecord) {
	if !r.Enabled {
		g.disabled(field, ref, p, r)
	}
	if p.Digest != "" && p.Digest != r.Content.String() {
		g.otherDigest(field, ref, p, r)
	} else {
		g.value.Plugins = append(g.value.Plugins, receipt.Pin{
			ID: p.ID, Version: p.Version, Kind: string(r.Kind), Content: r.Content, Tree: r.Tree, Manifest: r.Manifest,
		})
	}
	if r.Dialect != g.spec.Dialect {
		g.add("job.plugins.record.compat", field+".id", "the plugin %s is for %s, the job for %s", ref, r.Dialect, g.spec.Dialect)
	} else {
		g.requires(field, ref, r.Requires)
	}
}

// requires compares what a plugin requires with the job.
func (g *submissionGate) requires(field string, ref PluginRef, r pack.Requires) {
	if core := g.spec.Provenance.CoreVersion; core != "" && r.Core != "" {
		if why := outside(core, r.Core); why != "" {
			g.add("job.plugins.record.core", field+".version", "the plugin %s requires the core version %.100q, the job was made with %s", ref, r.Core, why)
		}
	}
	if g.spec.Dialect != dialect.TunePlane {
		return // forge reads no other requirement
	}
	f := g.spec.Framework
	if len(r.Frameworks) > 0 && f.Kind != "" {
		i := slices.IndexFunc(r.Frameworks, func(c pack.Constraint) bool { return c.Name == f.Kind })
		switch {
		case i < 0:
			g.add("job.plugins.record.compat", field+".id", "the plugin %s is for the frameworks %s, the job uses %.100q", ref, frameworkNames(r.Frameworks), f.Kind)
		case r.Frameworks[i].Specifier != "":
			if why := outside(f.Version, r.Frameworks[i].Specifier); why != "" {
				g.add("job.plugins.record.compat", field+".id", "the plugin %s is for %s %.100q, the job uses %s", ref, f.Kind, r.Frameworks[i].Specifier, why)
			}
		}
	}
	if method := g.spec.Recipe.Name; len(r.Methods) > 0 && method != "" && !slices.Contains(r.Methods, method) {
		g.add("job.plugins.record.compat", field+".id", "the plugin %s is for the methods %.200s, the job uses %.100q", ref, strings.Join(r.Methods, ", "), method)
	}
}

func frameworkNames(list pack.Constraints) string {
	names := make([]string, len(list))
	for i, c := range list {
		names[i] = c.Name
	}
	return strings.Join(names, ", ")
}

// outside names a version that is not in a range, with the reason when it could not be compared; "" when it is in.
func outside(version, specifiers string) string {
	in, err := catalogue.InRange(version, specifiers)
	switch {
	case err != nil:
		return fmt.Sprintf("%.100q (%v)", version, err)
	case !in:
		return fmt.Sprintf("%.100q", version)
	}
	return ""
}

// bundled compares a triple with what ships in the client release. It reports whether the release has the version.
func (g *submissionGate) bundled(field string, ref PluginRef, p jobspec.Plugin) bool {
	sum, ok := "", false
	if g.in.Catalogue != nil {
		sum, ok = g.in.Catalogue.BundledDigest(ref.ID, ref.Version)
	}
	if !ok {
		g.unpublished(field, ref, p)
		return false
	}
	if p.Digest != "" && p.Digest != sum {
		g.add("job.plugins.record.digest", field+".digest", "the job names %.100q for %s, the client release %s ships %s", p.Digest, ref, g.in.Catalogue.Release(), sum)
		return true
	}
	content, err := digest.Parse(sum)
	if err != nil {
		g.add("job.plugins.record.digest", field+".digest", "the catalogue's digest of %s is malformed: %v", ref, err)
		return true
	}
	g.value.Plugins = append(g.value.Plugins, receipt.Pin{
		ID: ref.ID, Version: ref.Version, Kind: string(pack.KindFrameworkIntegration), Content: content, RuntimeSupplied: true,
	})
	return true
}

// shipped says which versions of a package the client release ships.
func (g *submissionGate) shipped(id string) string {
	if g.in.Catalogue == nil {
		return ""
	}
	for _, b := range g.in.Catalogue.Bundled() {
		if b.ID == id {
			return fmt.Sprintf("; the client release %s ships %s, digest %s", g.in.Catalogue.Release(), b.Version, b.Digest)
		}
	}
	return ""
}

// addIntegration adds tuneplane's framework integration when the job names none and the client release ships the one
// that the recipe needs: the clients add it themselves, and without it the launcher refuses to start (launch.md 1).
// Documents written by hand don't know of it.
func (g *submissionGate) addIntegration() {
	id := g.entry.Integration
	if id == "" || g.spec.Dialect != dialect.TunePlane || !g.structured || g.namesIntegration() {
		return
	}
	for _, b := range g.in.Catalogue.Bundled() {
		if b.ID == id {
			g.spec.Plugins = append(g.spec.Plugins, jobspec.Plugin{ID: b.ID, Version: b.Version, Digest: b.Digest})
			g.add("job.plugins.integration.added", "spec.plugins", "%s@%s of the client release was added", b.ID, b.Version)
			return
		}
	}
}

// namesIntegration reports whether a plugin of the job is an integration, or could be one.
func (g *submissionGate) namesIntegration() bool {
	return slices.ContainsFunc(g.spec.Plugins, func(p jobspec.Plugin) bool {
		if r, ok := g.in.Plugins[PluginRef{p.ID, p.Version}]; ok {
			return r.Kind == pack.KindFrameworkIntegration
		}
		return p.ID == g.entry.Integration || strings.HasPrefix(p.ID, "tuneplane/")
	})
}

// integration asks for exactly one framework integration, the one that the recipe names.
func (g *submissionGate) integration(kinds map[string]pack.Kind) {
	var ids []string
	for _, p := range g.spec.Plugins {
		if kinds[p.ID] == pack.KindFrameworkIntegration {
			ids = append(ids, p.ID)
		}
	}
	switch want := g.entry.Integration; {
	case len(ids) > 1:
		g.add("job.plugins.integration", "spec.plugins", "the job has %d framework integrations (%.200s), expected one", len(ids), strings.Join(ids, ", "))
	case want != "" && len(ids) == 1 && ids[0] != want:
		g.add("job.plugins.integration", "spec.plugins", "the job has the framework integration %s, the recipe %s names %s%s", ids[0], g.entry.Name, want, g.shipped(want))
	case want != "" && len(ids) == 0 && !g.names(want):
		g.add("job.plugins.integration", "spec.plugins", "the job has no framework integration, the recipe %s names %s%s", g.entry.Name, want, g.shipped(want))
	}
}

// names reports whether the job names the plugin, in whatever version.
func (g *submissionGate) names(id string) bool {
	return slices.ContainsFunc(g.spec.Plugins, func(p jobspec.Plugin) bool { return p.ID == id })
}

// algorithms asks that each algorithm which the recipe uses comes as a plugin: tuneplane has no built-in ones. The job's
// own list counts, and without one the recipe's.
func (g *submissionGate) algorithms(kinds map[string]pack.Kind) {
	names, field := g.spec.Recipe.Plugins, "spec.recipe.plugins[]"
	if len(names) == 0 {
		names, field = g.entry.Plugins, "spec.plugins"
	}
	provided := make(map[string]bool, len(g.spec.Plugins))
	for _, p := range g.spec.Plugins {
		if kind, known := kinds[p.ID]; !known || kind == pack.KindAlgorithm {
			provided[jobspec.Leaf(p.ID)] = true
		}
	}
	for _, name := range names {
		if !provided[name] {
			g.add("job.recipe.plugins.provided", field, "the algorithm %.100q is none of the job's plugins, expected an algorithm plugin of that name", name)
		}
	}
}
