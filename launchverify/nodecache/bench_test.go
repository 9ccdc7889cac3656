package nodecache

import (
	"context"
	"testing"

	"github.com/gatehouse-registry/gatehouse/admission/receipt"
)

// BenchmarkWarm is what a launch with a warm cache pays for it: open, hold, release, close.
func BenchmarkWarm(b *testing.B) {
	s := &shelf{}
	var pins []receipt.Pin
	for _, id := range []string{"lab/a", "lab/b", "lab/c", "lab/d", "lab/e"} {
		pins = append(pins, s.publish(b, id, map[string]string{"plugin.yaml": id}))
	}
	dir := b.TempDir()
	for b.Loop() {
		c, err := Open(dir, Options{})
		if err != nil {
			b.Fatal(err)
		}
		for _, pin := range pins {
			if _, err := c.Tree(context.Background(), pin, s); err != nil {
				b.Fatal(err)
			}
		}
		if err := c.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
