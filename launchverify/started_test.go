//go:build linux

package launchverify

import (
	"os"
	"testing"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/receipt"
)

// Started is told once that the command runs, with what is known by then; of a refusal, and of a command that does not exist,
// it is not told.
func TestStarted(t *testing.T) {
	r := newRig(t, dialect.Forge)
	r.spec(r.plugin("lab/alpha", true, nil))
	r.sign()
	told := make(chan Record, 8)
	o := r.options("sh", "-c", "exit 7")
	o.Started = func(rec Record) { told <- rec }
	if rec, err := r.launch(o); err != nil || rec.ExitCode != 7 {
		t.Fatal(rec, err)
	}
	rec := <-told
	if !rec.Started || rec.StartedAt.IsZero() || !rec.EndedAt.IsZero() || rec.ExitCode != 0 || rec.Mode == "" || len(rec.Plugins) != 1 || rec.Receipt.IsZero() {
		t.Errorf("told of %+v", rec)
	}
	o.Command = []string{"no-such-command"}
	if rec, err := r.launch(o); ExitCode(rec, err) != 127 {
		t.Errorf("no such command: %v", err)
	}
	if err := os.Remove(r.job + receipt.Suffix); err != nil {
		t.Fatal(err)
	}
	if rec, err := r.launch(o); ExitCode(rec, err) != 7 {
		t.Errorf("refused: %v", err)
	}
	if len(told) > 0 {
		t.Errorf("told again of %+v", <-told)
	}
}
