package metatest

import (
	"testing"
	"time"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
)

var jobTests = map[string]func(*testing.T, registry.MetaStore){
	"Jobs":           testJobs,
	"Leased":         testLeased,
	"PackageUploads": testPackageUploads,
	"Previews":       testPreviews,
}

// job makes a job with every field set.
func job(id, account, key string, n int) registry.Job {
	return registry.Job{
		ID: id, Account: account, Dialect: dialect.Forge, Exp: "exp", Name: "name", Project: "project", Status: registry.JobAdmitted, GPUs: 8,
		Spec: []byte("spec: \x00 of " + id), SpecDigest: sum(id), Package: digest.Descriptor{MediaType: "application/p", Digest: sum("package"), Size: 5},
		Meta: []byte(`{"b": 1}`), Decision: []byte(`{}`), Receipt: []byte("receipt"), Key: key, SubmittedAt: at(n), LeaseUntil: at(n + 100),
	}
}

func withAccounts(t *testing.T, s registry.MetaStore, names ...string) {
	t.Helper()
	for _, name := range names {
		update(t, s, func(tx registry.Tx) error { return tx.InsertAccount(account(name)) })
	}
}

func withJobs(t *testing.T, s registry.MetaStore, jobs ...registry.Job) {
	t.Helper()
	for _, j := range jobs {
		update(t, s, func(tx registry.Tx) error { return tx.InsertJob(j) })
	}
}

// briefJobs is what a list has of the jobs.
func briefJobs(jobs ...registry.Job) []registry.Job {
	for i := range jobs {
		jobs[i].Spec, jobs[i].Meta, jobs[i].Decision, jobs[i].Receipt = nil, nil, nil, nil
	}
	return jobs
}

func testJobs(t *testing.T, s registry.MetaStore) {
	withAccounts(t, s, "alice", "bob")
	j1, j2, j3, j4 := job("j1", "alice", "", 1), job("j2", "bob", "key", 2), job("j3", "alice", "key", 3), job("j4", "alice", "", 3)
	j4.Spec, j4.Meta, j4.Decision, j4.Receipt, j4.Package, j4.LeaseUntil = nil, nil, nil, nil, digest.Descriptor{}, time.Time{}
	withJobs(t, s, j4, j2, j1, j3)
	list := func(account string, limit int) []registry.Job {
		return view(t, s, func(tx registry.Tx) ([]registry.Job, error) { return tx.Jobs(account, limit) })
	}
	same(t, "all jobs, newest first", list("", -1), briefJobs(j4, j3, j2, j1))
	same(t, "alice's jobs", list("alice", 100), briefJobs(j4, j3, j1))
	same(t, "alice's two newest jobs", list("alice", 2), briefJobs(j4, j3))
	same(t, "the newest job", list("", 1), briefJobs(j4))
	same(t, "nobody's jobs", list("nobody", -1), []registry.Job(nil))
	find := func(id string) func(registry.Tx) (registry.Job, error) {
		return func(tx registry.Tx) (registry.Job, error) { return tx.Job(id) }
	}
	same(t, "job", view(t, s, find("j1")), j1)
	missing(t, s, "unknown job", registry.NotFound, find("j9"))
	byKey := func(account, key string) func(registry.Tx) (registry.Job, error) {
		return func(tx registry.Tx) (registry.Job, error) { return tx.JobByKey(account, key) }
	}
	same(t, "job by key", view(t, s, byKey("alice", "key")), j3)
	missing(t, s, "job by an unknown key", registry.NotFound, byKey("alice", "other"))
	missing(t, s, "job by the empty key", registry.NotFound, byKey("alice", ""))

	insert := func(j registry.Job) func(registry.Tx) error {
		return func(tx registry.Tx) error { return tx.InsertJob(j) }
	}
	fails(t, s, "taken id", registry.Conflict, insert(job("j1", "bob", "new", 9)))
	fails(t, s, "taken key", registry.Conflict, insert(job("j9", "alice", "key", 9)))
	fails(t, s, "job of an unknown account", registry.NotFound, insert(job("j9", "dave", "", 9)))

	set := func(id string) func(registry.Tx) error {
		return func(tx registry.Tx) error { return tx.SetJobStatus(id, registry.JobStopped, time.Time{}) }
	}
	update(t, s, set("j1"))
	j1.Status, j1.LeaseUntil = registry.JobStopped, time.Time{}
	same(t, "stopped job", view(t, s, find("j1")), j1)
	fails(t, s, "status of an unknown job", registry.NotFound, set("j9"))
}

func testLeased(t *testing.T, s registry.MetaStore) {
	withAccounts(t, s, "alice", "bob")
	first, second, other := job("j1", "alice", "", 0), job("j2", "alice", "", 1), job("j3", "bob", "", 2)
	second.GPUs, other.GPUs = 3, 64
	withJobs(t, s, first, second, other)
	for n, want := range map[int]registry.Leased{0: {Jobs: 2, GPUs: 11}, 99: {Jobs: 2, GPUs: 11}, 100: {Jobs: 1, GPUs: 3}, 101: {}} {
		leased := func(tx registry.Tx) (registry.Leased, error) { return tx.Leased("alice", at(n)) }
		if got := view(t, s, leased); got != want {
			t.Errorf("what alice's jobs hold at %d s: got %v, want %v", n, got, want)
		}
		update(t, s, func(tx registry.Tx) error {
			got, err := leased(tx)
			if got != want {
				t.Errorf("in an update, at %d s: got %v, want %v", n, got, want)
			}
			return err
		})
	}
	if got := view(t, s, func(tx registry.Tx) (registry.Leased, error) { return tx.Leased("nobody", at(0)) }); got != (registry.Leased{}) {
		t.Errorf("what nobody holds: got %v, want nothing", got)
	}
}

func testPackageUploads(t *testing.T, s registry.MetaStore) {
	upload := registry.PackageUpload{
		ID: "p1", Account: "alice", TokenHash: [32]byte{1, 2, 31: 3}, Want: digest.Descriptor{MediaType: "m", Digest: sum("package"), Size: 9}, ExpiresAt: at(10),
	}
	later := upload
	later.ID, later.ExpiresAt, later.Stored = "p2", at(20), true
	insert := func(u registry.PackageUpload) func(registry.Tx) error {
		return func(tx registry.Tx) error { return tx.InsertPackageUpload(u) }
	}
	find := func(id string) func(registry.Tx) (registry.PackageUpload, error) {
		return func(tx registry.Tx) (registry.PackageUpload, error) { return tx.PackageUpload(id) }
	}
	update(t, s, insert(upload))
	update(t, s, insert(later))
	fails(t, s, "taken id", registry.Conflict, insert(upload))
	same(t, "package upload", view(t, s, find("p1")), upload)
	same(t, "stored package upload", view(t, s, find("p2")), later)
	update(t, s, func(tx registry.Tx) error { return tx.MarkPackageStored("p1", "experiments/a") })
	upload.Stored, upload.Experiment = true, "experiments/a"
	same(t, "package upload that was marked", view(t, s, find("p1")), upload)
	fails(t, s, "mark of an unknown upload", registry.NotFound, func(tx registry.Tx) error { return tx.MarkPackageStored("p9", "") })

	update(t, s, func(tx registry.Tx) error { return tx.DeleteExpired(at(10)) })
	missing(t, s, "expired package upload", registry.NotFound, find("p1"))
	same(t, "package upload that has not expired", view(t, s, find("p2")), later)
}

func testPreviews(t *testing.T, s registry.MetaStore) {
	preview := func(id string, n int) registry.Preview {
		return registry.Preview{ID: id, Account: "alice", Digest: sum(id), Document: []byte("{ } \x00" + id), ExpiresAt: at(n)}
	}
	insert := func(p registry.Preview) func(registry.Tx) error {
		return func(tx registry.Tx) error { return tx.InsertPreview(p) }
	}
	find := func(id string) func(registry.Tx) (registry.Preview, error) {
		return func(tx registry.Tx) (registry.Preview, error) { return tx.Preview(id) }
	}
	open, done, later := preview("p1", 10), preview("p2", 10), preview("p3", 20)
	for _, p := range []registry.Preview{open, done, later} {
		update(t, s, insert(p))
	}
	fails(t, s, "taken id", registry.Conflict, insert(open))
	same(t, "preview", view(t, s, find("p1")), open)
	update(t, s, func(tx registry.Tx) error { return tx.MarkPreviewCommitted("p2", "job") })
	done.JobID = "job"
	same(t, "committed preview", view(t, s, find("p2")), done)
	fails(t, s, "mark of an unknown preview", registry.NotFound, func(tx registry.Tx) error { return tx.MarkPreviewCommitted("p9", "job") })

	update(t, s, func(tx registry.Tx) error { return tx.DeleteExpired(at(10)) })
	missing(t, s, "expired preview", registry.NotFound, find("p1"))
	same(t, "expired preview that has a job", view(t, s, find("p2")), done)
	same(t, "preview that has not expired", view(t, s, find("p3")), later)
}
