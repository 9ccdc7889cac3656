package registry

import (
	"context"
	"slices"
	"strings"

	"github.com/gatehouse-registry/gatehouse/admission/name"
	"github.com/gatehouse-registry/gatehouse/admission/suite"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
)

// Suite is a suite with one of its versions in view and all of them in a list, newest first.
type Suite struct {
	SuiteVersion
	Versions []SuiteVersion
}

// Suites lists every suite of a kind that the caller may read with its newest version, by id. One list serves both dialects.
func (s *Service) Suites(ctx context.Context, p auth.Principal, kind suite.Kind) ([]Suite, error) {
	if err := s.authorize(ctx, p, auth.ReadContent, "", kind.Plural()); err != nil {
		return nil, err
	}
	list := []Suite{}
	err := s.meta.View(ctx, func(tx Tx) error {
		list = list[:0]
		hidden, err := s.hidden(tx, p)
		if err != nil {
			return err
		}
		versions, err := tx.SuitesOf(kind)
		for _, v := range versions {
			if hidden[v.Repository] || !p.InScope(auth.Pull, v.Repository) {
				continue
			}
			if n := len(list); n == 0 || list[n-1].Repository != v.Repository {
				list = append(list, Suite{})
			}
			last := &list[len(list)-1]
			last.Repository = v.Repository
			last.Versions = append(last.Versions, v)
		}
		return err
	})
	for i := range list {
		list[i] = inView(list[i].Versions, "")
	}
	return list, err
}

// inView sorts versions, newest first, and puts the asked one in view; "" is the newest. The version is zero when there is no
// such one.
func inView(versions []SuiteVersion, version string) Suite {
	at := func(v SuiteVersion) name.Published { return name.Published{Version: v.Version, At: v.CreatedAt} }
	slices.SortStableFunc(versions, func(a, b SuiteVersion) int { return name.Compare(at(b), at(a)) })
	u := Suite{Versions: versions}
	for _, v := range versions {
		if version == "" || v.Version == version {
			u.SuiteVersion = v
			break
		}
	}
	return u
}

// Suite finds a version of a suite; "" is the newest. A suite that the caller may not read does not exist. Errors: NotFound.
func (s *Service) Suite(ctx context.Context, p auth.Principal, id SuiteID, version string) (Suite, error) {
	if err := s.authorize(ctx, p, auth.ReadContent, id.Owner, string(id.Kind)+" "+id.String()); err != nil {
		return Suite{}, err
	}
	var u Suite
	err := s.meta.View(ctx, func(tx Tx) (err error) {
		if u, err = s.findSuite(tx, p, id, version); err != nil {
			return err
		}
		u.SuiteVersion, err = tx.SuiteVersion(u.Repository, u.Version)
		return err
	})
	return u, err
}

// findSuite is Suite within a transaction, without the version's document. Errors: NotFound.
func (s *Service) findSuite(tx Tx, p auth.Principal, id SuiteID, version string) (Suite, error) {
	versions, err := s.readableSuite(tx, p, id)
	if err != nil {
		return Suite{}, err
	}
	return pickSuite(id, versions, version)
}

// pickSuite puts a version in view; "" is the newest. Errors: NotFound.
func pickSuite(id SuiteID, versions []SuiteVersion, version string) (Suite, error) {
	u := inView(versions, version)
	if u.Version == "" {
		known := make([]string, 0, maxNamed)
		for _, v := range versions[:min(len(versions), maxNamed)] {
			known = append(known, v.Version)
		}
		return u, Errorf(NotFound, "%s %s has no version %.100q (the newest of its %d: %s)", id.Kind, id, version, len(versions), strings.Join(known, ", "))
	}
	return u, nil
}

// readableSuite lists the versions of a suite that the caller may read. Errors: NotFound.
func (s *Service) readableSuite(tx Tx, p auth.Principal, id SuiteID) ([]SuiteVersion, error) {
	missing := Errorf(NotFound, "%s %.200q does not exist, or not for this account", id.Kind, id.String())
	repository, err := id.Repository()
	if err != nil {
		return nil, missing
	}
	versions, err := tx.SuiteVersions(repository)
	if err != nil {
		return nil, err
	}
	readable, err := s.canRead(tx, p, repository)
	if err != nil {
		return nil, err
	}
	if !readable || len(versions) == 0 || versions[0].Name != id.Name {
		return nil, missing
	}
	return versions, nil
}

// SuiteFilesOf lists the files of a version, as its manifest names them. Errors: NotFound.
func (s *Service) SuiteFilesOf(ctx context.Context, p auth.Principal, id SuiteID, version string) (Suite, suite.Index, error) {
	u, err := s.Suite(ctx, p, id, version)
	if err != nil {
		return u, nil, err
	}
	_, text, err := s.GetManifest(ctx, p, u.Repository, Reference{Digest: u.Manifest})
	if err != nil {
		return u, nil, err
	}
	index, err := readSuiteManifest(text)
	return u, index, err
}

// OpenSuiteFile opens one file of a version; the caller closes it. Errors: NotFound.
func (s *Service) OpenSuiteFile(ctx context.Context, p auth.Principal, id SuiteID, version, file string) (Blob, Suite, error) {
	u, index, err := s.SuiteFilesOf(ctx, p, id, version)
	if err != nil {
		return nil, u, err
	}
	f, ok := index.Lookup(file)
	if !ok {
		return nil, u, Errorf(NotFound, "%s %s@%s has no file %.200q", id.Kind, id, u.Version, file)
	}
	b, err := s.openContent(ctx, digest.Descriptor{Digest: f.Digest, Size: f.Size})
	return b, u, err
}
