package metatest

import (
	"fmt"
	"testing"
	"time"

	"github.com/gatehouse-registry/gatehouse/admission/receipt"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
)

var runTests = map[string]func(*testing.T, registry.MetaStore){
	"Runs":          testRuns,
	"RunFilters":    testRunFilters,
	"PackUse":       testPackUse,
	"UnindexedJobs": testUnindexedJobs,
	"Nodes":         testNodes,
	"NodeKeys":      testNodeKeys,
	"Revocations":   testRevocations,
	"HeldBlob":      testHeldBlob,
}

// pin makes the pin of a version of a pack.
func pin(pack, v string) receipt.Pin {
	return receipt.Pin{ID: pack, Version: v, Kind: "algorithm", Content: sum("c" + pack + v), Tree: sum("t" + pack + v), Manifest: sum("m" + pack + v)}
}

// run makes a run with every field set, of a job of alice's.
func run(id, job string, n int, packs ...receipt.Pin) registry.Run {
	return registry.Run{
		ID: id, Job: job, Account: "alice", Node: "box", Sender: "node/box", State: registry.RunStarted, Attested: true, Key: "sha256:k", Mode: "root",
		ExitCode: registry.NoExitCode, Packs: packs, StartedAt: at(n), ReceivedAt: at(n + 1), ChangedAt: at(n + 2), Started: []byte("{\x00} " + id),
	}
}

func withRuns(t *testing.T, s registry.MetaStore, runs ...registry.Run) {
	t.Helper()
	for _, r := range runs {
		update(t, s, func(tx registry.Tx) error { return tx.InsertRun(r) })
	}
}

func testRuns(t *testing.T, s registry.MetaStore) {
	withAccounts(t, s, "alice")
	withJobs(t, s, job("j1", "alice", "", 1), job("j2", "alice", "", 2))
	shipped := receipt.Pin{ID: "tuneplane/framework", Version: "0.4.0", Kind: "framework-integration", Content: sum("f"), RuntimeSupplied: true}
	first := run("r1", "j1", 1, pin("a/p", "1"), shipped)
	other := run("r2", "j1", 2)
	other.Packs, other.Attested, other.Key, other.State, other.ExitCode, other.Started, other.Final = nil, false, "", registry.RunEnded, 3, nil, []byte("final")
	withRuns(t, s, first, other)
	find := func(id string) func(registry.Tx) (registry.Run, error) {
		return func(tx registry.Tx) (registry.Run, error) { return tx.Run(id) }
	}
	same(t, "run", view(t, s, find("r1")), first)
	same(t, "run without packs", view(t, s, find("r2")), other)
	missing(t, s, "unknown run", registry.NotFound, find("r9"))
	fails(t, s, "taken id", registry.Conflict, func(tx registry.Tx) error { return tx.InsertRun(run("r1", "j2", 9)) })
	fails(t, s, "run of an unknown job", registry.NotFound, func(tx registry.Tx) error { return tx.InsertRun(run("r9", "j9", 9)) })

	first.State, first.ExitCode, first.EndedAt, first.ChangedAt, first.Final, first.Attested, first.Key = registry.RunEnded, 0, at(8), at(9), []byte("over"), false, ""
	update(t, s, func(tx registry.Tx) error { return tx.UpdateRun(first) })
	same(t, "run that ended", view(t, s, find("r1")), first)
	fails(t, s, "unknown run changed", registry.NotFound, func(tx registry.Tx) error { return tx.UpdateRun(run("r9", "j1", 1)) })
	withRuns(t, s, run("r3", "j1", 3))
	counts := func(job string) registry.JobRuns {
		return view(t, s, func(tx registry.Tx) (registry.JobRuns, error) { return tx.JobRuns(job) })
	}
	same(t, "runs of a job", counts("j1"), registry.JobRuns{All: 3, Open: 1, Failed: 1})
	same(t, "runs of a job without any", counts("j2"), registry.JobRuns{})
}

func testRunFilters(t *testing.T, s registry.MetaStore) {
	withAccounts(t, s, "alice")
	withJobs(t, s, job("j1", "alice", "", 1), job("j2", "alice", "", 2))
	p1, p2, twin := pin("a/p", "1"), pin("a/p", "2"), pin("b/q", "1")
	twin.Tree = p1.Tree
	for i := range 6 {
		r := run(fmt.Sprintf("r%d", i), "j1", i/2, p1) // two at a time
		switch i {
		case 1:
			r.Job, r.Packs = "j2", []receipt.Pin{p2}
		case 2:
			r.Packs = []receipt.Pin{p2, twin, p1} // one tree twice
		case 3:
			r.Node, r.State, r.Final = "other", registry.RunRefused, []byte("no")
		case 4:
			r.Account = "bob"
		}
		withRuns(t, s, r)
	}
	for what, test := range map[string]struct {
		f    registry.RunFilter
		want string
	}{
		"all":                            {registry.RunFilter{Limit: -1}, "r5 r4 r3 r2 r1 r0 "},
		"a page":                         {registry.RunFilter{Limit: 2}, "r5 r4 "},
		"the page behind":                {registry.RunFilter{Before: "r4", Limit: 3}, "r3 r2 r1 "},
		"behind an unknown one":          {registry.RunFilter{Before: "r9", Limit: -1}, ""},
		"a version":                      {registry.RunFilter{Pack: "a/p", Version: "1", Limit: -1}, "r5 r4 r3 r2 r0 "},
		"a version, second page":         {registry.RunFilter{Pack: "a/p", Version: "1", Before: "r4", Limit: 2}, "r3 r2 "},
		"another version":                {registry.RunFilter{Pack: "a/p", Version: "2", Limit: -1}, "r2 r1 "},
		"an unknown version":             {registry.RunFilter{Pack: "a/p", Version: "3", Limit: -1}, ""},
		"a tree":                         {registry.RunFilter{Digest: p1.Tree, Limit: -1}, "r5 r4 r3 r2 r0 "},
		"a content digest":               {registry.RunFilter{Digest: twin.Content, Limit: -1}, "r2 "},
		"a manifest, behind one":         {registry.RunFilter{Digest: p1.Manifest, Before: "r3", Limit: -1}, "r2 r0 "},
		"a version with a digest":        {registry.RunFilter{Pack: "a/p", Version: "1", Digest: p1.Tree, Limit: 2}, "r5 r4 "},
		"a version with another's":       {registry.RunFilter{Pack: "a/p", Version: "1", Digest: p2.Tree, Limit: -1}, ""},
		"a job":                          {registry.RunFilter{Job: "j2", Limit: -1}, "r1 "},
		"a node":                         {registry.RunFilter{Node: "other", Limit: -1}, "r3 "},
		"an account":                     {registry.RunFilter{Account: "bob", Limit: -1}, "r4 "},
		"an account's of a version":      {registry.RunFilter{Pack: "a/p", Version: "1", Account: "alice", Limit: -1}, "r5 r3 r2 r0 "},
		"the second page of them":        {registry.RunFilter{Pack: "a/p", Version: "1", Account: "alice", Before: "r3", Limit: 1}, "r2 "},
		"an account's of a tree":         {registry.RunFilter{Digest: p1.Tree, Account: "bob", Limit: -1}, "r4 "},
		"an account's of another's tree": {registry.RunFilter{Pack: "a/p", Version: "1", Digest: p2.Tree, Account: "alice", Limit: -1}, ""},
		"an account's of both":           {registry.RunFilter{Pack: "a/p", Version: "1", Digest: p1.Tree, Account: "bob", Limit: -1}, "r4 "},
		"a state":                        {registry.RunFilter{State: registry.RunRefused, Limit: -1}, "r3 "},
		"a version on a node":            {registry.RunFilter{Pack: "a/p", Version: "1", Node: "other", State: registry.RunRefused, Limit: -1}, "r3 "},
	} {
		got := ""
		for _, r := range view(t, s, func(tx registry.Tx) ([]registry.Run, error) { return tx.Runs(test.f) }) {
			got += r.ID + " "
			if r.Started != nil || r.Final != nil || len(r.Packs) == 0 {
				t.Errorf("%s: %s in a list has envelopes, or no packs", what, r.ID)
			}
		}
		same(t, what, got, test.want)
	}
}

func testPackUse(t *testing.T, s registry.MetaStore) {
	withAccounts(t, s, "alice")
	for i, status := range []registry.JobStatus{registry.JobAdmitted, registry.JobQueued, registry.JobRunning, registry.JobRunning, registry.JobFailed, registry.JobAdmitted} {
		j := job(fmt.Sprintf("j%d", i), "alice", "", i)
		j.Status, j.Pins = status, []receipt.Pin{pin("a/p", "1"), pin("a/q", "1")}
		if i == 3 {
			j.LeaseUntil = at(10) // over by now
		}
		if i == 5 {
			j.Pins[0].Version = "2"
		}
		withJobs(t, s, j)
	}
	now := at(50)
	use := func(pack, version string) registry.PackUse {
		return view(t, s, func(tx registry.Tx) (registry.PackUse, error) {
			return tx.PackUse(pack, version, now.Add(-20*time.Second), now)
		})
	}
	same(t, "use by jobs", use("a/p", "1"), registry.PackUse{QueuedJobs: 2, RunningJobs: 1, SilentJobs: 1})
	same(t, "use of all versions", use("a/p", ""), registry.PackUse{QueuedJobs: 3, RunningJobs: 1, SilentJobs: 1})
	same(t, "use of nothing", use("a/r", "1"), registry.PackUse{})

	update(t, s, func(tx registry.Tx) error { return tx.SetJobStatus("j0", registry.JobStopped, now) })
	withRuns(t, s, run("r0", "j2", 0, pin("a/p", "1")), run("r1", "j2", 40, pin("a/p", "1")), run("r2", "j2", 40, pin("a/p", "1")))
	ended := run("r2", "j2", 40)
	ended.State = registry.RunEnded
	update(t, s, func(tx registry.Tx) error { return tx.UpdateRun(ended) })
	same(t, "use by jobs and runs", use("a/p", "1"), registry.PackUse{QueuedJobs: 1, RunningJobs: 1, SilentJobs: 1, ActiveRuns: 1, SilentRuns: 1, Runs: 3})
}

func testUnindexedJobs(t *testing.T, s registry.MetaStore) {
	withAccounts(t, s, "alice")
	withJobs(t, s, job("j1", "alice", "", 1))
	none := func() []registry.Job {
		return view(t, s, func(tx registry.Tx) ([]registry.Job, error) { return tx.UnindexedJobs(-1) })
	}
	same(t, "jobs that this program stored", none(), []registry.Job(nil))
	j := job("j1", "alice", "", 1)
	j.Pins = []receipt.Pin{pin("a/p", "1")}
	update(t, s, func(tx registry.Tx) error { return tx.IndexJob(j) }) // done before: changes nothing
	use := view(t, s, func(tx registry.Tx) (registry.PackUse, error) { return tx.PackUse("a/p", "1", at(0), at(1)) })
	same(t, "use after a job was indexed twice", use, registry.PackUse{})
	fails(t, s, "an unknown job indexed", registry.NotFound, func(tx registry.Tx) error { return tx.IndexJob(registry.Job{ID: "j9"}) })
}

func testNodes(t *testing.T, s registry.MetaStore) {
	withAccounts(t, s, "node/a", "node/b")
	a := registry.Node{Name: "a", Account: "node/a", CreatedBy: "admin", CreatedAt: at(1)}
	b := registry.Node{Name: "b", Account: "node/b", CreatedBy: "admin", CreatedAt: at(2)}
	for _, n := range []registry.Node{b, a} {
		update(t, s, func(tx registry.Tx) error { return tx.InsertNode(n) })
	}
	list := func() []registry.Node {
		return view(t, s, func(tx registry.Tx) ([]registry.Node, error) { return tx.Nodes() })
	}
	same(t, "nodes", list(), []registry.Node{a, b})
	fails(t, s, "taken name", registry.Conflict, func(tx registry.Tx) error { return tx.InsertNode(a) })
	fails(t, s, "node without an account", registry.NotFound, func(tx registry.Tx) error { return tx.InsertNode(registry.Node{Name: "c", Account: "node/c"}) })
	a.RemovedAt = at(9)
	update(t, s, func(tx registry.Tx) error { return tx.UpdateNode(a) })
	same(t, "nodes after one was removed", list(), []registry.Node{b})
	find := func(name string) func(registry.Tx) (registry.Node, error) {
		return func(tx registry.Tx) (registry.Node, error) { return tx.Node(name) }
	}
	same(t, "a removed node", view(t, s, find("a")), a)
	missing(t, s, "unknown node", registry.NotFound, find("c"))
	fails(t, s, "unknown node changed", registry.NotFound, func(tx registry.Tx) error { return tx.UpdateNode(registry.Node{Name: "c"}) })
}

func testNodeKeys(t *testing.T, s registry.MetaStore) {
	withAccounts(t, s, "node/a")
	update(t, s, func(tx registry.Tx) error { return tx.InsertNode(registry.Node{Name: "a", Account: "node/a"}) })
	key := func(id string, n int) registry.NodeKey {
		return registry.NodeKey{Node: "a", ID: id, Public: []byte("\x00key " + id), CreatedAt: at(n)}
	}
	insert := func(k registry.NodeKey) func(registry.Tx) error {
		return func(tx registry.Tx) error { return tx.InsertNodeKey(k) }
	}
	first, second := key("z", 1), key("b", 2)
	update(t, s, insert(second))
	update(t, s, insert(first))
	fails(t, s, "taken key", registry.Conflict, insert(key("z", 3)))
	stranger := key("z", 1)
	stranger.Node = "c"
	fails(t, s, "key of an unknown node", registry.NotFound, insert(stranger))
	retire := func(id string, n int) func(registry.Tx) error {
		return func(tx registry.Tx) error { return tx.RetireNodeKey("a", id, at(n)) }
	}
	update(t, s, retire("z", 5))
	update(t, s, retire("z", 6))
	fails(t, s, "unknown key retired", registry.NotFound, retire("y", 6))
	first.RetiredAt = at(5)
	keys := view(t, s, func(tx registry.Tx) ([]registry.NodeKey, error) { return tx.NodeKeys("a") })
	same(t, "keys, by creation", keys, []registry.NodeKey{first, second})
}

func testRevocations(t *testing.T, s registry.MetaStore) {
	versions := withPack(t, s, "1", "2", "3")
	of := func(v registry.Version, n int) registry.Revocation {
		return registry.Revocation{
			Repository: v.Repository, Pack: v.ID(), Version: v.Version, Content: v.Content, Tree: v.Tree, Manifest: v.Manifest, Layer: v.Layer.Digest,
			Reason: "reason é", By: "admin", At: at(n),
		}
	}
	var kept []registry.Revocation
	for i, n := range []int{1, 0} {
		update(t, s, func(tx registry.Tx) error {
			r, err := tx.InsertRevocation(of(versions[n], 10+i))
			kept = append(kept[:i], r)
			return err
		})
		if kept[i].Seq != int64(i+1) {
			t.Errorf("revocation %d has the number %d", i, kept[i].Seq)
		}
	}
	fails(t, s, "revoked twice", registry.Conflict, func(tx registry.Tx) error {
		_, err := tx.InsertRevocation(of(versions[0], 20))
		return err
	})
	unknown := of(versions[2], 20)
	unknown.Version = "9"
	fails(t, s, "an unknown version", registry.NotFound, func(tx registry.Tx) error {
		_, err := tx.InsertRevocation(unknown)
		return err
	})
	same(t, "the last", view(t, s, registry.Tx.LastRevocation), int64(2))
	list := func(after int64, limit int) []registry.Revocation {
		return view(t, s, func(tx registry.Tx) ([]registry.Revocation, error) { return tx.Revocations(after, limit) })
	}
	same(t, "revocations", list(0, -1), kept)
	same(t, "a page", list(1, 1), kept[1:])
	same(t, "by tree", view(t, s, func(tx registry.Tx) (registry.Revocation, error) { return tx.RevocationByTree(versions[0].Tree) }), kept[1])
	missing(t, s, "of another tree", registry.NotFound, func(tx registry.Tx) (registry.Revocation, error) { return tx.RevocationByTree(sum("x")) })

	want := versions[0]
	want.Enabled, want.Reason, want.RevokedAt = false, "reason é", at(11)
	find := func(v string) registry.Version {
		return view(t, s, func(tx registry.Tx) (registry.Version, error) { return tx.Version("alice/pack", v) })
	}
	same(t, "a revoked version", find("1"), want)
	update(t, s, func(tx registry.Tx) error {
		n, err := tx.SetEnabled("alice/pack", "", false, "why")
		if n != 1 {
			t.Errorf("disabled %d versions, want the one that is not revoked", n)
		}
		return err
	})
	same(t, "a revoked version after all were disabled", find("1"), want)
	if v := find("3"); v.Enabled || v.Reason != "why" || !v.RevokedAt.IsZero() {
		t.Errorf("a disabled version: %+v", v)
	}
}

func testHeldBlob(t *testing.T, s registry.MetaStore) {
	versions := withPack(t, s, "1", "2")
	for _, v := range versions {
		update(t, s, func(tx registry.Tx) error { return tx.LinkBlob(v.Repository, v.Layer, at(0)) })
	}
	held := func(d digest.Digest) func(registry.Tx) (registry.HeldBlob, error) {
		return func(tx registry.Tx) (registry.HeldBlob, error) { return tx.HeldBlob("alice/pack", d) }
	}
	same(t, "a blob", view(t, s, held(versions[0].Layer.Digest)), registry.HeldBlob{Descriptor: versions[0].Layer})
	missing(t, s, "an unknown blob", registry.BlobUnknown, held(sum("x")))
	v := versions[0]
	update(t, s, func(tx registry.Tx) error {
		_, err := tx.InsertRevocation(registry.Revocation{Repository: v.Repository, Pack: v.ID(), Version: v.Version, Tree: v.Tree, Content: v.Content, Manifest: v.Manifest, Layer: v.Layer.Digest, Reason: "why", At: at(1)})
		return err
	})
	same(t, "the archive of a revoked version", view(t, s, held(v.Layer.Digest)), registry.HeldBlob{Descriptor: v.Layer, Revoked: v.ID() + "@1", Reason: "why"})
	same(t, "that of another", view(t, s, held(versions[1].Layer.Digest)), registry.HeldBlob{Descriptor: versions[1].Layer})
}
