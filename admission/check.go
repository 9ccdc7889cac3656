package admission

import (
	"encoding/json"
	"slices"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/name"
	"github.com/gatehouse-registry/gatehouse/admission/pack"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/digest/tree"
)

// CheckOptions say how a file or pack is checked offline. The zero CheckOptions take the dialect from what is
// checked and soften nothing.
type CheckOptions struct {
	Policy  Policy
	Dialect dialect.Dialect
}

// PackValue is the value of a decision about a pack: the normalised documents and the digests.
type PackValue struct {
	Manifest      *pack.Manifest `json:"manifest"` // the stored form; null when plugin.yaml can't be read
	ContentDigest digest.Digest  `json:"contentDigest"`
	TreeDigest    digest.Digest  `json:"treeDigest"`
	Files         int            `json:"files"`
	Bytes         int64          `json:"bytes"`
	Document      any            `json:"document,omitempty"` // of recipe, benchmark and integration packs
}

// IntegrationValue is an integration.json as its client reads it.
type IntegrationValue struct {
	Canonical     json.RawMessage       `json:"canonical"`
	Facts         pack.IntegrationFacts `json:"facts"`
	NativeConfigs []string              `json:"native_configs"`
}

// ValueOf is the value of a pack, nil for none.
func ValueOf(p *pack.Pack) any {
	if p == nil {
		return nil
	}
	v := PackValue{
		Manifest: p.Manifest, ContentDigest: p.Content(), TreeDigest: p.Tree(),
		Files: p.Listing.Files, Bytes: p.Listing.Bytes,
	}
	switch {
	case p.Recipe != nil:
		v.Document = p.Recipe.Record()
	case p.Benchmark != nil:
		v.Document = p.Benchmark
	case p.Integration != nil:
		v.Document = IntegrationValue{p.Integration.Canonical, p.Integration.Facts, p.Integration.NativeConfigs}
	}
	return v
}

// CheckPack is gate 1 without a registry: what can be said of a directory or archive alone. found is what the
// archive checker found; t is nil when it refused to read on. An error means that bytes of t could not be read.
func CheckPack(t tree.Tree, found Report, opt CheckOptions) (Decision, error) {
	found.Violations, found.Warnings = slices.Clone(found.Violations), slices.Clone(found.Warnings)
	found.Policy = opt.Policy
	if t == nil {
		return found.Decide(Publish, Subject{}, nil), nil
	}
	p, report, err := pack.Check(t, pack.Options{Policy: opt.Policy, Dialect: opt.Dialect})
	if err != nil {
		return Decision{}, err
	}
	found.Merge(report)
	checkForm(&found, p.Manifest)
	found.ClientsFirst()
	return found.Decide(Publish, publishSubject("", p), ValueOf(p)), nil
}

// anyOwner stands for the owner that a pack checked offline does not have yet.
const anyOwner = "o"

// checkForm checks that a name can be a repository and a version a tag.
func checkForm(r *Report, m *pack.Manifest) {
	if m == nil {
		return
	}
	if name.IsSegment(m.Name) {
		if _, err := name.RepositoryName(anyOwner, m.Name); err != nil {
			checkName(r, err)
		}
	}
	if name.IsSegment(m.Version) {
		checkVersion(r, m.Version)
	}
}

// CheckManifest checks a plugin.yaml alone. That its name or version can't be published is a warning here: the
// clients read such a file.
func CheckManifest(src []byte, opt CheckOptions) Decision {
	m, report := pack.ParseManifest(src, pack.ManifestOptions{Policy: opt.Policy, Dialect: opt.Dialect})
	var form Report
	checkForm(&form, m)
	report.Warnings = append(report.Warnings, form.Violations...)
	subject := Subject{Name: pack.ManifestFile, Dialect: opt.Dialect}
	if m == nil {
		return report.Decide(Publish, subject, nil)
	}
	return report.Decide(Publish, Subject{Name: m.Name, Version: m.Version, Kind: string(m.Kind), Dialect: m.Dialect}, m)
}

// CheckRecipe checks a recipe.yaml alone: everything but its template folder.
func CheckRecipe(src []byte, opt CheckOptions) Decision {
	r, report := pack.ParseRecipe(src, pack.RecipeOptions{Policy: opt.Policy, Dialect: opt.Dialect})
	subject := Subject{Name: pack.RecipeFile, Kind: string(pack.KindRecipe), Dialect: opt.Dialect}
	if r == nil {
		return report.Decide(Publish, subject, nil)
	}
	subject.Name, subject.Version, subject.Dialect = r.Name, r.Version, r.Dialect
	return report.Decide(Publish, subject, r.Record())
}

// CheckBenchmark checks a benchmark.yaml alone.
func CheckBenchmark(src []byte, opt CheckOptions) Decision {
	b, report := pack.ParseBenchmark(src, pack.BenchmarkOptions{Policy: opt.Policy, Dialect: opt.Dialect})
	subject := Subject{Name: pack.BenchmarkFile, Kind: string(pack.KindBenchmark), Dialect: opt.Dialect}
	if b == nil {
		return report.Decide(Publish, subject, nil)
	}
	subject.Name, subject.Dialect = b.Name, b.Dialect
	return report.Decide(Publish, subject, b)
}
