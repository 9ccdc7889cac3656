package project

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/gatehouse-registry/gatehouse/admission/catalogue"
	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/admission/pack"
	"github.com/gatehouse-registry/gatehouse/digest/tree"
	"github.com/gatehouse-registry/gatehouse/registry"
)

// Installed is an installed package of a real client. The templates of the recipes that ship in it, and the parts of a new
// project, are copied from there; nothing of it is ever executed.
type Installed struct {
	Dir     string // the package's own folder, such as …/site-packages/starforge
	Release string // "" when the package does not tell
}

// InstalledAt takes a folder for the client's package: the package's own folder, or the one that it is installed in.
func InstalledAt(dir string, d dialect.Dialect) (*Installed, error) {
	for _, at := range []string{dir, filepath.Join(dir, d.Names().Package)} {
		if p := installedAt(at, d); p != nil {
			return p, nil
		}
	}
	return nil, registry.Errorf(registry.Invalid, "%.200s holds no installed %s: no %s/recipes/catalog", dir, d.Names().PyPackage, d.Names().Package)
}

func installedAt(dir string, d dialect.Dialect) *Installed {
	dir, err := filepath.Abs(dir)
	if err != nil || filepath.Base(dir) != d.Names().Package {
		return nil
	}
	if info, err := os.Stat(filepath.Join(dir, "recipes", "catalog")); err != nil || !info.IsDir() {
		return nil
	}
	p := &Installed{Dir: dir}
	// A pattern that can't be read finds nothing, and then the release is not known.
	infos, _ := filepath.Glob(filepath.Join(filepath.Dir(dir), strings.ReplaceAll(d.Names().PyPackage, "-", "_")+"-*.dist-info"))
	if len(infos) == 1 {
		_, p.Release, _ = strings.Cut(strings.TrimSuffix(filepath.Base(infos[0]), ".dist-info"), "-")
	}
	return p
}

// programs are the names under which the real clients are installed.
var programs = map[dialect.Dialect][]string{dialect.Forge: {"starforge", "sf"}, dialect.TunePlane: {"tuneplane", "tp"}}

// InstalledOnPath finds the package that a client's program in one of the folders of a PATH belongs to, nil when there is
// none. Such a program is a script in the environment that holds the package, or one whose first line names the interpreter
// of that environment.
func InstalledOnPath(list string, d dialect.Dialect) *Installed {
	for _, dir := range filepath.SplitList(list) {
		for _, name := range programs[d] {
			for _, program := range environments(filepath.Join(dir, name)) {
				// A pattern that can't be read finds nothing.
				roots, _ := filepath.Glob(filepath.Join(filepath.Dir(filepath.Dir(program)), "lib", "python3*", "site-packages"))
				for _, root := range roots {
					if p := installedAt(filepath.Join(root, d.Names().Package), d); p != nil {
						return p
					}
				}
			}
		}
	}
	return nil
}

// environments lists programs in the bin folders of the environments that a script may belong to: the interpreter that its
// first line names, and the script itself, links resolved. A file that is no script has none.
func environments(script string) []string {
	info, err := os.Stat(script)
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	f, err := os.Open(script)
	if err != nil {
		return nil
	}
	defer f.Close()
	line, err := bufio.NewReader(io.LimitReader(f, 4<<10)).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "#!") {
		return nil
	}
	var found []string
	if python := strings.TrimSpace(line[2:]); filepath.IsAbs(python) && strings.HasPrefix(filepath.Base(python), "python") {
		found = append(found, python)
	}
	if real, err := filepath.EvalSymlinks(script); err == nil {
		found = append(found, real)
	}
	return found
}

// scaffold is a folder of what the package makes projects and experiments from.
func (p *Installed) scaffold(name string) string {
	return filepath.Join(p.Dir, "cli", "scaffold", name)
}

// RecipeDir is the folder of a recipe that ships in the package.
func (p *Installed) RecipeDir(e catalogue.Entry) string {
	return filepath.Join(p.Dir, "recipes", "catalog", e.Framework, e.Method())
}

// Template is the template folder of the recipe that lies in dir, which must be the very one that the catalogue's entry
// names: a template of another release is refused with registry.DigestInvalid.
func Template(dir string, d dialect.Dialect, e catalogue.Entry) (string, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", fmt.Errorf("the template of %s: %w", e.Name, err)
	}
	defer root.Close()
	listing, err := tree.OpenDir(root)
	if err != nil {
		return "", fmt.Errorf("the template of %s: %w", e.Name, err)
	}
	src, err := tree.ReadFile(listing, pack.RecipeFile, limit.Document)
	if err != nil {
		return "", fmt.Errorf("%s: %w", dir, err)
	}
	recipe, report := pack.ParseRecipe(src, pack.RecipeOptions{Dialect: d})
	if recipe == nil {
		return "", fmt.Errorf("%s: %s", dir, report.Violations[0].String())
	}
	template := path.Clean(recipe.Template)
	if !filepath.IsLocal(filepath.FromSlash(template)) {
		return "", fmt.Errorf("%s: the template %.100q lies outside the recipe", dir, recipe.Template)
	}
	sum, err := tree.ContentBelow(listing, template)
	if err != nil {
		return "", err
	}
	if sum.String() != e.TemplateDigest {
		return "", registry.Errorf(registry.DigestInvalid, "the template in %s has the digest %s, the catalogue has %s for %s %s: it is of another release",
			dir, sum, e.TemplateDigest, e.Name, e.Version)
	}
	return filepath.Join(dir, filepath.FromSlash(template)), nil
}
