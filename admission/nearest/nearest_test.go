package nearest

import (
	"strings"
	"testing"
)

func TestWord(t *testing.T) {
	known := []string{"nodes", "gpus_per_node", "series", "name", "x"}
	for word, want := range map[string]string{
		"gpu_per_node": "gpus_per_node", "Nodes": "nodes", "ndoes": "nodes", "serie": "series", "nmae": "name", "y": "x",
		"memory": "", "": "x", "completely_else": "", strings.Repeat("n", 1000): "", "名": "x",
	} {
		if got := Word(word, known); got != want {
			t.Errorf("%q is near %q, want %q", word, got, want)
		}
	}
}
