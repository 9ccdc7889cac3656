package registry

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/gatehouse-registry/gatehouse/admission/denylist"
	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/name"
	"github.com/gatehouse-registry/gatehouse/admission/pack"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
)

// Plugin is a pack with one of its versions in view and all of them in a list, newest first.
type Plugin struct {
	Version
	Versions []Version
}

// latest picks the version that "latest" means: the newest enabled one, or the newest of all when none is enabled
// (design.md 2). It is the one rule for every route.
func latest(versions []Version) (Version, bool) {
	if v, ok := newest(versions, true); ok {
		return v, true
	}
	return newest(versions, false)
}

func newest(versions []Version, enabledOnly bool) (Version, bool) {
	var candidates []name.Published
	for _, v := range versions {
		if v.Enabled || !enabledOnly {
			candidates = append(candidates, name.Published{Version: v.Version, At: v.CreatedAt})
		}
	}
	best, ok := name.Latest(candidates)
	if !ok {
		return Version{}, false
	}
	i := slices.IndexFunc(versions, func(v Version) bool { return v.Version == best.Version })
	return versions[i], true
}

// inDialect are the versions of a dialect.
func inDialect(versions []Version, d dialect.Dialect) []Version {
	return slices.DeleteFunc(slices.Clone(versions), func(v Version) bool { return v.Dialect != d })
}

// byPack calls yield for each pack with a list of all its versions, by id, until yield fails.
func byPack(tx Tx, yield func([]Version) error) error {
	var group []Version
	flush := func() error {
		if len(group) == 0 {
			return nil
		}
		whole := group
		group = nil
		return yield(whole)
	}
	err := tx.AllVersions(func(v Version) error {
		if len(group) > 0 && group[0].Repository != v.Repository {
			if err := flush(); err != nil {
				return err
			}
		}
		group = append(group, v)
		return nil
	})
	if err != nil {
		return err
	}
	return flush()
}

// Plugins lists every pack the caller may read with its latest version: in the caller's dialect where it has one,
// else in the other (one list serves both dialects, wire.md 4.1).
func (s *Service) Plugins(ctx context.Context, p auth.Principal) ([]Version, error) {
	if err := s.authorize(ctx, p, auth.ReadContent, "", "plugins"); err != nil {
		return nil, err
	}
	d := CallerOf(ctx).Dialect
	var list []Version
	err := s.meta.View(ctx, func(tx Tx) error {
		list = nil
		hidden, err := s.hidden(tx, p)
		if err != nil {
			return err
		}
		return byPack(tx, func(versions []Version) error {
			if repository := versions[0].Repository; hidden[repository] || !p.InScope(auth.Pull, repository) {
				return nil
			}
			v, ok := latest(inDialect(versions, d))
			if !ok {
				v, _ = latest(versions)
			}
			full, err := tx.Version(v.Repository, v.Version)
			v.Summary = full.Summary
			list = append(list, v)
			return err
		})
	})
	return list, err
}

// Plugin finds a pack by owner and name; version "" means the latest in the caller's dialect, else the latest of
// all. Errors: NotFound.
func (s *Service) Plugin(ctx context.Context, p auth.Principal, owner, packName, version string) (Plugin, error) {
	id := owner + "/" + packName
	if err := s.authorize(ctx, p, auth.ReadContent, owner, "plugin "+id); err != nil {
		return Plugin{}, err
	}
	var versions []Version
	var v Version
	err := s.meta.View(ctx, func(tx Tx) (err error) {
		if versions, err = s.readableVersions(tx, p, owner, packName); err != nil {
			return err
		}
		if v, err = pick(versions, CallerOf(ctx).Dialect, id, version); err != nil {
			return err
		}
		v, err = tx.Version(v.Repository, v.Version)
		return err
	})
	if err != nil {
		return Plugin{}, err
	}
	slices.SortStableFunc(versions, func(a, b Version) int {
		return name.Compare(name.Published{Version: b.Version, At: b.CreatedAt}, name.Published{Version: a.Version, At: a.CreatedAt})
	})
	return Plugin{Version: v, Versions: versions}, nil
}

// packVersions is a list of all versions of a pack, by time. A name that is none, or whose case differs, is NotFound.
func packVersions(tx Tx, owner, packName string) ([]Version, error) {
	repository, err := name.RepositoryName(owner, packName)
	if err != nil {
		return nil, Errorf(NotFound, "plugin %.100q does not exist", owner+"/"+packName)
	}
	versions, err := tx.Versions(repository)
	if err != nil {
		return nil, err
	}
	if len(versions) == 0 || versions[0].PackName != packName {
		return nil, Errorf(NotFound, "plugin %s/%s does not exist", owner, packName)
	}
	return versions, nil
}

// readableVersions is packVersions for a caller: a pack that it must not know of does not exist.
func (s *Service) readableVersions(tx Tx, p auth.Principal, owner, packName string) ([]Version, error) {
	readable := true
	if repository, err := name.RepositoryName(owner, packName); err == nil {
		if readable, err = s.canRead(tx, p, repository); err != nil {
			return nil, err
		}
	}
	versions, err := packVersions(tx, owner, packName)
	if err == nil && !readable {
		return nil, Errorf(NotFound, "plugin %s/%s does not exist", owner, packName)
	}
	return versions, err
}

// maxNamed bounds the versions that a message names.
const maxNamed = 20

func pick(versions []Version, d dialect.Dialect, id, version string) (Version, error) {
	if version == "" {
		if v, ok := latest(inDialect(versions, d)); ok {
			return v, nil
		}
		v, _ := latest(versions)
		return v, nil
	}
	for _, v := range versions {
		if v.Version == version {
			return v, nil
		}
	}
	known := make([]string, 0, maxNamed)
	for _, v := range versions[max(len(versions)-maxNamed, 0):] {
		known = append(known, v.Version)
	}
	return Version{}, Errorf(NotFound, "plugin %s has no version %.100q (the last of its %d: %s)", id, version, len(versions), strings.Join(known, ", "))
}

// OpenPackage opens the archive of a version, the very bytes of its OCI layer; the caller closes it. Errors: as Plugin, and
// RevokedVersion.
func (s *Service) OpenPackage(ctx context.Context, p auth.Principal, owner, packName, version string) (Blob, Version, error) {
	pl, err := s.Plugin(ctx, p, owner, packName, version)
	if err != nil {
		return nil, Version{}, err
	}
	if !pl.RevokedAt.IsZero() && !p.Can(auth.ReadPrivate) {
		return nil, Version{}, revokedContent(pl.ID()+"@"+pl.Version.Version, pl.Reason)
	}
	b, err := s.openContent(ctx, pl.Layer)
	return b, pl.Version, err
}

// SetEnabled enables or disables a version, or all when version is "", and returns how many there are. Those that were revoked
// stay as they are and do not count. Errors: Denied, NotFound, Conflict for a version that was revoked.
func (s *Service) SetEnabled(ctx context.Context, p auth.Principal, owner, packName, version string, enabled bool) (int, error) {
	n, _, err := s.setEnabled(ctx, p, owner, packName, version, enabled, "")
	return n, err
}

// DisableVersion is SetEnabled with a reason, which may be "". It also says what uses the versions, which goes on.
// Errors: as SetEnabled, and Invalid for a reason that is not one line.
func (s *Service) DisableVersion(ctx context.Context, p auth.Principal, owner, packName, version, reason string) (int, PackUse, error) {
	return s.setEnabled(ctx, p, owner, packName, version, false, reason)
}

func (s *Service) setEnabled(ctx context.Context, p auth.Principal, owner, packName, version string, enabled bool, reason string) (n int, use PackUse, err error) {
	id := owner + "/" + packName
	if err := s.authorize(ctx, p, auth.ManagePacks, owner, "plugin "+id); err != nil {
		return 0, use, err
	}
	if reason != "" {
		if err := denylist.CheckReason(reason); err != nil {
			return 0, use, Errorf(Invalid, "reason: %w", err)
		}
	}
	if err := s.indexJobs(ctx); err != nil { // those that a replica of an older program stored since we started
		return 0, use, err
	}
	action := "pack.disable"
	if enabled {
		action = "pack.enable"
	}
	err = s.meta.Update(ctx, func(tx Tx) error {
		versions, err := packVersions(tx, owner, packName)
		if err != nil {
			return err
		}
		if version != "" {
			v, err := pick(versions, "", id, version)
			if err == nil && !v.RevokedAt.IsZero() {
				err = Errorf(Conflict, "%s@%s was revoked, which is final: %s", id, version, v.Reason)
			}
			if err != nil {
				return err
			}
		}
		if n, err = tx.SetEnabled(versions[0].Repository, version, enabled, reason); err != nil {
			return err
		}
		if err := s.reshelve(tx, versions[0].Repository); err != nil {
			return err
		}
		if use, err = s.packUse(tx, id, version); err != nil {
			return err
		}
		return s.audit(tx, p, action, id+"@"+version, reason)
	})
	return n, use, err
}

// activationKinds are the kinds that can be activated (wire.md 4.6).
var activationKinds = []pack.Kind{pack.KindPlaybook, pack.KindPrompt}

// PackReference pins one version of a pack.
type PackReference struct {
	ID      string `json:"id"`
	Version string `json:"version"`
	Digest  string `json:"digest"`
}

// Activation says which pack of a kind is active.
func (s *Service) Activation(ctx context.Context, p auth.Principal, kind string) (Activation, error) {
	if err := s.authorize(ctx, p, auth.ReadCatalogue, "", "activation of "+kind); err != nil {
		return Activation{}, err
	}
	if !slices.Contains(activationKinds, pack.Kind(kind)) {
		return Activation{}, Errorf(NotFound, "packs of kind %.40q can't be activated (playbook and prompt can)", kind)
	}
	var a Activation
	err := s.meta.View(ctx, func(tx Tx) (err error) {
		a, err = tx.Activation(kind)
		return err
	})
	return a, err
}

// Activate makes a version the active one of its kind, or none when ref is nil, provided that nobody changed it
// since the caller read generation expected. Errors: Denied, NotFound, Conflict (another digest, disabled),
// Precondition.
func (s *Service) Activate(ctx context.Context, p auth.Principal, kind string, ref *PackReference, expected int64) (Activation, error) {
	if err := s.authorize(ctx, p, auth.ManagePacks, "", "activation of "+kind); err != nil {
		return Activation{}, err
	}
	if !slices.Contains(activationKinds, pack.Kind(kind)) {
		return Activation{}, Errorf(NotFound, "packs of kind %.40q can't be activated (playbook and prompt can)", kind)
	}
	a := Activation{Kind: kind, Generation: expected + 1, Reference: json.RawMessage("null")}
	err := s.meta.Update(ctx, func(tx Tx) error {
		subject := "none"
		if ref != nil {
			if err := checkActivation(tx, kind, *ref); err != nil {
				return err
			}
			a.Reference, _ = json.Marshal(ref) // strings only: can't fail
			subject = ref.ID + "@" + ref.Version
		}
		if err := tx.PutActivation(a, expected); err != nil {
			return err
		}
		return s.audit(tx, p, "pack.activate", subject, kind)
	})
	return a, err
}

func checkActivation(tx Tx, kind string, ref PackReference) error {
	owner, packName, _ := strings.Cut(ref.ID, "/")
	versions, err := packVersions(tx, owner, packName)
	if err != nil {
		return err
	}
	v, err := pick(versions, "", ref.ID, ref.Version)
	switch {
	case err != nil:
		return err
	case v.Kind != kind:
		return Errorf(Conflict, "%s is a %s pack, not a %s pack", ref.ID, v.Kind, kind)
	case v.Content.String() != ref.Digest:
		return Errorf(Conflict, "%s@%s has digest %s, not %.80q", ref.ID, ref.Version, v.Content, ref.Digest)
	case !v.Enabled:
		return Errorf(Conflict, "%s@%s is disabled", ref.ID, ref.Version)
	}
	return nil
}
