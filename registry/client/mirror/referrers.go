package mirror

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/gatehouse-registry/gatehouse/digest"
)

// A destination without the referrers API finds what refers to a manifest by an index that clients keep under a tag of the
// subject's (distribution-spec, "referrers tag schema"). A source of the same sort has those tags; here they are made from
// the lists of a source that has the API.

// dstLists reports whether the destination lists referrers itself. It is asked once, when something is there.
func (r *repo) dstLists(ctx context.Context) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lists == nil {
		_, known, err := r.dst.Referrers(ctx, r.to, digest.FromBytes(nil))
		if err != nil {
			return false, err
		}
		r.lists = &known
	}
	return *r.lists, nil
}

// listReferrers puts what was copied into the destination's lists, where it can't tell by itself.
func (r *repo) listReferrers(ctx context.Context) error {
	if r.opt.DryRun {
		return nil
	}
	subjects := slices.SortedFunc(maps.Keys(r.listed), byText)
	for _, subject := range subjects {
		var copied []descriptor
		for _, d := range r.listed[subject] {
			if o := r.done[d.Digest]; o != nil && o.err == nil {
				copied = append(copied, d)
			}
		}
		if err := r.addReferrers(ctx, subject, copied); err != nil {
			return fmt.Errorf("of %s: %w", subject, err)
		}
	}
	return nil
}

func byText(a, b digest.Digest) int { return strings.Compare(a.String(), b.String()) }

// addReferrers adds to the index of a subject what it lacks.
func (r *repo) addReferrers(ctx context.Context, subject digest.Digest, list []descriptor) error {
	tag := tagOfReferrers(subject)
	index := newIndex()
	m, err := r.dst.Manifest(ctx, r.to, tag)
	if err == nil {
		err = json.Unmarshal(m.Content, &index)
	}
	if err != nil && !absent(err) {
		return err
	}
	before := len(index.Manifests)
	for _, d := range list {
		if !slices.ContainsFunc(index.Manifests, func(have descriptor) bool { return have.Digest == d.Digest }) {
			index.Manifests = append(index.Manifests, d)
		}
	}
	if len(index.Manifests) == before {
		return nil
	}
	content, err := json.Marshal(index)
	if err != nil {
		return err
	}
	made, err := newManifest(ocispec.MediaTypeImageIndex, content, digest.Digest{})
	if err != nil {
		return err
	}
	return r.dst.PutManifest(ctx, r.to, tag, made)
}
