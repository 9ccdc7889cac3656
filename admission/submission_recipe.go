package admission

import (
	"bytes"
	"slices"
	"strings"

	"github.com/gatehouse-registry/gatehouse/admission/catalogue"
	"github.com/gatehouse-registry/gatehouse/admission/jobspec"
	"github.com/gatehouse-registry/gatehouse/admission/nearest"
	"github.com/gatehouse-registry/gatehouse/admission/pack"
	"github.com/gatehouse-registry/gatehouse/admission/receipt"
)

// frameworkCustom is the framework whose runtime the user brings as an image.
const frameworkCustom = "custom"

// beside compares what the request says beside the spec with the spec.
func (g *submissionGate) beside() {
	b := g.in.Beside
	if b == nil {
		return
	}
	if exp := strings.TrimRight(b.Exp, "/"); exp != "" && g.spec.Source.Exp != "" && exp != g.spec.Source.Exp {
		g.addBeside("exp", "the request names the experiment %.200q, the spec %.200q", exp, g.spec.Source.Exp)
	}
	if b.Project != "" && g.spec.Metadata.Project != "" && b.Project != g.spec.Metadata.Project {
		g.addBeside("project", "the request names the project %.100q, the spec %.100q", b.Project, g.spec.Metadata.Project)
	}
	g.besideProfile(b.Profile)
	if b.Spec == nil || !g.structured {
		return
	}
	second, report := jobspec.Parse(b.Spec, jobspec.Options{Dialect: g.spec.Dialect, Policy: g.report.Policy})
	if !report.OK() || !bytes.Equal(second.Normalised(), g.in.Spec.Normalised()) {
		g.addBeside("metadata.spec", "the request holds two specs that differ; which one is meant can't be told")
	}
}

// besideProfile asks that the profile exists and that the first pool is of its hardware.
func (g *submissionGate) besideProfile(name string) {
	if name == "" || g.in.Profiles == nil {
		return
	}
	i := slices.IndexFunc(g.in.Profiles, func(p Profile) bool { return p.Name == name })
	if i < 0 {
		g.addBeside("profile", "unknown hardware profile %.100q; there are %s", name, strings.Join(profileNames(g.in.Profiles), ", "))
		return
	}
	pools := g.spec.Resources.Pools
	if series := g.in.Profiles[i].series(); len(pools) > 0 && pools[0].Series != "" && pools[0].Series != series {
		g.addBeside("profile", "the request names the profile %s, whose series is %s; the spec's first pool asks for %.100q", name, series, pools[0].Series)
	}
}

func (p Profile) series() string {
	if p.Series == "" {
		return p.Name
	}
	return p.Series
}

func profileSeries(profiles []Profile) []string {
	series := make([]string, len(profiles))
	for i, p := range profiles {
		series[i] = p.series()
	}
	return series
}

func profileNames(profiles []Profile) []string {
	names := make([]string, len(profiles))
	for i, p := range profiles {
		names[i] = p.Name
	}
	return names
}

// recipe runs the handshake and pins the recipe's pack. An alias is put right before anything is compared.
func (g *submissionGate) recipe() {
	name := g.spec.Recipe.Name
	if name == "" {
		return // could not be read; the report says so
	}
	c := g.in.Catalogue
	if c == nil {
		c = catalogue.New(g.spec.Dialect, "of no known release", nil, nil)
	}
	entry, alias, ok := c.Resolve(name)
	if alias {
		g.add("job.handshake.recipe.alias", "spec.recipe.name", "%.100q is an alias of %s and was stored as such", name, entry.Name)
		g.spec.Recipe.Name = entry.Name
	}
	g.entry = catalogueFind{entry, ok}
	r, f := g.spec.Recipe, g.spec.Framework
	_, found, _ := c.Handshake(catalogue.Claim{
		Recipe: r.Name, Version: r.Version, Digest: r.Digest, Kind: f.Kind, FrameworkVersion: f.Version,
		RuntimeID: f.RuntimeID, CoreVersion: g.spec.Provenance.CoreVersion,
	})
	for _, v := range found {
		g.file(v)
	}
	if p := entry.Pack; p != nil {
		g.value.Recipes = append(g.value.Recipes, receipt.Pin{
			ID: p.ID(), Version: p.Version, Kind: string(pack.KindRecipe), Content: p.Content, Tree: p.Tree, Manifest: p.Manifest,
		})
	}
}

// framework checks the image and the page that shows the run.
func (g *submissionGate) framework() {
	f := g.spec.Framework
	switch {
	case f.Image != "":
		g.image(f.Image)
	case g.entry.ok && g.entry.Framework == frameworkCustom && g.structured:
		g.add("job.framework.image.required", "spec.framework.image", "the recipe %s brings no runtime, expected an image", g.entry.Name)
	}
	if !g.entry.ok {
		return
	}
	switch given := f.ObservabilityURL != ""; {
	case g.entry.Observability == catalogue.External && !given:
		g.add("job.framework.observability_url.required", "spec.framework.observability_url", "the recipe %s is watched elsewhere, expected the address of that page", g.entry.Name)
	case g.entry.Observability == catalogue.Platform && given:
		g.add("job.framework.observability_url.forbidden", "spec.framework.observability_url", "the platform watches the recipe %s, expected no address", g.entry.Name)
	}
}

// image asks where the image comes from, then whether it names its bytes. An image that must be replaced anyhow is not warned
// of as well.
func (g *submissionGate) image(image string) {
	if g.refused("job.framework.image.reference", "spec.framework.image") {
		return // it is no reference, so it has no host
	}
	if allowed := g.imageHost(image); allowed || g.in.PinImages {
		g.imagePin(image)
	}
}

// imageHost asks that the image's registry is allowed, and reports whether it is not refused.
func (g *submissionGate) imageHost(image string) bool {
	if g.in.ImageHosts == nil {
		g.unchecked(jobspec.Reference{Kind: jobspec.RefImage, Path: "spec.framework.image", Text: image})
		return true
	}
	host := hostOf(jobspec.WithoutUserinfo(image))
	for _, allowed := range g.in.ImageHosts {
		suffix, wildcard := strings.CutPrefix(strings.ToLower(allowed), "*")
		if suffix == "" && wildcard || wildcard && strings.HasSuffix(host, suffix) || host == suffix {
			return true
		}
	}
	return !g.add("job.framework.image.allowlist", "spec.framework.image", "found an image from %.200q, expected one from %.400s", host, strings.Join(g.in.ImageHosts, ", "))
}

// hostOf is the registry host of an image reference, as container engines read it: the first part when it looks like a host.
func hostOf(image string) string {
	first, _, more := strings.Cut(image, "/")
	if more && (strings.ContainsAny(first, ".:") || first == "localhost") {
		return strings.ToLower(first)
	}
	return "docker.io"
}

// method checks hyperparameters and actions against the recipe.
func (g *submissionGate) method() {
	if !g.entry.ok {
		return
	}
	if g.spec.Hyperparams != nil || g.entry.Params != nil {
		if g.entry.Params == nil {
			g.unchecked(jobspec.Reference{Kind: refHyperparams, Path: "spec.hyperparams", Text: g.entry.Name})
		}
		stored, found := g.entry.Hyperparams(g.spec.Hyperparams, g.spec.Framework.Version)
		for _, v := range found {
			g.file(v)
		}
		g.spec.Hyperparams = stored
	}
	for ref := range g.spec.ReferencesOf(jobspec.RefAction) {
		switch {
		case g.entry.Lifecycle == nil:
			g.unchecked(ref)
		case !slices.Contains(g.entry.Lifecycle, ref.Text):
			g.add("job.lifecycle.on_success.recipe", ref.Path, "found %.100q, expected an action of the recipe %s (%s)", ref.Text, g.entry.Name, orNone(g.entry.Lifecycle))
		}
	}
}

func orNone(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}

// resources checks roles, pools and quota.
func (g *submissionGate) resources() {
	res := g.spec.Resources
	if g.entry.ok && g.entry.Roles == nil && (len(res.Roles) > 0 || len(res.Pools) > 1) {
		g.unchecked(jobspec.Reference{Kind: refRoles, Path: "spec.resources.roles", Text: g.entry.Name})
	}
	if g.entry.ok && g.entry.Roles != nil {
		for _, role := range res.Roles {
			if !slices.Contains(g.entry.Roles, role.Name) {
				g.add("job.resources.roles.recipe", "spec.resources.roles", "%.100q is no role of %s, it has %s", role.Name, g.entry.Name, orNone(g.entry.Roles))
			}
		}
		if g.structured && len(res.Pools) > 1 {
			_, found := res.PoolTopologies(g.entry.Roles)
			for _, v := range found {
				g.file(v)
			}
		}
	}
	for ref := range g.spec.ReferencesOf(jobspec.RefSeries) {
		g.series(ref)
	}
}

func (g *submissionGate) series(ref jobspec.Reference) {
	if g.in.Profiles == nil {
		g.unchecked(ref)
		return
	}
	if slices.Contains(profileSeries(g.in.Profiles), ref.Text) {
		return
	}
	usable := profileSeries(slices.DeleteFunc(slices.Clone(g.in.Profiles), func(p Profile) bool {
		return len(g.in.Quota.Profiles) > 0 && !slices.Contains(g.in.Quota.Profiles, p.Name)
	}))
	meant := ""
	if near := nearest.Word(ref.Text, usable); near != "" {
		meant = "; did you mean " + near + "?"
	}
	g.add("job.resources.series.exists", ref.Path, "found %.100q, expected the series of a hardware profile that the account may use (%s)%s", ref.Text, orNone(usable), meant)
}
