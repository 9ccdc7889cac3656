package scaffold

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/gatehouse-registry/gatehouse/admission"
	"github.com/gatehouse-registry/gatehouse/admission/archive"
	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/pack"
)

// Every kind of every dialect passes gate 1 as it is made, without a warning, whatever its name.
func TestNewPacksPass(t *testing.T) {
	names := []string{"my-patch", "torch", "nemo_rl", "true", "1.10", "0x1F", "A.b-C_d", "x", "sitecustomize", "2024-01-01", "Module", "starforge"}
	made := 0
	for _, d := range dialect.All {
		for _, kind := range pack.Kinds() {
			if !kind.In(d) {
				if _, err := New(kind, d, "x"); err == nil {
					t.Errorf("%s has no %s, and one was made", d, kind)
				}
				continue
			}
			for _, name := range names {
				decision := check(t, write(t, kind, d, name))
				if !decision.Allowed || len(decision.Warnings) > 0 {
					t.Errorf("%s %s %s: %v %v", d, kind, name, decision.Violations, decision.Warnings)
				}
				if s := decision.Subject; s.Name != name || s.Version != "0.1.0" || s.Kind != string(kind) || s.Dialect != d {
					t.Errorf("%s %s %s became %+v", d, kind, name, s)
				}
				made++
			}
		}
	}
	if want := (8 + 9) * len(names); made != want {
		t.Errorf("%d packs were made, want %d", made, want)
	}
}

func write(t *testing.T, kind pack.Kind, d dialect.Dialect, name string) string {
	t.Helper()
	files, err := New(kind, d, name)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, f := range files {
		path := filepath.Join(dir, filepath.FromSlash(f.Path))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		mode := os.FileMode(0o644)
		if f.Executable {
			mode = 0o755
		}
		if err := os.WriteFile(path, f.Content, mode); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func check(t *testing.T, dir string) admission.Decision {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	tree, report, err := archive.OpenDir(root, archive.Options{})
	if err != nil {
		t.Fatal(err)
	}
	decision, err := admission.CheckPack(tree, report, admission.CheckOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return decision
}
