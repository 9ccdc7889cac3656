package archive_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/gatehouse-registry/gatehouse/admission/archive"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
)

// entry is a member of a job package.
type entry struct {
	name, link, content string
	kind                byte // 0: a regular file, or with link a symbolic link
}

func jobArchive(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var out bytes.Buffer
	zw := gzip.NewWriter(&out)
	tw := tar.NewWriter(zw)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Linkname: e.link, Typeflag: e.kind, Size: int64(len(e.content)), Mode: 0o755, Uid: 1000, Gid: 1000, Uname: "me", Format: tar.FormatPAX}
		if e.kind == 0 {
			h.Typeflag = tar.TypeReg
			if e.link != "" {
				h.Typeflag = tar.TypeSymlink
			}
		}
		if err := tw.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := tw.Write([]byte(e.content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := tw.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zw.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestCheckJob breaks a good job package in one way at a time.
func TestCheckJob(t *testing.T) {
	good := []entry{{name: "experiments/a/config.yaml", content: "x"}, {name: "common/u.py"}, {name: "configs/b.yaml", content: "yy"}}
	long := strings.Repeat("d/", 600) + "f"
	cases := []struct {
		what       string
		more       []entry
		rules      []rule.ID
		experiment string
	}{
		{"nothing more", nil, nil, "experiments/a"},
		{"what a digest leaves out, and what Windows can't hold", []entry{{name: "experiments/a/__pycache__/m.pyc"}, {name: "experiments/a/aux.py"}, {name: "experiments/a/a:b?.txt"}, {name: "experiments/a/A.PY"}, {name: "experiments/a/a.py"}}, nil, "experiments/a"},
		{"the platform's folder inside the experiment", []entry{{name: "experiments/a/.starforge/jobspec.json"}}, nil, "experiments/a"},
		{"links to files", []entry{{name: "experiments/a/l.yaml", link: "config.yaml"}, {name: "experiments/a/m.yaml", link: "../../configs/b.yaml"}, {name: "experiments/a/h", link: "common/u.py", kind: tar.TypeLink}}, nil, "experiments/a"},
		{"another experiment", []entry{{name: "experiments/b/config.yaml"}}, nil, "experiments"},
		{"a file at the top", []entry{{name: "README.md"}}, nil, "."},
		{"a file called common", []entry{{name: "configs2/x"}}, nil, "."},
		{"absolute link", []entry{{name: "experiments/a/h", link: "/etc/hostname"}}, []rule.ID{"archive.link.outside"}, ""},
		{"escaping link", []entry{{name: "experiments/a/h", link: "../../../etc/hostname"}}, []rule.ID{"archive.link.outside"}, ""},
		{"link to a folder", []entry{{name: "experiments/a/lib", link: "../../common"}}, []rule.ID{"archive.link.target"}, ""},
		{"link to nothing", []entry{{name: "experiments/a/l", link: "gone"}}, []rule.ID{"archive.link.target"}, ""},
		{"links in a circle", []entry{{name: "experiments/a/l", link: "m"}, {name: "experiments/a/m", link: "l"}}, []rule.ID{"archive.link.target", "archive.link.target"}, ""},
		{"a file below a link", []entry{{name: "experiments/a/l", link: "config.yaml"}, {name: "experiments/a/l/x"}}, []rule.ID{"archive.duplicate.folder"}, ""},
		{"hard link out", []entry{{name: "experiments/a/h", link: "/etc/passwd", kind: tar.TypeLink}}, []rule.ID{"archive.link.outside"}, ""},
		{"twice", []entry{{name: "experiments/a/config.yaml", content: "z"}}, []rule.ID{"archive.duplicate.path"}, ""},
		{"absolute", []entry{{name: "/experiments/a/x"}}, []rule.ID{"archive.path.absolute", "archive.path.element"}, ""},
		{"parent", []entry{{name: "experiments/a/../../x"}}, []rule.ID{"archive.path.parent"}, ""},
		{"not clean", []entry{{name: "./experiments/a/x"}}, []rule.ID{"archive.path.element"}, ""},
		{"too long", []entry{{name: "experiments/a/" + long}}, []rule.ID{"archive.limit.path"}, ""},
		{"not UTF-8", []entry{{name: "experiments/a/\xff"}}, []rule.ID{"archive.name.utf8"}, ""},
		{"control character", []entry{{name: "experiments/a/x\ny"}}, []rule.ID{"archive.name.character"}, ""},
		{"folder", []entry{{name: "experiments/a/d/", kind: tar.TypeDir}}, []rule.ID{"archive.type.folder", "archive.path.element"}, ""},
		{"device", []entry{{name: "experiments/a/d", kind: tar.TypeChar}}, []rule.ID{"archive.type.member"}, ""},
		{"the platform's spec", []entry{{name: ".starforge/jobspec.json"}}, []rule.ID{"jobpackage.reserved"}, ""},
		{"the other platform's", []entry{{name: ".TunePlane/jobspec.json"}}, []rule.ID{"jobpackage.reserved"}, ""},
		{"the plugins' folder", []entry{{name: "forge_plugins/x/a.py"}, {name: "tuneplane_plugins/x/a.py"}}, []rule.ID{"jobpackage.reserved", "jobpackage.reserved"}, ""},
	}
	for _, c := range cases {
		t.Run(c.what, func(t *testing.T) {
			pkg, report, err := archive.CheckJob(archive.FromBytes(jobArchive(t, slices.Concat(good, c.more)...)), rule.Policy{})
			if err != nil {
				t.Fatal(err)
			}
			var got []rule.ID
			for _, v := range report.Violations {
				got = append(got, v.Rule)
				if info, ok := rule.Lookup(v.Rule); !ok || v.Hint == "" || strings.Contains(v.Hint, "plugin pack") || info.Title == "" {
					t.Errorf("%s is not worded for jobs: %+v", v.Rule, v)
				}
			}
			if !slices.Equal(got, c.rules) {
				t.Errorf("rules %q, want %q: %v", got, c.rules, report.Violations)
			}
			unpackAlike(t, jobArchive(t, slices.Concat(good, c.more)...), report)
			if len(c.rules) == 0 && (pkg.Experiment != c.experiment || pkg.Files != len(good)+len(c.more)) {
				t.Errorf("found %+v, want the experiment %q", pkg, c.experiment)
			}
		})
	}
}

// TestCheckJobBroken: what is no archive, or is more than a job may bring, is a refusal and not an error.
func TestCheckJobBroken(t *testing.T) {
	whole := jobArchive(t, entry{name: "experiments/a/x", content: strings.Repeat("x", 5000)})
	many := make([]entry, 20_001)
	for i := range many {
		many[i].name = fmt.Sprintf("common/%d", i)
	}
	for what, c := range map[string]struct {
		data []byte
		rule rule.ID
	}{
		"nothing":           {nil, "archive.empty"},
		"text":              {[]byte("the package"), "archive.gzip.header"},
		"cut":               {whole[:len(whole)-20], "archive.gzip.truncated"},
		"two":               {append(slices.Clone(whole), whole...), "archive.gzip.trailing"},
		"zeros":             {jobArchive(t, entry{name: "common/zeros", content: strings.Repeat("\x00", 64<<20)}), "archive.limit.ratio"},
		"too many members":  {jobArchive(t, many...), "archive.limit.files"},
		"no members at all": {jobArchive(t), "archive.empty"},
	} {
		_, report, err := archive.CheckJob(archive.FromBytes(c.data), rule.Policy{})
		if err != nil || len(report.Violations) != 1 || !strings.HasPrefix(string(report.Violations[0].Rule), string(c.rule)) {
			t.Errorf("%s: %v, %v; want %s", what, report.Violations, err, c.rule)
		}
	}
}

func TestCheckExperiment(t *testing.T) {
	for _, c := range []struct {
		found, exp string
		want       rule.ID
	}{
		{"experiments/a", "experiments/a", ""}, {"experiments/a/src", "experiments/a", ""}, {"experiments/a", "experiments/a/", ""},
		{"experiments/ab", "experiments/a", "jobpackage.outside"}, {"experiments", "experiments/a", "jobpackage.outside"},
		{".", "experiments/a", "jobpackage.outside"}, {"", "experiments/a", "jobpackage.experiment"},
	} {
		found := archive.CheckExperiment(c.found, c.exp)
		if c.want == "" && len(found) == 0 {
			continue
		}
		if len(found) != 1 || found[0].Rule != c.want {
			t.Errorf("%q for %q: %v, want %q", c.found, c.exp, found, c.want)
		}
	}
}
