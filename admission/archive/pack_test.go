package archive

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/digest/tree"
)

// packed packs a tree and checks what Pack says of it.
func packed(t testing.TB, tr tree.Tree) []byte {
	t.Helper()
	var out bytes.Buffer
	p, err := Pack(&out, tr)
	if err != nil {
		t.Fatal(err)
	}
	if p.Size != int64(out.Len()) || p.Digest != digest.FromBytes(out.Bytes()) {
		t.Errorf("Pack says %+v of %d bytes with the digest %v", p, out.Len(), digest.FromBytes(out.Bytes()))
	}
	return out.Bytes()
}

var packTree = map[string]string{
	"plugin.yaml": "name: x\n", "main.py": "pass\n", "a/b/c.txt": "", "dép/数据.txt": "é", "a-b": "1",
	strings.Repeat("long/", 60) + "name": "2", "big": noise(1, 1<<21),
}

func TestPackIsStable(t *testing.T) {
	t.Parallel()
	dir := writeDir(t, packTree)
	if err := os.Chmod(filepath.Join(dir, "main.py"), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("a/b/c.txt", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	d, report, err := OpenDir(openRoot(t, dir), Options{})
	if err != nil || !report.OK() {
		t.Fatal(err, report)
	}
	first := packed(t, d)
	a, report := check(t, first, Options{})
	if a == nil || len(report.Warnings) > 0 {
		t.Fatal(report)
	}
	if a.Listing().Content != d.Listing().Content || a.Listing().Tree != d.Listing().Tree || a.Links() != 0 {
		t.Errorf("the archive has %v, %v and %d links, the directory %v, %v", a.Listing().Content, a.Listing().Tree, a.Links(), d.Listing().Content, d.Listing().Tree)
	}
	if e, _ := a.Listing().Lookup("main.py"); !e.Executable {
		t.Error("the x bit is lost")
	}
	if e, _ := a.Listing().Lookup("link"); e.Link != "" || e.Executable {
		t.Errorf("the link became %+v", e)
	}
	if second := packed(t, a); !bytes.Equal(first, second) {
		t.Error("packing the archive again gives other bytes")
	}
	// The same files in another order, with other times and modes, make the same archive.
	b, _ := check(t, tarOf(file("b", "2"), file("a", "1")), Options{})
	c, _ := check(t, tarOf(file("a", "1"), raw{name: "b", data: "2", edit: field(136, "14000000000\x00"), pax: record("uname", "x")}), Options{})
	if !bytes.Equal(packed(t, b), packed(t, c)) {
		t.Error("order, times and owners change the archive")
	}
}

func deniedRules(t *testing.T, err error) []string {
	t.Helper()
	denied, ok := errors.AsType[*rule.Denied](err)
	if !ok {
		t.Fatalf("error %v, want a denial", err)
	}
	return ids(denied.Decision.Violations)
}

func TestPackRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		files map[string]string
		rules []string
	}{
		{"nothing", map[string]string{"a.pyc": "x"}, []string{"archive.empty"}},
		{"control character", map[string]string{"a\x1bb": "x"}, []string{"archive.name.character"}},
		{"collision", map[string]string{"A": "x", "a": "x"}, []string{"archive.name.collision"}},
		{"not UTF-8", map[string]string{"a\xff": "x"}, []string{"archive.name.utf8"}},
		{"too large", map[string]string{"noise": noise(1, limit.Compressed)}, []string{"archive.limit.compressed"}},
	}
	for _, tt := range tests {
		d, err := tree.OpenDir(openRoot(t, writeDir(t, tt.files)))
		if err != nil {
			t.Fatal(err)
		}
		_, err = Pack(io.Discard, d)
		if got := deniedRules(t, err); !slices.Equal(got, tt.rules) {
			t.Errorf("%s: Pack refuses for %q, want %q", tt.name, got, tt.rules)
		}
		_, report, err := OpenDir(openRoot(t, writeDir(t, tt.files)), Options{})
		if got := ids(report.Violations); err != nil || !slices.Equal(got, tt.rules) {
			t.Errorf("%s: OpenDir refuses for %q, %v, want %q", tt.name, got, err, tt.rules)
		}
	}
	d, err := tree.OpenDir(openRoot(t, writeDir(t, map[string]string{"what?": "x", "a ": "x"})))
	if err != nil {
		t.Fatal(err)
	}
	b := packed(t, d)
	if a, report := check(t, b, Options{Policy: lenient()}); a == nil || len(report.Warnings) != 2 {
		t.Errorf("what only breaks soft rules: %v", report)
	}
}

func TestOpenDir(t *testing.T) {
	t.Parallel()
	dir := writeDir(t, map[string]string{"plugin.yaml": "x", "m.pyc": "x", "__pycache__/m.pyc": "x", "d/f": "x", "what?": "x"})
	for path, text := range map[string]string{"folder": "d", "gone": "nowhere", "l": "d/f"} {
		if err := os.Symlink(text, filepath.Join(dir, path)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "pi\tpe"), 0o644); err != nil {
		t.Fatal(err)
	}
	root := openRoot(t, dir)
	d, report, err := OpenDir(root, Options{Policy: lenient()})
	if err != nil || !report.OK() {
		t.Fatal(err, report)
	}
	var out []string
	for _, v := range report.Warnings {
		out = append(out, string(v.Rule)+" "+v.File)
	}
	want := []string{
		"archive.name.windows what?", "archive.left-out __pycache__", "archive.left-out folder", "archive.left-out gone",
		"archive.left-out m.pyc", `archive.left-out "pi\tpe"`,
	}
	if diff := cmp.Diff(want, out); diff != "" {
		t.Errorf("warnings differ (-want +got):\n%s", diff)
	}
	a, _ := check(t, packed(t, d), Options{Policy: lenient()})
	if a.Listing().Tree != d.Listing().Tree || a.Listing().Files != 4 {
		t.Errorf("the archive holds %d files, tree %v, want 4 and %v", a.Listing().Files, a.Listing().Tree, d.Listing().Tree)
	}
	if _, report, _ := OpenDir(root, Options{}); !slices.Equal(ids(report.Violations), []string{"archive.name.windows"}) {
		t.Errorf("without a policy: %v", report.Violations)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "out")); err != nil {
		t.Fatal(err)
	}
	d, report, err = OpenDir(root, Options{Policy: lenient()})
	if err != nil || !slices.Equal(ids(report.Violations), []string{"archive.link.outside"}) || !d.Listing().Tree.IsZero() {
		t.Errorf("with a link that leaves: %v, %v", report.Violations, err)
	}
	if _, err := Pack(io.Discard, d); !slices.Equal(deniedRules(t, err), []string{"archive.link.outside"}) {
		t.Error(err)
	}
}

func TestOpenDirLimits(t *testing.T) {
	t.Parallel()
	sparse := t.TempDir()
	if err := os.WriteFile(filepath.Join(sparse, "a"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(sparse, "a"), 1<<40); err != nil {
		t.Fatal(err)
	}
	many := t.TempDir()
	for i := range limit.Files + 1 {
		if err := os.WriteFile(filepath.Join(many, "f"+string(rune('a'+i%26))+strings.Repeat("x", i/26%100)+strings.Repeat("y", i/2600)), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for dir, want := range map[string]string{sparse: "archive.limit.unpacked", many: "archive.limit.files"} {
		d, report, err := OpenDir(openRoot(t, dir), Options{})
		if err != nil || d != nil || !slices.Equal(ids(report.Violations), []string{want}) {
			t.Errorf("%v, %v, want %s", report.Violations, err, want)
		}
	}
}

// TestDirectoryAndArchiveAgree gives the names of the faulty archives, as far as a file system can hold them, to
// the directory's rules.
func TestDirectoryAndArchiveAgree(t *testing.T) {
	t.Parallel()
	n := 0
	for _, tt := range faulty {
		files := map[string]string{"main.py": "x", "plugin.yaml": "x"}
		possible := true
		for _, m := range tt.members {
			plain := m.typ == 0 && m.edit == nil && m.post == nil && m.fill == 0 && m.size == "" && m.pax == "" && !m.gnu
			clean := m.name != "" && filepath.Clean(m.name) == m.name && filepath.IsLocal(m.name) && m.name != "." && !strings.Contains(m.name, "\x00")
			if _, twice := files[m.name]; !plain || !clean || twice || tree.IsExcluded(m.name) {
				possible = false
			}
			files[m.name] = "x"
		}
		if !possible || slices.Contains(tt.rules, "archive.duplicate.folder") {
			continue
		}
		n++
		_, report, err := OpenDir(openRoot(t, writeDir(t, files)), Options{})
		got, want := ids(report.Violations), slices.Clone(tt.rules)
		slices.Sort(got)
		slices.Sort(want)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: the directory breaks %q (%v), the archive %q", tt.name, got, err, want)
		}
	}
	if n < 25 {
		t.Errorf("only %d names were compared", n)
	}
}

// entriesOf lists a directory with modes.
func entriesOf(t testing.TB, dir string) map[string]fs.FileMode {
	t.Helper()
	all := make(map[string]fs.FileMode)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		info, err := d.Info()
		rel, _ := filepath.Rel(dir, path)
		all[rel] = info.Mode()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestUnpack(t *testing.T) {
	t.Parallel()
	members := []raw{file("z", "z"), {name: "run", data: "#!", edit: field(100, "0004755\x00")}, {name: "d/e/l", typ: '2', link: "../../run"}, file("d/x", noise(1, 2<<20))}
	for _, opt := range []UnpackOptions{{}, {ReadOnly: true, Sync: true}} {
		a, report := check(t, zip(t, tarOf(members...)), Options{})
		if a == nil {
			t.Fatal(report)
		}
		dir := t.TempDir()
		if err := Unpack(a, openRoot(t, dir), opt); err != nil {
			t.Fatal(err)
		}
		plain, x := fs.FileMode(0o644), fs.FileMode(0o755)
		if opt.ReadOnly {
			plain, x = 0o444, 0o555
		}
		want := map[string]fs.FileMode{"z": plain, "run": x, "d": fs.ModeDir | 0o755, "d/e": fs.ModeDir | 0o755, "d/e/l": x, "d/x": plain}
		if diff := cmp.Diff(want, entriesOf(t, dir)); diff != "" {
			t.Errorf("entries differ (-want +got):\n%s", diff)
		}
		d, err := tree.OpenDir(openRoot(t, dir))
		if err != nil || d.Listing().Tree != a.Listing().Tree || d.Listing().Content != a.Listing().Content {
			t.Errorf("the folder has %v, %v, the archive %v: %v", d.Listing().Tree, d.Listing().Content, a.Listing().Tree, err)
		}
	}
}

// badTree gives bytes that are not those of its listing.
type badTree struct {
	tree.Tree
	path string
}

func (b badTree) Open(path string) (io.ReadCloser, error) {
	e, _ := b.Listing().Lookup(path)
	if path != b.path {
		return b.Tree.Open(path)
	}
	return tree.Verify(e, io.NopCloser(strings.NewReader(strings.Repeat("?", int(e.Size))))), nil
}

func TestUnpackLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	a, _ := check(t, tarOf(file("a/b/c", "x"), file("d", "x"), file("z", "x")), Options{})
	for name, before := range map[string]map[string]string{
		"bad bytes":       {},
		"file in the way": {"z": "mine"},
		"folder there":    {"a/mine": "mine"},
		"file for folder": {"a": "mine"},
	} {
		dir := writeDir(t, before)
		want := entriesOf(t, dir)
		var tr tree.Tree = a
		if name == "bad bytes" {
			tr = badTree{a, "z"}
		}
		if err := Unpack(tr, openRoot(t, dir), UnpackOptions{}); err == nil {
			t.Errorf("%s: no error", name)
		}
		if diff := cmp.Diff(want, entriesOf(t, dir)); diff != "" {
			t.Errorf("%s: left behind (-before +after):\n%s", name, diff)
		}
		for path, content := range before {
			if got, err := os.ReadFile(filepath.Join(dir, path)); err != nil || string(got) != content {
				t.Errorf("%s: %s became %q, %v", name, path, got, err)
			}
		}
	}
}

// TestUnpackStaysInside unpacks into a folder where links lie in wait.
func TestUnpackStaysInside(t *testing.T) {
	t.Parallel()
	outside := writeDir(t, map[string]string{"sentinel": "untouched"})
	a, _ := check(t, tarOf(file("sub/sentinel", "x"), file("sentinel", "x")), Options{})
	for _, link := range []string{"sub", "sentinel"} {
		dir := t.TempDir()
		target := outside
		if link == "sentinel" {
			target = filepath.Join(outside, "sentinel")
		}
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
		if err := Unpack(a, openRoot(t, dir), UnpackOptions{}); err == nil {
			t.Errorf("link at %s: no error", link)
		}
	}
	if got, err := os.ReadFile(filepath.Join(outside, "sentinel")); err != nil || string(got) != "untouched" {
		t.Errorf("the sentinel is %q, %v", got, err)
	}
	d, err := tree.OpenDir(openRoot(t, writeDir(t, map[string]string{"a": "x", "A": "x"})))
	if err != nil {
		t.Fatal(err)
	}
	if err := Unpack(d, openRoot(t, t.TempDir()), UnpackOptions{}); !slices.Equal(deniedRules(t, err), []string{"archive.name.collision"}) {
		t.Error(err)
	}
}
