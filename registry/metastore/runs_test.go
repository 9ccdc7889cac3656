package metastore

import (
	"fmt"
	"testing"
	"time"

	"github.com/gatehouse-registry/gatehouse/admission/receipt"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
)

// TestJobsOfAnOlderProgram takes up jobs that were stored before their packs were kept, in batches and once.
func TestJobsOfAnOlderProgram(t *testing.T) {
	opened(t, func(t *testing.T, s *Store) {
		pin := receipt.Pin{ID: "a/p", Version: "1", Kind: "algorithm", Content: digest.FromBytes(nil)}
		must := func(fn func(registry.Tx) error) {
			t.Helper()
			if err := s.Update(t.Context(), fn); err != nil {
				t.Fatal(err)
			}
		}
		must(func(tx registry.Tx) error { return tx.InsertAccount(registry.Account{Name: "a", Role: "admin"}) })
		for i := range 5 {
			must(func(tx registry.Tx) error {
				return tx.InsertJob(registry.Job{ID: fmt.Sprint("j", i), Account: "a", Dialect: "forge", Status: registry.JobQueued, Receipt: []byte("r"), LeaseUntil: time.Unix(100, 0)})
			})
		}
		must(raw(`UPDATE jobs SET indexed = 0 WHERE id <> 'j0'`))
		taken := 0
		for {
			var jobs []registry.Job
			must(func(tx registry.Tx) (err error) {
				jobs, err = tx.UnindexedJobs(3)
				return err
			})
			if len(jobs) == 0 {
				break
			}
			for _, job := range jobs {
				taken++
				if string(job.Receipt) != "r" || job.Status != registry.JobQueued {
					t.Errorf("job to be taken up: %+v", job)
				}
				job.Pins = []receipt.Pin{pin}
				for range 2 { // two replicas may be at it
					must(func(tx registry.Tx) error { return tx.IndexJob(job) })
				}
			}
		}
		var use registry.PackUse
		must(func(tx registry.Tx) (err error) {
			use, err = tx.PackUse("a/p", "1", time.Unix(0, 0), time.Unix(50, 0))
			return err
		})
		if taken != 4 || use != (registry.PackUse{QueuedJobs: 4}) {
			t.Errorf("%d jobs were taken up, the version is in use by %+v", taken, use)
		}
	})
}

// TestRevokedStaysSo holds that the store itself keeps a revoked version from being enabled: a replica of an older program, which
// knows of no revocations, may run beside this one.
func TestRevokedStaysSo(t *testing.T) {
	opened(t, func(t *testing.T, s *Store) {
		fill(t, s, "a") // one of its versions is revoked
		if err := s.Update(t.Context(), raw(`UPDATE versions SET enabled = 1 WHERE revoked_at = 0`)); err != nil {
			t.Fatal(err)
		}
		if err := s.Update(t.Context(), raw(`UPDATE versions SET enabled = 1 WHERE revoked_at <> 0`)); registry.CodeOf(err) != registry.Conflict {
			t.Errorf("a version that was revoked is enabled: %v", err)
		}
		n := 0
		if err := s.View(t.Context(), func(r registry.Tx) error {
			return r.(*tx).get(`SELECT COUNT(*) FROM versions WHERE enabled = 0`, nil, &n)
		}); err != nil || n != 1 {
			t.Errorf("%d versions stay disabled, %v", n, err)
		}
	})
}
