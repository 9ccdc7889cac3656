package metastore

import (
	"context"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
)

func mustUpdate(b *testing.B, s *Store, fn func(registry.Tx) error) {
	if err := s.Update(context.Background(), fn); err != nil {
		b.Error(err)
	}
}

// everyEngineOf runs a benchmark on each engine.
func everyEngineOf(b *testing.B, run func(b *testing.B, s *Store)) {
	b.Run("sqlite", func(b *testing.B) { run(b, openSQLite(b, filepath.Join(b.TempDir(), "gatehouse.db"))) })
	b.Run("postgres", func(b *testing.B) { run(b, openPostgres(b, freshPostgres(b))) })
}

// BenchmarkInsertVersion publishes, each in an update of its own: one caller, and 64 at once, who share commits.
func BenchmarkInsertVersion(b *testing.B) {
	everyEngineOf(b, func(b *testing.B, s *Store) {
		var n atomic.Int64
		publish := func() {
			mustUpdate(b, s, func(tx registry.Tx) error { return tx.InsertVersion(published(fmt.Sprint(n.Add(1)))) })
		}
		mustUpdate(b, s, repositoryOfPack)
		b.Run("alone", func(b *testing.B) {
			for b.Loop() {
				publish()
			}
		})
		b.Run("64 at once", func(b *testing.B) {
			b.SetParallelism(32) // times GOMAXPROCS
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					publish()
				}
			})
		})
	})
}

// BenchmarkManifest looks a manifest up by tag, in repositories with one tag and with 2,000.
func BenchmarkManifest(b *testing.B) {
	everyEngineOf(b, func(b *testing.B, s *Store) {
		for _, tags := range []int{1, 2000} {
			mustUpdate(b, s, func(tx registry.Tx) error { return fillTags(tx, tags) })
			b.Run(fmt.Sprint(tags, " tags"), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					err := s.View(context.Background(), func(tx registry.Tx) error {
						tag, err := tx.Tag("a/x", fmt.Sprint("v", tags/2))
						if err == nil {
							_, err = tx.Manifest("a/x", tag.Digest)
						}
						return err
					})
					if err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	})
}

// fillTags makes n manifests with a tag each.
func fillTags(tx registry.Tx, n int) error {
	if err := tx.EnsureRepository(registry.Repository{Name: "a/x", Owner: "a"}); err != nil {
		return err
	}
	for i := range n {
		d := digest.FromBytes(fmt.Append(nil, i))
		m := registry.Manifest{Repository: "a/x", Digest: d, MediaType: "application/vnd.oci.image.manifest.v1+json", References: []digest.Digest{d, d}}
		if err := tx.PutManifest(m); err != nil {
			return err
		}
		if err := tx.PutTag(registry.Tag{Repository: "a/x", Name: fmt.Sprint("v", i), Digest: d}); err != nil {
			return err
		}
	}
	return nil
}
