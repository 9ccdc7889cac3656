package registry

import (
	"context"
	"encoding/json"
	"errors"
	"io"

	"github.com/gatehouse-registry/gatehouse/admission"
	"github.com/gatehouse-registry/gatehouse/admission/archive"
	"github.com/gatehouse-registry/gatehouse/admission/catalogue"
	"github.com/gatehouse-registry/gatehouse/admission/name"
	"github.com/gatehouse-registry/gatehouse/admission/pack"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
)

// maxInspections bounds how many archives are read at a time: each costs a core and a few MiB.
const maxInspections = 4

// candidate is a pack at gate 1.
type candidate struct {
	input   admission.PublishInput // without Known
	archive *archive.Archive       // nil when it was refused; the caller closes it
	by      auth.Principal         // who publishes
}

// inspect reads an archive and the pack in it. found is what was already found elsewhere, in the OCI manifest. An error
// means that there is no verdict.
func (s *Service) inspect(ctx context.Context, p auth.Principal, owner string, src archive.Source, found rule.Report) (candidate, error) {
	select {
	case s.inspections <- struct{}{}:
		defer func() { <-s.inspections }()
	case <-ctx.Done():
		return candidate{}, ctx.Err()
	}
	c := candidate{by: p, input: admission.PublishInput{
		Policy: s.set.Policy, Owner: owner, Principal: p.Account,
		MayWrite: p.CanIn(auth.WriteContent, owner), MayPolicy: p.Can(auth.PublishPolicy),
	}}
	a, report, err := archive.Check(src, archive.Options{Policy: s.set.Policy, SpoolDir: s.set.SpoolDir})
	if err != nil {
		return c, err
	}
	report.Merge(found)
	if a != nil {
		c.archive = a
		checked, more, err := pack.Check(a, pack.Options{Policy: s.set.Policy})
		if err != nil {
			return c, errors.Join(err, a.Close())
		}
		report.Merge(more)
		c.input.Pack = checked
		c.input.MayWrite = c.input.MayWrite && inPushScope(p, owner, checked)
	}
	c.input.Report = report
	return c, nil
}

// inPushScope reports whether a robot's scopes allow it to publish the pack; only its own document says which that is.
func inPushScope(p auth.Principal, owner string, checked *pack.Pack) bool {
	if checked == nil || checked.Manifest == nil {
		return true // refused for that
	}
	repository, err := name.RepositoryName(owner, checked.Manifest.Name)
	return err != nil || p.InScope(auth.Push, repository)
}

// closeCandidate frees what the archive holds on disk. It is unlinked there already, so a failure leaves nothing.
func (s *Service) closeCandidate(ctx context.Context, c candidate) {
	if c.archive == nil {
		return
	}
	if err := c.archive.Close(); err != nil {
		s.log.WarnContext(ctx, "close the spool of an archive", "err", err)
	}
}

// blobSource is a stored blob as an archive that can be read again.
func (s *Service) blobSource(ctx context.Context, d digest.Descriptor) archive.Source {
	return archive.Source{Size: d.Size, Open: func() (io.ReadCloser, error) {
		return s.openContent(ctx, d)
	}}
}

// decide runs gate 1 with what the registry holds now.
func (s *Service) decide(tx Tx, c candidate) (admission.Decision, error) {
	in := c.input
	if in.Pack != nil && in.Pack.Manifest != nil {
		known, err := s.known(tx, c.by, in.Owner, in.Pack)
		if err != nil {
			return admission.Decision{}, err
		}
		in.Known = known
	}
	return admission.CheckPublish(in), nil
}

// known collects what a pack could clash with.
func (s *Service) known(tx Tx, by auth.Principal, owner string, p *pack.Pack) (admission.Known, error) {
	var k admission.Known
	repository, err := name.RepositoryName(owner, p.Manifest.Name)
	if err != nil {
		return k, nil // the gate refuses the name
	}
	versions, err := tx.Versions(repository)
	if err != nil {
		return k, err
	}
	for _, v := range versions {
		k.Versions = append(k.Versions, admission.KnownVersion{Version: v.Version, Kind: pack.Kind(v.Kind), Tree: v.Tree})
	}
	switch taken, err := tx.PackByFold(owner, name.Fold(p.Manifest.Name)); {
	case err == nil:
		k.Names = []string{taken.PackName}
	case !errors.Is(err, ErrNameUnknown):
		return k, err
	}
	if k.TakenID, k.TakenBy, err = s.idHolder(tx, owner, p); err != nil || p.Content().IsZero() {
		return k, err
	}
	if k.Revoked, err = s.revokedTree(tx, by, p.Tree()); err != nil {
		return k, err
	}
	twins, err := tx.VersionsByContent(p.Content())
	for _, v := range twins {
		if ok, err := s.canRead(tx, by, v.Repository); err != nil {
			return k, err
		} else if !ok {
			continue // the publisher must not learn of it
		}
		k.Twins = append(k.Twins, admission.KnownTwin{Pack: v.ID(), Version: v.Version, Tree: v.Tree})
	}
	return k, err
}

// idHolder is the id by which clients find a recipe or benchmark pack, and who has it: "" when nobody has, or when the
// pack is of another kind.
func (s *Service) idHolder(tx Tx, owner string, p *pack.Pack) (id, by string, err error) {
	d, kind := p.Manifest.Dialect, pack.KindRecipe
	if id = p.RecipeID(); id != "" {
		builtIn, err := s.builtInRecipe(tx, d, id)
		if err != nil || builtIn {
			return id, admission.BuiltIn, err
		}
	} else if p.Benchmark != nil {
		id, kind = p.Benchmark.Record(owner).ID, pack.KindBenchmark
	} else {
		return "", "", nil
	}
	holder, err := tx.ClientIDHolder(d, string(kind), id)
	if errors.Is(err, ErrNotFound) {
		return id, "", nil
	}
	return id, holder.Pack, err
}

// artifactBytes is a pack's OCI form.
type artifactBytes struct {
	manifest []byte
	config   digest.Descriptor
	layer    digest.Descriptor
	fresh    []content // those of its bytes that no row names yet
}

// publish makes a decided pack a version: bytes first, then in one transaction the gate once more, the version with its
// ledger row, the manifest and the tag.
func (s *Service) publish(ctx context.Context, p auth.Principal, c candidate, a artifactBytes) (Version, admission.Decision, error) {
	v, err := newVersion(c, digest.FromBytes(a.manifest), a, p)
	if err != nil {
		return v, admission.Decision{}, err
	}
	m, _, err := s.readManifest(v.Repository, Reference{Tag: v.Version}, mediaImageManifest, a.manifest)
	if err != nil {
		return v, admission.Decision{}, err
	}
	manifest, err := s.takeManifest(ctx, m, a.manifest)
	if err != nil {
		return v, admission.Decision{}, err
	}
	var decision admission.Decision
	err = s.commitContent(ctx, append(manifest, a.fresh...), s.charged(v.Repository, func(tx Tx) error {
		if decision, err = s.decide(tx, c); err != nil {
			return err
		}
		if err := decision.Err(); err != nil {
			return err
		}
		if a.fresh == nil {
			if err := checkStillHeld(tx, v); err != nil {
				return err
			}
		}
		v.CreatedAt, m.PushedAt = s.now(), s.now()
		return s.insertVersion(tx, p, v, m)
	}))
	if err != nil {
		return v, decision, err
	}
	s.decided(decision)
	// The row is committed and counts; the file is its copy and catches up at the next publish or start.
	if err := s.syncLedger(context.WithoutCancel(ctx)); err != nil {
		s.log.ErrorContext(ctx, "ledger file lags behind", "err", err)
	}
	return v, decision, nil
}

// checkStillHeld holds that a pack whose blobs were pushed before has them still: a collection takes what no manifest names
// out of a repository after its time of grace. Errors: ManifestBlobUnknown.
func checkStillHeld(tx Tx, v Version) error {
	for _, blob := range []digest.Descriptor{v.Config, v.Layer} {
		if _, err := tx.LinkedBlob(v.Repository, blob.Digest); errors.Is(err, ErrBlobUnknown) {
			return Errorf(ManifestBlobUnknown, "%s does not hold blob %s (%s) any more: push it again", v.Repository, blob.Digest, blob.MediaType)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// newVersion is the row of a pack, derived from its archive and nothing else (design.md 8, invariant 5).
func newVersion(c candidate, manifest digest.Digest, a artifactBytes, p auth.Principal) (Version, error) {
	checked, owner := c.input.Pack, c.input.Owner
	m := checked.Manifest
	repository, err := name.RepositoryName(owner, m.Name)
	if err != nil {
		return Version{}, err
	}
	parsed, err := name.ParseVersion(m.Version)
	if err != nil {
		return Version{}, err
	}
	v := Version{
		Repository: repository, Owner: owner, PackName: m.Name, Version: m.Version, Key: parsed.Canonical(),
		Dialect: m.Dialect, Kind: string(m.Kind), Manifest: manifest, Content: checked.Content(), Tree: checked.Tree(),
		Layer: a.layer, Config: a.config, Summary: m.Summary, Enabled: true, CreatedBy: p.Account,
		Files: checked.Listing.Files, Bytes: checked.Listing.Bytes,
	}
	if v.Document, err = json.Marshal(m); err != nil {
		return v, err
	}
	if checked.Recipe != nil {
		entry := catalogue.FromRecipe(checked.Recipe, catalogue.Pack{
			Owner: v.Owner, Name: v.PackName, Version: v.Version, Content: v.Content, Tree: v.Tree, Manifest: v.Manifest,
		})
		v.Catalogue, err = json.Marshal(entry)
	}
	return v, err
}

// insertVersion writes every row of a new version.
func (s *Service) insertVersion(tx Tx, p auth.Principal, v Version, m Manifest) error {
	if err := s.ensureRepository(tx, v.Repository); err != nil {
		return err
	}
	if err := checkVacant(tx, v.Repository); err != nil {
		return err
	}
	access, err := tx.RepositoryAccess(v.Repository, "")
	if err != nil {
		return err
	}
	if err := declarativePrivacy(v.Kind, v.Repository, access.Private); err != nil {
		return err
	}
	if err := tx.SetPackRepository(v.Repository, v.PackName, name.Fold(v.PackName), v.Kind); err != nil {
		return err
	}
	ids, err := clientIDs(v)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := tx.TakeClientID(id); err != nil {
			return err
		}
	}
	for _, blob := range []digest.Descriptor{v.Config, v.Layer} {
		if err := tx.LinkBlob(v.Repository, blob, v.CreatedAt); err != nil {
			return err
		}
	}
	if err := putOwnManifest(tx, m); err != nil {
		return err
	}
	if err := tx.InsertVersion(v); err != nil {
		return err
	}
	if err := s.reshelve(tx, v.Repository); err != nil {
		return err
	}
	if err := tx.PutTag(Tag{Repository: v.Repository, Name: v.Version, Digest: m.Digest, UpdatedAt: v.CreatedAt}); err != nil {
		return err
	}
	return s.audit(tx, p, "pack.publish", v.ID()+"@"+v.Version, v.Content.String()+" "+v.Tree.String())
}

// checkVacant refuses the first pack of a repository that holds other artifacts under tags: these would stand among its
// versions without having passed gate 1.
func checkVacant(tx Tx, repository string) error {
	repo, err := tx.Repository(repository)
	if err != nil || repo.PackKind != "" {
		return err
	}
	tags, err := tx.Tags(repository, "", -1)
	if err != nil {
		return err
	}
	for _, tag := range tags {
		if !name.IsSignatureTag(tag) {
			return Errorf(Conflict, "%s holds another artifact under the tag %s; delete it first, or publish under another name", repository, tag)
		}
	}
	return nil
}

// putOwnManifest stores the manifest's row of a version. A row that an earlier push of the same bytes left under another
// media type knows nothing of what they name: it is replaced, so that the version's blobs stay protected.
func putOwnManifest(tx Tx, m Manifest) error {
	have, err := tx.FindManifest(m.Repository, Reference{Digest: m.Digest})
	switch {
	case err == nil && have.MediaType != m.MediaType:
		if err := tx.DeleteManifest(m.Repository, m.Digest); err != nil {
			return err
		}
	case err != nil && !errors.Is(err, ErrManifestUnknown):
		return err
	}
	return tx.PutManifest(m)
}
