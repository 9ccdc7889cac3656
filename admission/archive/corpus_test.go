package archive

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/testdata"
)

func entry(name string) []byte { return withPack(file(name, "x")) }

// hostile is the table of corpus/EXPECT.md: every hostile archive with the rules it breaks, and its twin without
// the fault.
var hostile = map[string]struct {
	rules []string
	says  string // in the message or the file of the first violation
	twin  func(t *testing.T) []byte
}{
	"t01-dotdot.tar":              {[]string{"archive.path.parent"}, "../evil", func(*testing.T) []byte { return entry("evil") }},
	"t03-mid-dotdot.tar":          {[]string{"archive.path.parent"}, "a/../../evil", func(*testing.T) []byte { return entry("a/b/evil") }},
	"t05-symlink-self-chain.tar":  {[]string{"archive.duplicate.path", "archive.link.target", "archive.link.outside", "archive.link.outside"}, "c", func(*testing.T) []byte { return withPack(file("e/x", "x"), raw{name: "a/c", typ: '2', link: "../e/x"}) }},
	"t07-hardlink-abs.tar":        {[]string{"archive.link.outside"}, "/etc/hostname", func(*testing.T) []byte { return withPack(raw{name: "h", typ: '1', link: "main.py"}) }},
	"t09-chardev.tar":             {[]string{"archive.type.member"}, "character device", func(*testing.T) []byte { return entry("dev") }},
	"t11-fifo.tar":                {[]string{"archive.type.member"}, "FIFO", func(*testing.T) []byte { return entry("ff") }},
	"t13-dup-exact.tar":           {[]string{"archive.duplicate.path"}, "plugin.yaml", func(*testing.T) []byte { return entry("plugin.yml") }},
	"t15-dup-slashslash.tar":      {[]string{"archive.path.element"}, "a//b", func(*testing.T) []byte { return withPack(file("a/b", "1"), file("a/c", "2")) }},
	"t17-nfc-nfd.tar":             {[]string{"archive.name.collision"}, "café.py", func(*testing.T) []byte { return withPack(file("café.py", "1"), file("cafe.py", "2")) }},
	"t19-trailing-slash-file.tar": {[]string{"archive.path.element"}, "file/", func(*testing.T) []byte { return entry("file") }},
	"t21-file-then-child.tar":     {[]string{"archive.duplicate.folder"}, "d", func(*testing.T) []byte { return withPack(file("d/y", "1"), file("d/x", "2")) }},
	"t23-pax-size-mismatch.tar":   {[]string{"archive.header.size"}, "512", func(*testing.T) []byte { return withPack(raw{name: "big", data: "12", pax: record("size", "2")}) }},
	"t25-pax-nul-path.tar":        {[]string{"archive.name.character", "archive.name.trailing"}, `ok\x00../evil`, func(*testing.T) []byte { return withPack(raw{name: "n", data: "x", pax: record("path", "ok/evil")}) }},
	"t27-gnu-longname.tar": {[]string{"archive.path.parent"}, "../", func(*testing.T) []byte {
		return withPack(gnuLong(strings.Repeat("dir/", 30)+"evil", 'L'), gnuFile("short"))
	}},
	"t29-neg-size.tar":       {[]string{"archive.header.number"}, "negative", func(*testing.T) []byte { return entry("neg") }},
	"t31-no-eof.tar":         {[]string{"archive.end.missing"}, "without an end block", func(*testing.T) []byte { return entry("a") }},
	"t33-data-after-eof.tar": {[]string{"archive.end.data"}, "data follows", func(*testing.T) []byte { return append(withPack(), make([]byte, 8192)...) }},
	"t35-bad-checksum.tar":   {[]string{"archive.header.checksum"}, "checksum", func(*testing.T) []byte { return entry("a") }},
	"t37-empty.tar":          {[]string{"archive.empty"}, "no bytes", func(*testing.T) []byte { return withPack() }},
	"t39-empty-name.tar":     {[]string{"archive.path.empty"}, "no name", func(*testing.T) []byte { return entry("n") }},
	"t41-whiteout.tar":       {[]string{"archive.name.whiteout"}, ".wh.plugin.yaml", func(*testing.T) []byte { return entry("wh.plugin.yaml") }},
	"t43-ctrl-chars.tar":     {[]string{"archive.name.character", "archive.name.character", "archive.name.character"}, "U+001B", func(*testing.T) []byte { return entry("a[2Jb") }},
	"t45-deep-4096.tar": {[]string{"archive.limit.path"}, "4095 bytes, at most 1024", func(*testing.T) []byte {
		return withPack(raw{name: "x", data: "x", pax: record("path", strings.Repeat("d/", 511)+"xx")})
	}},
	"t47-contig-type7.tar":     {[]string{"archive.type.member"}, "contiguous", func(*testing.T) []byte { return entry("c7") }},
	"t49-v7-nomagic.tar":       {[]string{"archive.header.magic"}, "magic", func(*testing.T) []byte { return entry("v7") }},
	"t51-many-entries.tar.gz":  {[]string{"archive.limit.files"}, "10000", nil},                                   // TestFileLimit
	"z01-bomb-64MiB.tgz":       {[]string{"archive.limit.ratio"}, "65490 bytes unpack to at least 67111424", nil}, // TestBombLimit
	"z03-trailing-garbage.tgz": {[]string{"archive.gzip.trailing"}, "bytes follow", func(t *testing.T) []byte { return zip(t, withPack()) }},
	"z05-truncated.tgz":        {[]string{"archive.gzip.truncated"}, "truncated", func(t *testing.T) []byte { return zip(t, withPack()) }},
	"z07-bomb-256MiB.tgz":      {[]string{"archive.limit.unpacked"}, "at most 134217728", nil},
}

func gnuLong(name string, typ byte) raw {
	return raw{name: "././@LongLink", typ: typ, data: name + "\x00", gnu: true}
}
func gnuFile(name string) raw { return raw{name: name, data: "x", gnu: true} }

func TestCorpus(t *testing.T) {
	files, err := testdata.FS.ReadDir("corpus")
	if err != nil {
		t.Fatal(err)
	}
	refused, accepted := 0, 0
	for _, f := range files {
		name := f.Name()
		switch {
		case strings.HasPrefix(name, "c"):
			accepted++
			if _, report := check(t, corpus(t, name), Options{}); !report.OK() || len(report.Warnings) > 0 {
				t.Errorf("%s: %v, warnings %v, want accepted", name, report.Violations, report.Warnings)
			}
		case strings.HasPrefix(name, "t") || strings.HasPrefix(name, "z"):
			refused++
			checkHostile(t, name)
		}
	}
	if accepted != 3 || refused != len(hostile) {
		t.Errorf("%d controls and %d hostile archives, want 3 and %d", accepted, refused, len(hostile))
	}
	t.Logf("corpus: %d archives accepted, %d refused, each for its rule", accepted, refused)
}

func checkHostile(t *testing.T, name string) {
	want, ok := hostile[name]
	if !ok {
		t.Errorf("%s is in no table", name)
		return
	}
	_, report := check(t, corpus(t, name), Options{})
	if got := ids(report.Violations); !slices.Equal(got, want.rules) {
		t.Errorf("%s breaks %q, want %q\n%v", name, got, want.rules, report.Violations)
		return
	}
	for _, v := range report.Violations {
		checkViolation(t, name, v)
	}
	if first := report.Violations[0]; !strings.Contains(first.File+" "+first.Message, want.says) {
		t.Errorf("%s: %q does not say %q", name, first, want.says)
	}
	if want.twin == nil {
		return
	}
	if _, report := check(t, want.twin(t), Options{}); !report.OK() {
		t.Errorf("%s: its twin is refused: %v", name, report.Violations)
	}
}

// checkViolation makes sure that a violation is of a known rule, says how to mend it and can be shown anywhere.
func checkViolation(t *testing.T, name string, v rule.Violation) {
	t.Helper()
	if _, ok := rule.Lookup(v.Rule); !ok || v.Hint == "" {
		t.Errorf("%s: rule %s is not in the table or has no fix", name, v.Rule)
	}
	text := v.String() + v.Hint
	if !utf8.ValidString(text) || strings.ContainsFunc(text, unprintable) || len(text) > 2000 {
		t.Errorf("%s: the violation can't be shown as it is: %q", name, text)
	}
}

func TestControlsAreRead(t *testing.T) {
	a, _ := check(t, corpus(t, "c05-links-inside.tar"), Options{})
	b, _ := check(t, withPack(), Options{})
	if a.Links() != 2 || a.Listing().Files != 4 || b.Links() != 0 {
		t.Errorf("c05 has %d links and %d files, want 2 and 4", a.Links(), a.Listing().Files)
	}
	for _, path := range []string{"alias.py", "sub/hard.py"} {
		e, _ := a.Listing().Lookup(path)
		target, _ := a.Listing().Lookup("main.py")
		if e.SHA256 != target.SHA256 || e.Size != target.Size {
			t.Errorf("%s is not main.py: %+v", path, e)
		}
		if want := map[string]string{"alias.py": "main.py"}[path]; e.Link != want {
			t.Errorf("%s has the link text %q, want %q", path, e.Link, want)
		}
	}
	c, _ := check(t, corpus(t, "c03-python-pax.tgz"), Options{})
	if e, ok := c.Listing().Lookup("dép/数据.txt"); !ok || !e.Executable || e.Size != 1 {
		t.Errorf("c03 holds %+v", c.Listing().Entries)
	}
}
