package registry

import (
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/gatehouse-registry/gatehouse/admission"
	"github.com/gatehouse-registry/gatehouse/admission/archive"
	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/admission/pack"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
)

// PublishArchive publishes a gzip tar of a pack, as the real clients upload it: nothing of it is claimed, so the owner
// is the account, or owner when an administrator names one. The archive is packed again into its deterministic form.
// A version that exists is a conflict, whatever its bytes. warnings are one line each.
// Errors: Denied, TooLarge, and a *rule.Denied of gate 1.
func (s *Service) PublishArchive(ctx context.Context, p auth.Principal, owner string, body io.Reader) (v Version, warnings []string, err error) {
	if owner == "" {
		owner = p.Namespace()
	}
	if err := s.authorize(ctx, p, auth.WriteContent, owner, "packs of "+owner); err != nil {
		return v, nil, err
	}
	rec, err := s.receive(ctx, body, limit.Compressed)
	if err != nil {
		return v, nil, err
	}
	defer s.abandon(ctx, rec)
	src := archive.Source{Size: rec.size, Open: func() (io.ReadCloser, error) { return s.open(ctx, rec) }}
	c, err := s.inspect(ctx, p, owner, src, rule.Report{})
	if err != nil {
		return v, nil, err
	}
	defer s.closeCandidate(ctx, c)
	if err := s.gate(ctx, c); err != nil {
		return v, nil, s.refused(ctx, p, c, err)
	}
	a, err := s.storeArtifact(ctx, c)
	if err != nil {
		return v, nil, err
	}
	v, decision, err := s.publish(ctx, p, c, a)
	if err != nil {
		return v, nil, s.refused(ctx, p, c, err)
	}
	for _, w := range decision.Warnings {
		warnings = append(warnings, w.String())
	}
	return v, warnings, nil
}

// gate refuses early, before anything is stored; publish decides again when it commits.
func (s *Service) gate(ctx context.Context, c candidate) error {
	var decision admission.Decision
	err := s.meta.View(ctx, func(tx Tx) (err error) {
		decision, err = s.decide(tx, c)
		return err
	})
	if err != nil {
		return err
	}
	return decision.Err()
}

// refused records a refusal of gate 1 and passes the error on.
func (s *Service) refused(ctx context.Context, p auth.Principal, c candidate, err error) error {
	if denied, ok := errors.AsType[*rule.Denied](err); ok {
		s.decided(denied.Decision)
		subject := denied.Decision.Subject
		s.auditRefusal(ctx, p, "pack.publish", subject.Name+"@"+subject.Version, err)
	}
	return err
}

// storeArtifact packs a checked archive anew and stores its bytes. What of it stays behind when the publish fails after
// all is named by no row.
func (s *Service) storeArtifact(ctx context.Context, c candidate) (artifactBytes, error) {
	var a artifactBytes
	layer, err := s.storeLayer(ctx, c.archive)
	if err != nil {
		return a, err
	}
	config, err := pack.BuildConfig(c.input.Pack)
	if err != nil {
		return a, err
	}
	want := digest.Descriptor{MediaType: pack.MediaTypeConfig, Digest: digest.FromBytes(config), Size: int64(len(config))}
	stored, err := s.take(ctx, want, bytes.NewReader(config))
	if err != nil {
		return a, err
	}
	a.layer, a.config, a.fresh = layer.Descriptor, want, []content{layer, stored}
	a.manifest, err = pack.BuildManifest(c.input.Pack, a.layer, a.config)
	return a, err
}

// storeLayer packs the deterministic archive of a pack.
func (s *Service) storeLayer(ctx context.Context, t *archive.Archive) (content, error) {
	r, w := io.Pipe()
	packed := make(chan archive.Packed, 1)
	go func() {
		p, err := archive.Pack(w, t)
		packed <- p
		w.CloseWithError(err)
	}()
	rec, err := s.receive(ctx, r, limit.Compressed)
	r.CloseWithError(err) // ends the packer when the store gave up first
	p := <-packed
	if err != nil {
		return content{}, err
	}
	c, err := s.keep(ctx, rec, p.Digest)
	c.MediaType = pack.MediaTypeLayer
	return c, err
}

// putPack is gate 1 at the manifest PUT. By digest, the manifest passes the rules and is kept, but makes no version
// until a tag is put (design.md 9).
func (s *Service) putPack(ctx context.Context, p auth.Principal, m Manifest, doc document, ref Reference, content []byte) (Manifest, error) {
	switch {
	case m.MediaType != mediaImageManifest:
		return m, Errorf(ManifestInvalid, "a pack is pushed as %s, not as %.100q", mediaImageManifest, m.MediaType)
	case m.Digest.Algorithm() != digest.SHA256:
		return m, Errorf(DigestInvalid, "a pack is named by the sha256 digest of its manifest, not by %s", m.Digest)
	}
	if ref.Tag != "" {
		if again, err := s.sameVersion(ctx, m, ref.Tag); err != nil {
			return m, err
		} else if again {
			return m, s.mendManifest(ctx, m, content)
		}
	}
	if err := s.meta.View(ctx, func(tx Tx) error { return checkContent(tx, m, doc) }); err != nil {
		return m, err
	}
	c, a, err := s.inspectArtifact(ctx, p, m, ref, content)
	if err != nil {
		return m, err
	}
	defer s.closeCandidate(ctx, c)
	err = s.gate(ctx, c)
	if err == nil && ref.Tag == "" {
		return m, s.putArtifact(ctx, p, m, doc, ref, content)
	}
	if err == nil {
		_, _, err = s.publish(ctx, p, c, a)
	}
	if err == nil {
		return m, nil
	}
	if again, _ := s.sameVersion(ctx, m, ref.Tag); again {
		return m, nil // a push of the same manifest won the race
	}
	return m, s.refused(ctx, p, c, err)
}

// mendManifest stores the bytes of a manifest that the registry has, where its own are gone or damaged.
func (s *Service) mendManifest(ctx context.Context, m Manifest, content []byte) error {
	var have []byte
	err := s.meta.View(ctx, func(tx Tx) (err error) { // past what is remembered of it
		have, err = tx.Small(m.Digest)
		return err
	})
	if errors.Is(err, ErrBlobUnknown) {
		err = s.hasContent(ctx, digest.Descriptor{Digest: m.Digest, Size: m.Size})
	}
	if !errors.Is(err, ErrBlobUnknown) && (err != nil || have == nil || bytes.Equal(have, content)) {
		return err
	}
	again, err := s.takeManifest(ctx, m, content)
	if err != nil {
		return err
	}
	return s.commitContent(ctx, again, func(Tx) error { return nil })
}

// sameVersion reports whether the tag is a version with this very manifest: a client that lost the first answer may
// put it again, and nothing changes.
func (s *Service) sameVersion(ctx context.Context, m Manifest, tag string) (bool, error) {
	same := false
	err := s.meta.View(ctx, func(tx Tx) error {
		v, err := tx.Version(m.Repository, tag)
		if errors.Is(err, ErrNotFound) {
			return nil
		}
		same = err == nil && v.Manifest == m.Digest
		return err
	})
	return same, err
}

// inspectArtifact reads the pack that a manifest names.
func (s *Service) inspectArtifact(ctx context.Context, p auth.Principal, m Manifest, ref Reference, content []byte) (candidate, artifactBytes, error) {
	parsed, report := pack.ParseArtifact(content, s.set.Policy)
	owner := Owner(m.Repository)
	if parsed == nil {
		subject := rule.Subject{Name: m.Repository, Version: ref.Tag, Digest: m.Digest.String()}
		err := report.Decide(rule.Publish, subject, nil).Err()
		return candidate{}, artifactBytes{}, s.refused(ctx, p, candidate{}, err)
	}
	if parsed.Config.Size > limit.Config {
		return candidate{}, artifactBytes{}, Errorf(TooLarge, "the config has %d bytes, at most %d are allowed", parsed.Config.Size, limit.Config)
	}
	config, err := s.readContent(ctx, parsed.Config)
	if err != nil {
		return candidate{}, artifactBytes{}, err
	}
	c, err := s.inspect(ctx, p, owner, s.blobSource(ctx, parsed.Layer), report)
	if err != nil {
		return c, artifactBytes{}, err
	}
	c.input.Repository, c.input.Tag, c.input.ByDigest = m.Repository, ref.Tag, ref.Tag == ""
	c.input.Artifact, c.input.Config = parsed, config
	return c, artifactBytes{manifest: content, config: parsed.Config, layer: parsed.Layer}, nil
}
