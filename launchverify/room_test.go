//go:build unix

package launchverify

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gatehouse-registry/gatehouse/admission/rule"
)

// An entry of the cache that could not be read because the node ran out of descriptors is not called damaged: it would be
// dropped and fetched again.
func TestExhaustedIsNotDamaged(t *testing.T) {
	tree := filepath.Join(t.TempDir(), "tree")
	if err := os.Mkdir(tree, 0o755); err != nil {
		t.Fatal(err)
	}
	s := &stage{}
	take := func(dir string) error {
		var sources []*source
		err := s.cached(pinned{Tree: dir}, "into", &sources)
		for _, src := range sources {
			src.close()
		}
		return err
	}
	if err := take(tree); err != nil {
		t.Fatalf("a sound entry: %v", err)
	}
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 0, Max: before.Max}); err != nil {
		t.Fatal(err)
	}
	err := take(tree)
	if back := unix.Setrlimit(unix.RLIMIT_NOFILE, &before); back != nil {
		t.Fatal(back)
	}
	if denied, ok := errors.AsType[*rule.Denied](err); ok || !errors.Is(err, unix.EMFILE) {
		t.Errorf("without descriptors: %v, %v; expected the plain error", err, denied)
	}
	if _, ok := errors.AsType[*rule.Denied](take(filepath.Join(tree, "away"))); !ok {
		t.Error("an entry that is not there is not called damaged")
	}
}
