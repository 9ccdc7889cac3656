package archive

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"

	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
)

func named(path string) raw { return raw{name: "n", data: "x", pax: record("path", path)} }

// field writes a text at an offset of a header.
func field(at int, text string) func(h []byte) {
	return func(h []byte) { copy(h[at:], text) }
}

const wide = "\x80\x00\x00\x00"

// faulty are archives of our own making: the pack and members that break the rules named, in order.
var faulty = []struct {
	name    string
	members []raw
	rules   []string
}{
	{"absolute", []raw{file("/etc/evil", "x")}, []string{"archive.path.absolute", "archive.path.element"}},
	{"only a slash", []raw{file("/", "x")}, []string{"archive.path.absolute", "archive.path.element"}},
	{"drive", []raw{file(`C:evil`, "x")}, []string{"archive.path.absolute", "archive.name.windows"}},
	{"backslash", []raw{file(`a\b`, "x")}, []string{"archive.name.backslash"}},
	{"backslash root", []raw{file(`\a`, "x")}, []string{"archive.name.backslash", "archive.path.absolute"}},
	{"backslash climb", []raw{file(`..\evil`, "x")}, []string{"archive.name.backslash", "archive.path.parent", "archive.name.dots"}},
	{"dot slash", []raw{file("./a", "x")}, []string{"archive.path.element"}},
	{"dot slash twin", []raw{file("./plugin.yaml", "x")}, []string{"archive.path.element"}},
	{"dot", []raw{file(".", "x")}, []string{"archive.path.element"}},
	{"dots", []raw{file("..", "x")}, []string{"archive.path.parent"}},
	{"not UTF-8", []raw{file("caf\xe9", "x")}, []string{"archive.name.utf8"}},
	{"surrogate", []raw{file("a\xed\xa0\x80", "x")}, []string{"archive.name.utf8"}},
	{"DEL", []raw{file("a\x7f", "x")}, []string{"archive.name.character"}},
	{"C1", []raw{file("a\u0085b", "x")}, []string{"archive.name.character"}},
	{"line separator", []raw{file("a\u2028b", "x")}, []string{"archive.name.character"}},
	{"isolate", []raw{file("a\u2066b", "x")}, []string{"archive.name.character"}},
	{"dash", []raw{file("-", "x")}, []string{"archive.name.dash"}},
	{"case", []raw{file("README", "x"), file("Readme", "x")}, []string{"archive.name.collision"}},
	{"case of a folder", []raw{file("Lib/a", "x"), file("lib/b", "x")}, []string{"archive.name.collision"}},
	{"case of a file and a folder", []raw{file("LIB", "x"), file("lib/b", "x")}, []string{"archive.name.collision"}},
	{"case fold of sharp s", []raw{file("straße", "x"), file("STRASSE", "x")}, []string{"archive.name.collision"}},
	{"far apart", []raw{file("a/b/c", "x"), file("a/b.x", "x"), file("a/b-x", "x"), file("A/z", "x")}, []string{"archive.name.collision"}},
	{"zero width", []raw{file("main\u200d.py", "x")}, []string{"archive.name.collision"}},
	{"folder then file", []raw{file("d/x", "x"), file("d", "x")}, []string{"archive.duplicate.folder"}},
	{"twice apart", []raw{file("a", "x"), file("b", "x"), file("a", "x")}, []string{"archive.duplicate.path"}},
	{"three times", []raw{file("a", "x"), file("a", "x"), file("a", "x")}, []string{"archive.duplicate.path", "archive.duplicate.path"}},
	{"pycache", []raw{file("__pycache__/main.pyc", "x")}, []string{"archive.name.excluded"}},
	{"pyc", []raw{file("torch.pyc", "x")}, []string{"archive.name.excluded"}},
	{"git", []raw{file("sub/.git/config", "x")}, []string{"archive.name.excluded"}},
	{"DS_Store", []raw{file("a/.DS_Store", "x")}, []string{"archive.name.excluded"}},
	{"two dots", []raw{file("..pyc", "x")}, []string{"archive.name.dots", "archive.name.excluded"}},
	{"whiteout below", []raw{file("a/.wh..wh..opq", "x")}, []string{"archive.name.whiteout"}},
	{"long component", []raw{named(strings.Repeat("n", 256))}, []string{"archive.limit.component"}},
	{"long path", []raw{named(strings.Repeat("n/", 512) + "x")}, []string{"archive.limit.path"}},

	{"folder member", []raw{{name: "lib/", typ: '5'}}, []string{"archive.type.folder", "archive.path.element"}},
	{"root folder member", []raw{{name: "./", typ: '5'}}, []string{"archive.type.folder", "archive.path.element"}},
	{"folder with data", []raw{{name: "lib", typ: '5', data: "x"}, file("../evil", "x")}, []string{"archive.type.folder"}},
	{"block device", []raw{{name: "b", typ: '4'}, file("../evil", "x")}, []string{"archive.type.member", "archive.path.parent"}},
	{"old-style file", []raw{{name: "a", data: "x", edit: func(h []byte) { h[156] = 0 }}}, []string{"archive.type.member"}},
	{"unknown type", []raw{{name: "a", typ: 'Z', data: "x"}}, []string{"archive.type.member"}},
	{"volume label", []raw{{name: "a", typ: 'V'}}, []string{"archive.type.member"}},
	{"global header", []raw{{name: "g", typ: 'g', data: record("path", "../evil")}, file("a", "x")}, []string{"archive.header.extended"}},
	{"GNU sparse", []raw{{name: "s", typ: 'S', gnu: true, edit: field(483, wide+"\x00\x00\x01\x00\x00\x00\x00\x00")}}, []string{"archive.type.sparse", "archive.limit.unpacked"}},
	{"PAX sparse", []raw{{name: "s", data: "x", pax: record("GNU.sparse.major", "1") + record("GNU.sparse.realsize", fmt.Sprint(1<<40))}}, []string{"archive.type.sparse", "archive.limit.unpacked"}},

	{"symlink out", []raw{{name: "l", typ: '2', link: "../x"}}, []string{"archive.link.outside"}},
	{"symlink absolute", []raw{{name: "l", typ: '2', link: "/etc/passwd"}}, []string{"archive.link.outside"}},
	{"symlink into a folder and out", []raw{{name: "d/l", typ: '2', link: "../../main.py"}}, []string{"archive.link.outside"}},
	{"symlink to a folder", []raw{file("d/x", "x"), {name: "l", typ: '2', link: "d"}}, []string{"archive.link.target"}},
	{"symlink to nothing", []raw{{name: "l", typ: '2', link: "gone"}}, []string{"archive.link.target"}},
	{"symlink loop", []raw{{name: "l", typ: '2', link: "m"}, {name: "m", typ: '2', link: "l"}}, []string{"archive.link.target", "archive.link.target"}},
	{"symlink without text", []raw{{name: "l", typ: '2'}}, []string{"archive.link.target"}},
	{"symlink to a device", []raw{{name: "dev", typ: '3'}, {name: "l", typ: '2', link: "dev"}}, []string{"archive.type.member", "archive.link.target"}},
	{"symlink with data", []raw{{name: "l", typ: '2', link: "main.py", data: "x"}}, []string{"archive.header.size"}},
	{"symlink then a file through it", []raw{{name: "l", typ: '2', link: "."}, file("l/x", "x")}, []string{"archive.duplicate.folder", "archive.link.target"}},
	{"long symlink", []raw{{name: "l", typ: '2', pax: record("linkpath", strings.Repeat("./", 513)+"main.py")}}, []string{"archive.limit.path"}},
	{"hard link out", []raw{{name: "h", typ: '1', link: "../../etc/passwd"}}, []string{"archive.link.outside"}},
	{"hard link to nothing", []raw{{name: "h", typ: '1', link: "gone"}}, []string{"archive.link.target"}},
	{"hard link to itself", []raw{{name: "h", typ: '1', link: "h"}}, []string{"archive.link.target"}},
	{"hard link to a symlink", []raw{{name: "l", typ: '2', link: "main.py"}, {name: "h", typ: '1', link: "l"}}, []string{"archive.link.target"}},
	{"hard link with data", []raw{{name: "h", typ: '1', link: "main.py", data: "x"}}, []string{"archive.header.size"}},

	{"signed checksum", []raw{{name: "é", post: func(h []byte) { copy(h[148:], fmt.Sprintf("%06o", signedSum(h))) }}}, []string{"archive.header.checksum"}},
	{"no checksum", []raw{{name: "a", post: func(h []byte) { clear(h[148:156]) }}}, []string{"archive.header.checksum"}},
	{"other magic", []raw{{name: "a", edit: field(257, "ustar\x0001")}}, []string{"archive.header.magic"}},
	{"star", []raw{{name: "a", edit: field(508, "tar\x00")}}, []string{"archive.header.field"}},
	{"text after the name's end", []raw{{name: "ok\x00../evil"}}, []string{"archive.header.field"}},
	{"text after the link's end", []raw{{name: "l", typ: '2', link: "main.py\x00/etc"}}, []string{"archive.header.field"}},
	{"prefix in a GNU header", []raw{{name: "a", gnu: true, edit: field(345, "..")}}, []string{"archive.header.field"}},
	{"prefix that climbs", []raw{{name: "a", edit: field(345, "..")}}, []string{"archive.path.parent"}},
	{"size without digits", []raw{{name: "a", size: "            "}}, []string{"archive.header.number"}},
	{"size in decimal", []raw{{name: "a", size: "00000000009\x00"}}, []string{"archive.header.number"}},
	{"signed size", []raw{{name: "a", size: "+0000000001\x00", data: "x"}}, []string{"archive.header.number"}},
	{"small size in base 256", []raw{{name: "a", size: wide + "\x00\x00\x00\x00\x00\x00\x00\x01", data: "x"}}, []string{"archive.header.number"}},
	{"terabyte in base 256", []raw{{name: "a", size: wide + "\x00\x00\x01\x00\x00\x00\x00\x00"}}, []string{"archive.limit.unpacked"}},
	{"beyond any size", []raw{{name: "a", size: "\x80" + strings.Repeat("\xff", 11)}}, []string{"archive.limit.unpacked"}},
	{"gigabytes", []raw{{name: "a", size: "77777777777\x00"}}, []string{"archive.limit.unpacked"}},
	{"mode", []raw{{name: "a", edit: field(100, "rw-r--r-")}}, []string{"archive.header.number"}},
	{"mtime", []raw{{name: "a", edit: field(136, "yesterday   ")}}, []string{"archive.header.number"}},

	{"PAX length", []raw{{name: "a", pax: "99 path=b\n"}}, []string{"archive.header.extended"}},
	{"PAX length zero", []raw{{name: "a", pax: "0 path=b\n"}}, []string{"archive.header.extended"}},
	{"PAX garbage", []raw{{name: "a", pax: "garbage"}}, []string{"archive.header.extended"}},
	{"PAX without newline", []raw{{name: "a", pax: "8 path=b"}}, []string{"archive.header.extended"}},
	{"PAX without key", []raw{{name: "a", pax: "5 =b\n"}}, []string{"archive.header.extended"}},
	{"PAX without value", []raw{{name: "a", pax: record("path", "")}}, []string{"archive.header.extended"}},
	{"PAX key twice", []raw{{name: "a", pax: record("path", "b") + record("path", "c")}}, []string{"archive.header.extended"}},
	{"PAX character set", []raw{{name: "a", pax: record("hdrcharset", "BINARY")}}, []string{"archive.header.extended"}},
	{"PAX mtime", []raw{{name: "a", pax: record("mtime", "soon")}}, []string{"archive.header.number"}},
	{"PAX size in words", []raw{{name: "a", pax: record("size", "-1")}}, []string{"archive.header.number"}},
	{"PAX size of terabytes", []raw{{name: "a", pax: record("size", fmt.Sprint(1<<40))}}, []string{"archive.limit.unpacked"}},
	{"PAX path that climbs", []raw{named("a/../../evil")}, []string{"archive.path.parent"}},
	{"PAX attribute", []raw{{name: "a", pax: record("SCHILY.xattr.user.x", "y")}}, []string{"archive.header.key"}},
	{"PAX for GNU", []raw{{name: "a", gnu: true, pax: record("path", "b")}}, []string{"archive.header.extended"}},
	{"two PAX headers", []raw{{name: "x", typ: 'x', data: record("path", "b"), pax: record("path", "c")}}, []string{"archive.header.extended"}},
	{"PAX and GNU", []raw{gnuLong("b", 'L'), {name: "a", pax: record("path", "c")}}, []string{"archive.header.extended"}},
	{"GNU for POSIX", []raw{gnuLong("b", 'L'), file("a", "")}, []string{"archive.header.extended"}},
	{"two long names", []raw{gnuLong("b", 'L'), gnuLong("c", 'L'), gnuFile("a")}, []string{"archive.header.extended"}},
	{"long name with NUL", []raw{gnuLong("b\x00c", 'L'), gnuFile("a")}, []string{"archive.header.extended"}},
	{"long link that leaves", []raw{gnuLong(strings.Repeat("../", 50), 'K'), {name: "l", typ: '2', gnu: true}}, []string{"archive.link.outside"}},
	{"header of no member", []raw{gnuLong("b", 'L')}, []string{"archive.header.extended"}},
	{"large PAX header", []raw{{name: "a", pax: record("path", strings.Repeat("p", limit.ExtendedHeader))}}, []string{"archive.limit.header"}},
	{"bytes in the padding", []raw{{name: "a", data: "x", fill: '!'}, file("b", "x")}, []string{"archive.header.padding"}},

	{"option", []raw{file("--help", "x")}, []string{"archive.name.option"}},
	{"trailing dot", []raw{file("a.pyc.", "x")}, []string{"archive.name.trailing"}},
	{"trailing space of a folder", []raw{file("lib /a", "x")}, []string{"archive.name.trailing"}},
	{"trailing dot beside", []raw{file("main.py.", "x")}, []string{"archive.name.trailing"}},
	{"Windows device", []raw{file("aux.c", "x"), file("d/COM7", "x")}, []string{"archive.name.windows", "archive.name.windows"}},
	{"Windows character", []raw{file("what?", "x")}, []string{"archive.name.windows"}},
	{"soft hyphen", []raw{file("a\u00adb", "x")}, []string{"archive.name.invisible"}},
	{"byte-order mark", []raw{file("\ufeffa", "x")}, []string{"archive.name.invisible"}},
	{"bare suffix", []raw{file("sub/.py", "x")}, []string{"archive.name.bare"}},
}

func signedSum(h []byte) int {
	sum := 8 * int(' ')
	for i, c := range h {
		if i < 148 || i >= 156 {
			sum += int(int8(c))
		}
	}
	return sum
}

func TestFaulty(t *testing.T) {
	for _, tt := range faulty {
		for _, form := range []string{"tar", "gzip"} {
			b := withPack(tt.members...)
			if form == "gzip" {
				b = zip(t, b)
			}
			_, report := check(t, b, Options{})
			if got := ids(report.Violations); !slices.Equal(got, tt.rules) {
				t.Errorf("%s (%s): breaks %q, want %q\n%v", tt.name, form, got, tt.rules, report.Violations)
			}
			for _, v := range report.Violations {
				checkViolation(t, tt.name, v)
			}
		}
	}
}

func TestOrdinary(t *testing.T) {
	long := strings.Repeat("long/", 60) + "name"
	tests := []struct {
		name    string
		members []raw
		path    string // must be there
	}{
		{"any order", []raw{file("b", "x"), file("a", "x")}, "a"},
		{"ustar prefix", []raw{{name: "name", data: "x", edit: field(345, "some/folder")}}, "some/folder/name"},
		{"name of 100 bytes", []raw{file(strings.Repeat("n", 100), "x")}, strings.Repeat("n", 100)},
		{"PAX path", []raw{named(long)}, long},
		{"PAX path of 1024 bytes", []raw{named(strings.Repeat("d/", 511) + "xx")}, strings.Repeat("d/", 511) + "xx"},
		{"component of 255 bytes", []raw{named(strings.Repeat("n", 255))}, strings.Repeat("n", 255)},
		{"GNU long name", []raw{gnuLong(long, 'L'), gnuFile("long/")}, long},
		{"GNU link", []raw{gnuLong("./"+strings.Repeat("./", 60)+"main.py", 'K'), {name: "l", typ: '2', gnu: true}}, "l"},
		{"GNU numbers", []raw{{name: "a", gnu: true, edit: func(h []byte) {
			copy(h[108:], "\x80\x00\x00\x00\x77\x77\x77\x77\x80\x00\x00\x00\x77\x77\x77\x77")
			copy(h[136:], strings.Repeat("\xff", 12))
		}}}, "a"},
		{"PAX ids and times", []raw{{name: "a", pax: record("mtime", "-1.5") + record("uid", "4294967295") + record("uname", "jürgen")}}, "a"},
		{"hidden files", []raw{file(".gitignore", "x"), file(".github/w.yml", "x"), file("Thumbs.db", "x")}, ".github/w.yml"},
		{"near names", []raw{file("a.PYC", "x"), file("__pycache__x/a", "x"), file(".wheel", "x"), file("console", "x"), file("com10", "x")}, "com10"},
		{"dot names", []raw{file(".a", "x"), file("a..b", "x")}, "a..b"},
		{"joiners", []raw{file("👩\u200d🔬.md", "x"), file("می\u200cخواهم", "x")}, "👩\u200d🔬.md"},
		{"NFD alone", []raw{file("cafe\u0301", "x")}, "cafe\u0301"},
		{"same name in two folders", []raw{file("a/x", "x"), file("b/x", "x"), file("b/X2", "x")}, "b/x"},
		{"symlink before its file", []raw{{name: "a", typ: '2', link: "z"}, file("z", "x")}, "a"},
		{"symlinks in chain", []raw{{name: "a", typ: '2', link: "d/b"}, {name: "d/b", typ: '2', link: "../main.py"}}, "a"},
		{"symlink to a hard link", []raw{{name: "h", typ: '1', link: "main.py"}, {name: "l", typ: '2', link: "h"}}, "l"},
		{"empty file", []raw{file("empty", "")}, "empty"},
	}
	for _, tt := range tests {
		a, report := check(t, withPack(tt.members...), Options{})
		if !report.OK() || len(report.Warnings) > 0 {
			t.Errorf("%s: %v, warnings %v", tt.name, report.Violations, report.Warnings)
			continue
		}
		if _, ok := a.Listing().Lookup(tt.path); !ok {
			t.Errorf("%s: %q is not in %+v", tt.name, tt.path, a.Listing().Entries)
		}
	}
}

func TestEnds(t *testing.T) {
	whole := withPack()
	body := whole[:len(whole)-1024]
	zeros := func(n int) []byte { return append(bytes.Clone(body), make([]byte, n)...) }
	tests := []struct {
		name string
		b    []byte
		rule string
	}{
		{"two blocks", zeros(1024), ""},
		{"Python's record", zeros(10240 - len(body)), ""},
		{"a megabyte of zeros", zeros(1024 + limit.EndPadding), ""},
		{"no block", zeros(0), "archive.end.missing"},
		{"one block", zeros(512), "archive.end.missing"},
		{"half a block", zeros(256), "archive.end.truncated"},
		{"two blocks and a half", zeros(1280), "archive.end.truncated"},
		{"too many zeros", zeros(2048 + limit.EndPadding), "archive.limit.padding"},
		{"one block, then members", append(zeros(512), withPack()...), "archive.end.data"},
		{"one byte at the very end", append(zeros(9999), 1), "archive.end.data"},
		{"within a member", body[:len(body)-512], "archive.end.truncated"},
		{"within a header", body[:600], "archive.end.truncated"},
		{"within padding", append(body[:len(body):len(body)], raw{name: "a", data: "x"}.bytes()[:800]...), "archive.end.truncated"},
		{"within a PAX header", append(body[:len(body):len(body)], named("b").bytes()[:520]...), "archive.end.truncated"},
		{"zeros only", make([]byte, 1024), "archive.empty"},
		{"nothing", nil, "archive.empty"},
		{"text", bytes.Repeat([]byte("not a tar file "), 100), "archive.header.checksum"},
	}
	for _, tt := range tests {
		for _, form := range []string{"tar", "gzip"} {
			b := tt.b
			if form == "gzip" {
				b = zip(t, b)
			}
			_, report := check(t, b, Options{})
			want := []string{}
			if tt.rule != "" {
				want = append(want, tt.rule)
			}
			if got := ids(report.Violations); !slices.Equal(got, want) {
				t.Errorf("%s (%s): breaks %q, want %q: %v", tt.name, form, got, want, report.Violations)
			}
		}
	}
}

func TestGzip(t *testing.T) {
	good := zip(t, withPack())
	edit := func(change func(b []byte) []byte) []byte { return change(bytes.Clone(good)) }
	var named bytes.Buffer
	zw := gzip.NewWriter(&named)
	zw.Name, zw.Comment, zw.Extra = "pack.tar", "a comment", []byte("extra")
	zw.Write(withPack())
	zw.Close()
	tests := []struct {
		name string
		b    []byte
		rule string
	}{
		{"as it is", good, ""},
		{"with name, comment, extra", named.Bytes(), ""},
		{"second member", append(bytes.Clone(good), zip(t, withPack())...), "archive.gzip.trailing"},
		{"second, empty member", append(bytes.Clone(good), zip(t, nil)...), "archive.gzip.trailing"},
		{"one zero after it", append(bytes.Clone(good), 0), "archive.gzip.trailing"},
		{"garbage after it", append(bytes.Clone(good), "GARBAGE"...), "archive.gzip.trailing"},
		{"checksum", edit(func(b []byte) []byte { b[len(b)-6] ^= 1; return b }), "archive.gzip.corrupt"},
		{"length", edit(func(b []byte) []byte { b[len(b)-2] ^= 1; return b }), "archive.gzip.corrupt"},
		{"bad block", edit(func(b []byte) []byte { b[10] = 0xff; return b }), "archive.gzip.corrupt"},
		{"no trailer", good[:len(good)-8], "archive.gzip.truncated"},
		{"half a trailer", good[:len(good)-3], "archive.gzip.truncated"},
		{"half", good[:len(good)/2], "archive.gzip.truncated"},
		{"header only", good[:10], "archive.gzip.truncated"},
		{"three bytes", good[:3], "archive.gzip.truncated"},
		{"reserved flags", edit(func(b []byte) []byte { b[3] = 0x20; return b }), "archive.gzip.header"},
		{"other method", edit(func(b []byte) []byte { b[2] = 7; return b }), "archive.gzip.header"},
		{"zip", []byte("PK\x03\x04 and so on"), "archive.gzip.header"},
		{"zstd", []byte("\x28\xb5\x2f\xfd and so on"), "archive.gzip.header"},
		{"one byte", []byte{0x1f}, "archive.gzip.truncated"},
		{"plain tar", withPack(), "archive.gzip.header"},
		{"nothing", nil, "archive.empty"},
	}
	for _, tt := range tests {
		_, report, err := Check(FromBytes(tt.b), Options{})
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		want := []string{}
		if tt.rule != "" {
			want = append(want, tt.rule)
		}
		if got := ids(report.Violations); !slices.Equal(got, want) {
			t.Errorf("%s: breaks %q, want %q: %v", tt.name, got, want, report.Violations)
		}
	}
}

// TestSoften makes sure that the rules that an administrator may soften are those that are harmless, and that an
// archive that breaks nothing else is then accepted with warnings.
func TestSoften(t *testing.T) {
	wantSoft := []string{"archive.header.key", "archive.name.bare", "archive.name.invisible", "archive.name.option", "archive.name.trailing", "archive.name.windows"}
	var soft []string
	for _, info := range rule.All() {
		if strings.HasPrefix(string(info.ID), "archive.") && info.Softenable() {
			soft = append(soft, string(info.ID))
		}
	}
	if !slices.Equal(soft, wantSoft) {
		t.Errorf("softenable rules are %q, want %q", soft, wantSoft)
	}
	for _, tt := range faulty {
		a, report := check(t, withPack(tt.members...), Options{Policy: lenient()})
		hard := slices.DeleteFunc(slices.Clone(tt.rules), func(id string) bool { return slices.Contains(soft, id) })
		if tt.name == "trailing dot beside" {
			hard = append(hard, "archive.name.collision") // main.py and main.py. are one name on Windows
		}
		if got := ids(report.Violations); !slices.Equal(got, hard) {
			t.Errorf("%s: softened, it breaks %q, want %q", tt.name, got, hard)
		}
		if len(hard) == 0 && (a == nil || len(report.Warnings) != len(tt.rules)) {
			t.Errorf("%s: softened, it has the warnings %v, want %q", tt.name, report.Warnings, tt.rules)
		}
	}
}

func TestForwardHardLinkWarns(t *testing.T) {
	a, report := check(t, tarOf(raw{name: "h", typ: '1', link: "main.py"}, file("main.py", "x")), Options{})
	if a == nil || !slices.Equal(ids(report.Warnings), []string{"archive.link.order"}) {
		t.Errorf("a hard link before its file: %v, %v", report.Violations, report.Warnings)
	}
}

func TestFaultLimit(t *testing.T) {
	var members []raw
	for i := range 3 * limit.Faults {
		members = append(members, file(fmt.Sprintf("../%d", i), "x"))
	}
	_, report := check(t, withPack(members...), Options{})
	if n := len(report.Violations); n != limit.Faults+1 || report.Violations[n-1].Rule != "archive.limit.faults" {
		t.Errorf("%d violations, the last %v", n, report.Violations[n-1])
	}
}
