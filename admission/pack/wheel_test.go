package pack

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
)

const wheelFile = "demo-1.0.0-py3-none-any.whl"

// wheelMembers are those of a wheel that is right.
func wheelMembers() [][2]string {
	return [][2]string{
		{"demo.py", "def install(params, **ctx):\n    pass\n"},
		{"demo-1.0.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: demo\nVersion: 1.0.0\n"},
		{"demo-1.0.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"},
		{"demo-1.0.0.dist-info/entry_points.txt", "[tuneplane.algorithms]\nmain = demo:install\n"},
	}
}

func makeWheel(t testing.TB, members [][2]string) []byte {
	t.Helper()
	return zipOf(t, members, zip.Deflate)
}

func zipOf(t testing.TB, members [][2]string, method uint16) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, m := range members {
		w, err := z.CreateHeader(&zip.FileHeader{Name: m[0], Method: method})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(m[1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// wheelPack is a pack whose manifest names the wheel.
func wheelPack(t testing.TB, file string, wheel []byte) rule.Report {
	t.Helper()
	dir := t.TempDir()
	manifest := "schema: tuneplane/plugin/v1\nname: demo\nversion: 1.0.0\ncapability: algorithm\nprovider: main\nwheel: " + file + "\n"
	for name, data := range map[string][]byte{ManifestFile: []byte(manifest), file: wheel} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	_, report, err := Check(openTree(t, dir), Options{})
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func with(members [][2]string, more ...[2]string) [][2]string {
	for _, m := range more {
		replaced := false
		for i := range members {
			if members[i][0] == m[0] {
				members[i], replaced = m, true
			}
		}
		if !replaced {
			members = append(members, m)
		}
	}
	return members
}

func TestWheelMembers(t *testing.T) {
	const info = "demo-1.0.0.dist-info/"
	cases := []struct {
		name string
		file string
		more [][2]string
		rule rule.ID // "" accepted
		says string
	}{
		{name: "right"},
		{name: "build number", file: "demo-1.0.0-7b-py3-none-any.whl"},
		{name: "several interpreters", file: "demo-1.0.0-py2.py3-none-any.whl"},
		{name: "spelling of the name", file: "De.Mo-1.0.0-py3-none-any.whl", more: [][2]string{{info + "METADATA", "NAME:   de_MO\nVersion: 1.0.0\n\nName: other\n"}}},
		{name: "version in normal form", file: "demo-01.0-py3-none-any.whl", more: [][2]string{{info + "METADATA", "Name: demo\nVersion: 1.0\n"}}},
		{name: "headers continue", more: [][2]string{{info + "METADATA", "Summary: a\n  b\nName: demo\nVersion: 1.0.0\n"}}},
		{name: "spaces in entry points", more: [][2]string{{info + "entry_points.txt", "# x\n\n[other]\nmain = a:b\n[tuneplane.algorithms]\n main =  demo : install \n"}}},
		{name: "module alone", more: [][2]string{{info + "entry_points.txt", "[tuneplane.algorithms]\nmain=demo\n"}}},
		{name: "package", more: [][2]string{{"pkg/x/y.py", ""}, {info + "entry_points.txt", "[tuneplane.algorithms]\nmain = pkg.x:install\n"}}},

		{name: "one platform", file: "demo-1.0.0-py3-none-linux_x86_64.whl", rule: "layout.wheel", says: "none-any"},
		{name: "one abi", file: "demo-1.0.0-cp312-cp312-any.whl", rule: "layout.wheel", says: "none-any"},
		{name: "empty tag", file: "demo-1.0.0-py3.-none-any.whl", rule: "layout.wheel", says: "tags"},
		{name: "interpreter is no word", file: "demo-1.0.0-3py-none-any.whl", rule: "layout.wheel", says: "tags"},
		{name: "no wheel name", file: "demo.whl", rule: "layout.wheel", says: "name-version"},
		{name: "name with __", file: "de__mo-1.0.0-py3-none-any.whl", rule: "layout.wheel", says: "project name"},
		{name: "version is none", file: "demo-x-py3-none-any.whl", rule: "layout.wheel", says: "PEP 440"},
		{name: "build is no number", file: "demo-1.0.0-b7-py3-none-any.whl", rule: "layout.wheel", says: "build number"},
		{name: "twice", more: [][2]string{{"a.py", "1"}, {"b.py", "1"}}, rule: "layout.wheel", says: "twice"},
		{name: "climbs out", more: [][2]string{{"a/../../x.py", "1"}}, rule: "layout.wheel", says: "inside"},
		{name: "absolute", more: [][2]string{{"/x.py", "1"}}, rule: "layout.wheel", says: "inside"},
		{name: "backslash", more: [][2]string{{`a\b.py`, "1"}}, rule: "layout.wheel", says: "inside"},
		{name: "needs an installer", more: [][2]string{{"demo-1.0.0.data/scripts/x", "1"}}, rule: "layout.wheel", says: "installer"},
		{name: "not pure", more: [][2]string{{info + "WHEEL", "Root-Is-Purelib: false\n"}}, rule: "layout.wheel", says: "Purelib"},
		{name: "two distributions", more: [][2]string{{"other.egg-info", "x"}}, rule: "layout.wheel", says: "2 distributions"},
		{name: "two WHEEL documents", more: [][2]string{{"x/y.dist-info/WHEEL", "x"}}, rule: "layout.wheel", says: "2 WHEEL"},
		{name: "another name", more: [][2]string{{info + "METADATA", "Name: other\nVersion: 1.0.0\n"}}, rule: "layout.wheel", says: "METADATA"},
		{name: "not UTF-8", more: [][2]string{{info + "METADATA", "Name: demo\xff\nVersion: 1.0.0\n"}}, rule: "layout.wheel", says: "UTF-8"},
		{name: "large document", more: [][2]string{{info + "METADATA", strings.Repeat("x", maxWheelDocument+1)}}, rule: "layout.wheel", says: "more than"},
		{name: "extras", more: [][2]string{{info + "entry_points.txt", "[tuneplane.algorithms]\nmain = demo:install [fast]\n"}}, rule: "layout.wheel", says: "extras"},
		{name: "no entry point value", more: [][2]string{{info + "entry_points.txt", "[tuneplane.algorithms]\nmain = demo:\n"}}, rule: "layout.wheel", says: "module:callable"},
		{name: "line without =", more: [][2]string{{info + "entry_points.txt", "[tuneplane.algorithms]\nmain\n"}}, rule: "layout.wheel", says: "the line"},
		{name: "two entry points", more: [][2]string{{info + "entry_points.txt", "[tuneplane.algorithms]\nmain = demo:a\nmain = demo:b\n"}}, rule: "layout.wheel", says: "2 entry points"},
		{name: "module elsewhere", more: [][2]string{{info + "entry_points.txt", "[tuneplane.algorithms]\nmain = torch:install\n"}}, rule: "layout.wheel", says: "not in it"},
		{name: "reserved module", more: [][2]string{{"torch/x.py", "1"}}, rule: "layout.wheel.reserved", says: "torch"},
		{name: "shadowing byte code", more: [][2]string{{"torch.pyc", "1"}}, rule: "layout.wheel.shadow", says: "torch"},
		{name: "start-up module", more: [][2]string{{"sitecustomize.py", "1"}}, rule: "layout.wheel.shadow", says: "sitecustomize"},
		{name: "the other platform's package", more: [][2]string{{"starforge/x.py", "1"}}, rule: "layout.wheel.shadow", says: "starforge"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if c.file == "" {
				c.file = wheelFile
			}
			data := makeWheel(t, with(wheelMembers(), c.more...))
			if c.name == "twice" {
				data = bytes.ReplaceAll(data, []byte("b.py"), []byte("a.py"))
			}
			expectRule(t, wheelPack(t, c.file, data), c.rule, c.says)
		})
	}
}

// expectRule wants exactly the violations of one rule, or none.
func expectRule(t *testing.T, report rule.Report, want rule.ID, says string) {
	t.Helper()
	if want == "" {
		if !report.OK() {
			t.Errorf("refused: %v", report.Violations)
		}
		return
	}
	if report.OK() {
		t.Fatalf("accepted, want a refusal by %s", want)
	}
	for _, v := range report.Violations {
		if v.Rule != want || !strings.Contains(v.Message, says) {
			t.Errorf("refused by %s: %s; want %s with %q", v.Rule, v.Message, want, says)
		}
	}
}

func TestWheelZip(t *testing.T) {
	good := makeWheel(t, wheelMembers())
	end := len(good) - zipEndSize
	edit := func(change func(b []byte) []byte) []byte { return change(bytes.Clone(good)) }
	cases := []struct {
		name string
		data []byte
		rule rule.ID
		says string
	}{
		{"empty", nil, "layout.wheel", "no zip"},
		{"text", []byte(strings.Repeat("hello ", 100)), "layout.wheel", "no zip"},
		{"bytes before", append([]byte("#!/bin/sh\n"), good...), "layout.wheel.form", "two zips"},
		{"bytes after", append(bytes.Clone(good), "tail"...), "layout.wheel.form", "follow"},
		{"comment", edit(func(b []byte) []byte {
			binary.LittleEndian.PutUint16(b[end+20:], 4)
			return append(b, "note"...)
		}), "layout.wheel.form", "follow"},
		{"fewer members than there are", edit(func(b []byte) []byte {
			binary.LittleEndian.PutUint16(b[end+8:], 1)
			binary.LittleEndian.PutUint16(b[end+10:], 1)
			return b
		}), "layout.wheel.form", "more members"},
		{"more members than there are", edit(func(b []byte) []byte {
			binary.LittleEndian.PutUint16(b[end+10:], 9)
			return b
		}), "layout.wheel.form", "end record says 9"},
		{"too many members", edit(func(b []byte) []byte {
			binary.LittleEndian.PutUint16(b[end+10:], 0xFFFF)
			return b
		}), "layout.wheel.form", "too large"},
		{"directory of 2 GiB", edit(func(b []byte) []byte {
			binary.LittleEndian.PutUint32(b[end+12:], 1<<31)
			return b
		}), "layout.wheel.form", "too large"},
		{"directory elsewhere", edit(func(b []byte) []byte {
			binary.LittleEndian.PutUint32(b[end+16:], 0)
			return b
		}), "layout.wheel.form", "does not end"},
		{"cut short", good[:len(good)/2], "layout.wheel", "no zip"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { expectRule(t, wheelPack(t, wheelFile, c.data), c.rule, c.says) })
	}
}

func TestWheelUnpackedLimit(t *testing.T) {
	data := makeWheel(t, wheelMembers())
	// Every size in the directory claims 100 MiB: the sum is above the limit, though nothing is unpacked.
	at := int(binary.LittleEndian.Uint32(data[len(data)-zipEndSize+16:]))
	for at < len(data)-zipEndSize {
		h := data[at:]
		binary.LittleEndian.PutUint32(h[24:], 100<<20)
		at += zipHeaderSize
		for _, field := range []int{28, 30, 32} {
			at += int(binary.LittleEndian.Uint16(h[field:]))
		}
	}
	expectRule(t, wheelPack(t, wheelFile, data), "layout.wheel", "unpacks to more than 128 MiB")
}

func FuzzWheel(f *testing.F) {
	f.Add(zipOf(f, wheelMembers(), zip.Store)) // the compressor's pools would make coverage vary from run to run
	f.Add(zipOf(f, with(wheelMembers(), [2]string{"torch.py", "1"}), zip.Store))
	f.Fuzz(func(t *testing.T, data []byte) {
		w, err := inspectWheel(wheelFile, bytes.NewReader(data), int64(len(data)), "tuneplane.algorithms", "main")
		if err != nil {
			return
		}
		if len(w.files) > limit.WheelMembers {
			t.Errorf("%d members", len(w.files))
		}
		if !slices.Contains(w.importNames(), "demo") {
			t.Errorf("accepted with the modules %q", w.importNames())
		}
	})
}
