//go:build unix

package launchverify

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"syscall"

	"github.com/gatehouse-registry/gatehouse/admission"
	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/admission/pack"
	"github.com/gatehouse-registry/gatehouse/admission/receipt"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/digest/tree"
)

// verify is gate 3 on the root as it stands, and on what lies in the job directory.
func (s *stage) verify() (rule.Decision, error) {
	policy, err := rule.Soften(s.plan.Softened...)
	if err != nil {
		return rule.Decision{}, err
	}
	root, err := os.OpenRoot(s.plan.Root)
	if err != nil {
		return rule.Decision{}, err
	}
	defer root.Close()
	names := s.plan.Dialect.Names()
	specFile := path.Join(names.SpecDir, specName)
	spec, err := root.ReadFile(specFile)
	if err != nil {
		return rule.Decision{}, err
	}
	in := admission.LaunchInput{
		Policy: policy, Dialect: s.plan.Dialect, SpecFile: specFile, SpecBytes: spec,
		Receipt: s.plan.Receipt, CoreVersion: s.plan.Core,
	}
	exhibits := s.exhibits(&in)
	defer func() {
		for _, x := range exhibits {
			if x.copy != nil {
				x.copy.Close()
			}
		}
	}()
	for _, x := range exhibits {
		if !x.copied {
			continue
		}
		if x.copy, err = root.OpenRoot(x.Injected.Folder); err != nil {
			return rule.Decision{}, err
		}
	}
	// All of it with the job's rights: to our own copies everybody has those that count.
	err = s.plan.User.identity().do(func() error {
		for _, x := range exhibits {
			if err := x.prove(s.injectedDir()); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return rule.Decision{}, err
	}
	for _, x := range exhibits {
		*x.list = append(*x.list, x.LaunchPack)
	}
	if err := s.verifyPackage(root); err != nil {
		return rule.Decision{}, err
	}
	return admission.CheckLaunch(in), nil
}

// exhibit is a pack on its way to gate 3.
type exhibit struct {
	admission.LaunchPack
	list   *[]admission.LaunchPack // where the gate looks for it
	copied bool                    // false for what the runtime supplies
	copy   *os.Root                // ours
}

// exhibits lists the packs of the plan, and what of the job directory no receipt pins.
func (s *stage) exhibits(in *admission.LaunchInput) []*exhibit {
	names := s.plan.Dialect.Names()
	var all []*exhibit
	add := func(list *[]admission.LaunchPack, pin receipt.Pin, folder string, copied, unpinned bool) {
		x := &exhibit{list: list, copied: copied}
		x.Pin, x.Unpinned, x.Injected.Folder = pin, unpinned, folder
		all = append(all, x)
	}
	for _, p := range s.plan.Plugins {
		add(&in.Plugins, p.Pin, path.Join(names.PluginsDir, p.Leaf()), p.Tree != "", false)
	}
	for _, p := range s.plan.Recipes {
		add(&in.Recipes, p.Pin, path.Join(names.RecipesDir, p.ID), true, false)
	}
	for _, pin := range s.recipes {
		add(&in.Recipes, pin, path.Join(names.RecipesDir, pin.ID), true, true)
	}
	return all
}

// errUnseen is why nobody looks for a pack in the job directory: that is made of our own copies.
var errUnseen = errors.New("the job directory is made of the job package")

// injectedDir is the job directory in which packs must lie as they are pinned; "" when it is made of the job package.
func (s *stage) injectedDir() string {
	if s.plan.Package != nil {
		return ""
	}
	return s.plan.JobDir
}

// prove hashes our own copy, every byte of it, and looks at the pack as it lies in the job directory: where that has the
// same bytes it has the same digests, and is not hashed for itself. The error is that of our copy.
func (x *exhibit) prove(jobDir string) error {
	var injected *os.Root
	failed := errUnseen
	if jobDir != "" {
		injected, failed = openBelow(jobDir, x.Injected.Folder)
	}
	if failed == nil {
		defer injected.Close()
	}
	var own, found *tree.Dir
	var err error
	switch {
	case x.copy == nil && failed == nil:
		found, failed = tree.OpenDirWithin(injected, packLimits)
	case x.copy != nil && failed == nil:
		var beside tree.Beside
		own, beside, err = tree.OpenDirBeside(x.copy, injected, packLimits)
		found, failed = beside.Dir, beside.Err
	case x.copy != nil:
		own, err = tree.OpenDir(x.copy)
	}
	if err != nil {
		return fmt.Errorf("hash the job's copy of %s: %w", x.Pin, err)
	}
	if own != nil {
		x.Copy = own
	}
	x.injected(found, failed)
	return nil
}

// packLimits bounds what is read of an injected pack.
var packLimits = tree.Limits{Files: limit.Files, Bytes: limit.Unpacked, Path: limit.Path}

// injected says what stands in the job directory, from how opening and hashing it went.
func (x *exhibit) injected(found *tree.Dir, err error) {
	in := &x.Injected
	switch {
	case err == nil:
		in.State, in.Listing = admission.InjectedPresent, found.Listing()
	case err == errUnseen:
		in.State = admission.InjectedUnseen
	case errors.Is(err, errLink):
		in.State, in.Detail = admission.InjectedLink, err.Error()
	case errors.Is(err, syscall.ENOTDIR):
		in.State, in.Detail = admission.InjectedAbsent, err.Error()
	case errors.Is(err, fs.ErrNotExist):
		in.State = admission.InjectedAbsent
	default:
		in.State, in.Detail = admission.InjectedUnreadable, oneLine(err.Error())
	}
}

// jobRecipes finds the recipe pack of the job directory that has the id which the spec names, when no receipt
// pins a recipe pack. Others are left out, as plugins are that the spec does not name.
func (s *stage) jobRecipes(who identity) ([]*source, error) {
	names := s.plan.Dialect.Names()
	if s.plan.Package != nil || len(s.plan.Recipes) > 0 || s.plan.Recipe == "" {
		return nil, nil
	}
	var found []receipt.Pin
	err := who.do(func() (err error) {
		found, err = findRecipes(&s.plan, names.RecipesDir)
		return err
	})
	if errors.Is(err, errManyRecipes) {
		return nil, refusal("launch.recipe.folder", s.subject(), "%v", err)
	}
	if err != nil {
		return nil, err
	}
	if len(found) > 1 {
		return nil, refusal("launch.recipe.ambiguous", s.subject(), "%s and %s are both %.200q", found[0].ID, found[1].ID, s.plan.Recipe)
	}
	if len(found) == 0 {
		return nil, nil
	}
	pin := found[0]
	folder := path.Join(names.RecipesDir, pin.ID)
	src, err := jobSource(who, s.plan.JobDir, folder)
	if errors.Is(err, errOddFile) {
		return nil, refusal("launch.plugin.link", s.subject(), "%v", err)
	}
	if err != nil {
		return nil, err
	}
	pin.Content, pin.Tree = src.content, src.tree
	s.recipes = []receipt.Pin{pin}
	return []*source{src}, nil
}

// findRecipes reads every <owner>/<name>/recipe.yaml and gives those with the plan's recipe id.
func findRecipes(p *plan, folder string) ([]receipt.Pin, error) {
	root, err := openBelow(p.JobDir, folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer root.Close()
	files, err := recipeFiles(root)
	if err != nil {
		return nil, err
	}
	var found []receipt.Pin
	total := 0
	for _, file := range files {
		f, err := root.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK, 0)
		if err != nil {
			continue // what can't be read is no recipe of this job
		}
		src, err := readLimited(f, limit.Document)
		f.Close()
		if err != nil {
			continue
		}
		if total += len(src); total > maxRecipeBytes {
			return nil, fmt.Errorf("%.200q: %w: their recipes have more than %d bytes", folder, errManyRecipes, maxRecipeBytes)
		}
		recipe, _ := pack.ParseRecipe(src, pack.RecipeOptions{Dialect: p.Dialect})
		if recipe != nil && recipe.ID() == p.Recipe {
			found = append(found, receipt.Pin{ID: path.Dir(file), Version: recipe.Version, Kind: string(pack.KindRecipe)})
		}
	}
	return found, nil
}
