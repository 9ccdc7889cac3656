package archive

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"

	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/testdata"
)

// raw is a tar member written byte by byte, so that a test can write what no tar writer would.
type raw struct {
	name string
	typ  byte // '0' when zero
	link string
	data string
	size string         // the size field; the length of data when ""
	gnu  bool           // GNU magic
	pax  string         // records of a PAX header before it
	edit func(h []byte) // changes the header before its checksum is made
	post func(h []byte) // changes it afterwards
	fill byte           // of the padding
}

func file(name, data string) raw { return raw{name: name, data: data} }

func (m raw) bytes() []byte {
	var out []byte
	if m.pax != "" {
		out = raw{name: "PaxHeaders/x", typ: 'x', data: m.pax}.bytes()
	}
	h := make([]byte, 512)
	copy(h, m.name)
	copy(h[100:], "0000644\x00")
	copy(h[108:], "0001750\x000001750\x00")
	size := m.size
	if size == "" {
		size = fmt.Sprintf("%011o\x00", len(m.data))
	}
	copy(h[124:136], size)
	copy(h[136:], "00000000000\x00")
	h[156] = m.typ
	if m.typ == 0 {
		h[156] = '0'
	}
	copy(h[157:257], m.link)
	copy(h[257:], "ustar\x0000")
	if m.gnu {
		copy(h[257:], "ustar  \x00")
	}
	if m.edit != nil {
		m.edit(h)
	}
	copy(h[148:], "        ")
	sum := 0
	for _, c := range h {
		sum += int(c)
	}
	copy(h[148:], fmt.Sprintf("%06o\x00 ", sum))
	if m.post != nil {
		m.post(h)
	}
	out = append(append(out, h...), m.data...)
	for len(out)%512 != 0 {
		out = append(out, m.fill)
	}
	return out
}

// tarOf is a tar file of members, with its end blocks.
func tarOf(members ...raw) []byte {
	var out []byte
	for _, m := range members {
		out = append(out, m.bytes()...)
	}
	return append(out, make([]byte, 1024)...)
}

// pack is what every archive below holds beside the member under test.
var packFiles = []raw{file("main.py", "def f(): pass\n"), file("plugin.yaml", "name: x\n")}

func withPack(members ...raw) []byte { return tarOf(append(packFiles[:2:2], members...)...) }

func record(key, value string) string {
	n := len(key) + len(value) + 3
	for n != len(fmt.Sprint(n))+len(key)+len(value)+3 {
		n = len(fmt.Sprint(n)) + len(key) + len(value) + 3
	}
	return fmt.Sprintf("%d %s=%s\n", n, key, value)
}

func zip(t testing.TB, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	zw, err := gzip.NewWriterLevel(&out, gzip.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := zw.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := zw.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func corpus(t testing.TB, name string) []byte {
	t.Helper()
	b, err := testdata.FS.ReadFile("corpus/" + name)
	if err != nil {
		t.Fatal(err)
	}
	if inner, ok := strings.CutSuffix(name, ".gz"); ok && strings.HasSuffix(inner, ".tar") {
		zr, err := gzip.NewReader(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		if b, err = io.ReadAll(zr); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// check checks b, in memory, and fails the test on an error.
func check(t testing.TB, b []byte, opt Options) (*Archive, rule.Report) {
	t.Helper()
	opt.Plain = true
	a, report, err := Check(FromBytes(b), opt)
	if err != nil {
		t.Fatal(err)
	}
	if (a != nil) != report.OK() {
		t.Fatalf("archive %v with the report %v", a, report)
	}
	if a != nil {
		t.Cleanup(func() { a.Close() })
	}
	return a, report
}

// ids are the rules of violations.
func ids(violations []rule.Violation) []string {
	list := []string{}
	for _, v := range violations {
		list = append(list, string(v.Rule))
	}
	return list
}
