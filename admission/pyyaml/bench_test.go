package pyyaml

import (
	"runtime"
	"strings"
	"testing"

	"github.com/gatehouse-registry/gatehouse/admission/limit"
)

// BenchmarkHostile measures the refusal of documents that are made to cost much: time and bytes allocated.
func BenchmarkHostile(b *testing.B) {
	repeat := func(s string, n int) []byte { return []byte(strings.Repeat(s, n)) }
	for _, c := range []struct {
		name string
		src  []byte
	}{
		{"brackets-20000", repeat("[", 20000)},
		{"braces-20000", repeat("{a: ", 20000)},
		{"dashes-20000", repeat("- ", 20000)},
		{"question-marks-20000", repeat("? ", 20000)},
		{"billion-laughs", corpus(b, "y21-billion-laughs.yaml")},
		{"values-1MiB", append([]byte("["), repeat("a,", limit.Document/2-1)...)},
		{"aliases-1MiB", append([]byte("- &a x\n"), repeat("- *a\n", limit.Document/5-10)...)},
		{"merges-1MiB", append([]byte("- &a {k: 1}\n"), repeat("- {<<: *a}\n", limit.Document/11-10)...)},
		{"sexagesimal-1MiB", append([]byte("a: 1"), repeat(":59", limit.Document/3-10)...)},
		{"one-long-text-1MiB", append([]byte("a: '"), repeat("x ", limit.Document/2-10)...)},
		{"empty-lines-1MiB", append([]byte("a: |\n"), repeat(" \n", limit.Document/2-10)...)},
	} {
		b.Run(c.name, func(b *testing.B) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			n := 0
			for b.Loop() {
				Load(c.src, Options{})
				n++
			}
			runtime.ReadMemStats(&after)
			b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/float64(n)/(1<<20), "MiB-allocated/op")
			b.ReportMetric(float64(len(c.src))/(1<<10), "KiB-read")
		})
	}
}
