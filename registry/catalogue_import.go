package registry

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-registry/gatehouse/admission/catalogue"
	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/name"
	"github.com/gatehouse-registry/gatehouse/admission/pack"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
)

// Imported says what an import of a client release did.
type Imported struct {
	Dialect  dialect.Dialect `json:"dialect"`
	Release  string          `json:"release"`
	Recipes  int             `json:"recipes"`
	Bundled  int             `json:"bundled_plugins"`
	Shadowed []string        `json:"shadowed"` // packs whose recipe id the release has too: new jobs get the release's
}

// ImportCatalogue replaces what is known of a client release by a snapshot of an installed one; release "" means the
// dialect's default. Errors: Denied, and a *rule.Denied for a snapshot that is none.
func (s *Service) ImportCatalogue(ctx context.Context, p auth.Principal, d dialect.Dialect, release string, document []byte) (Imported, error) {
	if err := s.authorize(ctx, p, auth.ImportCatalog, "", "the catalogue of "+string(d)); err != nil {
		return Imported{}, err
	}
	if release == "" {
		release = catalogue.DefaultRelease(d)
	}
	c, report := catalogue.ParseSnapshot(document, d, release)
	if c == nil {
		return Imported{}, report.Decide(rule.Submission, rule.Subject{Name: "catalogue " + string(d), Version: release, Dialect: d}, nil).Err()
	}
	out := Imported{Dialect: d, Release: release, Recipes: len(c.Entries()), Bundled: len(c.Bundled()), Shadowed: []string{}}
	err := s.meta.Update(ctx, func(tx Tx) error {
		out.Shadowed = out.Shadowed[:0]
		held, err := tx.ClientIDs(d, string(pack.KindRecipe))
		if err != nil {
			return err
		}
		for _, h := range held {
			if c.HasFold(h.ID) {
				out.Shadowed = append(out.Shadowed, h.Pack)
			}
		}
		err = tx.PutSnapshot(Snapshot{Dialect: d, Release: release, Document: document, ImportedBy: p.Account, ImportedAt: s.now()})
		if err != nil {
			return err
		}
		if err := tx.PutCatalogueStamp(d, ReleasesPart, randomHex(16)); err != nil {
			return err
		}
		return s.audit(tx, p, "catalogue.import", string(d)+" "+release, importDetail(out))
	})
	return out, err
}

func importDetail(out Imported) string {
	detail := fmt.Sprintf("%d recipes", out.Recipes)
	if len(out.Shadowed) > 0 {
		detail += ", which shadow those of " + strings.Join(out.Shadowed, ", ")
	}
	return detail
}

// KnownRelease is a client release whose catalogue the registry has.
type KnownRelease struct {
	Dialect    dialect.Dialect
	Release    string
	Default    bool // clients that don't name theirs get this one
	Recipes    int
	Bundled    int
	Benchmarks int
	ImportedBy string    // "" for what comes with the binary
	ImportedAt time.Time // zero likewise
}

// CatalogueReleases lists the client releases whose catalogues are known, in the order of dialect and version.
func (s *Service) CatalogueReleases(ctx context.Context, p auth.Principal) ([]KnownRelease, error) {
	if err := s.authorize(ctx, p, auth.ReadCatalogue, "", "the catalogue"); err != nil {
		return nil, err
	}
	var list []KnownRelease
	err := s.meta.View(ctx, func(tx Tx) error {
		list = nil
		for _, d := range dialect.All {
			imported, err := tx.Snapshots(d)
			if err != nil {
				return err
			}
			known := make(map[string]KnownRelease)
			for _, release := range catalogue.Releases(d) {
				known[release] = KnownRelease{Dialect: d, Release: release}
			}
			for _, snapshot := range imported {
				known[snapshot.Release] = KnownRelease{Dialect: d, Release: snapshot.Release, ImportedBy: snapshot.ImportedBy, ImportedAt: snapshot.ImportedAt}
			}
			for _, k := range known {
				held, err := s.release(tx, Caller{d, k.Release})
				if err != nil {
					return err
				}
				k.Default = k.Release == catalogue.DefaultRelease(d)
				k.Recipes, k.Bundled, k.Benchmarks = len(held.Entries()), len(held.Bundled()), len(held.Benchmarks())
				list = append(list, k)
			}
		}
		return nil
	})
	slices.SortFunc(list, func(a, b KnownRelease) int {
		return cmp.Or(cmp.Compare(a.Dialect, b.Dialect), name.Compare(name.Published{Version: a.Release}, name.Published{Version: b.Release}), cmp.Compare(a.Release, b.Release))
	})
	return list, err
}

// CatalogueRelease is what ships in one client release, "" the dialect's default. Errors: NotFound.
func (s *Service) CatalogueRelease(ctx context.Context, p auth.Principal, d dialect.Dialect, release string) (*catalogue.Catalogue, error) {
	if err := s.authorize(ctx, p, auth.ReadCatalogue, "", "the catalogue"); err != nil {
		return nil, err
	}
	if release == "" {
		release = catalogue.DefaultRelease(d)
	}
	var held *heldRelease
	err := s.meta.View(ctx, func(tx Tx) (err error) {
		held, err = s.release(tx, Caller{d, release})
		return err
	})
	if err != nil {
		return nil, err
	}
	if held.Release() != release {
		return nil, Errorf(NotFound, "the %s release %.100q is not known; an administrator imports it with sf admin catalog import", d, release)
	}
	return held.Catalogue, nil
}
