//go:build unix

package launchverify

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"syscall"

	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/admission/pack"
)

// Bounds on the recipe packs of a job directory: reading them must end. A job has one or two.
const (
	maxRecipes     = 1000 // names below the folder, and below its folders
	maxRecipeBytes = 16 * limit.Document
)

// errManyRecipes says that the recipe packs of a job directory are beyond the bounds.
var errManyRecipes = errors.New("too many recipe packs")

// recipeFiles lists the <owner>/<name>/recipe.yaml below root, sorted. Folders that are links are passed by.
func recipeFiles(root *os.Root) ([]string, error) {
	owners, err := subfolders(root, ".", maxRecipes)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, owner := range owners {
		packs, err := subfolders(root, owner, maxRecipes-len(files))
		if err != nil {
			return nil, err
		}
		for _, dir := range packs {
			files = append(files, path.Join(dir, pack.RecipeFile))
		}
	}
	slices.Sort(files)
	return files, nil
}

// subfolders lists the folders in a folder, which may hold most names.
func subfolders(root *os.Root, dir string, most int) ([]string, error) {
	f, err := root.OpenFile(dir, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var found []string
	for seen := 0; ; {
		list, err := f.ReadDir(min(512, most+1))
		if seen += len(list); seen > most {
			return nil, fmt.Errorf("%.200q: %w: more than %d", path.Join(root.Name(), dir), errManyRecipes, maxRecipes)
		}
		for _, d := range list {
			if d.IsDir() && fs.ValidPath(d.Name()) {
				found = append(found, path.Join(dir, d.Name()))
			}
		}
		if err == io.EOF {
			return found, nil
		}
		if err != nil {
			return nil, err
		}
	}
}
