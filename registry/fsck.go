package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
)

// Finding is one thing that a check found wrong.
type Finding struct {
	Kind     string        `json:"kind"`
	Digest   digest.Digest `json:"digest,omitzero"`
	Bytes    int64         `json:"bytes,omitempty"`
	Holders  []string      `json:"holders,omitempty"` // repositories, versions and jobs that suffer, the first few
	Detail   string        `json:"detail"`
	Repaired bool          `json:"repaired"`
}

// The kinds of findings. Unreferenced content is no damage: the next collection removes it.
const (
	FindingMissing      = "missing"      // a row names bytes that are not there
	FindingDamaged      = "damaged"      // the bytes are not those of their digest; they were set aside
	FindingSize         = "size"         // rows give a digest different sizes, or one that its bytes don't have
	FindingVersion      = "version"      // a version that the ledger, its manifest or its tag contradicts
	FindingTag          = "tag"          // a tag without its manifest
	FindingReference    = "reference"    // a manifest names a blob that its repository does not hold
	FindingUsage        = "usage"        // the counts of an owner were wrong; they are mended at once
	FindingUnreferenced = "unreferenced" // bytes that no row names
)

// RepairSource gives bytes by digest. They are verified by whoever stores them.
type RepairSource interface {
	// Fetch opens want's bytes, which the repositories held here. Errors: ErrBlobUnknown when the source has them nowhere.
	Fetch(ctx context.Context, repositories []string, want digest.Descriptor) (io.ReadCloser, error)
}

// FsckOptions say how to check.
type FsckOptions struct {
	From     RepairSource        // where missing and damaged bytes are fetched from; nil repairs nothing
	Rate     int64               // bytes a second that are read at most; 0 means no limit
	Each     func(Finding) error // called for every finding; an error ends the check. nil is fine
	Progress func(FsckReport)    // called now and then; nil is fine
}

// FsckReport sums a check up.
type FsckReport struct {
	Blobs     int       `json:"blobs"` // read again
	Bytes     int64     `json:"bytes"`
	Damage    int       `json:"damage"`   // findings that are damage, repaired ones too
	Repaired  int       `json:"repaired"` // of these
	StartedAt time.Time `json:"startedAt"`
	EndedAt   time.Time `json:"endedAt"`
}

// Whole reports whether nothing is damaged any more.
func (r FsckReport) Whole() bool { return r.Damage == r.Repaired }

const (
	checkPage  = 256 // entries of a list that are held at a time
	maxHolders = 20  // that a finding names
	maxLost    = 1000
)

// Fsck reads everything that a row names again and compares rows and bytes both ways. It works beside everybody else, in
// bounded memory, and changes nothing but this: damaged bytes are set aside, wrong counts mended, and with a source what is
// missing is fetched. Errors: Denied.
func (s *Service) Fsck(ctx context.Context, p auth.Principal, opt FsckOptions) (FsckReport, error) {
	if err := s.authorize(ctx, p, auth.CheckContent, "", "the registry"); err != nil {
		return FsckReport{}, err
	}
	c := &check{s: s, opt: opt, report: FsckReport{StartedAt: s.now()}}
	for _, step := range []func(context.Context) error{c.rows, c.references, c.bytes, c.unreferenced} {
		if err := step(ctx); err != nil {
			return c.report, err
		}
	}
	c.report.EndedAt = s.now()
	return c.report, nil
}

// FsckFrom is Fsck with a source that is named (Deps.Source); "" is none. Errors: as Fsck; Invalid.
func (s *Service) FsckFrom(ctx context.Context, p auth.Principal, from string, opt FsckOptions) (FsckReport, error) {
	if from == "" {
		return s.Fsck(ctx, p, opt)
	}
	if err := s.authorize(ctx, p, auth.CheckContent, "", "the registry"); err != nil {
		return FsckReport{}, err
	}
	if s.source == nil {
		return FsckReport{}, Errorf(Invalid, "from: this registry repairs from nowhere")
	}
	var err error
	if opt.From, err = s.source(from); err != nil {
		return FsckReport{}, err
	}
	return s.Fsck(ctx, p, opt)
}

// check is one run.
type check struct {
	s      *Service
	opt    FsckOptions
	keep   func(context.Context) error // called now and then while bytes are read; nil is fine
	report FsckReport
}

func (c *check) find(f Finding) error {
	if f.Kind != FindingUnreferenced {
		c.report.Damage++
		if f.Repaired {
			c.report.Repaired++
		}
	}
	switch f.Kind {
	case FindingDamaged:
		c.s.upkeep.count(func(st *Stats) { st.DamagedBlobs++ })
	case FindingMissing:
		c.s.upkeep.count(func(st *Stats) { st.MissingBlobs++ })
	}
	c.s.log.Warn("check of what the registry holds", "kind", f.Kind, "digest", f.Digest, "detail", f.Detail, "repaired", f.Repaired)
	if c.opt.Each == nil {
		return nil
	}
	return c.opt.Each(f)
}

// rows compares rows with each other, and mends counts.
func (c *check) rows(ctx context.Context) error {
	var tags []Tag
	var versions []string
	var kept, counted []OwnerUsage
	err := c.s.meta.View(ctx, func(tx Tx) (err error) {
		if tags, err = tx.LostTags(maxLost); err != nil {
			return err
		}
		if versions, err = tx.LostVersions(maxLost); err != nil {
			return err
		}
		kept, counted, err = tx.UsageDrift(maxLost)
		return err
	})
	if err != nil {
		return err
	}
	for _, t := range tags {
		if err := c.find(Finding{Kind: FindingTag, Digest: t.Digest, Holders: []string{t.Repository}, Detail: fmt.Sprintf("tag %s points at a manifest that the repository does not have", t.Name)}); err != nil {
			return err
		}
	}
	for _, v := range versions {
		id, detail, _ := strings.Cut(v, ": ")
		if err := c.find(Finding{Kind: FindingVersion, Holders: []string{id}, Detail: detail}); err != nil {
			return err
		}
	}
	if len(kept) == 0 {
		return nil
	}
	if err := c.s.meta.Update(ctx, func(tx Tx) error { return tx.RecountUsage() }); err != nil {
		return err
	}
	for i, k := range kept {
		n := counted[i]
		err := c.find(Finding{Kind: FindingUsage, Holders: []string{k.Owner}, Repaired: true, Detail: fmt.Sprintf(
			"was charged for %d bytes, %d versions, %d manifests; holds %d, %d, %d", k.Bytes, k.Versions, k.Manifests, n.Bytes, n.Versions, n.Manifests)})
		if err != nil {
			return err
		}
	}
	return nil
}

// references looks for manifests that name blobs which their repository does not hold. Layers that lie elsewhere are named
// with their addresses, so a manifest that misses something is read.
func (c *check) references(ctx context.Context) error {
	for after := (BlobReference{}); ; {
		var page []BlobReference
		err := c.s.meta.View(ctx, func(tx Tx) (err error) {
			page, err = tx.LooseReferences([]string{mediaImageManifest, mediaDockerManifest}, after, checkPage)
			return err
		})
		if err != nil || len(page) == 0 {
			return err
		}
		after = page[len(page)-1]
		for _, r := range page {
			foreign, err := c.isForeign(ctx, r)
			if err != nil {
				return err
			}
			if foreign {
				continue
			}
			if err := c.find(Finding{Kind: FindingReference, Digest: r.Digest, Holders: []string{r.Repository}, Detail: fmt.Sprintf(
				"manifest %s names it, and the repository does not hold it", r.Manifest)}); err != nil {
				return err
			}
		}
	}
}

// isForeign reports whether a manifest gives the blob an address of its own, or can't be read: that is found elsewhere.
func (c *check) isForeign(ctx context.Context, r BlobReference) (bool, error) {
	var m Manifest
	err := c.s.meta.View(ctx, func(tx Tx) (err error) {
		m, err = tx.Manifest(r.Repository, r.Manifest)
		return err
	})
	if errors.Is(err, ErrManifestUnknown) {
		return true, nil // deleted meanwhile
	}
	if err != nil {
		return false, err
	}
	content, err := c.s.readContent(ctx, digest.Descriptor{Digest: m.Digest, Size: m.Size})
	if err != nil {
		return true, ctx.Err()
	}
	doc, err := parseDocument(m.MediaType, content)
	if err != nil {
		return true, nil
	}
	for _, d := range doc.references() {
		if d.Digest == r.Digest && len(d.URLs) > 0 {
			return true, nil
		}
	}
	return false, nil
}

// bytes reads everything again that a row names.
func (c *check) bytes(ctx context.Context) error {
	for after := (digest.Digest{}); ; {
		next, err := c.page(ctx, after)
		if err != nil || next.IsZero() {
			return err
		}
		after = next
	}
}

// page checks what a page of rows names and gives the last digest of it, zero behind the end.
func (c *check) page(ctx context.Context, after digest.Digest) (digest.Digest, error) {
	var list []digest.Descriptor
	err := c.s.meta.View(ctx, func(tx Tx) (err error) {
		list, err = tx.NamedBlobs(after, checkPage)
		return err
	})
	if err != nil || len(list) == 0 {
		return digest.Digest{}, err
	}
	last := list[len(list)-1].Digest
	for i, d := range list {
		if i > 0 && list[i-1].Digest == d.Digest {
			if err := c.find(Finding{Kind: FindingSize, Digest: d.Digest, Holders: c.holders(ctx, d.Digest), Detail: fmt.Sprintf(
				"rows say %d and %d bytes", list[i-1].Size, d.Size)}); err != nil {
				return last, err
			}
			continue
		}
		if err := c.blob(ctx, d); err != nil {
			return last, err
		}
	}
	return last, nil
}

// blob reads one again.
func (c *check) blob(ctx context.Context, want digest.Descriptor) error {
	small, err := c.read(ctx, want)
	if !small && damaged(err) { // a read can go wrong, and another check or a push may have mended it since
		small, err = c.read(ctx, want)
	}
	c.report.Blobs++
	c.report.Bytes += want.Size
	c.s.upkeep.count(func(st *Stats) {
		st.ScrubbedBlobs++
		st.ScrubbedBytes += want.Size
	})
	if c.opt.Progress != nil {
		c.opt.Progress(c.report)
	}
	mismatch, damaged := errors.AsType[*digest.MismatchError](err)
	switch {
	case err == nil:
		return nil
	case !damaged && !errors.Is(err, ErrBlobUnknown):
		return fmt.Errorf("read %s again: %w", want.Digest, err)
	}
	// A collection may have removed it since it was listed.
	named := false
	viewErr := c.s.meta.View(ctx, func(tx Tx) (err error) {
		named, err = tx.BlobNamed(want.Digest)
		return err
	})
	if viewErr != nil || !named {
		return viewErr
	}
	f := Finding{Kind: FindingMissing, Digest: want.Digest, Bytes: want.Size, Holders: c.holders(ctx, want.Digest), Detail: "the store does not have its bytes"}
	if damaged {
		f.Kind, f.Detail = FindingDamaged, mismatch.Error()
		if !small {
			if err := c.s.blobs.Quarantine(ctx, want.Digest); err != nil && !errors.Is(err, ErrBlobUnknown) {
				return fmt.Errorf("set damaged %s aside: %w", want.Digest, err)
			}
			f.Detail += "; they were set aside"
		}
	}
	if c.opt.From != nil {
		if err := c.repair(ctx, want, f.Holders); err != nil {
			f.Detail += "; not repaired: " + err.Error()
		} else {
			f.Repaired = true
		}
	}
	return c.find(f)
}

// read reads bytes where they lie and compares them with their digest; small says that this is beside their row.
func (c *check) read(ctx context.Context, want digest.Descriptor) (small bool, err error) {
	r, small, err := c.open(ctx, want)
	if err != nil {
		return small, err
	}
	_, err = io.Copy(io.Discard, digest.NewReader(&pacedReader{ctx: ctx, r: r, rate: c.opt.Rate, keep: c.keep}, want))
	return small, errors.Join(err, r.Close())
}

// open opens bytes where they lie, past every memory of them; small says that this is beside their row.
func (c *check) open(ctx context.Context, d digest.Descriptor) (r io.ReadCloser, small bool, err error) {
	if d.Size <= smallContent {
		var b []byte
		err := c.s.meta.View(ctx, func(tx Tx) (err error) {
			b, err = tx.Small(d.Digest)
			return err
		})
		if !errors.Is(err, ErrBlobUnknown) {
			return io.NopCloser(strings.NewReader(string(b))), true, err
		}
	}
	b, _, err := c.s.blobs.Open(ctx, d.Digest)
	return b, false, err
}

// repair fetches bytes and stores them where they belong.
func (c *check) repair(ctx context.Context, want digest.Descriptor, holders []string) error {
	var repositories []string
	for _, h := range holders {
		if !strings.ContainsAny(h, "@ ") {
			repositories = append(repositories, h)
		}
	}
	r, err := c.opt.From.Fetch(ctx, repositories, want)
	if err != nil {
		return err
	}
	defer r.Close()
	got, err := c.s.take(ctx, want, r)
	if err != nil || got.small == nil {
		return err
	}
	return c.s.meta.Update(ctx, func(tx Tx) error { return tx.PutSmall(want.Digest, got.small, c.s.now()) })
}

// holders names who suffers.
func (c *check) holders(ctx context.Context, d digest.Digest) []string {
	var list []string
	err := c.s.meta.View(ctx, func(tx Tx) (err error) {
		list, err = tx.BlobHolders(d, maxHolders)
		return err
	})
	if err != nil {
		return []string{"unknown: " + err.Error()}
	}
	return list
}

// unreferenced counts bytes that no row names and that are older than a push may take.
func (c *check) unreferenced(ctx context.Context) error {
	n, bytes := 0, int64(0)
	cutoff := c.s.now().Add(-c.s.set.Collection.Grace)
	for b, err := range c.s.blobs.All(ctx) {
		if err != nil {
			return err
		}
		if b.StoredAt.After(cutoff) {
			continue
		}
		err := c.s.meta.View(ctx, func(tx Tx) error {
			named, err := tx.BlobNamed(b.Digest)
			if err == nil && !named {
				n, bytes = n+1, bytes+b.Size
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	if n == 0 {
		return nil
	}
	return c.find(Finding{Kind: FindingUnreferenced, Bytes: bytes, Detail: fmt.Sprintf("%d blobs that no row names; a collection removes them", n)})
}
