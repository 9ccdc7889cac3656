package mirror

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
)

// repo is the copy of one repository.
type repo struct {
	*copier
	from, to string

	mu      sync.Mutex
	done    map[digest.Digest]*outcome     // of manifests and blobs
	pending []digest.Digest                // referrers and subjects to copy once the tags are through
	listed  map[digest.Digest][]descriptor // referrers of a subject, where the destination can't list them itself
	fatal   error                          // ends the repository
	lists   *bool                          // whether the destination lists referrers itself; nil before it was asked
}

// outcome is the result of something that is done once; end is closed when it is known.
type outcome struct {
	end chan struct{}
	err error
}

// errLeft ends a repository in which we may do nothing more; the run goes on.
var errLeft = errors.New("the repository was left")

// repository copies one repository. listed says that the source's catalogue names it: some name what holds nothing any more.
// An error ends the whole run.
func (c *copier) repository(ctx context.Context, from, to string, listed bool) error {
	r := &repo{copier: c, from: from, to: to, done: map[digest.Digest]*outcome{}, listed: map[digest.Digest][]descriptor{}}
	if !c.opt.DryRun {
		if err := c.opt.Admit(ctx, to); err != nil {
			return r.end(r.problem(ctx, "", err))
		}
	}
	c.opt.Log(fmt.Sprintf("repository %s", r.name()))
	c.count(func(rep *Report) { rep.Repositories++ })
	switch err := r.tags(ctx); {
	case errors.Is(err, errLeft):
		return nil
	case listed && absent(err):
		r.note(sparse, Problem{Repository: r.name(), Message: "the source's catalogue names it, and it holds no tags"})
		return nil
	case err != nil:
		return r.end(r.problem(ctx, "", fmt.Errorf("tags: %w", err)))
	}
	roots, err := c.src.Roots(ctx, from)
	if err != nil {
		return r.end(r.problem(ctx, "", err))
	}
	for _, d := range roots {
		r.enqueue(d.Digest)
	}
	if err := r.rest(ctx); err != nil {
		return r.end(err)
	}
	if err := r.listReferrers(ctx); err != nil {
		return r.end(r.problem(ctx, "", fmt.Errorf("referrers: %w", err)))
	}
	return nil
}

// end is what the end of a repository means to the run.
func (r *repo) end(err error) error {
	if errors.Is(err, errLeft) {
		return nil
	}
	return err
}

func (r *repo) name() string {
	if r.to == "" {
		return r.from
	}
	return r.to
}

// tags copies every tag, Options.Jobs at a time.
func (r *repo) tags(ctx context.Context) error {
	var g group
	g.limit(r.opt.Jobs)
	defer g.wait()
	for tag, err := range r.src.Tags(ctx, r.from) {
		if err != nil {
			return err
		}
		if err := r.ended(ctx); err != nil {
			return err
		}
		g.run(func() { r.fail(r.problem(ctx, tag, r.tag(ctx, tag))) })
	}
	g.wait()
	return r.ended(ctx)
}

// rest copies what the manifests of the tags led to, and what that leads to.
func (r *repo) rest(ctx context.Context) error {
	for {
		r.mu.Lock()
		batch := r.pending
		r.pending = nil
		r.mu.Unlock()
		if len(batch) == 0 {
			return r.ended(ctx)
		}
		var g group
		g.limit(r.opt.Jobs)
		for _, d := range batch {
			if err := r.ended(ctx); err != nil {
				break
			}
			g.run(func() {
				err := r.manifest(ctx, d, 0)
				if lacks(err, d) {
					r.note(sparse, Problem{Repository: r.name(), Reference: d.String(), Message: "the source lists it and lacks it"})
					return
				}
				r.fail(r.problem(ctx, d.String(), err))
			})
		}
		g.wait()
		if err := r.ended(ctx); err != nil {
			return err
		}
	}
}

// tag copies a tag with all below it, again when the source moved it meanwhile, and compares both sides.
func (r *repo) tag(ctx context.Context, tag string) error {
	for range maxMoves {
		m, err := r.src.Manifest(ctx, r.from, tag)
		if err != nil {
			return err
		}
		if err := r.once(ctx, m.Digest, func() error { return r.below(ctx, m, 0) }); err != nil {
			return err
		}
		if err := r.putTag(ctx, tag, m); err != nil {
			return err
		}
		now, err := r.src.Resolve(ctx, r.from, tag)
		if err != nil && !absent(err) {
			return err
		}
		if now == m.Digest {
			r.count(func(rep *Report) { rep.Tags++ })
			return nil
		}
	}
	return registry.Errorf(registry.Conflict, "the source moved the tag %d times while it was copied", maxMoves)
}

// putTag stores a manifest under its tag and asks the destination what the tag names then.
func (r *repo) putTag(ctx context.Context, tag string, m manifest) error {
	have, err := r.dst.Resolve(ctx, r.to, tag)
	if err != nil && !absent(err) {
		return err
	}
	if have == m.Digest {
		r.count(func(rep *Report) { rep.Present++ })
		return r.follow(ctx, m)
	}
	r.count(func(rep *Report) { rep.Manifests++ })
	if r.opt.DryRun {
		return r.follow(ctx, m)
	}
	if err := r.dst.PutManifest(ctx, r.to, tag, m); err != nil {
		if lists, asked := r.dstLists(ctx); lists && asked == nil && referrersTag.MatchString(tag) && isRefusal(err) {
			return nil // what it lists is there, and the destination lists it itself
		}
		return err
	}
	if have, err = r.dst.Resolve(ctx, r.to, tag); err != nil {
		return err
	}
	if have != m.Digest {
		return fmt.Errorf("the destination's tag: %w", &digest.MismatchError{Want: m.Digest, Got: have})
	}
	return r.follow(ctx, m)
}

// manifest copies what the source has under a digest.
func (r *repo) manifest(ctx context.Context, d digest.Digest, depth int) error {
	if depth > maxNesting {
		return registry.Errorf(registry.ManifestInvalid, "indexes are nested more than %d deep", maxNesting)
	}
	return r.once(ctx, d, func() error {
		m, err := r.src.Manifest(ctx, r.from, d.String())
		if absent(err) {
			return &lackError{d, err}
		}
		if err != nil {
			return err
		}
		if err := r.below(ctx, m, depth); err != nil {
			return err
		}
		there, err := r.there(ctx, d)
		if err != nil {
			return err
		}
		if there {
			r.count(func(rep *Report) { rep.Present++ })
			return r.follow(ctx, m)
		}
		r.count(func(rep *Report) { rep.Manifests++ })
		if !r.opt.DryRun {
			if err := r.dst.PutManifest(ctx, r.to, "", m); err != nil {
				return err
			}
		}
		return r.follow(ctx, m)
	})
}

// there reports whether the destination has a manifest, and so what that names.
func (r *repo) there(ctx context.Context, d digest.Digest) (bool, error) {
	have, err := r.dst.Resolve(ctx, r.to, d.String())
	if absent(err) {
		return false, nil
	}
	return have == d, err
}

// lackError says that the source does not have a manifest that something of it names.
type lackError struct {
	digest digest.Digest
	err    error
}

func (e *lackError) Error() string { return e.err.Error() }
func (e *lackError) Unwrap() error { return e.err }

// lacks reports whether err says so of this very manifest.
func lacks(err error, d digest.Digest) bool {
	e, ok := errors.AsType[*lackError](err)
	return ok && e.digest == d
}

// below copies what a manifest names: the blobs of one that the destination lacks, and the children of an index.
func (r *repo) below(ctx context.Context, m manifest, depth int) error {
	c, err := m.parse()
	if err != nil {
		return err
	}
	for _, child := range c.Manifests {
		err := r.manifest(ctx, child.Digest, depth+1)
		if lacks(err, child.Digest) {
			r.note(sparse, Problem{Repository: r.name(), Reference: child.Digest.String(), Message: "the source lacks it, though the index " + m.Digest.String() + " names it"})
			continue
		}
		if err != nil {
			return fmt.Errorf("child %s: %w", child.Digest, err)
		}
	}
	there, err := r.there(ctx, m.Digest)
	if err != nil || there {
		return err
	}
	return r.blobs(ctx, c.blobs())
}

// follow has the referrers of a manifest that was copied, and the manifest that it refers to itself, copied too.
func (r *repo) follow(ctx context.Context, m manifest) error {
	c, err := m.parse()
	if err != nil {
		return err
	}
	if c.Subject != nil && !c.Subject.Digest.IsZero() {
		if _, err := r.src.Resolve(ctx, r.from, c.Subject.Digest.String()); err == nil {
			r.enqueue(c.Subject.Digest)
		}
	}
	list, known, err := r.src.Referrers(ctx, r.from, m.Digest)
	if err != nil || !known {
		return err
	}
	for _, d := range list {
		r.enqueue(d.Digest)
	}
	if len(list) == 0 {
		return nil
	}
	lists, err := r.dstLists(ctx)
	if err == nil && !lists {
		r.mu.Lock()
		r.listed[m.Digest] = list
		r.mu.Unlock()
	}
	return err
}

// enqueue has a manifest copied later, unless it was.
func (r *repo) enqueue(d digest.Digest) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.done[d] == nil {
		r.pending = append(r.pending, d)
	}
}

// once does something for a digest once; who comes later gets the same result. The digests of what contains itself can't
// be had, so nobody waits for himself.
func (r *repo) once(ctx context.Context, d digest.Digest, do func() error) error {
	r.mu.Lock()
	o := r.done[d]
	if o == nil && len(r.done) >= maxEntries {
		r.mu.Unlock()
		return registry.Errorf(registry.TooLarge, "the repository holds more than %d manifests and blobs", maxEntries)
	}
	if o != nil {
		r.mu.Unlock()
		select {
		case <-o.end:
			return o.err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	o = &outcome{end: make(chan struct{})}
	r.done[d] = o
	r.mu.Unlock()
	defer close(o.end)
	o.err = do()
	return o.err
}

// fail ends the repository with err, unless that is nil.
func (r *repo) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fatal == nil {
		r.fatal = err
	}
}

func (r *repo) ended(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fatal != nil {
		return r.fatal
	}
	return ctx.Err()
}

// problem sorts an error into the report. It returns the error when it must end the run: the caller gave up, or nobody was
// let in so far. It returns errLeft when the repository is closed to us, and the others may not be.
func (r *repo) problem(ctx context.Context, reference string, err error) error {
	if err == nil {
		return nil
	}
	code := registry.CodeOf(err)
	if ctx.Err() != nil || errors.Is(err, errLeft) || code == registry.Unauthorized && !r.begun() {
		return err
	}
	p := Problem{Repository: r.name(), Reference: reference, Code: code, Message: err.Error(), Decision: registry.DecisionOf(err)}
	if _, ok := errors.AsType[*digest.MismatchError](err); ok {
		p.Code = registry.DigestInvalid
	}
	switch {
	case code == registry.VersionImmutable || code == registry.Conflict:
		r.note(conflicts, p)
	case isRefusal(err):
		r.note(refused, p)
	default:
		r.note(failed, p)
	}
	if put, ok := errors.AsType[*putError](err); code == registry.Unauthorized || ok && put.blob && code == registry.Denied {
		return errLeft
	}
	return nil
}

// isRefusal reports whether err is a rule of the destination's.
func isRefusal(err error) bool {
	if _, put := errors.AsType[*putError](err); !put {
		return false
	}
	status := registry.CodeOf(err).Meaning().Status
	return registry.DecisionOf(err) != nil || slices.Contains([]int{400, 403, 405, 413, 422}, status)
}

// group runs functions, at most so many at a time.
type group struct {
	slots chan struct{}
	all   sync.WaitGroup
}

func (g *group) limit(n int) { g.slots = make(chan struct{}, n) }

// run runs f in a goroutine of its own, as soon as there is room.
func (g *group) run(f func()) {
	g.slots <- struct{}{}
	g.all.Go(func() {
		defer func() { <-g.slots }()
		f()
	})
}

func (g *group) wait() { g.all.Wait() }
