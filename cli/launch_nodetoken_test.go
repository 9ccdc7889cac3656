package cli

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// In a container a node's token in GATEHOUSE_TOKEN is enough to fetch what a receipt names, and nothing else.
func TestLaunchByANodesToken(t *testing.T) {
	t.Parallel()
	n := newTestNode(t)
	made, err := n.admin.CreateNode(t.Context(), "pod")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(n.path("cache")); err != nil {
		t.Fatal(err)
	}
	n.env = append(slices.Clone(n.env), "GATEHOUSE_NODE="+n.path("nothing"), "GATEHOUSE_SERVER="+n.admin.Server(), "GATEHOUSE_TOKEN="+made.Secret)
	if _, stderr, code := n.run("cache", "warm", "alice/grad-clip@1.2.0"); code != exitForbidden || !strings.Contains(stderr, "node/pod") {
		t.Errorf("a pack that no receipt names: exit code %d, %s", code, stderr)
	}
	if out := n.sf("cache", "warm", "--jobspec", n.spec()); strings.Count(out, ": fetched") != 2 {
		t.Errorf("warmed: %s", out)
	}
	if err := os.RemoveAll(n.path("cache")); err != nil {
		t.Fatal(err)
	}
	n.launch(4, "exit 4")
}
