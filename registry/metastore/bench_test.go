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

// BenchmarkInsertVersion publishes, each in an update of its own: one caller, and 64 at once, who share commits.
func BenchmarkInsertVersion(b *testing.B) {
	open := func(b *testing.B) *Store {
		s := openSQLite(b, filepath.Join(b.TempDir(), "gatehouse.db"))
		mustUpdate(b, s, func(tx registry.Tx) error {
			return tx.EnsureRepository(registry.Repository{Name: "a/x", Owner: "a"})
		})
		return s
	}
	b.Run("alone", func(b *testing.B) {
		s, n := open(b), 0
		for b.Loop() {
			n++
			mustUpdate(b, s, func(tx registry.Tx) error { return tx.InsertVersion(published(fmt.Sprint(n))) })
		}
	})
	b.Run("64 at once", func(b *testing.B) {
		s, n := open(b), atomic.Int64{}
		b.SetParallelism(32) // times GOMAXPROCS
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				name := fmt.Sprint(n.Add(1))
				mustUpdate(b, s, func(tx registry.Tx) error { return tx.InsertVersion(published(name)) })
			}
		})
	})
}

// BenchmarkManifest looks a manifest up by tag, in repositories with one tag and with 2,000.
func BenchmarkManifest(b *testing.B) {
	for _, tags := range []int{1, 2000} {
		b.Run(fmt.Sprint(tags, " tags"), func(b *testing.B) {
			s := openSQLite(b, filepath.Join(b.TempDir(), "gatehouse.db"))
			mustUpdate(b, s, func(tx registry.Tx) error { return fillTags(tx, tags) })
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
