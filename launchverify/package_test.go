//go:build linux

package launchverify

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-registry/gatehouse/admission/archive"
	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/receipt"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/digest"
)

// packed is the job package of the given files; a text that begins with "-> " is a link.
func packed(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var out bytes.Buffer
	zw := gzip.NewWriter(&out)
	tw := tar.NewWriter(zw)
	for name, text := range files {
		h := &tar.Header{Name: name, Typeflag: tar.TypeReg, Size: int64(len(text)), Mode: 0o644}
		if link, ok := bytes.CutPrefix([]byte(text), []byte("-> ")); ok {
			h.Typeflag, h.Linkname, h.Size, text = tar.TypeSymlink, string(link), 0, ""
		}
		if filepath.Ext(name) == ".sh" {
			h.Mode = 0o755
		}
		if err := tw.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := tw.Write([]byte(text)); err != nil {
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

// inPackage is what the packages of these tests hold.
var inPackage = map[string]string{
	"experiments/demo/train.sh": "exit 0\n", "experiments/demo/lib/m.pyc": "byte code", "common/u.py": "u = 1\n",
	"configs/a.yaml": "a: 1\n", "experiments/demo/u.py": "-> ../../common/u.py",
}

// admit signs a receipt that pins the package, and puts package and spec on the shelf.
func (r *rig) admit(pkg []byte) {
	r.t.Helper()
	spec, err := os.ReadFile(r.specPath())
	if err != nil {
		r.t.Fatal(err)
	}
	rc := r.receiptOf(spec)
	rc.JobPackage = digest.FromBytes(pkg)
	r.signed(rc)
	r.shelf.blobs[rc.JobPackage], r.shelf.blobs[rc.SpecBytes] = pkg, spec
}

// A job directory that is made of the package shows the package's files, the spec and the plugins; nothing that lies in the
// user's job directory but the outputs, and nothing of that need lie there.
func TestFromPackage(t *testing.T) {
	eachMode(t, func(t *testing.T, mode Mode) {
		r := newRig(t, dialect.Forge)
		r.spec(r.plugin("lab/alpha", false, nil))
		r.admit(packed(t, inPackage))
		r.write("experiments/demo/train.sh", "evil\n")
		r.write("experiments/demo/evil.py", "evil\n")
		r.write("common/u.py", "evil\n")
		list := filepath.Join(r.base, "list")
		o := r.options("sh", "-c", `find . -type f -o -type l | sort >`+list+` && cat experiments/demo/u.py >>`+list+
			` && test -x experiments/demo/train.sh && ! touch experiments/demo/new 2>/dev/null && echo done >experiments/demo/outputs/result`)
		o.FromPackage, o.modes = true, []Mode{mode}
		rec, err := r.launch(o)
		if err != nil || rec.ExitCode != 0 || rec.Package.IsZero() || len(rec.Binds) > 0 {
			t.Fatalf("record %+v, %v", rec, err)
		}
		got, _ := os.ReadFile(list)
		want := "./.starforge/jobspec.json\n./common/u.py\n./configs/a.yaml\n./experiments/demo/lib/m.pyc\n"
		if mode == ModePrivateCopy {
			want += "./experiments/demo/outputs\n" // a link there
		}
		want += "./experiments/demo/train.sh\n./experiments/demo/u.py\n./forge_plugins/alpha/alpha_patch.py\n./forge_plugins/alpha/plugin.yaml\nu = 1\n"
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("what the job saw (-want +got)\n%s", diff)
		}
		if text, err := os.ReadFile(filepath.Join(r.job, "experiments/demo/outputs/result")); err != nil || string(text) != "done\n" {
			t.Errorf("the outputs: %q, %v", text, err)
		}
		nothingLeft(t, r)
	})
}

// As another user, too, the job has its package and its outputs, which are that user's; the package in a file is one that the
// user may read.
func TestFromPackageAsAnother(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("only root launches for somebody else")
		return
	}
	nobody := &User{UID: asNobody, GID: asNobody, Groups: []int{asNobody}}
	for _, mode := range modes(t) {
		r := newRig(t, dialect.Forge)
		r.spec()
		pkg := packed(t, inPackage)
		r.admit(pkg)
		out := filepath.Join(r.base, "out")
		if err := os.Mkdir(out, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(out, asNobody, asNobody); err != nil {
			t.Fatal(err)
		}
		r.env = append(r.env, "FORGE_OUT_DIR="+filepath.Join(out, "mine"))
		o := r.options("sh", "-c", "sh experiments/demo/train.sh && id -u >experiments/demo/outputs/who")
		o.FromPackage, o.User, o.modes = true, nobody, []Mode{mode}
		rec, err := r.launch(o)
		if mode == ModeUser { // which has one uid alone
			if !slices.Equal(violated(err), []rule.ID{"launch.protection"}) || rec.Unavailable[ModeUser] == "" {
				t.Errorf("in a namespace of root's own: %v", err)
			}
			continue
		}
		if err != nil || rec.ExitCode != 0 || rec.User.UID != asNobody || rec.JobOwner != 0 {
			t.Fatalf("%s: record %+v, %v", mode, rec, err)
		}
		info, err := os.Stat(filepath.Join(out, "mine", "who"))
		if err != nil || info.Sys().(*syscall.Stat_t).Uid != asNobody {
			t.Errorf("%s: the outputs: %v, %v", mode, info, err)
		}
		o.Package = filepath.Join(r.base, "package")
		if err := os.WriteFile(o.Package, pkg, 0o600); err != nil {
			t.Fatal(err)
		}
		if rec, err := r.launch(o); !slices.Equal(violated(err), []rule.ID{"launch.package.missing"}) || rec.Started {
			t.Errorf("%s: a package that the user may not read: %v", mode, err)
		}
		nothingLeft(t, r)
	}
}

// Spec and package may both come from the registry; afterwards the cache has them. A file that holds the package will do too.
func TestFromPackageAlone(t *testing.T) {
	r := newRig(t, dialect.TunePlane)
	r.spec()
	pkg := packed(t, inPackage)
	r.admit(pkg)
	out := filepath.Join(r.base, "out")
	r.env = append(r.env, "TUNEPLANE_OUT_DIR="+out)
	o := r.options("sh", "-c", "test -f .tuneplane/jobspec.json && echo x >experiments/demo/outputs/y")
	o.FromPackage, o.JobSpec, o.Receipt = true, "", r.job+receipt.Suffix
	if err := os.RemoveAll(r.job); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if rec, err := r.launch(o); err != nil || rec.ExitCode != 0 || rec.Dialect != dialect.TunePlane {
			t.Fatalf("record %+v, %v", rec, err)
		}
		r.shelf.down = true
	}
	if _, err := os.Stat(filepath.Join(out, "y")); err != nil || r.shelf.fetched != 2 {
		t.Errorf("fetched %d times, %v", r.shelf.fetched, err)
	}
	file := filepath.Join(r.base, "package")
	if err := os.WriteFile(file, pkg, 0o600); err != nil {
		t.Fatal(err)
	}
	o.Package, o.CacheDir = file, filepath.Join(r.base, "other-cache")
	r.shelf.down, r.shelf.blobs[digest.FromBytes(pkg)] = false, nil
	if rec, err := r.launch(o); err != nil || rec.ExitCode != 0 {
		t.Errorf("from a file: %v, %v", rec, err)
	}
	nothingLeft(t, r)
}

// What is not the admitted package, or none that gate 2 would admit, starts nothing and leaves nothing, no outputs either.
func TestFromPackageRefusals(t *testing.T) {
	good := packed(t, inPackage)
	for _, c := range []struct {
		name  string
		spoil func(r *rig, o *Options)
		want  rule.ID
		code  int
	}{
		{"none was admitted", func(r *rig, o *Options) { r.sign() }, "launch.package.missing", 3},
		{"the registry has none", func(r *rig, o *Options) { r.shelf.blobs = nil }, "", 5},
		{"the registry sends another", func(r *rig, o *Options) { r.shelf.blobs[digest.FromBytes(good)] = []byte("x") }, "launch.package.digest", 7},
		{"another file", func(r *rig, o *Options) {
			r.write("pkg", "x")
			o.Package = filepath.Join(r.job, "pkg")
		}, "launch.package.digest", 7},
		{"no file", func(r *rig, o *Options) { o.Package = filepath.Join(r.job, "gone") }, "launch.package.missing", 3},
		{"a folder", func(r *rig, o *Options) { o.Package = r.job }, "launch.package.missing", 3},
		{"a FIFO", func(r *rig, o *Options) {
			o.Package = filepath.Join(r.base, "fifo")
			if err := syscall.Mkfifo(o.Package, 0o666); err != nil {
				t.Fatal(err)
			}
		}, "launch.package.missing", 3},
		{"a link out of it", func(r *rig, o *Options) {
			r.admit(packed(t, map[string]string{"experiments/demo/x": "-> /etc/passwd"}))
		}, "launch.package.content", 3},
		{"files of another experiment", func(r *rig, o *Options) {
			r.admit(packed(t, map[string]string{"experiments/demo/x": "x", "experiments/other/x": "x"}))
		}, "launch.package.content", 3},
		{"a stray module", func(r *rig, o *Options) {
			r.admit(packed(t, map[string]string{"experiments/demo/x": "x", "yaml.py": "x"}))
		}, "launch.package.content", 3},
		{"no archive", func(r *rig, o *Options) { r.admit([]byte("text")) }, "launch.package.content", 3},
		{"another spec", func(r *rig, o *Options) {
			src, _ := os.ReadFile(r.specPath())
			r.write(".starforge/jobspec.json", string(src)+" ")
		}, "launch.receipt.spec", 7},
		{"a spec that the registry changed", func(r *rig, o *Options) {
			src, _ := os.ReadFile(r.specPath())
			r.shelf.blobs[digest.FromBytes(src)] = append(src, ' ')
			o.JobSpec, o.Receipt = "", r.job+receipt.Suffix
		}, "launch.receipt.spec", 7},
	} {
		r := newRig(t, dialect.Forge)
		r.spec()
		r.admit(good)
		if err := os.RemoveAll(filepath.Join(r.job, "experiments")); err != nil {
			t.Fatal(err)
		}
		o := r.options()
		o.FromPackage = true
		c.spoil(r, &o)
		rec, err := r.launch(o)
		if c.want != "" && !slices.Equal(violated(err), []rule.ID{c.want}) || err == nil || ExitCode(rec, err) != c.code {
			t.Errorf("%s: %v (exit code %d), expected %s and %d", c.name, err, ExitCode(rec, err), c.want, c.code)
		}
		if _, ran := r.saw(); ran || rec.Started {
			t.Errorf("%s: the command ran", c.name)
		}
		if _, err := os.Stat(filepath.Join(r.job, "experiments")); err == nil {
			t.Errorf("%s: the outputs were made", c.name)
		}
		nothingLeft(t, r)
	}
}

// A damaged package in the cache is fetched again, once, and never run.
func TestDamagedPackage(t *testing.T) {
	r := newRig(t, dialect.Forge)
	r.spec()
	pkg := packed(t, inPackage)
	r.admit(pkg)
	o := r.options()
	o.FromPackage = true
	if _, err := r.launch(o); err != nil {
		t.Fatal(err)
	}
	found, err := filepath.Glob(filepath.Join(o.CacheDir, "blobs", "*"+digest.FromBytes(pkg).Hex()+"*"))
	if err != nil || len(found) != 1 {
		t.Fatalf("in the cache: %v, %v", found, err)
	}
	if err := os.Chmod(found[0], 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(found[0], append(pkg[:len(pkg)-1:len(pkg)-1], 'x'), 0o600); err != nil {
		t.Fatal(err)
	}
	if rec, err := r.launch(o); err != nil || !rec.Started || r.shelf.fetched != 2 {
		t.Errorf("record %+v, fetched %d times, %v", rec, r.shelf.fetched, err)
	}
}

// Whatever differs between the package and what lies in the root is found: gate 3 does not trust what was written.
func TestVerifyPackageCopy(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(dir string) error
		wrong string
	}{
		"nothing": {func(string) error { return nil }, ""},
		"outputs": {func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "experiments/demo/outputs/x"), nil, 0o644)
		}, ""},
		"another file":     {func(dir string) error { return os.WriteFile(filepath.Join(dir, "common/yaml.py"), nil, 0o444) }, "common/yaml.py"},
		"a missing file":   {func(dir string) error { return os.Remove(filepath.Join(dir, "common/u.py")) }, "common/u.py"},
		"a changed file":   {func(dir string) error { return rewrite(filepath.Join(dir, "common/u.py"), "u = 2\n") }, "common/u.py"},
		"a program":        {func(dir string) error { return os.Chmod(filepath.Join(dir, "common/u.py"), 0o555) }, "common/u.py"},
		"a link in place":  {func(dir string) error { return relink(filepath.Join(dir, "common/u.py"), "/etc/passwd") }, "common/u.py"},
		"another link":     {func(dir string) error { return relink(filepath.Join(dir, "experiments/demo/u.py"), "train.sh") }, "experiments/demo/u.py"},
		"a missing folder": {func(dir string) error { return os.RemoveAll(filepath.Join(dir, "configs")) }, "configs/a.yaml"},
	} {
		dir := t.TempDir()
		root, err := os.OpenRoot(dir)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { root.Close() })
		pkg := packed(t, inPackage)
		s := &stage{plan: plan{
			Binds: []string{"experiments", "common", "configs"}, Package: &packagePlan{Digest: digest.FromBytes(pkg), Experiment: []byte("experiments/demo")},
		}}
		s.pkg = &jobPackage{source: archive.FromBytes(pkg)}
		if err := s.unpack(root); err != nil {
			t.Fatal(err)
		}
		if err := root.Mkdir("experiments/demo/outputs", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := c.spoil(dir); err != nil {
			t.Fatal(err)
		}
		if wrong, err := s.pkg.verifyCopy(root, s.plan.Binds); wrong != c.wrong || err != nil {
			t.Errorf("%s: found %q, %v, expected %q", name, wrong, err, c.wrong)
		}
	}
}

func rewrite(path, text string) error {
	if err := os.Remove(path); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o444)
}

func relink(path, to string) error {
	if err := os.Remove(path); err != nil {
		return err
	}
	return os.Symlink(to, path)
}
