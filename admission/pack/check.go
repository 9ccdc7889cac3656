// Package pack reads and checks packs: plugin.yaml, the layout of the files, and the document that a pack is about
// (recipe.yaml, benchmark.yaml, integration.json), in both dialects with one set of rules.
//
// The rules are those of the real clients, found by running them (packs.md 3 to 9), and above them rules of ours
// that an administrator may soften (packs.md 13). With those off, verdict and value are the clients'. Nothing of a
// pack is ever executed, imported or evaluated, and what is read is bounded (package limit). The package also
// knows a pack's form in a registry: its config blob, its OCI manifest and their media types (design.md 2).
package pack

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/digest/tree"
)

// readmeFile is shown beside a pack.
const readmeFile = "README.md"

// Options say how a pack is checked. The zero Options take the dialect from plugin.yaml and soften nothing.
type Options struct {
	Policy  rule.Policy
	Dialect dialect.Dialect
}

// Pack is what a check read of a pack. Only with an OK report is it whole.
type Pack struct {
	Manifest    *Manifest     // nil when plugin.yaml is absent or no YAML object
	Listing     *tree.Listing // the files and both digests
	Recipe      *Recipe       // of a recipe pack
	Benchmark   *Benchmark    // of a benchmark pack
	Integration *Integration  // of a framework integration
	Icon        string        // a data URI or a short text, "" for none
	Readme      string        // the first limit.Readme bytes of README.md, valid UTF-8
}

// Content is the platforms' name of the pack, zero when its files have none.
func (p *Pack) Content() digest.Digest { return p.Listing.Content }

// Tree is the proof of the pack, zero when its files have none.
func (p *Pack) Tree() digest.Digest { return p.Listing.Tree }

// RecipeID is the name under which clients find a recipe pack's recipe (packs.md 5.5), "" for other kinds.
func (p *Pack) RecipeID() string {
	if p.Recipe == nil || p.Recipe.Framework == "" || p.Recipe.Name == "" {
		return ""
	}
	return p.Recipe.ID()
}

// Check reads plugin.yaml, checks the layout and reads the pack's document. The report holds every violation, those of
// the clients' own rules first and in their order. The pack is never nil. An error means that bytes of t could not
// be read, and says nothing about the pack.
func Check(t tree.Tree, opt Options) (*Pack, rule.Report, error) {
	p := &Pack{Listing: t.Listing()}
	var report rule.Report
	src, err := manifestSource(t, opt.Policy, &report)
	if err != nil {
		return p, report, err
	}
	if src != nil {
		var found rule.Report
		p.Manifest, found = ParseManifest(src, ManifestOptions{Policy: opt.Policy, Dialect: opt.Dialect})
		report.Merge(found)
	}
	if p.Manifest != nil {
		if err := p.read(t, opt.Policy, &report); err != nil {
			return p, report, err
		}
	}
	if p.Readme, err = readme(t); err != nil {
		return p, report, err
	}
	report.ClientsFirst()
	return p, report, nil
}

// read checks what depends on the manifest.
func (p *Pack) read(t tree.Tree, policy rule.Policy, report *rule.Report) error {
	facts, found, err := checkLayout(t, p.Manifest, policy)
	report.Merge(found)
	if err != nil {
		return err
	}
	p.Icon, p.Integration = facts.icon, facts.integration
	switch p.Manifest.Kind {
	case KindRecipe:
		p.Recipe, found, err = ReadRecipe(t, RecipeOptions{Policy: policy, Dialect: p.Manifest.Dialect, Name: p.Manifest.Name})
	case KindBenchmark:
		p.Benchmark, found, err = ReadBenchmark(t, BenchmarkOptions{Policy: policy, Dialect: p.Manifest.Dialect, Name: p.Manifest.Name})
	default:
		return nil
	}
	report.Merge(found)
	return err
}

// manifestSource reads plugin.yaml. nil means that there is none to read, which the report then says.
func manifestSource(t tree.Tree, policy rule.Policy, report *rule.Report) ([]byte, error) {
	report.Policy = policy
	e, ok := t.Listing().Lookup(ManifestFile)
	if !ok || e.Kind != tree.Counted {
		v := rule.Violation{Rule: "manifest.missing", Message: "the pack has no file " + ManifestFile + " in its root"}
		if other := otherManifest(t.Listing()); other != "" {
			v.Hint = fmt.Sprintf("Found %.200q: the file must be called %s and lie in the root.", other, ManifestFile)
		}
		report.Add(v)
		return nil, nil
	}
	src, err := tree.ReadFile(t, ManifestFile, limit.PluginYAML)
	if errors.Is(err, tree.ErrTooLarge) {
		report.Add(rule.Violation{
			Rule: "manifest.limit", File: ManifestFile,
			Message: fmt.Sprintf("%s has %d bytes; at most %d are allowed", ManifestFile, e.Size, limit.PluginYAML),
		})
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", ManifestFile, err)
	}
	if src == nil {
		src = []byte{}
	}
	return src, nil
}

// otherManifest finds a file that was probably meant to be plugin.yaml.
func otherManifest(listing *tree.Listing) string {
	for e := range listing.Counted {
		base := strings.ToLower(e.Path[strings.LastIndexByte(e.Path, '/')+1:])
		if base == ManifestFile || base == "plugin.yml" {
			return e.Path
		}
	}
	return ""
}

// readme reads the first limit.Readme bytes of README.md.
func readme(t tree.Tree) (string, error) {
	e, ok := t.Listing().Lookup(readmeFile)
	if !ok || e.Kind != tree.Counted {
		return "", nil
	}
	f, err := t.Open(readmeFile)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", readmeFile, err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, limit.Readme))
	if err != nil {
		return "", fmt.Errorf("read %s: %w", readmeFile, err)
	}
	return strings.ToValidUTF8(string(text), "\uFFFD"), nil
}
