package registry

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/gatehouse-registry/gatehouse/admission/name"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
)

// RetentionRule says what a repository that holds no packs keeps. The first rule whose pattern names a repository counts.
// Versions of packs, and what refers to them, no rule touches.
type RetentionRule struct {
	Repositories  string        `json:"repositories" yaml:"repositories"`    // a pattern: a name, name/*, name/**
	KeepTags      int           `json:"keepTags" yaml:"keep_tags"`           // so many tags that were moved last; 0 sets no bound by number
	KeepFor       time.Duration `json:"keepFor" yaml:"keep_for"`             // tags that were moved no longer ago; 0 sets no bound by age
	Keep          []string      `json:"keep" yaml:"keep"`                    // glob patterns of tags that stay in any case
	UntaggedAfter time.Duration `json:"untaggedAfter" yaml:"untagged_after"` // how long a manifest stays that nothing keeps; 0: for ever
}

// maxKeepTags bounds the times that a collection holds in memory.
const maxKeepTags = 10_000

// Check refuses a rule that says nothing or can't be followed, all faults together.
func (r RetentionRule) Check() error {
	var faults []error
	if err := auth.CheckPattern(r.Repositories); err != nil {
		faults = append(faults, fmt.Errorf("repositories: %w", err))
	}
	if r.KeepTags < 0 || r.KeepTags > maxKeepTags {
		faults = append(faults, fmt.Errorf("keep_tags: %d is not 0 to %d", r.KeepTags, maxKeepTags))
	}
	if r.KeepFor < 0 || r.UntaggedAfter < 0 {
		faults = append(faults, errors.New("keep_for, untagged_after: a time is not negative"))
	}
	for i, p := range r.Keep {
		if _, err := path.Match(p, ""); err != nil {
			faults = append(faults, fmt.Errorf("keep[%d]: %q is no pattern of tags: %w", i, p, err))
		}
	}
	if r.KeepTags == 0 && r.KeepFor == 0 && r.UntaggedAfter == 0 {
		faults = append(faults, errors.New("one of keep_tags, keep_for and untagged_after is needed: the rule removes nothing"))
	}
	return errors.Join(faults...)
}

// limitsTags reports whether the rule removes tags.
func (r RetentionRule) limitsTags() bool { return r.KeepTags > 0 || r.KeepFor > 0 }

// keeps reports whether a tag stays in any case.
func (r RetentionRule) keeps(tag string) bool {
	for _, p := range r.Keep {
		if ok, err := path.Match(p, tag); ok && err == nil {
			return true
		}
	}
	return false
}

// looseInPacks is how long a repository of packs keeps a manifest that is no version, no part or referrer of one, and has
// no tag: a push by digest whose tag never came.
const looseInPacks = 7 * 24 * time.Hour

// retentionRule is the rule for a repository.
func (s *Service) retentionRule(repo Repository) (RetentionRule, bool) {
	if repo.PackKind != "" {
		return RetentionRule{UntaggedAfter: looseInPacks}, true
	}
	for _, r := range s.set.Retention {
		if auth.Match(r.Repositories, repo.Name) {
			return r, true
		}
	}
	return RetentionRule{}, false
}

// retention removes what the rules give up.
func (c *collection) retention(ctx context.Context) error {
	for after := ""; ; {
		var page []Repository
		err := c.s.meta.View(ctx, func(tx Tx) (err error) {
			page, err = tx.AllRepositories(after, collectPage)
			return err
		})
		if err != nil || len(page) == 0 {
			return err
		}
		after = page[len(page)-1].Name
		for _, repo := range page {
			rule, ok := c.s.retentionRule(repo)
			if !ok {
				continue
			}
			if err := c.retain(ctx, repo.Name, rule); err != nil {
				return fmt.Errorf("retention in %s: %w", repo.Name, err)
			}
		}
	}
}

// retain follows a rule in a repository: tags first, then signatures whose subject has gone, then manifests, until a pass
// finds none that another one kept.
func (c *collection) retain(ctx context.Context, repository string, rule RetentionRule) error {
	if rule.limitsTags() {
		if err := c.tags(ctx, repository, rule); err != nil {
			return err
		}
	}
	if rule.UntaggedAfter == 0 {
		return nil
	}
	if err := c.signatures(ctx, repository, rule); err != nil {
		return err
	}
	for {
		before := c.report.Manifests
		if err := c.manifests(ctx, repository, rule); err != nil || c.opt.DryRun || c.report.Manifests == before {
			return err
		}
	}
}

// tags removes the tags that the rule gives up. Those of signatures belong to their subject and count for nothing.
func (c *collection) tags(ctx context.Context, repository string, rule RetentionRule) error {
	oldest, err := c.oldestKept(ctx, repository, rule)
	if err != nil {
		return err
	}
	now := c.report.StartedAt
	return c.eachTag(ctx, repository, func(t Tag) (reason string) {
		switch {
		case name.IsSignatureTag(t.Name), rule.keeps(t.Name):
			return ""
		case rule.KeepTags > 0 && !t.UpdatedAt.Before(oldest):
			return ""
		case rule.KeepFor > 0 && now.Sub(t.UpdatedAt) <= rule.KeepFor:
			return ""
		}
		return fmt.Sprintf("retention of %s: moved last at %s, kept are %s", rule.Repositories, t.UpdatedAt.UTC().Format(time.RFC3339), rule.describe())
	})
}

// describe says which tags a rule keeps.
func (r RetentionRule) describe() string {
	var parts []string
	if r.KeepTags > 0 {
		parts = append(parts, fmt.Sprintf("the last %d", r.KeepTags))
	}
	if r.KeepFor > 0 {
		parts = append(parts, "those of the last "+r.KeepFor.String())
	}
	if len(r.Keep) > 0 {
		parts = append(parts, strings.Join(r.Keep, ", "))
	}
	return strings.Join(parts, " and ")
}

// times is a heap of moments with the earliest on top.
type times []time.Time

func (t times) Len() int           { return len(t) }
func (t times) Less(i, j int) bool { return t[i].Before(t[j]) }
func (t times) Swap(i, j int)      { t[i], t[j] = t[j], t[i] }
func (t *times) Push(x any)        { *t = append(*t, x.(time.Time)) }
func (t *times) Pop() any {
	last := (*t)[len(*t)-1]
	*t = (*t)[:len(*t)-1]
	return last
}

// oldestKept is when the last of the rule's KeepTags tags was moved.
func (c *collection) oldestKept(ctx context.Context, repository string, rule RetentionRule) (time.Time, error) {
	newest := times{}
	err := c.pageTags(ctx, repository, func(page []Tag) error {
		for _, t := range page {
			if name.IsSignatureTag(t.Name) || rule.keeps(t.Name) {
				continue
			}
			heap.Push(&newest, t.UpdatedAt)
			if len(newest) > rule.KeepTags {
				heap.Pop(&newest)
			}
		}
		return nil
	})
	if err != nil || len(newest) == 0 {
		return time.Time{}, err
	}
	return newest[0], nil
}

func (c *collection) pageTags(ctx context.Context, repository string, visit func([]Tag) error) error {
	for after := ""; ; {
		var page []Tag
		err := c.s.meta.View(ctx, func(tx Tx) (err error) {
			page, err = tx.TagRows(repository, after, collectPage)
			return err
		})
		if err != nil || len(page) == 0 {
			return err
		}
		after = page[len(page)-1].Name
		if err := visit(page); err != nil {
			return err
		}
	}
}

// eachTag removes the tags for which why gives a reason, unless somebody moved them meanwhile.
func (c *collection) eachTag(ctx context.Context, repository string, why func(Tag) string) error {
	return c.pageTags(ctx, repository, func(page []Tag) error {
		var list []Removal
		seen := map[string]Tag{}
		for _, t := range page {
			if reason := why(t); reason != "" {
				list = append(list, Removal{Kind: removedTag, Repository: repository, Tag: t.Name, Digest: t.Digest, Reason: reason})
				seen[t.Name] = t
			}
		}
		return c.removeAll(ctx, list, func(tx Tx, r Removal) (bool, error) { return c.removeTag(tx, seen[r.Tag]) })
	})
}

func (c *collection) removeTag(tx Tx, t Tag) (bool, error) {
	switch now, err := tx.Tag(t.Repository, t.Name); {
	case errors.Is(err, ErrManifestUnknown):
		return false, nil
	case err != nil:
		return false, err
	case now != t:
		return false, nil
	}
	if v, err := tx.Version(t.Repository, t.Name); err == nil {
		return false, Errorf(Internal, "tag %s of %s is a version of %s", t.Name, t.Repository, v.ID())
	} else if !errors.Is(err, ErrNotFound) {
		return false, err
	}
	if err := tx.DeleteTag(t.Repository, t.Name); err != nil {
		return false, err
	}
	return true, c.s.audit(tx, c.by, "retention.tag", t.Repository+":"+t.Name, t.Digest.String())
}

// signatures removes tags by which signatures of a digest are found, once that digest is no manifest of the repository.
func (c *collection) signatures(ctx context.Context, repository string, rule RetentionRule) error {
	var failed error
	err := c.eachTag(ctx, repository, func(t Tag) string {
		subject, ok := signedBy(t.Name)
		if !ok || failed != nil || c.report.StartedAt.Sub(t.UpdatedAt) <= rule.UntaggedAfter {
			return ""
		}
		err := c.s.meta.View(ctx, func(tx Tx) error {
			_, err := tx.ManifestHolders(repository, subject)
			return err
		})
		if err == nil || !errors.Is(err, ErrManifestUnknown) {
			failed = err
			return ""
		}
		return fmt.Sprintf("%s, which it belongs to, is not in the repository", subject)
	})
	return errors.Join(failed, err)
}

// signedBy is the digest that a tag of cosign's, or of the referrers fallback, belongs to.
func signedBy(tag string) (digest.Digest, bool) {
	if !name.IsSignatureTag(tag) {
		return digest.Digest{}, false
	}
	tag, _, _ = strings.Cut(tag, ".")
	algorithm, hex, _ := strings.Cut(tag, "-")
	d, err := digest.Parse(algorithm + ":" + hex)
	return d, err == nil
}

// manifests removes manifests that nothing keeps for longer than the rule allows, and notes since when that is so.
func (c *collection) manifests(ctx context.Context, repository string, rule RetentionRule) error {
	for after := (digest.Digest{}); ; {
		var page []HeldManifest
		held := map[digest.Digest]bool{}
		err := c.s.meta.View(ctx, func(tx Tx) (err error) {
			clear(held)
			if page, err = tx.HeldManifests(repository, after, collectPage); err != nil {
				return err
			}
			for _, m := range page {
				if held[m.Digest], err = isHeld(tx, repository, m); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil || len(page) == 0 {
			return err
		}
		after = page[len(page)-1].Digest
		var gone []Removal
		var changed []digest.Digest
		for _, m := range page {
			switch {
			case held[m.Digest] != m.LooseSince.IsZero():
				changed = append(changed, m.Digest)
			case !held[m.Digest] && c.report.StartedAt.Sub(m.LooseSince) >= rule.UntaggedAfter:
				gone = append(gone, Removal{Kind: removedManifest, Repository: repository, Digest: m.Digest,
					Reason: "no tag, index or subject keeps it since " + m.LooseSince.UTC().Format(time.RFC3339)})
			}
		}
		if err := c.markLoose(ctx, repository, changed); err != nil {
			return err
		}
		err = c.removeAll(ctx, gone, func(tx Tx, r Removal) (bool, error) { return c.removeManifest(tx, r) })
		if err != nil {
			return err
		}
	}
}

// isHeld reports whether a version, a tag, an index or a subject of the repository keeps a manifest.
func isHeld(tx Tx, repository string, m HeldManifest) (bool, error) {
	if m.Version || m.Tags > 0 || m.Parents > 0 {
		return true, nil
	}
	if m.Subject.IsZero() || m.Subject == m.Digest {
		return false, nil
	}
	_, err := tx.ManifestHolders(repository, m.Subject)
	if errors.Is(err, ErrManifestUnknown) {
		return false, nil
	}
	return err == nil, err
}

// markLoose notes of manifests since when nothing keeps them, or that something does.
func (c *collection) markLoose(ctx context.Context, repository string, list []digest.Digest) error {
	for len(list) > 0 && !c.opt.DryRun {
		batch := list[:min(collectBatch, len(list))]
		list = list[len(batch):]
		err := c.change(ctx, func(tx Tx) error {
			for _, d := range batch {
				m, err := tx.ManifestHolders(repository, d)
				if errors.Is(err, ErrManifestUnknown) {
					continue
				}
				if err != nil {
					return err
				}
				held, err := isHeld(tx, repository, m)
				if err != nil {
					return err
				}
				since := m.LooseSince
				if held {
					since = time.Time{}
				} else if since.IsZero() {
					since = c.report.StartedAt
				}
				if err := tx.MarkLoose(repository, d, since); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// removeManifest decides once more, in the transaction.
func (c *collection) removeManifest(tx Tx, r Removal) (bool, error) {
	m, err := tx.ManifestHolders(r.Repository, r.Digest)
	if errors.Is(err, ErrManifestUnknown) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if held, err := isHeld(tx, r.Repository, m); held || err != nil {
		return false, err
	}
	if m.LooseSince.IsZero() {
		return false, nil // somebody pushed it again
	}
	if err := tx.DeleteManifest(r.Repository, r.Digest); err != nil {
		return false, err
	}
	return true, c.s.audit(tx, c.by, "retention.manifest", r.Repository+"@"+r.Digest.String(), r.Reason)
}
