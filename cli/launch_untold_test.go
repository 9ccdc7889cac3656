package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gatehouse-registry/gatehouse/admission/receipt"
	"github.com/gatehouse-registry/gatehouse/admission/runrecord"
)

// A launch for which no receipt held is a run of no job: the screen has the refusal alone, and nothing that no registry would take
// waits on disk. That the spec is another one than was admitted is told: the receipt says of which job.
func TestWhatIsRefusedByItsReceipt(t *testing.T) {
	t.Parallel()
	n := newTestNode(t)
	spec := n.spec()
	kept := filepath.Dir(filepath.Dir(spec)) + receipt.Suffix
	oneLine := func(stderr, rule string) {
		t.Helper()
		if strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "["+rule+"]") {
			t.Errorf("expected one line with %s, found %q", rule, stderr)
		}
	}
	admitted, err := os.ReadFile(spec)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(spec, bytes.Replace(admitted, []byte("{"), []byte("{ "), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	edited, stderr := n.launch(7, "echo started")
	oneLine(stderr, "launch.receipt.spec")
	n.expectRuns(edited.Run + " " + string(runrecord.StateRefused))
	n.expectSpooled(0)

	if err := os.Rename(kept, kept+".away"); err != nil {
		t.Fatal(err)
	}
	_, stderr = n.launch(7, "echo started")
	oneLine(stderr, "launch.receipt.missing")
	n.expectRuns(edited.Run + " " + string(runrecord.StateRefused))
	n.expectSpooled(0)
	if out := n.sf("node", "show"); !strings.Contains(out, " 0 were rejected") {
		t.Errorf("the node says %q", out)
	}
}
