package metatest

import (
	"testing"
	"time"

	"github.com/gatehouse-registry/gatehouse/registry"
)

var handoverTests = map[string]func(*testing.T, registry.MetaStore){
	"FindJobs":       testFindJobs,
	"Handovers":      testHandovers,
	"DueHandovers":   testDueHandovers,
	"HandoverCounts": testHandoverCounts,
}

// handoverRow makes a row that is due at the n-th moment.
func handoverRow(job, target string, event registry.HandoverEvent, n int) registry.Handover {
	return registry.Handover{
		ID: job + "." + string(event) + "." + target, Job: job, Target: target, Event: event, State: registry.HandoverPending,
		CreatedAt: at(n), Since: at(n), DueAt: at(n),
	}
}

func withHandovers(t *testing.T, s registry.MetaStore, rows ...registry.Handover) {
	t.Helper()
	for _, h := range rows {
		update(t, s, func(tx registry.Tx) error { return tx.InsertHandover(h) })
	}
}

func testFindJobs(t *testing.T, s registry.MetaStore) {
	withAccounts(t, s, "alice", "bob")
	j1, j2, j3, j4 := job("j1", "alice", "", 1), job("j2", "bob", "", 2), job("j3", "alice", "", 3), job("j4", "alice", "", 3)
	j3.Status = registry.JobStopped
	withJobs(t, s, j4, j2, j1, j3)
	for what, c := range map[string]struct {
		filter registry.JobFilter
		want   []registry.Job
	}{
		"all":                 {registry.JobFilter{Limit: -1}, briefJobs(j4, j3, j2, j1)},
		"the first page":      {registry.JobFilter{Limit: 2}, briefJobs(j4, j3)},
		"behind j3":           {registry.JobFilter{Before: "j3", Limit: -1}, briefJobs(j2, j1)},
		"behind nothing":      {registry.JobFilter{Before: "j9", Limit: -1}, nil},
		"alice's":             {registry.JobFilter{Account: "alice", Limit: -1}, briefJobs(j4, j3, j1)},
		"stopped":             {registry.JobFilter{Status: registry.JobStopped, Limit: -1}, briefJobs(j3)},
		"alice's behind j4":   {registry.JobFilter{Account: "alice", Before: "j4", Limit: 1}, briefJobs(j3)},
		"bob's that stopped":  {registry.JobFilter{Account: "bob", Status: registry.JobStopped, Limit: -1}, nil},
		"of nobody's account": {registry.JobFilter{Account: "nobody", Limit: -1}, nil},
	} {
		same(t, what, view(t, s, func(tx registry.Tx) ([]registry.Job, error) { return tx.FindJobs(c.filter) }), c.want)
	}
}

func testHandovers(t *testing.T, s registry.MetaStore) {
	withAccounts(t, s, "alice")
	withJobs(t, s, job("j1", "alice", "", 1), job("j2", "alice", "", 2))
	a, b, c := handoverRow("j1", "one", registry.EventAdmitted, 1), handoverRow("j1", "two", registry.EventAdmitted, 1), handoverRow("j2", "one", registry.EventAdmitted, 2)
	withHandovers(t, s, a, b, c)
	find := func(id string) func(registry.Tx) (registry.Handover, error) {
		return func(tx registry.Tx) (registry.Handover, error) { return tx.Handover(id) }
	}
	same(t, "hand-over", view(t, s, find(a.ID)), a)
	missing(t, s, "unknown hand-over", registry.NotFound, find("j9"))
	fails(t, s, "taken id", registry.Conflict, func(tx registry.Tx) error { return tx.InsertHandover(a) })
	other := a
	other.ID = "another"
	fails(t, s, "the same event again", registry.Conflict, func(tx registry.Tx) error { return tx.InsertHandover(other) })
	fails(t, s, "of no job", registry.NotFound, func(tx registry.Tx) error {
		return tx.InsertHandover(handoverRow("j9", "one", registry.EventAdmitted, 1))
	})

	b.State, b.Tries, b.DueAt, b.Holder, b.LeaseUntil, b.EndedAt, b.Since = registry.HandoverDead, 7, at(50), "h", at(60), at(70), at(2)
	stored := b
	stored.LastError = "broken \uFFFD text"
	b.LastError = "broken \x00 text"
	update(t, s, func(tx registry.Tx) error { return tx.UpdateHandover(b) })
	same(t, "changed hand-over", view(t, s, find(b.ID)), stored)
	fails(t, s, "change of an unknown hand-over", registry.NotFound, func(tx registry.Tx) error {
		return tx.UpdateHandover(handoverRow("j9", "one", registry.EventAdmitted, 1))
	})
	for what, l := range map[string]struct {
		filter registry.HandoverFilter
		want   []registry.Handover
	}{
		"all":           {registry.HandoverFilter{Limit: -1}, []registry.Handover{c, stored, a}},
		"first":         {registry.HandoverFilter{Limit: 1}, []registry.Handover{c}},
		"behind c":      {registry.HandoverFilter{Before: c.ID, Limit: -1}, []registry.Handover{stored, a}},
		"of a target":   {registry.HandoverFilter{Target: "one", Limit: -1}, []registry.Handover{c, a}},
		"of a job":      {registry.HandoverFilter{Job: "j1", Limit: -1}, []registry.Handover{stored, a}},
		"dead":          {registry.HandoverFilter{State: registry.HandoverDead, Limit: -1}, []registry.Handover{stored}},
		"dead of one":   {registry.HandoverFilter{Target: "one", State: registry.HandoverDead, Limit: -1}, nil},
		"of no job yet": {registry.HandoverFilter{Job: "j9", Limit: -1}, nil},
	} {
		same(t, l.filter.Target+what, view(t, s, func(tx registry.Tx) ([]registry.Handover, error) { return tx.Handovers(l.filter) }), l.want)
	}
}

func testDueHandovers(t *testing.T, s registry.MetaStore) {
	withAccounts(t, s, "alice")
	withJobs(t, s, job("j1", "alice", "", 1), job("j2", "alice", "", 2), job("j3", "alice", "", 3))
	due := func(target string, now, limit int) []registry.Handover {
		return view(t, s, func(tx registry.Tx) ([]registry.Handover, error) { return tx.DueHandovers(target, at(now), limit) })
	}
	one, two, elsewhere := handoverRow("j1", "t", registry.EventAdmitted, 20), handoverRow("j2", "t", registry.EventAdmitted, 10), handoverRow("j2", "u", registry.EventAdmitted, 1)
	withHandovers(t, s, one, two, elsewhere)
	same(t, "before any is due", due("t", 9, -1), []registry.Handover(nil))
	same(t, "at the moment", due("t", 10, -1), []registry.Handover{two})
	same(t, "both, the longest due first", due("t", 20, -1), []registry.Handover{two, one})
	same(t, "no more than asked", due("t", 20, 1), []registry.Handover{two})

	cancel := handoverRow("j1", "t", registry.EventCancelled, 5)
	withHandovers(t, s, cancel)
	change := func(h registry.Handover) { update(t, s, func(tx registry.Tx) error { return tx.UpdateHandover(h) }) }
	same(t, "a cancellation waits for the admission", due("t", 20, -1), []registry.Handover{two, one})
	one.State, one.LeaseUntil = registry.HandoverWithdrawn, at(30)
	change(one)
	same(t, "and for who is delivering that", due("t", 29, -1), []registry.Handover{two})
	same(t, "until the lease is over", due("t", 30, -1), []registry.Handover{cancel, two})
	two.LeaseUntil = at(40)
	change(two)
	same(t, "a held one is nobody else's", due("t", 39, -1), []registry.Handover{cancel})
	one.Holder, two.Holder = "a", "b"
	change(one)
	change(two)
	for _, want := range []int{2, 0} {
		update(t, s, func(tx registry.Tx) error {
			n, err := tx.ReleaseHandovers("t")
			if n != want {
				t.Errorf("released %d rows, want %d", n, want)
			}
			return err
		})
	}
	two.Holder, two.LeaseUntil = "", time.Time{}
	same(t, "a released one is anybody's", due("t", 39, -1), []registry.Handover{cancel, two})
	two.State, two.LeaseUntil = registry.HandoverDead, time.Time{}
	change(two)
	same(t, "a dead one is never due", due("t", 100, -1), []registry.Handover{cancel})
}

func testHandoverCounts(t *testing.T, s registry.MetaStore) {
	withAccounts(t, s, "alice")
	withJobs(t, s, job("j1", "alice", "", 1), job("j2", "alice", "", 2))
	a, b, c, d := handoverRow("j1", "t", registry.EventAdmitted, 1), handoverRow("j2", "t", registry.EventAdmitted, 2), handoverRow("j1", "u", registry.EventAdmitted, 3), handoverRow("j2", "u", registry.EventAdmitted, 4)
	c.State, d.State = registry.HandoverDead, registry.HandoverDelivered
	withHandovers(t, s, b, a, c, d)
	same(t, "counts", view(t, s, func(tx registry.Tx) ([]registry.HandoverCount, error) { return tx.HandoverCounts() }), []registry.HandoverCount{
		{Target: "t", State: registry.HandoverPending, Count: 2, Oldest: at(1)},
		{Target: "u", State: registry.HandoverDead, Count: 1, Oldest: at(3)},
	})
}
