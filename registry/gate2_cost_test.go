package registry_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/pack"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
)

// library fills a store with versions of algorithm packs: from of them are there, afterwards it are to. Every other one is of
// alice/opsd, which the measured job names; the rest are of packs of ten versions.
func (w *jobWorld) library(from, to int) {
	w.t.Helper()
	const step = 1000 // rows of a transaction
	at := time.Now()
	document, err := json.Marshal(&pack.Manifest{Dialect: dialect.Forge, Schema: "forge/plugin/v1", Name: "opsd", Version: "1", Kind: pack.KindAlgorithm, Summary: "test"})
	w.must("manifest", err)
	for first := from; first < to; first += step {
		err := w.bare.Update(context.Background(), func(tx registry.Tx) error {
			for i := first; i < min(first+step, to); i++ {
				name, version := "opsd", fmt.Sprintf("1.%d", i)
				if i%2 == 1 {
					name, version = fmt.Sprintf("pack-%d", i/20), fmt.Sprintf("1.%d", i%20)
				}
				d := digest.FromBytes(fmt.Appendf(nil, "version %d", i))
				v := registry.Version{
					Repository: "alice/" + name, Owner: "alice", PackName: name, Version: version, Key: version, Dialect: dialect.Forge,
					Kind: string(pack.KindAlgorithm), Manifest: d, Content: d, Tree: d, Layer: digest.Descriptor{Digest: d, Size: 1},
					Config: digest.Descriptor{Digest: d, Size: 1}, Document: document, Enabled: true, CreatedBy: "alice", CreatedAt: at,
				}
				if err := tx.EnsureRepository(registry.Repository{Name: v.Repository, Owner: "alice", CreatedAt: at}); err != nil {
					return err
				}
				if err := tx.InsertVersion(v); err != nil {
					return err
				}
			}
			return nil
		})
		w.must("fill the library", err)
	}
}

// opsdJob is a job that names alice/opsd 1.0 and, in vain, a version that is not there.
func opsdJob(t testing.TB) string {
	d := digest.FromBytes([]byte("version 0"))
	return jobWith(dialect.Forge, fmt.Sprintf(`{"id":"alice/opsd","version":"1.0","digest":%q}`, d))
}

// costs are what gate 2 allocates on average for a dry run, a dry run of a job that names what is not there, and a submission.
func (w *jobWorld) costs() (costs [3]float64) {
	w.t.Helper()
	ctx := context.Background()
	good := opsdJob(w.t)
	unknown := jobWith(dialect.Forge, fmt.Sprintf(`{"id":"alice/opsd","version":"7.7","digest":%q}`, digest.FromBytes([]byte("x"))))
	for i, do := range []func() error{
		func() error {
			_, err := w.replicas[0].DryRun(ctx, alice, registry.Submission{Spec: []byte(good)})
			return err
		},
		func() error {
			_, err := w.replicas[0].DryRun(ctx, alice, registry.Submission{Spec: []byte(unknown)})
			return err
		},
		func() error { _, err := w.submit(w.replicas[0], alice, good, nil); return err },
	} {
		costs[i] = testing.AllocsPerRun(30, func() { w.must("ask the gate", do()) })
	}
	return costs
}

// TestGateCostsTheSame holds that what gate 2 allocates does not grow with the number of versions in the registry: with
// five times as many it is the same within a tenth. BenchmarkGate does it with a hundred times as many.
func TestGateCostsTheSame(t *testing.T) { // not parallel: it counts the process's allocations
	for _, engine := range []string{"sqlite", "postgres"} {
		t.Run(engine, func(t *testing.T) {
			w := measuredWorld(t, engine)
			w.library(0, 1000)
			few := w.costs()
			w.library(1000, 5000)
			many := w.costs()
			t.Logf("allocations of a dry run, one in vain, a submission: %v with 1,000 versions, %v with 5,000", few, many)
			for i := range few {
				if many[i] > few[i]*1.1 {
					t.Errorf("cost %d grew from %v to %v allocations", i, few[i], many[i])
				}
			}
		})
	}
}

// BenchmarkGate measures a dry run over registries of 1,000 and of 100,000 versions.
func BenchmarkGate(b *testing.B) {
	for _, engine := range []string{"sqlite", "postgres"} {
		w := measuredWorld(b, engine)
		from := 0
		for _, n := range []int{1000, 100_000} {
			w.library(from, n)
			from = n
			b.Run(fmt.Sprintf("%s/%d", engine, n), func(b *testing.B) {
				b.ReportAllocs()
				spec := []byte(opsdJob(b))
				for b.Loop() {
					if _, err := w.replicas[0].DryRun(b.Context(), alice, registry.Submission{Spec: spec}); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
