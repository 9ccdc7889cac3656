package archive

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/gzip"

	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/digest/tree"
)

// noise is n bytes that do not compress.
func noise(seed byte, n int) string {
	b := make([]byte, n)
	rand.NewChaCha8([32]byte{seed}).Read(b)
	return string(b)
}

// contents reads a whole tree by Each.
func contents(t testing.TB, tr tree.Tree) map[string]string {
	t.Helper()
	all := make(map[string]string)
	last := ""
	err := tree.Each(tr, func(e tree.Entry, r io.Reader) error {
		b, err := io.ReadAll(r)
		if e.Path <= last {
			t.Errorf("%q comes after %q", e.Path, last)
		}
		last = e.Path
		all[e.Path] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func writeDir(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func openRoot(t testing.TB, dir string) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return root
}

// TestAnyOrder gives the members of one pack in many orders, with files too large to be kept in memory, and
// compares with the directory that holds the same files.
func TestAnyOrder(t *testing.T) {
	t.Parallel()
	big := noise(1, limit.Document+1)
	files := map[string]string{
		"plugin.yaml": "name: x\n", "main.py": "pass\n", "a-b": "1", "a/b": "2", "a.txt": big, "z/big.bin": noise(2, 3<<20),
	}
	root := openRoot(t, writeDir(t, files))
	d, report, err := OpenDir(root, Options{})
	if err != nil || !report.OK() {
		t.Fatal(err, report)
	}
	links := []raw{{name: "alias", typ: '2', link: "a.txt"}, {name: "z/hard", typ: '1', link: "a.txt"}, {name: "k/small", typ: '2', link: "../main.py"}}
	withLinks := maps.Clone(files)
	withLinks["alias"], withLinks["z/hard"], withLinks["k/small"] = big, big, files["main.py"]
	for i := range 12 {
		var members []raw
		want := files
		for _, name := range slices.Sorted(maps.Keys(files)) {
			members = append(members, file(name, files[name]))
		}
		if i%2 == 1 {
			members, want = append(members, links...), withLinks
		}
		if i > 1 {
			rand.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
		}
		a, report := check(t, zip(t, tarOf(members...)), Options{SpoolDir: t.TempDir()})
		if a == nil {
			t.Fatal(report)
		}
		if diff := cmp.Diff(want, contents(t, a)); diff != "" {
			t.Errorf("contents differ: %d bytes", len(diff))
		}
		for path, content := range want {
			if got, err := tree.ReadFile(a, path, 1<<30); err != nil || string(got) != content {
				t.Errorf("%s: %d bytes, %v", path, len(got), err)
			}
		}
		if i%2 == 0 && (a.Listing().Content != d.Listing().Content || a.Listing().Tree != d.Listing().Tree || a.Listing().Bytes != d.Listing().Bytes) {
			t.Errorf("archive %v, %v; directory %v, %v", a.Listing().Content, a.Listing().Tree, d.Listing().Content, d.Listing().Tree)
		}
	}
}

func TestNothingStaysInTheSpoolFolder(t *testing.T) {
	dir := t.TempDir()
	b := zip(t, tarOf(file("z", noise(1, 2<<20)), file("a", noise(2, 2<<20))))
	a, _ := check(t, b, Options{SpoolDir: dir})
	if list, err := os.ReadDir(dir); err != nil || len(list) != 0 {
		t.Errorf("the spool folder holds %v, %v", list, err)
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	if err := a.Close(); err != nil {
		t.Error("second Close:", err)
	}
	_, report, err := Check(FromBytes(b), Options{SpoolDir: filepath.Join(dir, "gone")})
	if !errors.Is(err, os.ErrNotExist) || !report.OK() {
		t.Errorf("without a folder for the spool: %v, %v, want an error that is no verdict", err, report)
	}
}

func TestOpenAtTheSameTime(t *testing.T) {
	t.Parallel()
	a, _ := check(t, zip(t, tarOf(file("a", noise(1, 2<<20)), file("b", noise(2, 2<<20)), file("c", "small"))), Options{})
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			path := string(rune('a' + i%3))
			if _, err := tree.ReadFile(a, path, 3<<20); err != nil {
				t.Errorf("%s: %v", path, err)
			}
		})
	}
	wg.Wait()
	if _, err := a.Open("gone"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
}

func TestSum(t *testing.T) {
	b := zip(t, withPack())
	a, _ := check(t, b, Options{Sum: true})
	if a.Digest() != digest.FromBytes(b) || a.Size() != int64(len(b)) {
		t.Errorf("digest %v of %d bytes, want %v of %d", a.Digest(), a.Size(), digest.FromBytes(b), len(b))
	}
	if a, _ := check(t, b, Options{}); !a.Digest().IsZero() {
		t.Errorf("digest %v without being asked", a.Digest())
	}
}

func TestSources(t *testing.T) {
	b := zip(t, withPack())
	dir := t.TempDir()
	path := filepath.Join(dir, "pack.tgz")
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	root := openRoot(t, dir)
	for name, open := range map[string]func() (Source, error){
		"file": func() (Source, error) { return FromFile(path) },
		"root": func() (Source, error) { return FromRoot(root, "pack.tgz") },
	} {
		src, err := open()
		if err != nil {
			t.Fatal(err)
		}
		if a, report, err := Check(src, Options{}); a == nil || err != nil {
			t.Errorf("%s: %v, %v", name, report, err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"pipe", ".", "gone"} {
		if _, err := FromRoot(root, name); err == nil {
			t.Errorf("%s is a source", name)
		}
		if _, err := FromFile(filepath.Join(dir, name)); err == nil {
			t.Errorf("%s is a source", name)
		}
	}
}

// TestSourceErrors makes sure that a source that can't be read is an error and never a verdict.
func TestSourceErrors(t *testing.T) {
	good := zip(t, tarOf(file("a", noise(1, 300_000)), file("b", "x")))
	broken := errors.New("disk on fire")
	from := func(size int, open func() (io.Reader, error)) Source {
		return Source{int64(size), func() (io.ReadCloser, error) {
			r, err := open()
			return io.NopCloser(r), err
		}}
	}
	half := func() io.Reader { return io.MultiReader(bytes.NewReader(good[:len(good)/2]), iotest.ErrReader(broken)) }
	tests := []struct {
		name string
		src  Source
		want error
	}{
		{"open", from(len(good), func() (io.Reader, error) { return nil, broken }), broken},
		{"first byte", from(len(good), func() (io.Reader, error) { return iotest.ErrReader(broken), nil }), broken},
		{"half way", from(len(good), func() (io.Reader, error) { return half(), nil }), broken},
		{"longer than promised", from(len(good)-100, func() (io.Reader, error) { return bytes.NewReader(good), nil }), nil},
		{"shorter than promised", from(len(good)+100, func() (io.Reader, error) { return bytes.NewReader(good), nil }), io.ErrUnexpectedEOF},
	}
	for _, tt := range tests {
		a, report, err := Check(tt.src, Options{})
		if a != nil || err == nil || tt.want != nil && !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, report %v, want %v", tt.name, err, report, tt.want)
		}
		if len(report.Violations) > 0 {
			t.Errorf("%s: the report judges: %v", tt.name, report.Violations)
		}
	}
}

// TestSourceChanges gives other bytes from the second reading on.
func TestSourceChanges(t *testing.T) {
	t.Parallel()
	first := []raw{file("z", noise(1, 2<<20)), file("a", noise(2, 2<<20))}
	for name, second := range map[string][]raw{
		"other bytes":  {file("z", noise(3, 2<<20)), file("a", noise(2, 2<<20))},
		"other length": {file("z", noise(1, 2<<20)[1:]), file("a", noise(2, 2<<20))},
		"other names":  {file("z", noise(1, 2<<20)), file("b", noise(2, 2<<20))},
		"fewer":        {file("z", noise(1, 2<<20))},
		"broken":       {file("z", noise(1, 2<<20)), {name: "a", post: func(h []byte) { h[0]++ }}},
	} {
		bytesOf := [][]byte{tarOf(first...), tarOf(second...)}
		n := 0
		src := Source{int64(len(bytesOf[0])), func() (io.ReadCloser, error) {
			n++
			b := bytesOf[min(n, 2)-1]
			b = append(b, make([]byte, max(0, len(bytesOf[0])-len(b)))...)
			return io.NopCloser(bytes.NewReader(b)), nil
		}}
		if a, _, err := Check(src, Options{Plain: true}); err == nil || a != nil {
			t.Errorf("%s: the second reading went unnoticed", name)
		}
	}
}

func TestEachNoticesChange(t *testing.T) {
	t.Parallel()
	b := tarOf(file("a", noise(1, 2<<20)), file("b", noise(2, 2<<20)))
	changed := tarOf(file("a", noise(1, 2<<20)), file("b", noise(3, 2<<20)))
	now := b
	src := Source{int64(len(b)), func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(now)), nil }}
	a, report, err := Check(src, Options{Plain: true})
	if err != nil || !report.OK() {
		t.Fatal(err, report)
	}
	now = changed
	err = a.Each(func(e tree.Entry, r io.Reader) error { return nil })
	if _, ok := errors.AsType[*digest.MismatchError](err); !ok {
		t.Errorf("Each over other bytes: %v, want a mismatch", err)
	}
	if _, err := tree.ReadFile(a, "b", 3<<20); err == nil {
		t.Error("Open of other bytes: no error")
	}
}

func TestFileLimit(t *testing.T) {
	t.Parallel()
	var members []raw
	for i := range limit.Files - 2 {
		members = append(members, file(fmt.Sprintf("e%d", i), ""))
	}
	if _, report := check(t, withPack(members...), Options{}); !report.OK() {
		t.Errorf("%d files: %v", limit.Files, report.Violations)
	}
	_, report := check(t, withPack(append(members, file("one-more", ""))...), Options{})
	if got := ids(report.Violations); !slices.Equal(got, []string{"archive.limit.files"}) {
		t.Errorf("%d files: %v", limit.Files+1, report.Violations)
	}
}

// zeros is a gzip stream of a tar of one file of noisy bytes, which do not compress, and then one of n zeros, a
// multiple of the block size.
func zeros(t testing.TB, n int64, noisy int) []byte {
	t.Helper()
	var out bytes.Buffer
	zw, err := gzip.NewWriterLevel(&out, gzip.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	zw.Write(file("noise", noise(1, noisy)).bytes())
	zw.Write(raw{name: "zeros", size: fmt.Sprintf("%011o\x00", n)}.bytes())
	for chunk := make([]byte, 1<<18); n > 0; n -= int64(len(chunk)) {
		zw.Write(chunk[:min(n, int64(len(chunk)))])
	}
	zw.Write(make([]byte, 2*blockSize))
	if err := zw.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestBombLimit(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		zeros int64
		noise int
		rule  string
	}{
		{"15 MiB of zeros", 15 << 20, 0, ""},
		{"17 MiB of zeros", 17 << 20, 0, "archive.limit.ratio"},
		{"64 MiB of zeros beside half a MiB of noise", 64 << 20, 1 << 19, "archive.limit.ratio"},
		{"the unpacked limit", limit.Unpacked - 2<<20, 2 << 20, ""},
		{"a byte more", limit.Unpacked - 2<<20, 2<<20 + 1, "archive.limit.unpacked"},
	}
	for _, tt := range tests {
		_, report := check(t, zeros(t, tt.zeros, tt.noise), Options{})
		want := []string{}
		if tt.rule != "" {
			want = append(want, tt.rule)
		}
		if got := ids(report.Violations); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %q", tt.name, report.Violations, tt.rule)
		}
	}
}

func TestCompressedLimit(t *testing.T) {
	opened := false
	src := Source{limit.Compressed + 1, func() (io.ReadCloser, error) {
		opened = true
		return io.NopCloser(io.MultiReader(bytes.NewReader(zip(t, withPack())), iotest.ErrReader(errors.New("read on")))), nil
	}}
	_, report, err := Check(src, Options{})
	if got := ids(report.Violations); err != nil || !slices.Equal(got, []string{"archive.limit.compressed"}) || !opened {
		t.Errorf("%v, %v", report.Violations, err)
	}
	src.Size = limit.Stream + 1
	src.Open = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(withPack())), nil }
	if _, report, err = Check(src, Options{Plain: true}); err != nil || !slices.Equal(ids(report.Violations), []string{"archive.limit.unpacked"}) {
		t.Errorf("%v, %v", report.Violations, err)
	}
}

func TestLinksCountAsBytes(t *testing.T) {
	t.Parallel()
	members := []raw{file("a", noise(1, 2<<20))}
	for i := range 63 {
		members = append(members, raw{name: fmt.Sprintf("l%02d", i), typ: '2', link: "a"})
	}
	if _, report := check(t, tarOf(members...), Options{}); !report.OK() {
		t.Error(report.Violations)
	}
	_, report := check(t, tarOf(append(members, raw{name: "m", typ: '1', link: "a"})...), Options{})
	if got := ids(report.Violations); !slices.Equal(got, []string{"archive.limit.unpacked"}) {
		t.Errorf("links to more than the limit: %v", report.Violations)
	}
}

// TestManyLinks bounds the work of resolving links that are as long as they may be.
func TestManyLinks(t *testing.T) {
	t.Parallel()
	members := []raw{file("d/f", "x")}
	for i := range limit.Files - 1 {
		members = append(members, raw{name: fmt.Sprintf("d/l%d", i), typ: '2', pax: record("linkpath", strings.Repeat("../d/", 200)+fmt.Sprintf("l%d", i+1))})
	}
	_, report := check(t, tarOf(members...), Options{})
	if report.OK() {
		t.Error("a chain of ten thousand links is accepted")
	}
}

func TestShow(t *testing.T) {
	for path, want := range map[string]string{
		"a/b c":                        "a/b c",
		"数据/é":                         "数据/é",
		"":                             `""`,
		"a\x1b[2Jb":                    `"a\x1b[2Jb"`,
		"a\u202eb":                     `"a\u202eb"`,
		"a\xffb":                       `"a\xffb"`,
		strings.Repeat("é", 300):       strings.Repeat("é", 100) + "…",
		"x" + strings.Repeat("é", 300): "x" + strings.Repeat("é", 99) + "…",
	} {
		if got := Show(path); got != want {
			t.Errorf("Show(%q) = %s, want %s", path, got, want)
		}
	}
}

func TestRulesAreUsed(t *testing.T) {
	used := make(map[string]bool)
	for _, tt := range faulty {
		for _, id := range tt.rules {
			used[id] = true
		}
	}
	for _, tt := range hostile {
		for _, id := range tt.rules {
			used[id] = true
		}
	}
	// Each of these has a test of its own.
	for _, id := range []string{
		"archive.end.truncated", "archive.gzip.header", "archive.gzip.corrupt", "archive.limit.compressed", "archive.limit.padding",
		"archive.limit.faults", "archive.link.order", "archive.left-out",
	} {
		used[id] = true
	}
	for _, info := range rule.All() {
		id := string(info.ID)
		if strings.HasPrefix(id, "archive.") && !used[id] {
			t.Errorf("no test breaks %s", id)
		}
	}
}
