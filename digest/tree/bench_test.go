package tree_test

import (
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/gatehouse-registry/gatehouse/digest/tree"
)

// Both benchmarks report how long OpenDir takes as a ratio to a plain yardstick that is measured in turn with it
// in the same run.

func benchDir(b *testing.B, files int, size int) string {
	b.Helper()
	dir := b.TempDir()
	random := rand.NewChaCha8([32]byte{1})
	buf := make([]byte, size)
	for i := range files {
		random.Read(buf)
		path := filepath.Join(dir, fmt.Sprintf("pkg%d", i%10), fmt.Sprintf("module%04d.py", i))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(path, buf, 0o644); err != nil {
			b.Fatal(err)
		}
	}
	return dir
}

func benchOpenDir(b *testing.B, dir string, yardstick func()) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		b.Fatal(err)
	}
	defer root.Close()
	var ours, plain time.Duration
	for b.Loop() {
		start := time.Now()
		yardstick()
		plain += time.Since(start)
		start = time.Now()
		if _, err := tree.OpenDir(root); err != nil {
			b.Fatal(err)
		}
		ours += time.Since(start)
	}
	b.ReportMetric(float64(ours)/float64(plain), "x-of-plain")
}

// BenchmarkOpenDirLarge compares with one SHA-256 pass over the same bytes, already in memory, on one core.
func BenchmarkOpenDirLarge(b *testing.B) {
	dir := benchDir(b, 20, 3<<19)
	data := make([]byte, 20*(3<<19))
	rand.NewChaCha8([32]byte{2}).Read(data)
	b.SetBytes(int64(len(data)))
	benchOpenDir(b, dir, func() { sha256.Sum256(data) })
}

// BenchmarkOpenDirSmall compares with walking and reading the same files through os.Root, without a hash.
func BenchmarkOpenDirSmall(b *testing.B) {
	dir := benchDir(b, 1000, 4<<10)
	root, err := os.OpenRoot(dir)
	if err != nil {
		b.Fatal(err)
	}
	defer root.Close()
	benchOpenDir(b, dir, func() { readAll(b, root) })
}

// BenchmarkOpenDirBeside compares with one SHA-256 pass over the bytes of one of two equal directories, on one core: of one
// large file, and of many.
func BenchmarkOpenDirBeside(b *testing.B) {
	for _, shape := range []struct{ files, size int }{{1, 32_000_000}, {1000, 32_000}} {
		b.Run(fmt.Sprintf("%d files", shape.files), func(b *testing.B) {
			roots := make([]*os.Root, 2)
			for i := range roots {
				root, err := os.OpenRoot(benchDir(b, shape.files, shape.size))
				if err != nil {
					b.Fatal(err)
				}
				defer root.Close()
				roots[i] = root
			}
			data := make([]byte, shape.files*shape.size)
			b.SetBytes(int64(len(data)))
			best, plain := time.Hour, time.Hour
			for b.Loop() {
				start := time.Now()
				sha256.Sum256(data)
				plain = min(plain, time.Since(start))
				start = time.Now()
				_, beside, err := tree.OpenDirBeside(roots[0], roots[1], tree.Limits{})
				if err != nil || beside.Err != nil {
					b.Fatal(err, beside.Err)
				}
				best = min(best, time.Since(start))
			}
			b.ReportMetric(float64(best)/float64(plain), "x-of-plain")
		})
	}
}

func readAll(b *testing.B, root *os.Root) {
	buf := make([]byte, 32<<10)
	err := fs.WalkDir(root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		f, err := root.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = io.CopyBuffer(io.Discard, struct{ io.Reader }{f}, buf)
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
}
