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
	var open []*os.Root
	defer func() {
		for _, r := range open {
			r.Close()
		}
	}()
	add := func(list *[]admission.LaunchPack, pin receipt.Pin, folder string, unpinned, copied bool) error {
		p := admission.LaunchPack{Pin: pin, Unpinned: unpinned, Injected: s.inspect(folder)}
		if copied {
			r, err := root.OpenRoot(folder)
			if err != nil {
				return err
			}
			open = append(open, r)
			if p.Copy, err = tree.OpenDir(r); err != nil {
				return fmt.Errorf("hash the job's copy of %s: %w", pin, err)
			}
		}
		*list = append(*list, p)
		return nil
	}
	for _, p := range s.plan.Plugins {
		if err := add(&in.Plugins, p.Pin, path.Join(names.PluginsDir, p.Leaf()), false, p.Tree != ""); err != nil {
			return rule.Decision{}, err
		}
	}
	for _, p := range s.plan.Recipes {
		if err := add(&in.Recipes, p.Pin, path.Join(names.RecipesDir, p.ID), false, true); err != nil {
			return rule.Decision{}, err
		}
	}
	for _, pin := range s.recipes {
		if err := add(&in.Recipes, pin, path.Join(names.RecipesDir, pin.ID), true, true); err != nil {
			return rule.Decision{}, err
		}
	}
	return admission.CheckLaunch(in), nil
}

// packLimits bounds what is read of an injected pack.
var packLimits = tree.Limits{Files: limit.Files, Bytes: limit.Unpacked, Path: limit.Path}

// inspect looks at a pack as it lies in the job directory, with the job's rights.
func (s *stage) inspect(folder string) admission.Injected {
	in := admission.Injected{Folder: folder}
	err := s.plan.User.identity().do(func() error {
		root, err := openBelow(s.plan.JobDir, folder)
		if err != nil {
			return err
		}
		defer root.Close()
		found, err := tree.OpenDirWithin(root, packLimits)
		if err != nil {
			return err
		}
		in.State, in.Listing = admission.InjectedPresent, found.Listing()
		return nil
	})
	switch {
	case err == nil:
	case errors.Is(err, errLink):
		in.State, in.Detail = admission.InjectedLink, err.Error()
	case errors.Is(err, syscall.ENOTDIR):
		in.State, in.Detail = admission.InjectedAbsent, err.Error()
	case errors.Is(err, fs.ErrNotExist):
		in.State = admission.InjectedAbsent
	default:
		in.State, in.Detail = admission.InjectedUnreadable, oneLine(err.Error())
	}
	return in
}

// jobRecipes finds the recipe pack of the job directory that has the id which the spec names, when no receipt
// pins a recipe pack. Others are left out, as plugins are that the spec does not name.
func (s *stage) jobRecipes(who identity) ([]*source, error) {
	names := s.plan.Dialect.Names()
	if len(s.plan.Recipes) > 0 || s.plan.Recipe == "" {
		return nil, nil
	}
	var found []receipt.Pin
	err := who.do(func() (err error) {
		found, err = findRecipes(&s.plan, names.RecipesDir)
		return err
	})
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
	files, err := fs.Glob(root.FS(), "*/*/"+pack.RecipeFile)
	if err != nil {
		return nil, err
	}
	var found []receipt.Pin
	for _, file := range files[:min(len(files), limit.Files)] {
		f, err := root.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK, 0)
		if err != nil {
			continue // what can't be read is no recipe of this job
		}
		src, err := readLimited(f, limit.Document)
		f.Close()
		if err != nil {
			continue
		}
		recipe, _ := pack.ParseRecipe(src, pack.RecipeOptions{Dialect: p.Dialect})
		if recipe != nil && recipe.ID() == p.Recipe {
			found = append(found, receipt.Pin{ID: path.Dir(file), Version: recipe.Version, Kind: string(pack.KindRecipe)})
		}
	}
	return found, nil
}
