package catalogue

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/admission/pack"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/digest/tree"
)

// Bounds of an installed package, far above what the clients ship.
const (
	maxPackageFolders = 5000     // recipes, integrations and benchmarks together
	maxPackageFiles   = 2000     // in one of them
	maxPackageBytes   = 64 << 20 // likewise
	maxMetadata       = 1 << 20
)

// ReadPackage reads what a client release ships out of its installed package: fsys is a site-packages folder, or the
// contents of a wheel. It reads the documents and hashes the folders; nothing is executed. d "" takes the dialect whose
// package is there. The recipes are those that the package itself would load: one that breaks a rule of the clients is an
// error, rules of ours are not applied.
func ReadPackage(fsys fs.FS, d dialect.Dialect) (*Catalogue, error) {
	d, release, err := installed(fsys, d)
	if err != nil {
		return nil, err
	}
	p := packageReader{fsys: fsys, root: d.Names().Package, dialect: d, release: release, policy: rule.SoftenAll(), inputs: make(map[string][]string)}
	if err := p.integrations(); err != nil {
		return nil, err
	}
	if err := p.recipes(); err != nil {
		return nil, err
	}
	if err := p.benchmarks(); err != nil {
		return nil, err
	}
	c := New(d, release, integrated(p.entries, p.bundled), p.bundled)
	c.benchmarks = p.shipped
	return c, nil
}

// installed finds which client's package is there, and its version.
func installed(fsys fs.FS, d dialect.Dialect) (dialect.Dialect, string, error) {
	var found []string
	var release string
	var of dialect.Dialect
	for _, each := range dialect.All {
		if d != "" && d != each {
			continue
		}
		infos, err := fs.Glob(fsys, strings.ReplaceAll(each.Names().PyPackage, "-", "_")+"-*.dist-info/METADATA")
		if err != nil {
			return "", "", err
		}
		for _, info := range infos {
			version, err := metadataVersion(fsys, info)
			if err != nil {
				return "", "", err
			}
			found = append(found, each.Names().PyPackage+" "+version)
			of, release = each, version
		}
	}
	switch {
	case len(found) == 0 && d == "":
		return "", "", errors.New("found neither starforge-core nor tuneplane, expected a folder of installed packages (site-packages) or a wheel of one of them")
	case len(found) == 0:
		return "", "", fmt.Errorf("found no %s, expected a folder of installed packages (site-packages) or its wheel", d.Names().PyPackage)
	case len(found) > 1:
		return "", "", fmt.Errorf("found %s: say which client is meant", strings.Join(found, " and "))
	}
	return of, release, nil
}

// metadataVersion reads the version of a package's METADATA: headers as in a mail, up to the first empty line.
func metadataVersion(fsys fs.FS, file string) (string, error) {
	f, err := fsys.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	src, err := io.ReadAll(io.LimitReader(f, maxMetadata))
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(src)) {
		line = strings.TrimRight(line, "\r\n")
		if version, ok := strings.CutPrefix(line, "Version: "); ok {
			return strings.TrimSpace(version), nil
		}
		if line == "" {
			break
		}
	}
	return "", fmt.Errorf("%s: found no version", file)
}

// packageReader carries one reading of an installed package.
type packageReader struct {
	fsys    fs.FS
	root    string // the package's own folder
	dialect dialect.Dialect
	release string
	policy  rule.Policy
	folders int

	entries []Entry
	bundled []Bundled
	shipped []Benchmark
	inputs  map[string][]string // required inputs by framework
}

// recipes reads <root>/recipes/catalog/<framework>/<name>/recipe.yaml.
func (p *packageReader) recipes() error {
	return p.each("recipes/catalog/*/*", pack.RecipeFile, func(dir string, t tree.Tree) error {
		r, report, err := pack.ReadRecipe(t, pack.RecipeOptions{Policy: p.policy, Dialect: p.dialect, Name: path.Base(dir)})
		if err != nil {
			return err
		}
		if err := refused(report, dir+"/"+pack.RecipeFile); err != nil {
			return err
		}
		if framework := path.Base(path.Dir(dir)); r.Framework != framework {
			return fmt.Errorf("%s: found the framework %.100q, expected %s, the name of its folder", dir, r.Framework, framework)
		}
		e := shipped(r, p.release)
		e.RequiredInputs = known(p.inputs[e.Framework])
		if p.dialect == dialect.Forge {
			e.RequiredInputs = known(forgeInputs[e.Framework])
		}
		p.entries = append(p.entries, e)
		return nil
	})
}

// integrations reads <root>/frameworks/catalog/<framework>/integration.json, which only TunePlane ships. Their version is
// that of the client (packs.md 8).
func (p *packageReader) integrations() error {
	return p.each("frameworks/catalog/*", pack.IntegrationFile, func(dir string, t tree.Tree) error {
		src, err := tree.ReadFile(t, pack.IntegrationFile, limit.Document)
		if err != nil {
			return err
		}
		i, report := pack.ParseIntegration(src, p.policy)
		if err := refused(report, dir+"/"+pack.IntegrationFile); err != nil {
			return err
		}
		p.inputs[path.Base(dir)] = known(i.Facts.RequiredInputs)
		p.bundled = append(p.bundled, Bundled{
			ID: integrationID(path.Base(dir)), Version: p.release, Digest: t.Listing().Content.String(),
			Hooks: &Hooks{Algorithms: i.Facts.AlgorithmHook, DataPrepJobs: i.Facts.DataPrepJobs},
		})
		return nil
	})
}

// benchmarks reads <root>/benchmarks/catalog/<name>/benchmark.yaml.
func (p *packageReader) benchmarks() error {
	return p.each("benchmarks/catalog/*", pack.BenchmarkFile, func(dir string, t tree.Tree) error {
		b, report, err := pack.ReadBenchmark(t, pack.BenchmarkOptions{Policy: p.policy, Dialect: p.dialect, Name: path.Base(dir)})
		if err != nil {
			return err
		}
		if err := refused(report, dir+"/"+pack.BenchmarkFile); err != nil {
			return err
		}
		p.shipped = append(p.shipped, Benchmark{ID: b.Name, Digest: b.Digest.String(), Runner: b.Runner, Suites: b.Suites})
		return nil
	})
}

// refused is the first violation of a document as an error.
func refused(report rule.Report, file string) error {
	if report.OK() {
		return nil
	}
	v := report.Violations[0]
	return fmt.Errorf("%s:%d: %s: %s (%s)", file, v.Line, cmp.Or(v.Field, "the document"), v.Message, v.Rule)
}

// each reads every folder below the package that matches and holds the document, by name.
func (p *packageReader) each(match, document string, read func(dir string, t tree.Tree) error) error {
	files, err := fs.Glob(p.fsys, path.Join(p.root, match, document))
	if err != nil {
		return err
	}
	slices.SortFunc(files, func(a, b string) int { return cmp.Compare(path.Dir(a), path.Dir(b)) })
	for _, file := range files {
		if p.folders++; p.folders > maxPackageFolders {
			return fmt.Errorf("%s: found more than %d folders of recipes and the like", p.root, maxPackageFolders)
		}
		dir := path.Dir(file)
		t, err := readFolder(p.fsys, dir)
		if err != nil {
			return err
		}
		if err := read(dir, t); err != nil {
			return err
		}
	}
	return nil
}
