// Package mirror copies repositories, or a whole registry, from one place to another: registries that speak the
// distribution protocol, and OCI layout folders. What it promises, whatever the source does:
//
//   - Manifests arrive byte for byte with their media type, whatever that is; every byte is compared with its digest on
//     the way; after a tag was copied, its digest at the destination is compared with the source's.
//   - What a manifest names comes before the manifest, and a manifest before its tag. So a copy that was interrupted at any
//     moment is taken up by running it again: what lies at the destination by digest is not copied twice.
//   - A tag brings its manifest, the children of indexes (as far as the source has them), and all referrers, recursively.
//   - The destination's rules are the destination's: what it refuses is reported, and the rest goes on.
//   - Credentials go only to the host they are for, and to where its token challenge says; a redirect never takes them along.
//   - Memory does not depend on what a blob or a list holds: manifests have at most limit.Manifest bytes, a list at most
//     maxEntries entries, and whoever sends nothing for Options.Stall is given up.
package mirror

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"sync"
	"time"

	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
)

// Bounds of what a place may make us do.
const (
	maxEntries   = 1_000_000 // tags or repositories of one list, and manifests and blobs of one repository
	maxReferrers = 100_000   // of one manifest
	maxNesting   = 32        // indexes in indexes
	maxProblems  = 10_000    // of each sort that a report holds; more are only counted
	maxMoves     = 3         // how often a tag that moves meanwhile is copied again
)

// Options say how to copy. The zero value works.
type Options struct {
	Jobs     int           // tags, and blobs of a manifest, copied at a time; 0 is 4
	Attempts int           // tries of what may succeed later; 0 is 6
	Pause    time.Duration // before the second try, doubled each time, unless the server says when; 0 is half a second
	Stall    time.Duration // how long a peer may send or take nothing; 0 is two minutes
	DryRun   bool          // look only
	// Repositories, unless empty, are those to copy of a source that is a whole registry; its catalogue is not asked.
	Repositories []string
	// Admit is called before a repository's first write; an error skips the repository. nil admits all.
	Admit func(ctx context.Context, repository string) error
	Found func(n int64)     // bytes that will be copied
	Moved func(n int64)     // bytes that were
	Log   func(line string) // what happens, for a person
}

func (o Options) withDefaults() Options {
	if o.Jobs <= 0 {
		o.Jobs = 4
	}
	if o.Attempts <= 0 {
		o.Attempts = 6
	}
	if o.Pause <= 0 {
		o.Pause = 500 * time.Millisecond
	}
	if o.Stall <= 0 {
		o.Stall = 2 * time.Minute
	}
	if o.Admit == nil {
		o.Admit = func(context.Context, string) error { return nil }
	}
	if o.Found == nil {
		o.Found = func(int64) {}
	}
	if o.Moved == nil {
		o.Moved = func(int64) {}
	}
	if o.Log == nil {
		o.Log = func(string) {}
	}
	return o
}

// Report says what a copy did, or with Options.DryRun would do.
type Report struct {
	Repositories int   `json:"repositories"`
	Tags         int   `json:"tags"`      // that are the same on both sides now
	Manifests    int   `json:"manifests"` // copied
	Blobs        int   `json:"blobs"`     // copied
	Bytes        int64 `json:"bytes"`     // of the copied blobs
	Mounted      int   `json:"mounted"`   // blobs that the destination had in another repository
	Present      int   `json:"present"`   // blobs and manifests that were there
	// Sparse are the children of indexes, and blobs with addresses of their own, that the source does not hold.
	Sparse    []Problem `json:"sparse,omitempty"`
	Refused   []Problem `json:"refused,omitempty"`   // by the rules of the destination
	Conflicts []Problem `json:"conflicts,omitempty"` // tags that the destination has and does not move
	Failed    []Problem `json:"failed,omitempty"`    // everything else that is missing
	Omitted   int       `json:"omitted,omitempty"`   // problems beyond what the report holds
}

// Problem is something that was not copied, and why.
type Problem struct {
	Repository string         `json:"repository"`
	Reference  string         `json:"reference,omitempty"` // a tag or a digest
	Code       registry.Code  `json:"code,omitempty"`
	Message    string         `json:"message"`
	Decision   *rule.Decision `json:"decision,omitempty"` // of the gate that refused
}

func (p Problem) String() string {
	if p.Reference == "" {
		return p.Repository + ": " + p.Message
	}
	return p.Repository + " " + p.Reference + ": " + p.Message
}

// manifest is a manifest as it lies at its place: its bytes are those of its digest.
type manifest struct {
	Digest    digest.Digest
	MediaType string
	Content   []byte
}

// place is a side of a copy. All methods are safe for concurrent use. What is absent is an *registry.Error with an exit
// code of "not found" (see absent).
type place interface {
	// Repositories lists the repositories, each a checked name, none twice.
	Repositories(ctx context.Context) iter.Seq2[string, error]
	// Tags lists a repository's tags. Roots are manifests that no tag names and nobody would find.
	Tags(ctx context.Context, repository string) iter.Seq2[string, error]
	Roots(ctx context.Context, repository string) ([]descriptor, error)
	// Resolve is the digest that a tag or a digest names.
	Resolve(ctx context.Context, repository, reference string) (digest.Digest, error)
	Manifest(ctx context.Context, repository, reference string) (manifest, error)
	// Referrers lists what refers to a manifest. known is false when the place can't tell; then its tags can.
	Referrers(ctx context.Context, repository string, subject digest.Digest) (list []descriptor, known bool, err error)
	HasBlob(ctx context.Context, repository string, d digest.Digest) (bool, error)
	Blob(ctx context.Context, repository string, d digest.Digest) (io.ReadCloser, error)
	// Mount makes a blob of another repository one of this; false when the place does not.
	Mount(ctx context.Context, repository, from string, d digest.Digest) (bool, error)
	PutBlob(ctx context.Context, repository string, want digest.Descriptor, r io.Reader) error
	// PutManifest stores a manifest under its digest, and under the tag unless that is "".
	PutManifest(ctx context.Context, repository, tag string, m manifest) error
	Close() error
}

// absent reports whether err says that something is not there.
func absent(err error) bool {
	return err != nil && registry.CodeOf(err).Meaning().Status == 404
}

// copier is one run.
type copier struct {
	src, dst place
	opt      Options
	slots    chan struct{} // one a blob on its way

	mu     sync.Mutex
	report Report
	holder map[digest.Digest]string // a repository of the destination that has the blob
}

// Run copies what from means. An error is what ended the whole run; what was left out is in the report. One repository that
// goes into a whole registry keeps its name, and one that goes into a folder is the layout there; each repository of a
// whole registry is a layout DIR/NAME.
func Run(ctx context.Context, from, to Place, opt Options) (Report, error) {
	opt = opt.withDefaults()
	if from.Repository == "" && to.Repository != "" && !from.oneLayout() {
		return Report{}, registry.Errorf(registry.Invalid, "%s is a whole registry and can't go into the one repository %s", from, to)
	}
	src, err := from.open(opt, false)
	if err != nil {
		return Report{}, err
	}
	defer src.Close()
	dst, err := to.open(opt, true)
	if err != nil {
		return Report{}, err
	}
	c := &copier{src: src, dst: dst, opt: opt, slots: make(chan struct{}, opt.Jobs), holder: map[digest.Digest]string{}}
	err = c.all(ctx, from, to)
	return c.report, errors.Join(err, dst.Close())
}

// all copies every repository that from means.
func (c *copier) all(ctx context.Context, from, to Place) error {
	switch {
	case from.Repository != "" || from.oneLayout():
		name := to.Repository
		if name == "" && to.Base != nil {
			name = from.Repository
		}
		if name == "" && to.Base != nil {
			return registry.Errorf(registry.Invalid, "%s is one repository: say which it is to become, as %s/NAME", from, to)
		}
		return c.repository(ctx, from.Repository, name, false)
	case len(c.opt.Repositories) > 0:
		for _, name := range c.opt.Repositories {
			if err := registry.CheckRepositoryName(name); err != nil {
				return err
			}
			if err := c.repository(ctx, name, name, false); err != nil {
				return err
			}
		}
		return nil
	}
	for name, err := range c.src.Repositories(ctx) {
		if err != nil {
			return fmt.Errorf("the source's catalogue: %w", err)
		}
		if err := c.repository(ctx, name, name, true); err != nil {
			return err
		}
	}
	return nil
}

// count changes the report.
func (c *copier) count(change func(*Report)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(&c.report)
}

// note adds a problem to a list of the report.
func (c *copier) note(list func(*Report) *[]Problem, p Problem) {
	c.count(func(r *Report) {
		if l := list(r); len(*l) < maxProblems {
			*l = append(*l, p)
		} else {
			r.Omitted++
		}
	})
	c.opt.Log(p.String())
}

// begun reports whether anything was copied, or found there, so far.
func (c *copier) begun() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.report.Tags+c.report.Manifests+c.report.Blobs+c.report.Mounted+c.report.Present > 0
}

func sparse(r *Report) *[]Problem    { return &r.Sparse }
func refused(r *Report) *[]Problem   { return &r.Refused }
func conflicts(r *Report) *[]Problem { return &r.Conflicts }
func failed(r *Report) *[]Problem    { return &r.Failed }
