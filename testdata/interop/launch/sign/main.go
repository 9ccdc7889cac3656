// Command sign prepares a launch case without a registry: it pins the published trees, signs a receipt for the job's spec with a key
// of its own, whatever the gates would have said of that spec, and puts the packs into a node's cache. It writes
// JOB.receipt.json and JOB.trust.json beside the job directory.
//
//	sign -job JOB -case CASE -dialect forge -cache DIR
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gatehouse-registry/gatehouse/admission/archive"
	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/jobspec"
	"github.com/gatehouse-registry/gatehouse/admission/pack"
	"github.com/gatehouse-registry/gatehouse/admission/receipt"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/digest/tree"
	"github.com/gatehouse-registry/gatehouse/launchverify/nodecache"
	"github.com/gatehouse-registry/gatehouse/registry/trust"
)

// audience is the id of the registry that the receipts claim to come from.
const audience = "gatehouse-launch-cases"

func main() {
	job := flag.String("job", "", "the job directory, as it is launched")
	from := flag.String("case", "", "the case's folder, with published/ and job/")
	name := flag.String("dialect", "", "forge or tuneplane")
	cache := flag.String("cache", "", "the node's cache")
	flag.Parse()
	if err := run(*job, *from, dialect.Dialect(*name), *cache); err != nil {
		fmt.Fprintln(os.Stderr, "sign:", err)
		os.Exit(1)
	}
}

// shelf holds the archives of the packs by manifest digest.
type shelf map[digest.Digest][]byte

func (s shelf) Fetch(_ context.Context, pin receipt.Pin) (io.ReadCloser, error) {
	b, ok := s[pin.Manifest]
	if !ok {
		return nil, fmt.Errorf("%s: %w", pin, fs.ErrNotExist)
	}
	return io.NopCloser(bytes.NewReader(b)), nil
}

// publish packs the tree in dir and gives its pin.
func (s shelf) publish(id, version, dir string, kind pack.Kind) (receipt.Pin, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return receipt.Pin{}, err
	}
	defer root.Close()
	found, err := tree.OpenDir(root)
	if err != nil {
		return receipt.Pin{}, err
	}
	var b bytes.Buffer
	packed, err := archive.Pack(&b, found)
	if err != nil {
		return receipt.Pin{}, err
	}
	if src, err := tree.ReadFile(found, pack.ManifestFile, 1<<20); err == nil {
		if m, _ := pack.ParseManifest(src, pack.ManifestOptions{}); m != nil && m.Kind != "" {
			kind = m.Kind
		}
	}
	pin := receipt.Pin{
		ID: id, Version: version, Kind: string(kind), Content: found.Listing().Content, Tree: found.Listing().Tree,
		Manifest: digest.FromBytes([]byte(id + "@" + version + " " + packed.Digest.String())),
	}
	s[pin.Manifest] = b.Bytes()
	return pin, nil
}

func run(job, from string, d dialect.Dialect, cacheDir string) error {
	names := d.Names()
	src, err := os.ReadFile(filepath.Join(job, names.SpecDir, "jobspec.json"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	packs := shelf{}
	now := time.Now()
	r := receipt.Receipt{
		Audience: audience, Job: "run-0001", Dialect: d, IssuedAt: now, Expires: now.Add(receipt.Lifetime),
		SpecBytes: digest.FromBytes(src), SpecDigest: digest.FromBytes(src),
	}
	if spec, _ := jobspec.Parse(src, jobspec.Options{Dialect: d}); spec != nil {
		if r.Plugins, err = packs.plugins(spec, filepath.Join(from, "published")); err != nil {
			return err
		}
		if r.Recipes, err = packs.recipes(spec, filepath.Join(from, "job", names.RecipesDir)); err != nil {
			return err
		}
	}
	if err := sign(job, r); err != nil {
		return err
	}
	return warm(cacheDir, packs, append(r.Plugins, r.Recipes...))
}

// plugins pins what the spec names and the case has published. Of two plugins in one folder only the first can be pinned.
func (s shelf) plugins(spec *jobspec.Spec, published string) ([]receipt.Pin, error) {
	var pins []receipt.Pin
	leaves := map[string]bool{}
	for _, ref := range spec.Plugins {
		if !filepath.IsLocal(ref.ID) || !filepath.IsLocal(ref.Version) || leaves[jobspec.Leaf(ref.ID)] {
			continue
		}
		pin, err := s.publish(ref.ID, ref.Version, filepath.Join(published, ref.ID, ref.Version), pack.KindAlgorithm)
		content, parseErr := digest.Parse(ref.Digest)
		switch {
		case err == nil:
		case errors.Is(err, fs.ErrNotExist) && parseErr == nil && strings.HasPrefix(ref.ID, "tuneplane/framework-"):
			pin = receipt.Pin{ID: ref.ID, Version: ref.Version, Kind: string(pack.KindFrameworkIntegration), Content: content, RuntimeSupplied: true}
		case errors.Is(err, fs.ErrNotExist):
			continue // nothing can be pinned; gate 3 says so
		default:
			return nil, fmt.Errorf("%s: %w", ref.ID, err)
		}
		leaves[pin.Leaf()] = true
		pins = append(pins, pin)
	}
	return pins, nil
}

// recipes pins the method pack that the spec names, as the case stores it.
func (s shelf) recipes(spec *jobspec.Spec, folder string) ([]receipt.Pin, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*", "*", pack.RecipeFile))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		recipe, _ := pack.ParseRecipe(src, pack.RecipeOptions{Dialect: spec.Dialect})
		if recipe == nil || recipe.ID() != spec.Recipe.Name {
			continue
		}
		dir := filepath.Dir(file)
		id := filepath.Base(filepath.Dir(dir)) + "/" + filepath.Base(dir)
		pin, err := s.publish(id, recipe.Version, dir, pack.KindRecipe)
		return []receipt.Pin{pin}, err
	}
	return nil, nil
}

// sign writes the receipt, and the key that it is verified with.
func sign(job string, r receipt.Receipt) error {
	keys, err := os.MkdirTemp("", "launch-case-key-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(keys)
	ring, err := trust.Open(keys)
	if err != nil {
		return err
	}
	envelope, err := ring.SignReceipt(r)
	if err != nil {
		return err
	}
	key, err := ring.PublicPEM()
	if err != nil {
		return err
	}
	set := fmt.Sprintf("{\"audience\": %q, \"keys\": [%q]}\n", audience, key)
	return errors.Join(os.WriteFile(job+receipt.Suffix, envelope, 0o644), os.WriteFile(job+".trust.json", []byte(set), 0o644))
}

// warm brings the packs into the cache. What the cache refuses, the launch will refuse.
func warm(dir string, packs shelf, pins []receipt.Pin) (err error) {
	cache, err := nodecache.Open(dir, nodecache.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cache.Close()) }()
	for _, pin := range pins {
		if pin.RuntimeSupplied {
			continue
		}
		entry, err := cache.Tree(context.Background(), pin, packs)
		if err != nil {
			return fmt.Errorf("%s: %w", pin, err)
		}
		entry.Release()
	}
	return nil
}
