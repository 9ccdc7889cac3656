package pack

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gatehouse-registry/gatehouse/admission/rule"
)

const (
	playbookManifest  = "schema: forge/plugin/v1\nname: style\nversion: \"1\"\nkind: playbook\n"
	tuneplaneManifest = "schema: tuneplane/plugin/v1\nname: demo\nversion: \"1\"\ncapability: algorithm\nentrypoint: main:f\n"
	iconManifest      = "schema: tuneplane/plugin/v1\nname: demo\nversion: \"1\"\ncapability: prompt\nicon: art/icon.png\n"
)

// broken is what a pack breaks, by rule.
func broken(t *testing.T, files map[string]string, change func(dir string)) map[rule.ID][]rule.Violation {
	t.Helper()
	dir := writeFiles(t, files)
	if change != nil {
		change(dir)
	}
	_, report, err := Check(openTree(t, dir), Options{})
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[rule.ID][]rule.Violation)
	for _, v := range append(report.Violations, report.Warnings...) {
		all[v.Rule] = append(all[v.Rule], v)
	}
	return all
}

func TestLayoutRules(t *testing.T) {
	link := func(target, name string) func(string) {
		return func(dir string) {
			if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	cases := []struct {
		name     string
		manifest string
		files    map[string]string
		change   func(dir string)
		rules    []rule.ID // exactly these
		file     string    // of the first
	}{
		{"a declarative pack", playbookManifest, map[string]string{"doc.md": "x", "template/run.sh": "#!/bin/sh\n"}, nil, nil, ""},
		{"a script under another name", playbookManifest, map[string]string{"run": "#!/bin/sh\n"}, nil, []rule.ID{"layout.declarative.magic"}, "run"},
		{"an ELF binary", playbookManifest, map[string]string{"a/data.bin": "\x7fELF\x02\x01\x01"}, nil, []rule.ID{"layout.declarative.magic"}, "a/data.bin"},
		{"a PE binary", playbookManifest, map[string]string{"data.bin": "MZ\x90\x00\x03"}, nil, []rule.ID{"layout.declarative.magic"}, "data.bin"},
		{"a text that begins as one", playbookManifest, map[string]string{"data.txt": "MZ is a city"}, nil, nil, ""},
		{"a Mach-O binary", playbookManifest, map[string]string{"data.bin": "\xcf\xfa\xed\xfe\x07"}, nil, []rule.ID{"layout.declarative.magic"}, "data.bin"},
		{"a suffix counts once", playbookManifest, map[string]string{"run.sh": "#!/bin/sh\n"}, nil, []rule.ID{"layout.declarative"}, "run.sh"},
		{"marked as executable", playbookManifest, map[string]string{"doc.md": "x"}, func(dir string) {
			if err := os.Chmod(filepath.Join(dir, "doc.md"), 0o755); err != nil {
				t.Fatal(err)
			}
		}, []rule.ID{"layout.declarative.mode"}, "doc.md"},
		{"a link", playbookManifest, map[string]string{"doc.md": "x"}, link("doc.md", "other.md"), []rule.ID{"layout.declarative.link"}, "other.md"},
		{"template is a file", playbookManifest, map[string]string{"template": "x"}, nil, []rule.ID{"layout.template"}, "template"},
		{"template is a link", playbookManifest, map[string]string{"lib/run.sh": "x"}, link("lib", "template"), []rule.ID{"layout.template"}, "template"},
		{"what the digest leaves out", playbookManifest, map[string]string{".git/config": "x", ".DS_Store": "x"}, nil, nil, ""},

		{"a plugin", algorithmManifest, map[string]string{"main.py": ""}, nil, nil, ""},
		{"no entrypoint module", algorithmManifest, map[string]string{"mian.py": ""}, nil, []rule.ID{"layout.entrypoint"}, ""},
		{"a reserved module", algorithmManifest, map[string]string{"main.py": "", "torch.py": ""}, nil, []rule.ID{"layout.reserved"}, "torch.py"},
		{"a reserved extension module", algorithmManifest, map[string]string{"main.py": "", "torch.cpython-312-x86_64-linux-gnu.so": ""}, nil, []rule.ID{"layout.reserved.shadow"}, "torch.cpython-312-x86_64-linux-gnu.so"},
		{"the other platform's package", algorithmManifest, map[string]string{"main.py": "", "tuneplane/__init__.py": ""}, nil, []rule.ID{"layout.reserved.shadow"}, "tuneplane"},
		{"a start-up module", algorithmManifest, map[string]string{"main.py": "", "usercustomize.py": ""}, nil, []rule.ID{"layout.reserved.shadow"}, "usercustomize.py"},
		{"reserved names deeper down", algorithmManifest, map[string]string{"main.py": "", "lib/torch.py": "", "torch.txt": ""}, nil, nil, ""},
		{"a module behind a link", algorithmManifest, map[string]string{"lib/__init__.py": ""}, link("lib", "main"), []rule.ID{"layout.behind_link"}, "main/__init__.py"},
		{"a link to outside", tuneplaneManifest, map[string]string{"main.py": ""}, link("/etc/hostname", "host"), []rule.ID{"digest.none"}, "host"},
		{"many offenders", playbookManifest, manyFiles(50, ".py"), nil, []rule.ID{"layout.declarative"}, "f000.py"},

		{"an icon", iconManifest, map[string]string{"art/icon.png": png(8, 8)}, nil, nil, ""},
		{"no icon", iconManifest, nil, nil, []rule.ID{"layout.icon"}, "art/icon.png"},
		{"a wide icon", iconManifest, map[string]string{"art/icon.png": png(513, 8)}, nil, []rule.ID{"layout.icon"}, "art/icon.png"},
		{"a large icon", iconManifest, map[string]string{"art/icon.png": png(8, 8) + strings.Repeat("x", 64<<10)}, nil, []rule.ID{"layout.icon"}, "art/icon.png"},

		{"no manifest", "", map[string]string{"sub/plugin.yaml": "x"}, nil, []rule.ID{"manifest.missing"}, ""},
		{"a large manifest", algorithmManifest + strings.Repeat("#", 64<<10), nil, nil, []rule.ID{"manifest.limit"}, ManifestFile},
		{"an empty manifest", " ", nil, nil, []rule.ID{"manifest.schema", "manifest.name", "manifest.version", "manifest.kind"}, ManifestFile},
		{"no integration", "schema: tuneplane/plugin/v1\nname: demo\nversion: \"1\"\ncapability: framework-integration\n", nil, nil, []rule.ID{"layout.integration.missing"}, IntegrationFile},
		{"no recipe", "schema: forge/plugin/v1\nname: demo\nversion: \"1\"\nkind: recipe\n", nil, nil, []rule.ID{"recipe.file"}, RecipeFile},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			files := map[string]string{}
			for name, data := range c.files {
				files[name] = data
			}
			if c.manifest != "" {
				files[ManifestFile] = c.manifest
			}
			got := broken(t, files, c.change)
			for _, id := range c.rules {
				if len(got[id]) == 0 {
					t.Errorf("no %s in %v", id, got)
				}
				if len(got[id]) > maxListed+1 {
					t.Errorf("%d violations of %s", len(got[id]), id)
				}
			}
			if len(got) != len(c.rules) {
				t.Errorf("broken: %v; want %v", got, c.rules)
			}
			if len(c.rules) > 0 && len(got[c.rules[0]]) > 0 && got[c.rules[0]][0].File != c.file {
				t.Errorf("file %q, want %q", got[c.rules[0]][0].File, c.file)
			}
		})
	}
}

func manyFiles(n int, suffix string) map[string]string {
	files := make(map[string]string)
	for i := range n {
		files["f"+string(rune('0'+i/100))+string(rune('0'+i/10%10))+string(rune('0'+i%10))+suffix] = "x"
	}
	return files
}

// png is a PNG of that size.
func png(width, height uint32) string {
	var b bytes.Buffer
	b.WriteString(pngSignature)
	chunk := func(kind string, data []byte) {
		binary.Write(&b, binary.BigEndian, uint32(len(data)))
		body := append([]byte(kind), data...)
		b.Write(body)
		binary.Write(&b, binary.BigEndian, crc32.ChecksumIEEE(body))
	}
	header := binary.BigEndian.AppendUint32(nil, width)
	header = binary.BigEndian.AppendUint32(header, height)
	chunk("IHDR", append(header, 8, 0, 0, 0, 0))
	var pixels bytes.Buffer
	z := zlib.NewWriter(&pixels)
	z.Write(make([]byte, height*(width+1)))
	z.Close()
	chunk("IDAT", pixels.Bytes())
	chunk("IEND", nil)
	return b.String()
}

func TestPackFacts(t *testing.T) {
	p, report := checkedPack(t, map[string]string{ManifestFile: iconManifest, "art/icon.png": png(4, 4), "README.md": "a\xffb" + strings.Repeat("x", 70<<10)})
	if !report.OK() {
		t.Fatal(report.Violations)
	}
	if !strings.HasPrefix(p.Icon, "data:image/png;base64,iVBORw0KGgo") {
		t.Errorf("icon %.60q", p.Icon)
	}
	if !strings.HasPrefix(p.Readme, "a\uFFFDbx") || len(p.Readme) != 64<<10+2 {
		t.Errorf("readme of %d bytes, %.10q", len(p.Readme), p.Readme)
	}
	if p.RecipeID() != "" {
		t.Errorf("recipe id %q", p.RecipeID())
	}
}

// A misplaced plugin.yaml is named in the hint.
func TestMissingManifestHint(t *testing.T) {
	for _, file := range []string{"demo/plugin.yaml", "plugin.yml", "Plugin.yaml"} {
		got := broken(t, map[string]string{file: algorithmManifest}, nil)["manifest.missing"]
		if len(got) != 1 || !strings.Contains(got[0].Hint, file) {
			t.Errorf("%s: %v", file, got)
		}
	}
}

func BenchmarkCheck(b *testing.B) {
	dir := openTree(b, writeFiles(b, map[string]string{
		ManifestFile: algorithmManifest, "main.py": "def install(params, **ctx): pass\n", "README.md": "# Demo\n", "lib/x.py": "x = 1\n",
	}))
	for b.Loop() {
		if _, report, err := Check(dir, Options{}); err != nil || !report.OK() {
			b.Fatal(report.Violations, err)
		}
	}
}
