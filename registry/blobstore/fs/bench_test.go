package fs_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/gatehouse-registry/gatehouse/digest"
)

// BenchmarkPut stores new blobs. The lines "hash" are the floor: one SHA-256 pass over the same bytes, no disk.
func BenchmarkPut(b *testing.B) {
	for _, size := range []int{1 << 10, 32 << 20} {
		content := make([]byte, size)
		b.Run(fmt.Sprint("hash/", size), func(b *testing.B) {
			b.SetBytes(int64(size))
			for b.Loop() {
				sha256.Sum256(content)
			}
		})
		b.Run(fmt.Sprint("put/", size), func(b *testing.B) {
			store := open(b, b.TempDir())
			defer store.Close()
			ctx, n := context.Background(), uint64(0)
			b.SetBytes(int64(size))
			for b.Loop() {
				b.StopTimer()
				n++
				binary.LittleEndian.PutUint64(content, n)
				want := digest.Descriptor{Digest: digest.FromBytes(content), Size: int64(size)}
				b.StartTimer()
				if err := store.Put(ctx, want, bytes.NewReader(content)); err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				if err := store.Delete(ctx, want.Digest); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
		})
		b.Run(fmt.Sprint("upload/", size), func(b *testing.B) {
			store := open(b, b.TempDir())
			defer store.Close()
			ctx, n := context.Background(), 0
			want := digest.FromBytes(content)
			b.SetBytes(int64(size))
			for b.Loop() {
				n++
				id := fmt.Sprint("u", n)
				if err := store.CreateUpload(ctx, id); err != nil {
					b.Fatal(err)
				}
				if _, err := store.AppendUpload(ctx, id, 0, bytes.NewReader(content), 1<<30); err != nil {
					b.Fatal(err)
				}
				if _, err := store.CommitUpload(ctx, id, want); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
