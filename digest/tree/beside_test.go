package tree_test

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/digest/tree"
)

// besideFiles has files of no piece, of one, of exactly one, of exactly two and of several.
func besideFiles() map[string]string {
	return map[string]string{
		"empty": "", "plugin.yaml": "name: x\n", "data/one": strings.Repeat("a", 64<<10), "data/two": strings.Repeat("b", 128<<10),
		"data/big/many": strings.Repeat("0123456789abcdef", 50_000), "z.py": "pass\n",
	}
}

// TestOpenDirBeside changes one of two equal directories: whatever is different, both have the outcome that each has alone.
func TestOpenDirBeside(t *testing.T) {
	put := func(name, content string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			path := filepath.Join(dir, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o644)); err != nil {
				t.Fatal(err)
			}
		}
	}
	do := func(f func(dir string) error) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			if err := f(dir); err != nil {
				t.Fatal(err)
			}
		}
	}
	link := func(text, name string) func(t *testing.T, dir string) {
		return do(func(dir string) error { return os.Symlink(text, filepath.Join(dir, name)) })
	}
	all := besideFiles()
	big, one, two := all["data/big/many"], all["data/one"], all["data/two"]
	none := tree.Limits{}
	for name, test := range map[string]struct {
		change func(t *testing.T, dir string)
		lim    tree.Limits
	}{
		"equal":                 {func(*testing.T, string) {}, none},
		"equal, within limits":  {func(*testing.T, string) {}, tree.Limits{Files: 6, Bytes: 2 << 20, Path: 100}},
		"first byte":            {put("data/big/many", "x"+big[1:]), none},
		"byte in the middle":    {put("data/big/many", big[:400_000]+"x"+big[400_001:]), none},
		"last byte":             {put("data/big/many", big[:len(big)-1]+"x"), none},
		"shorter":               {put("data/big/many", big[:len(big)-1]), none},
		"longer":                {put("data/big/many", big+"x"), none},
		"longer after a piece":  {put("data/one", one+"x"), none},
		"shorter by a piece":    {put("data/two", two[:64<<10]), none},
		"no longer empty":       {put("empty", "x"), none},
		"empty":                 {put("plugin.yaml", ""), none},
		"extra":                 {put("data/extra", ""), none},
		"extra, left out":       {put("__pycache__/z.pyc", "x"), none},
		"missing":               {do(func(dir string) error { return os.Remove(filepath.Join(dir, "z.py")) }), none},
		"another name":          {do(func(dir string) error { return os.Rename(filepath.Join(dir, "z.py"), filepath.Join(dir, "y.py")) }), none},
		"executable":            {do(func(dir string) error { return os.Chmod(filepath.Join(dir, "z.py"), 0o755) }), none},
		"a link to the bytes":   {do(func(dir string) error { return linkInstead(dir, "z.py", "z2.py") }), none},
		"bytes behind a link":   {do(func(dir string) error { return linkInstead(dir, "z.py", "__pycache__/z.py") }), none},
		"a link to a folder":    {link("data", "folder"), none},
		"a link to nothing":     {link("gone", "link"), none},
		"a link that leaves":    {link("/etc/passwd", "link"), none},
		"a name that is odd":    {put("\xff", "x"), none},
		"more files":            {put("data/extra", ""), tree.Limits{Files: 6}},
		"more bytes":            {put("data/one", one+"x"), tree.Limits{Bytes: 64<<10 + 128<<10 + 800_000 + 13}},
		"equal, but more bytes": {func(*testing.T, string) {}, tree.Limits{Bytes: 1000}},
	} {
		t.Run(name, func(t *testing.T) {
			own, other := write(t, besideFiles()), write(t, besideFiles())
			test.change(t, other)
			sameOutcome(t, own, other, test.lim)
			if test.lim == none {
				sameOutcome(t, other, own, test.lim)
			}
		})
	}
}

// linkInstead moves a file and puts a link in its place.
func linkInstead(dir, name, to string) error {
	return errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(dir, to)), 0o755), os.Rename(filepath.Join(dir, name), filepath.Join(dir, to)), os.Symlink(to, filepath.Join(dir, name)))
}

// sameOutcome reads two directories beside each other and alone.
func sameOutcome(t *testing.T, own, other string, lim tree.Limits) {
	t.Helper()
	roots := make([]*os.Root, 2)
	for i, dir := range []string{own, other} {
		root, err := os.OpenRoot(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		roots[i] = root
	}
	d, beside, err := tree.OpenDirBeside(roots[0], roots[1], lim)
	if err != nil {
		t.Fatal(err)
	}
	alone, aloneErr := tree.OpenDirWithin(roots[1], lim)
	digests := cmp.Comparer(func(a, b digest.Digest) bool { return a == b })
	if diff := cmp.Diff(open(t, own).Listing(), d.Listing(), digests); diff != "" {
		t.Errorf("the first directory differs (-alone +beside):\n%s", diff)
	}
	if (beside.Err == nil) != (aloneErr == nil) || aloneErr != nil && beside.Err.Error() != aloneErr.Error() {
		t.Errorf("the second fails with %v, alone with %v", beside.Err, aloneErr)
	}
	if beside.Err != nil || aloneErr != nil {
		return
	}
	if diff := cmp.Diff(alone.Listing(), beside.Dir.Listing(), digests); diff != "" {
		t.Errorf("the second directory differs (-alone +beside):\n%s", diff)
	}
	for e := range beside.Dir.Listing().Counted {
		if b, err := tree.ReadFile(beside.Dir, e.Path, 1<<30); err != nil || int64(len(b)) != e.Size {
			t.Errorf("%s: %d bytes, %v", e.Path, len(b), err)
		}
	}
}

// TestOpenDirBesideManyFiles has more files than readers, some of which differ.
func TestOpenDirBesideManyFiles(t *testing.T) {
	files := map[string]string{}
	for i := range 300 {
		files[strings.Repeat("d/", i%4)+"f"+strconv.Itoa(i)] = strings.Repeat("y", i*500)
	}
	own := write(t, files)
	for _, changed := range []string{"", "f4", "d/d/d/f299"} {
		twin := maps.Clone(files)
		if _, ok := twin[changed]; ok {
			twin[changed] += "!"
		} else if changed != "" {
			t.Fatalf("there is no %q", changed)
		}
		sameOutcome(t, own, write(t, twin), tree.Limits{})
	}
}

// TestOpenDirBesideOften reads small trees many times over: the end of the content digest must cut nobody short who still
// hashes the last file by itself or compares it.
func TestOpenDirBesideOften(t *testing.T) {
	own, other := t.TempDir(), t.TempDir()
	for _, dir := range []string{own, other} {
		for name, text := range map[string]string{"a.py": "one", "b.yaml": "two"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	roots := make([]*os.Root, 2)
	for i, dir := range []string{own, other} {
		root, err := os.OpenRoot(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		roots[i] = root
	}
	alone, err := tree.OpenDir(roots[0])
	if err != nil {
		t.Fatal(err)
	}
	want := alone.Listing().Tree
	look := func(differ bool) {
		for range 2000 {
			d, beside, err := tree.OpenDirBeside(roots[0], roots[1], tree.Limits{})
			if err != nil || beside.Err != nil {
				t.Fatal(err, beside.Err)
			}
			if d.Listing().Tree != want || (beside.Dir.Listing().Tree != want) != differ {
				t.Fatalf("trees %s and %s, expected %s; the other one differs: %v", d.Listing().Tree, beside.Dir.Listing().Tree, want, differ)
			}
		}
	}
	look(false)
	if err := os.WriteFile(filepath.Join(other, "b.yaml"), []byte("twO"), 0o644); err != nil {
		t.Fatal(err)
	}
	look(true)
}
