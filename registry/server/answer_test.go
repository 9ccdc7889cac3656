package server_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/registry"
)

// between runs something once, before the next change of a store begins.
type between struct {
	registry.MetaStore
	first atomic.Pointer[func()]
}

func (b *between) Update(ctx context.Context, fn func(registry.Tx) error) error {
	if f := b.first.Swap(nil); f != nil {
		(*f)()
	}
	return b.MetaStore.Update(ctx, fn)
}

// TestAnswerThatHoldsNoMore changes what gate 2 asked of, after it answered and before the job is stored: the job is decided
// again. What is remembered of an earlier submission is of no use then, either.
func TestAnswerThatHoldsNoMore(t *testing.T) {
	var meta *between
	g := startGatehouse(t, func(s *setup) {
		s.change = func(d *registry.Deps) {
			meta = &between{MetaStore: d.Meta}
			d.Meta = meta
		}
	})
	p := g.published("alice", algorithm("held", "1.0.0"))
	spec := jobSpec(t, dialect.Forge, "a", pinned(p))
	enable := func(on bool) {
		g.send("admin", "PATCH", "/api/plugins/"+p.ID, map[string]any{"enabled": on}).want(t, 200)
	}
	for what, c := range map[string]struct {
		change, back func()
		status       int
		rule         string
	}{
		"nothing":        {func() {}, func() {}, 200, ""},
		"something else": {func() { g.published("bob", algorithm("other", "1.0.0")) }, func() {}, 200, ""},
		"another job":    {func() { g.submitted("alice", spec) }, func() {}, 200, ""},
		"disabled":       {func() { enable(false) }, func() { enable(true) }, 422, "job.plugins.record.disabled"},
		"private": {func() { g.private("alice", "alice/held") }, func() {
			g.send("alice", "PATCH", "/api/repositories/alice/held", map[string]any{"private": false}).want(t, 200)
		}, 422, "job.plugins.record.unknown"},
		"a quota": {
			func() {
				g.send("admin", "POST", "/api/admin/quotas", map[string]any{"username": "bob", "max_concurrent_gpus": 4}).want(t, 200)
			},
			func() {
				g.send("admin", "POST", "/api/admin/quotas", map[string]any{"username": "bob", "max_concurrent_gpus": 0}).want(t, 200)
			}, 422, "job.quota.gpus",
		},
	} {
		g.submit("bob", spec).want(t, 200) // what it asks is remembered
		meta.first.Store(&c.change)
		r := g.submit("bob", spec)
		if r.status != c.status {
			t.Errorf("%s: status %d, want %d: %.300s", what, r.status, c.status, r.body)
		}
		if c.rule != "" {
			if got := r.refused(t, "/api/", 422).Decision.rules(); !slices.Contains(got, c.rule) {
				t.Errorf("%s: rules %q, want %s", what, got, c.rule)
			}
			g.submit("bob", spec).refused(t, "/api/", 422) // and again, from what is remembered
		}
		c.back()
		g.submit("bob", spec).want(t, 200)
	}
}
