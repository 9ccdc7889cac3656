package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gatehouse-registry/gatehouse/admission/catalogue"
	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/internal/durable"
	"github.com/gatehouse-registry/gatehouse/registry"
)

// releaseFlag says which client release a project works with: its recipes, and the version that locks and jobs name.
type releaseFlag struct{ release string }

func (f *releaseFlag) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.release, "release", "", "the client release whose recipes are meant, such as 0.3.56 (default: the newest that this binary ships)")
}

func (f releaseFlag) of(d dialect.Dialect) string {
	if f.release == "" {
		return catalogue.DefaultRelease(d)
	}
	return f.release
}

// localCatalogue is what a client release can submit as far as this computer knows: what the release ships, from this binary
// or as the server last told it, and the recipes that were published, as of the last look at the server. No request is made.
func (a app) localCatalogue(d dialect.Dialect, release string) (*catalogue.Catalogue, error) {
	shipped, known := catalogue.Builtin(d, release)
	seen, err := a.cachedCatalogue(d, release)
	switch {
	case err != nil:
		return nil, err
	case !known && seen == nil:
		return nil, registry.Errorf(registry.NotFound,
			"the %s release %.100q is not known here (this binary ships %v); sf recipe sync --release %[2]s asks the server", d, release, catalogue.Releases(d))
	case !known || seen == nil:
		if seen != nil {
			shipped = seen
		}
		return shipped, nil
	}
	var published []catalogue.Entry
	for _, e := range seen.Entries() {
		if e.Pack != nil {
			published = append(published, e)
		}
	}
	all, _ := shipped.WithPacks(published)
	return all, nil
}

// serverCatalogue asks the server what a client release can submit, and keeps the answer for localCatalogue. Where it could not be
// kept, as in a home that can't be written to, the catalogue is there with the error as unkept: only a caller who goes on to look
// at what was kept needs it.
func (a app) serverCatalogue(ctx context.Context, d dialect.Dialect, release string) (all *catalogue.Catalogue, unkept, err error) {
	c, _, err := a.env.client()
	if err != nil {
		return nil, nil, err
	}
	all, answer, err := c.For(d, release).Catalogue(ctx, d)
	if err != nil {
		return nil, nil, err
	}
	if all.Release() != release {
		return nil, nil, registry.Errorf(registry.NotFound, "the server does not know the %s release %s and answered for %.100q: an administrator imports it with sf admin catalog import", d, release, all.Release())
	}
	return all, a.keepCatalogue(c.Server(), d, release, answer), nil
}

// keepCatalogue stores a server's answer.
func (a app) keepCatalogue(server string, d dialect.Dialect, release string, answer []byte) error {
	file, err := a.env.catalogueFile(server, d, release)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	return durable.Replace(file, answer, 0o600)
}

// cachedCatalogue is the last answer of the server in use, nil when there is none.
func (a app) cachedCatalogue(d dialect.Dialect, release string) (*catalogue.Catalogue, error) {
	server, err := a.env.server()
	if err != nil || server == "" {
		return nil, err
	}
	file, err := a.env.catalogueFile(server, d, release)
	if err != nil {
		return nil, err
	}
	src, err := readFile(file, catalogue.MaxAnswer+1)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	c, err := catalogue.ParseAnswer(src, d)
	if err != nil { // a copy that somebody changed: the next look at the server makes it anew
		return nil, fmt.Errorf("%s: %w; sf recipe sync fetches it again", file, err)
	}
	return c, nil
}

// server is the address of the server in use, "" when none is chosen.
func (e *Env) server() (string, error) {
	if server := e.Vars["GATEHOUSE_SERVER"]; server != "" {
		return server, nil
	}
	s, err := e.loadSessions()
	return s.Current, err
}

// serverFolder is where what a server told is kept.
func (e *Env) serverFolder(server string) (string, error) {
	home, err := e.home()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(server))
	return filepath.Join(home, "servers", hex.EncodeToString(sum[:8])), nil
}

// packHome is where sf recipe sync keeps the published packs of the server in use, laid out as the home of a real client.
func (a app) packHome(d dialect.Dialect) (string, error) {
	server, err := a.env.server()
	if err != nil {
		return "", err
	}
	folder, err := a.env.serverFolder(server)
	return filepath.Join(folder, "packs", string(d)), err
}

// packFolder is the folder of one of them; dir is recipes, benchmarks, playbooks or prompts, as the real clients name them
// (recipes-and-locks.md 5).
func (a app) packFolder(d dialect.Dialect, dir, owner, name string) (string, error) {
	home, err := a.packHome(d)
	return filepath.Join(home, dir, owner, name), err
}

func (e *Env) catalogueFile(server string, d dialect.Dialect, release string) (string, error) {
	dir, err := e.serverFolder(server)
	if err != nil {
		return "", err
	}
	if filepath.Base(release) != release || release == "." || release == ".." {
		return "", usagef("--release: %.100q is no version", release)
	}
	return filepath.Join(dir, "catalogue", string(d)+"@"+release+".json"), nil
}

// recipeEntry is a recipe of the catalogue by its id or its alias.
func recipeEntry(c *catalogue.Catalogue, id string) (catalogue.Entry, error) {
	e, _, ok := c.Resolve(id)
	if ok {
		return e, nil
	}
	near := c.Near(id)
	var same []string
	for _, other := range c.Entries() {
		if other.Method() == id {
			same = append(same, other.Name)
		}
	}
	if len(same) > 0 {
		near = "; did you mean " + strings.Join(same, ", ") + "?"
	}
	return e, registry.Errorf(registry.NotFound, "the recipe %.100q is not in the catalogue of %s %s%s", id, c.Dialect(), c.Release(), near)
}
