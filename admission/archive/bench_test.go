package archive

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
)

// The archive benchmarks report how long Check takes as a ratio to a plain yardstick that is measured in turn with
// it in the same run: gunzip with the same library, then one SHA-256 pass over what comes out.

func benchCheck(b *testing.B, archive []byte) {
	b.Helper()
	b.SetBytes(int64(len(archive)))
	b.ReportAllocs()
	var ours, plain time.Duration
	for b.Loop() {
		start := time.Now()
		gunzipAndHash(b, archive)
		plain += time.Since(start)
		start = time.Now()
		a, report, err := Check(FromBytes(archive), Options{})
		if err != nil || a == nil {
			b.Fatal(err, report.Violations)
		}
		ours += time.Since(start)
		a.Close()
	}
	b.ReportMetric(float64(ours)/float64(plain), "x-of-plain")
}

func gunzipAndHash(b *testing.B, archive []byte) {
	zr, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		b.Fatal(err)
	}
	sum := sha256.New()
	if _, err := io.CopyBuffer(sum, struct{ io.Reader }{zr}, make([]byte, 64<<10)); err != nil {
		b.Fatal(err)
	}
}

// source text that compresses as source text does.
func sourceText(n int) string {
	var s strings.Builder
	for i := 0; s.Len() < n; i++ {
		fmt.Fprintf(&s, "def step_%d(batch, rate=%x):\n    return [row[%d] * rate for row in batch if row.kind == %q]\n", i, i*2654435761, i%17, noise(byte(i), 12))
	}
	return s.String()
}

// BenchmarkCheckWeights: 20 files of 1.5 MiB that do not compress.
func BenchmarkCheckWeights(b *testing.B) {
	var members []raw
	for i := range 20 {
		members = append(members, file(fmt.Sprintf("weights/%02d.bin", i), noise(byte(i), 3<<19)))
	}
	benchCheck(b, zip(b, tarOf(members...)))
}

// BenchmarkCheckSources: 32 MiB of source text.
func BenchmarkCheckSources(b *testing.B) {
	var members []raw
	text := sourceText(32 << 20)
	for i := range 64 {
		members = append(members, file(fmt.Sprintf("pkg/%02d.py", i), text[i<<19:(i+1)<<19]))
	}
	benchCheck(b, zip(b, tarOf(members...)))
}

// BenchmarkCheckSmallFiles: 5,000 files of 4 KiB.
func BenchmarkCheckSmallFiles(b *testing.B) {
	var members []raw
	text := sourceText(20 << 20)
	for i := range 5000 {
		members = append(members, file(fmt.Sprintf("pkg/%04d.py", i), text[i<<12:(i+1)<<12]))
	}
	benchCheck(b, zip(b, tarOf(members...)))
}

// BenchmarkCheckAnyOrder: the weights in the wrong order, so that the archive is read twice.
func BenchmarkCheckAnyOrder(b *testing.B) {
	var members []raw
	for i := range 20 {
		members = append(members, file(fmt.Sprintf("weights/%02d.bin", 99-i), noise(byte(i), 3<<19)))
	}
	benchCheck(b, zip(b, tarOf(members...)))
}

// BenchmarkRefuse shows what a hostile archive costs: time, and by the bytes allocated an upper bound of memory.
func BenchmarkRefuse(b *testing.B) {
	var long []raw
	for i := range 9000 {
		long = append(long, raw{name: fmt.Sprintf("l%d", i), typ: '2', pax: record("linkpath", strings.Repeat("../", 300))})
	}
	sparse := raw{name: "s", typ: 'S', gnu: true, edit: field(483, wide+"\x00\x00\x01\x00\x00\x00\x00\x00")}
	hidden := append(withPack()[:len(withPack())-1024], make([]byte, 256<<20)...)
	for _, bomb := range []struct {
		name string
		b    []byte
	}{
		{"64MiB", corpus(b, "z01-bomb-64MiB.tgz")},
		{"256MiB", corpus(b, "z07-bomb-256MiB.tgz")},
		{"PaddingBomb", zip(b, hidden)},
		{"ManyFiles", zip(b, zeroFiles())},
		{"Sparse1TiB", zip(b, withPack(sparse))},
		{"Header1TiB", zip(b, withPack(raw{name: "a", size: wide + "\x00\x00\x01\x00\x00\x00\x00\x00"}))},
		{"LongLinks", zip(b, withPack(long...))},
	} {
		b.Run(bomb.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, report, err := Check(FromBytes(bomb.b), Options{}); err != nil || report.OK() {
					b.Fatal(err, "not refused")
				}
			}
		})
	}
}

// zeroFiles are files of zeros, none of which is large.
func zeroFiles() []byte {
	var members []raw
	for i := range 2000 {
		members = append(members, file(fmt.Sprintf("z%04d", i), string(make([]byte, 40<<10))))
	}
	return tarOf(members...)
}

func BenchmarkPack(b *testing.B) {
	files := make(map[string]string)
	text := sourceText(8 << 20)
	for i := range 16 {
		files[fmt.Sprintf("pkg/%02d.py", i)] = text[i<<19 : (i+1)<<19]
	}
	root, err := os.OpenRoot(writeDir(b, files))
	if err != nil {
		b.Fatal(err)
	}
	defer root.Close()
	d, report, err := OpenDir(root, Options{})
	if err != nil || !report.OK() {
		b.Fatal(err, report)
	}
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := Pack(io.Discard, d); err != nil {
			b.Fatal(err)
		}
	}
}
