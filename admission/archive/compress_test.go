package archive

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"

	"github.com/gatehouse-registry/gatehouse/admission/limit"
)

// A directory within the limits of files and bytes can be packed whatever its files repeat, and what Pack writes passes
// Check under the strictest policy.
func TestPackWhatRepeats(t *testing.T) {
	t.Parallel()
	zeros := func(n int) string { return string(make([]byte, n)) }
	period := noise(7, 16<<10) // what Huffman codes alone can't make smaller
	for name, files := range map[string]map[string]string{
		"weights of zeros":   {"plugin.yaml": "name: x\n", "zz_weights.bin": zeros(24 << 20)},
		"just above":         {"zeros": zeros(limit.BombFrom)},
		"one block above":    {"zeros": zeros(limit.BombFrom + packBlock)},
		"just below":         {"zeros": zeros(limit.BombFrom - 8<<10)},
		"zeros to the limit": {"zeros": zeros(limit.Unpacked)},
		"a period":           {"period": strings.Repeat(period, 40<<20/len(period))},
		"zeros, then noise":  {"a": zeros(20 << 20), "b": noise(1, 1<<20)},
		"noise, then zeros":  {"a": noise(1, 100<<10), "b": zeros(20 << 20)},
	} {
		t.Run(name, func(t *testing.T) {
			dir, report, err := OpenDir(openRoot(t, writeDir(t, files)), Options{})
			if err != nil || !report.OK() {
				t.Fatal(err, report)
			}
			b := packed(t, dir)
			a, report := check(t, b, Options{})
			if a == nil {
				t.Fatalf("%d bytes: %v", len(b), report)
			}
			if a.Listing().Content != dir.Listing().Content || a.Listing().Tree != dir.Listing().Tree {
				t.Error("the archive holds other files")
			}
			if !bytes.Equal(b, packed(t, a)) {
				t.Error("packing the archive again gives other bytes")
			}
		})
	}
}

// A Compressor's output hangs on its input alone, is one gzip stream, and below the watch that of gzip itself.
func TestCompressorPieces(t *testing.T) {
	t.Parallel()
	text := []byte(noise(3, 100_000) + strings.Repeat("weights ", 3<<20))
	whole := compressed(t, text, len(text))
	random := rand.New(rand.NewPCG(1, 2))
	for range 5 {
		if !bytes.Equal(whole, compressed(t, text, 1+random.IntN(200_000))) {
			t.Fatal("other pieces give other bytes")
		}
	}
	for _, small := range [][]byte{{}, text[:1], text[:packBlock], text[:packBlock+1], text[:300_000]} {
		var want bytes.Buffer
		zw := gzip.NewWriter(&want)
		zw.Write(small)
		if err := zw.Close(); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(want.Bytes(), compressed(t, small, 777)) {
			t.Errorf("%d bytes are not compressed as gzip does", len(small))
		}
	}
}

func compressed(t *testing.T, b []byte, piece int) []byte {
	t.Helper()
	var out bytes.Buffer
	c, err := NewCompressor(&out)
	for len(b) > 0 && err == nil {
		n := min(piece, len(b))
		_, err = c.Write(b[:n])
		b = b[n:]
	}
	if err == nil {
		err = c.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
