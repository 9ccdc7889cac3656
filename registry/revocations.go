package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gatehouse-registry/gatehouse/admission/denylist"
	"github.com/gatehouse-registry/gatehouse/admission/pack"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
)

// To disable a version keeps new jobs from using it; jobs that were admitted still launch, and it can be enabled again. To
// revoke one is final, and for the bytes rather than the name: every version with the same tree digest is revoked with it, and
// none is published again. No new job is admitted with it, launches refuse it (denyList), and its archive is withheld. Its name
// and its manifest go on to say which bytes it was (design.md 8, invariant 1).

// Revoked is what RevokeVersion did.
type Revoked struct {
	Revocation
	Same []Revocation // other versions with the same files, revoked with it
	Use  PackUse      // of the version that was named
}

// RevokeVersion revokes a version for good. Errors: Denied, Invalid, NotFound, Conflict when it is revoked.
func (s *Service) RevokeVersion(ctx context.Context, p auth.Principal, owner, packName, version, reason string) (Revoked, error) {
	id := owner + "/" + packName
	if err := s.authorize(ctx, p, auth.RevokePacks, owner, "plugin "+id); err != nil {
		return Revoked{}, err
	}
	if err := denylist.CheckReason(reason); err != nil {
		return Revoked{}, Errorf(Invalid, "reason: %w", err)
	}
	if version == "" {
		return Revoked{}, Errorf(Invalid, "version: a revocation names one version")
	}
	if err := s.indexJobs(ctx); err != nil { // those that a replica of an older program stored since we started
		return Revoked{}, err
	}
	var out Revoked
	err := s.meta.Update(ctx, func(tx Tx) error {
		versions, err := packVersions(tx, owner, packName)
		if err != nil {
			return err
		}
		v, err := pick(versions, "", id, version)
		if err != nil {
			return err
		}
		if !v.RevokedAt.IsZero() {
			return Errorf(Conflict, "%s@%s was revoked at %s: %s", id, version, v.RevokedAt.UTC().Format(time.RFC3339), v.Reason)
		}
		out, err = s.revokeTree(tx, p, v, reason)
		return err
	})
	return out, err
}

// revokeTree revokes a version and every other one with its files.
func (s *Service) revokeTree(tx Tx, p auth.Principal, named Version, reason string) (out Revoked, err error) {
	same, err := tx.VersionsByContent(named.Content)
	if err != nil {
		return out, err
	}
	for _, v := range append([]Version{named}, same...) {
		again := v.Repository == named.Repository && v.Version == named.Version && !out.At.IsZero()
		if v.Tree != named.Tree || again || !v.RevokedAt.IsZero() {
			continue
		}
		r, err := s.revokeOne(tx, p, v, reason)
		switch {
		case err != nil:
			return out, err
		case out.At.IsZero():
			out.Revocation = r
		default:
			out.Same = append(out.Same, r)
		}
	}
	out.Use, err = s.packUse(tx, named.ID(), named.Version)
	return out, err
}

func (s *Service) revokeOne(tx Tx, p auth.Principal, v Version, reason string) (Revocation, error) {
	r, err := tx.InsertRevocation(Revocation{
		Repository: v.Repository, Pack: v.ID(), Version: v.Version, Content: v.Content, Tree: v.Tree, Manifest: v.Manifest, Layer: v.Layer.Digest,
		Reason: reason, By: p.Account, At: s.now(),
	})
	switch {
	case err != nil:
		return r, err
	case r.Seq > denylist.MaxEntries:
		return r, Errorf(Conflict, "%d versions are revoked, the most that a deny list holds", denylist.MaxEntries)
	}
	if err := s.reshelve(tx, v.Repository); err != nil {
		return r, err
	}
	if err := deactivate(tx, v); err != nil {
		return r, err
	}
	return r, s.audit(tx, p, "pack.revoke", v.ID()+"@"+v.Version, reason)
}

// deactivate takes a version off its place where it is the active one of its kind.
func deactivate(tx Tx, v Version) error {
	if !slices.Contains(activationKinds, pack.Kind(v.Kind)) {
		return nil
	}
	a, err := tx.Activation(v.Kind)
	if err != nil {
		return err
	}
	var active PackReference
	if json.Unmarshal(a.Reference, &active) != nil || active.ID != v.ID() || active.Version != v.Version {
		return nil // none, or another one
	}
	return tx.PutActivation(Activation{Kind: v.Kind, Generation: a.Generation + 1, Reference: json.RawMessage("null")}, a.Generation)
}

// packUse is how much a version is in use now.
func (s *Service) packUse(tx Tx, pack, version string) (PackUse, error) {
	now := s.now()
	return tx.PackUse(pack, version, now.Add(-s.set.LeaseTTL), now)
}

// revokedContent is the answer to who asks for the archive of a revoked version.
func revokedContent(version, reason string) *Error {
	return Errorf(RevokedVersion, "%s was revoked, and its files are withheld: %s", version, reason)
}

// revokedTree says which revoked version has the files of a tree, and why, as a caller may know it; "" when none has.
func (s *Service) revokedTree(tx Tx, p auth.Principal, tree digest.Digest) (string, error) {
	r, err := tx.RevocationByTree(tree)
	if errors.Is(err, ErrNotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	readable, err := s.canRead(tx, p, r.Repository)
	if err != nil {
		return "", err
	}
	if !readable {
		return "a version that was revoked", nil
	}
	return fmt.Sprintf("%s@%s, which was revoked: %s", r.Pack, r.Version, r.Reason), nil
}
