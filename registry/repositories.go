package registry

import (
	"context"
	"errors"
	"slices"

	"github.com/gatehouse-registry/gatehouse/admission/pack"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
)

// maxReaders is how many accounts a repository may list.
const maxReaders = 256

// RepositoryInfo is a repository with who may read it.
type RepositoryInfo struct {
	Name    string
	Owner   string
	Private bool
	Readers []string // accounts, sorted
}

// Access says who may read a repository, to whom may decide it. Errors: Denied, NameInvalid, NameUnknown.
func (s *Service) Access(ctx context.Context, p auth.Principal, repository string) (RepositoryInfo, error) {
	if err := s.mayShare(ctx, p, repository); err != nil {
		return RepositoryInfo{}, err
	}
	var info RepositoryInfo
	err := s.meta.View(ctx, func(tx Tx) (err error) {
		info, err = repositoryInfo(tx, repository)
		return err
	})
	return info, err
}

func repositoryInfo(tx Tx, repository string) (RepositoryInfo, error) {
	access, err := tx.RepositoryAccess(repository, "")
	if err != nil {
		return RepositoryInfo{}, err
	}
	readers, err := tx.RepositoryReaders(repository)
	return RepositoryInfo{Name: repository, Owner: access.Owner, Private: access.Private, Readers: readers}, err
}

// AccessChange is what SetAccess changes; nil leaves a part as it is.
type AccessChange struct {
	Private *bool
	Readers *[]string // accounts that may read a private repository besides its owner
}

// SetAccess decides who may read a repository. One that does not exist yet is made, so that it can be private before its
// first push. Errors: Denied, NameInvalid, Invalid, NotFound for a reader that does not exist, Conflict for a repository
// that must stay readable.
func (s *Service) SetAccess(ctx context.Context, p auth.Principal, repository string, change AccessChange) (RepositoryInfo, error) {
	if err := s.mayShare(ctx, p, repository); err != nil {
		return RepositoryInfo{}, err
	}
	if change.Readers != nil && len(*change.Readers) > maxReaders {
		return RepositoryInfo{}, Errorf(Invalid, "readers: %d accounts, at most %d are allowed; make the repository public", len(*change.Readers), maxReaders)
	}
	var info RepositoryInfo
	err := s.meta.Update(ctx, func(tx Tx) error {
		if err := s.ensureRepository(tx, repository); err != nil {
			return err
		}
		now, err := repositoryInfo(tx, repository)
		if err != nil {
			return err
		}
		if change.Private != nil {
			now.Private = *change.Private
		}
		if change.Readers != nil {
			now.Readers = slices.Sorted(slices.Values(*change.Readers))
		}
		if err := checkPrivacy(tx, now); err != nil {
			return err
		}
		if err := tx.SetRepositoryAccess(repository, now.Private, now.Readers); err != nil {
			return notFound(err, "readers: %w", err)
		}
		if info, err = repositoryInfo(tx, repository); err != nil {
			return err
		}
		return s.audit(tx, p, "repository.access", repository, accessText(info))
	})
	return info, err
}

func accessText(info RepositoryInfo) string {
	if !info.Private {
		return "readable by every account"
	}
	text := "private"
	for _, reader := range info.Readers {
		text += " " + reader
	}
	return text
}

// checkPrivacy keeps packs that every client syncs readable: who could not read one would lose it (design.md 4).
func checkPrivacy(tx Tx, info RepositoryInfo) error {
	if !info.Private {
		return nil
	}
	repo, err := tx.Repository(info.Name)
	if err != nil {
		return err
	}
	return declarativePrivacy(repo.PackKind, info.Name, info.Private)
}

// declarativePrivacy refuses a private repository for a kind of pack that every client syncs.
func declarativePrivacy(kind, repository string, private bool) error {
	if private && pack.Kind(kind).Declarative() {
		return Errorf(Conflict, "%s can't be private: it holds %s packs, which every account's client syncs; publish what must stay private as code, or in another repository", repository, kind)
	}
	return nil
}

// Namespaces lists the names that administrators gave to owners. Errors: Denied.
func (s *Service) Namespaces(ctx context.Context, p auth.Principal) ([]Namespace, error) {
	if err := s.authorize(ctx, p, auth.ManageAccounts, "", "namespaces"); err != nil {
		return nil, err
	}
	var list []Namespace
	err := s.meta.View(ctx, func(tx Tx) (err error) {
		list, err = tx.Namespaces()
		return err
	})
	return list, err
}

// everyName is the pattern that names every repository.
const everyName = "**"

// SetNamespace gives the repositories of a pattern to an owner; those that exist keep theirs. A pattern below the name of
// another account takes names away from that, so it must be said explicitly. Errors: Denied, Invalid, NotFound, Conflict.
func (s *Service) SetNamespace(ctx context.Context, p auth.Principal, pattern, owner string, explicit bool) (Namespace, error) {
	n := Namespace{Pattern: pattern, Owner: owner, CreatedBy: p.Account, CreatedAt: s.now()}
	if err := s.authorize(ctx, p, auth.ManageAccounts, "", "namespace "+pattern); err != nil {
		return n, err
	}
	if err := auth.CheckPattern(pattern); err != nil {
		return n, Errorf(Invalid, "pattern: %w", err)
	}
	err := s.meta.Update(ctx, func(tx Tx) error {
		if isMachine(owner) {
			return Errorf(Invalid, "owner: %.140q is a robot or a node", owner)
		}
		switch _, err := tx.Account(Owner(pattern)); {
		case pattern == everyName && !explicit:
			return Errorf(Conflict, "pattern: %s are names of every account too; to give them to %s all the same, say so (take_from_account)", pattern, owner)
		case err == nil && Owner(pattern) != owner && !explicit:
			return Errorf(Conflict, "pattern: %s are names of account %s; to give them to %s all the same, say so (take_from_account)", pattern, Owner(pattern), owner)
		case err != nil && !errors.Is(err, ErrNotFound):
			return err
		}
		if err := tx.PutNamespace(n); err != nil {
			return notFound(err, "owner: account %.100q does not exist", owner)
		}
		return s.audit(tx, p, "namespace.set", pattern, owner)
	})
	return n, err
}

// DeleteNamespace takes an owner off a pattern; repositories that exist keep theirs. Errors: Denied, NotFound.
func (s *Service) DeleteNamespace(ctx context.Context, p auth.Principal, pattern string) error {
	if err := s.authorize(ctx, p, auth.ManageAccounts, "", "namespace "+pattern); err != nil {
		return err
	}
	return s.meta.Update(ctx, func(tx Tx) error {
		if err := tx.DeleteNamespace(pattern); err != nil {
			return notFound(err, "pattern %.300q has no owner", pattern)
		}
		return s.audit(tx, p, "namespace.delete", pattern, "")
	})
}

// cataloguePage is how many names are read at a time for a caller whose scopes may leave most of them out.
const cataloguePage = 1000

// readableRepositories lists the repositories that the caller may read, after last, at most limit (negative: all). Pages
// are full: what is left out shortens none.
func (s *Service) readableRepositories(ctx context.Context, p auth.Principal, last string, limit int) ([]string, error) {
	if p.Grant != nil && !p.Grant.Catalogue {
		return nil, &Error{Code: Unauthorized, Message: "the bearer token does not allow to list repositories", Err: ErrInsufficientScope}
	}
	var names []string
	err := s.meta.View(ctx, func(tx Tx) error {
		names = nil
		for after := last; ; {
			ask := limit
			if p.Role == auth.Robot {
				ask = cataloguePage
			}
			var page []string
			var err error
			if p.Can(auth.ReadPrivate) {
				page, err = tx.Repositories(after, ask)
			} else {
				page, err = tx.ReadableRepositories(p.Namespace(), after, ask)
			}
			if err != nil {
				return err
			}
			for _, name := range page {
				if len(names) == limit {
					return nil
				}
				if p.InScope(auth.Pull, name) {
					names = append(names, name)
				}
			}
			if ask != cataloguePage || len(page) < ask {
				return nil
			}
			after = page[len(page)-1]
		}
	})
	return names, err
}
