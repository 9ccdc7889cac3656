package registry

import (
	"bytes"
	"context"
	"errors"

	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/admission/name"
	"github.com/gatehouse-registry/gatehouse/admission/pack"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
)

// StatManifest finds a manifest by tag or digest, without its References. As a blob, one whose bytes are gone or damaged is not
// there: a client that has it pushes it again. Errors: NameUnknown, ManifestUnknown.
func (s *Service) StatManifest(ctx context.Context, p auth.Principal, repository string, ref Reference) (Manifest, error) {
	m, err := s.findManifest(ctx, p, repository, ref)
	if err != nil {
		return m, err
	}
	err = s.hasContent(ctx, digest.Descriptor{Digest: m.Digest, Size: m.Size})
	if errors.Is(err, ErrBlobUnknown) {
		err = Errorf(ManifestUnknown, "the manifest %s of %s is damaged or missing in the registry's store; push it again", m.Digest, repository)
	}
	if err != nil || ref.Tag != "" { // a tag keeps its manifest
		return m, err
	}
	return m, s.keepWaiting(ctx, repository, m.Digest)
}

// findManifest finds the row of a manifest, which is remembered.
func (s *Service) findManifest(ctx context.Context, p auth.Principal, repository string, ref Reference) (Manifest, error) {
	if err := s.mayReadManifest(ctx, p, repository, ref); err != nil {
		return Manifest{}, err
	}
	key := rowKey{kind: manifestRow, a: repository, b: ref.Tag}
	if ref.Tag == "" {
		key.b = ref.Digest.String() // no tag holds a colon
	}
	return cached(ctx, s, key, Manifest.bytes, func(tx Tx) (Manifest, error) { return resolve(tx, repository, ref) })
}

// bytes is about what the row takes in memory.
func (m Manifest) bytes() int {
	n := 512 + len(m.Repository) + len(m.MediaType) + len(m.ArtifactType)
	for k, v := range m.Annotations {
		n += 64 + len(k) + len(v)
	}
	return n
}

// resolve finds what a reference points at, in one query when it is there.
func resolve(tx Tx, repository string, ref Reference) (Manifest, error) {
	m, err := tx.FindManifest(repository, ref)
	if errors.Is(err, ErrManifestUnknown) {
		if _, missing := tx.Repository(repository); missing != nil {
			err = missing
		}
	}
	return m, err
}

// GetManifest gives a manifest's very bytes. Errors as StatManifest.
func (s *Service) GetManifest(ctx context.Context, p auth.Principal, repository string, ref Reference) (Manifest, []byte, error) {
	m, err := s.findManifest(ctx, p, repository, ref)
	if err != nil {
		return m, nil, err
	}
	content, err := s.readContent(ctx, digest.Descriptor{Digest: m.Digest, Size: m.Size})
	return m, content, err
}

// PutManifest stores a manifest or index under a tag or a digest. A pack passes gate 1 first and becomes an
// immutable version when the reference is a tag. The result's Subject is set when the manifest is a referrer.
// Errors: TooLarge, ManifestInvalid (with the Decision when the gate refused), ManifestBlobUnknown, DigestInvalid,
// SizeInvalid, Denied, VersionImmutable.
func (s *Service) PutManifest(ctx context.Context, p auth.Principal, repository string, ref Reference, mediaType string, content []byte) (Manifest, error) {
	if err := s.mayWrite(ctx, p, repository); err != nil {
		return Manifest{}, err
	}
	m, doc, err := s.readManifest(repository, ref, mediaType, content)
	if err != nil {
		return m, err
	}
	if pack.ClaimsPack(doc.ArtifactType, doc.configType()) {
		return s.putPack(ctx, p, m, doc, ref, content)
	}
	return m, s.putArtifact(ctx, p, m, doc, ref, content)
}

// maxMediaType is the longest media type there is (RFC 6838), in bytes. Lists of referrers hold one of each.
const maxMediaType = 255

// readManifest checks everything about a manifest that needs no store.
func (s *Service) readManifest(repository string, ref Reference, mediaType string, content []byte) (Manifest, document, error) {
	m := Manifest{Repository: repository, MediaType: mediaType, Size: int64(len(content)), PushedAt: s.now()}
	if len(content) > limit.Manifest {
		return m, document{}, Errorf(TooLarge, "the manifest has more than %d bytes, the most that is allowed", limit.Manifest)
	}
	m.Digest = digest.FromBytes(content)
	if !ref.Digest.IsZero() {
		if m.Digest = ref.Digest.Algorithm().FromBytes(content); m.Digest != ref.Digest {
			return m, document{}, Errorf(DigestInvalid, "the reference says %s, the content is %s", ref.Digest, m.Digest)
		}
	}
	if len(mediaType) > maxMediaType {
		return m, document{}, Errorf(ManifestInvalid, "the media type has %d bytes, at most %d are allowed", len(mediaType), maxMediaType)
	}
	known, _ := kindOf(mediaType)
	if !known {
		var err error
		if m.References, err = namedDigests(content); err != nil {
			return m, document{}, err
		}
		return m, document{}, checkMediaType(MediaTypeOf(content), mediaType)
	}
	if err := scanDocument(content); err != nil {
		return m, document{}, err
	}
	doc, err := parseDocument(mediaType, content)
	if err != nil {
		return m, doc, err
	}
	m.ArtifactType, m.Annotations = doc.artifactType(), doc.Annotations
	if len(m.ArtifactType) > maxMediaType {
		return m, doc, Errorf(ManifestInvalid, "artifactType: %d bytes, at most %d are allowed", len(m.ArtifactType), maxMediaType)
	}
	if doc.Subject != nil {
		m.Subject = doc.Subject.Digest
	}
	seen := map[digest.Digest]bool{}
	for _, r := range doc.references() {
		if !seen[r.Digest] {
			seen[r.Digest] = true
			m.References = append(m.References, r.Digest)
		}
	}
	return m, doc, nil
}

func (d document) configType() string {
	if d.Config == nil {
		return ""
	}
	return d.Config.MediaType
}

// putArtifact stores a manifest that is no pack.
func (s *Service) putArtifact(ctx context.Context, p auth.Principal, m Manifest, doc document, ref Reference, content []byte) error {
	bytes, err := s.takeManifest(ctx, m, content)
	if err != nil {
		return err
	}
	return s.commitContent(ctx, bytes, s.charged(m.Repository, func(tx Tx) error {
		if err := checkTenant(tx, m, ref); err != nil {
			return err
		}
		if err := checkContent(tx, m, doc); err != nil {
			return err
		}
		if err := s.ensureRepository(tx, m.Repository); err != nil {
			return err
		}
		if have, err := tx.FindManifest(m.Repository, Reference{Digest: m.Digest}); err == nil && have.MediaType != m.MediaType {
			return Errorf(Conflict, "%s is stored with the media type %q, not %q", m.Digest, have.MediaType, m.MediaType)
		}
		if err := tx.PutManifest(m); err != nil {
			return err
		}
		if ref.Tag != "" {
			if err := tx.PutTag(Tag{Repository: m.Repository, Name: ref.Tag, Digest: m.Digest, UpdatedAt: s.now()}); err != nil {
				return err
			}
		}
		return s.audit(tx, p, "manifest.push", m.Repository+":"+ref.String(), m.Digest.String())
	}))
}

// takeManifest takes the bytes of a manifest.
func (s *Service) takeManifest(ctx context.Context, m Manifest, b []byte) ([]content, error) {
	c, err := s.take(ctx, digest.Descriptor{Digest: m.Digest, Size: m.Size}, bytes.NewReader(b))
	return []content{c}, err
}

// checkTenant keeps a pack repository to packs, their referrers and cosign's tags, and the tags of versions where
// they are.
func checkTenant(tx Tx, m Manifest, ref Reference) error {
	repo, err := tx.Repository(m.Repository)
	if errors.Is(err, ErrNameUnknown) || (err == nil && repo.PackKind == "") {
		return nil
	}
	if err != nil {
		return err
	}
	switch {
	case ref.Tag == "" && !m.Subject.IsZero(), name.IsSignatureTag(ref.Tag):
		return nil
	case ref.Tag == "":
		// An index of cosign's, or a part of one, comes by digest before its tag does.
		return nil
	}
	if v, err := tx.SuiteVersion(m.Repository, ref.Tag); err == nil {
		if v.Manifest == m.Digest {
			return nil // the same again
		}
		return Errorf(VersionImmutable, "%s %s@%s was sealed as %s; a version's tag can't be moved", v.Kind, v.ID(), v.Version, v.Manifest)
	}
	if v, err := tx.Version(m.Repository, ref.Tag); err == nil {
		return Errorf(VersionImmutable, "%s@%s was published as %s; a version's tag can't be moved", v.ID(), v.Version, v.Manifest)
	}
	return Errorf(Denied, "%s holds %s packs: it takes only their versions, referrers (by digest) and tags of the form sha256-<digest>.sig, not tag %s of %q",
		m.Repository, repo.PackKind, ref.Tag, m.ArtifactType)
}

// checkContent requires that the repository holds every blob a manifest names, with the size it says. The children of
// an index may be absent (sparse indexes); foreign layers have addresses of their own.
func checkContent(tx Tx, m Manifest, doc document) error {
	if _, index := kindOf(m.MediaType); index {
		return nil
	}
	blobs := doc.Layers
	if doc.Config != nil {
		blobs = append([]descriptor{*doc.Config}, blobs...)
	}
	for _, want := range blobs {
		if len(want.URLs) > 0 {
			continue
		}
		have, err := tx.LinkedBlob(m.Repository, want.Digest)
		if errors.Is(err, ErrBlobUnknown) {
			return Errorf(ManifestBlobUnknown, "%s does not hold blob %s (%s)", m.Repository, want.Digest, want.MediaType)
		}
		if err != nil {
			return err
		}
		if have.Size != want.Size {
			return Errorf(SizeInvalid, "the manifest says that %s has %d bytes; it has %d", want.Digest, want.Size, have.Size)
		}
	}
	return nil
}

// DeleteManifest removes a tag, or a manifest with its tags. Pack versions and their tags stay.
// Errors: ManifestUnknown, Unsupported.
func (s *Service) DeleteManifest(ctx context.Context, p auth.Principal, repository string, ref Reference) error {
	if err := s.mayDelete(ctx, p, repository); err != nil {
		return err
	}
	return s.meta.Update(ctx, func(tx Tx) error {
		m, err := resolve(tx, repository, ref)
		if err != nil {
			return err
		}
		v, err := tx.VersionByManifest(repository, m.Digest)
		switch {
		case err == nil:
			return Errorf(Unsupported, "%s is version %s of %s; versions are immutable and can't be deleted", m.Digest, v.Version, v.ID())
		case !errors.Is(err, ErrNotFound):
			return err
		}
		if v, err := tx.SuiteByManifest(repository, m.Digest); err == nil {
			return Errorf(Unsupported, "%s is version %s of the %s %s; versions are immutable and can't be deleted", m.Digest, v.Version, v.Kind, v.ID())
		} else if !errors.Is(err, ErrNotFound) {
			return err
		}
		if ref.Tag != "" {
			err = tx.DeleteTag(repository, ref.Tag)
		} else {
			err = tx.DeleteManifest(repository, ref.Digest)
		}
		if err != nil {
			return err
		}
		return s.audit(tx, p, "manifest.delete", repository+":"+ref.String(), m.Digest.String())
	})
}

// Tags lists tag names after last, at most limit (negative: all), in byte order. Errors: NameUnknown.
func (s *Service) Tags(ctx context.Context, p auth.Principal, repository, last string, limit int) ([]string, error) {
	if err := s.mayRead(ctx, p, repository); err != nil {
		return nil, err
	}
	var tags []string
	err := s.meta.View(ctx, func(tx Tx) (err error) {
		if _, err = tx.Repository(repository); err != nil {
			return err
		}
		if tags, err = tx.Tags(repository, last, limit); err != nil || len(tags) > 0 {
			return err
		}
		visible, err := tx.RepositoryVisible(repository)
		if err == nil && !visible {
			err = ErrNameUnknown
		}
		return err
	})
	return tags, err
}

// Repositories lists repository names after last, at most limit (negative: all), in byte order. A repository that holds
// nothing but blobs, of a push that was refused or not finished, is not among them.
func (s *Service) Repositories(ctx context.Context, p auth.Principal, last string, limit int) ([]string, error) {
	if err := s.authorize(ctx, p, auth.ReadContent, "", "the catalogue"); err != nil {
		return nil, err
	}
	return s.readableRepositories(ctx, p, last, limit)
}

// ReferrersQuery is what a page of referrers is asked for by.
type ReferrersQuery struct {
	Subject      digest.Digest // need not exist
	ArtifactType string        // "" takes every type
	After        digest.Digest // the last one of the page before
	Limit        int           // at most so many
}

// descriptorBytes is what a descriptor takes in a list besides its annotations.
const descriptorBytes = 256

// Referrers lists the manifests that refer to a subject, by digest. Their annotations can be large, so a page also ends
// when it fills limit.Manifest bytes; more says that there are others behind it.
func (s *Service) Referrers(ctx context.Context, p auth.Principal, repository string, q ReferrersQuery) (page []Manifest, more bool, err error) {
	if err := s.mayRead(ctx, p, repository); err != nil {
		if errors.Is(err, ErrNameUnknown) {
			err = nil // as where nothing refers to the subject
		}
		return nil, false, err
	}
	err = s.meta.View(ctx, func(tx Tx) error {
		page, more = nil, false
		room := limit.Manifest
		return tx.Referrers(repository, q.Subject, q.ArtifactType, q.After, func(m Manifest) bool {
			room -= descriptorBytes
			for k, v := range m.Annotations {
				room -= len(k) + len(v)
			}
			if more = len(page) >= q.Limit || (room < 0 && len(page) > 0); !more {
				page = append(page, m)
			}
			return !more
		})
	})
	return page, more, err
}
