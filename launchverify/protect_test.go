//go:build linux

package launchverify

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
)

const noCaps = "0000000000000000"

// What the command sees: its pinned files, read-only, in a directory of its own; no privilege, no descriptor of ours; an
// environment without what steers where code comes from.
func TestWhatTheCommandSees(t *testing.T) {
	eachMode(t, func(t *testing.T, mode Mode) {
		r := newRig(t, dialect.Forge)
		pin := r.plugin("lab/alpha", true, map[string]string{"data/table.bin": "1"})
		r.spec(pin)
		r.write("yaml.py", "stray module at the top of the job directory")
		r.write("common/shared.txt", "x")
		r.write("extra/file.txt", "x")
		r.write("forge_plugins/alpha/__pycache__/alpha_patch.cpython-313.pyc", "byte code")
		r.write("forge_plugins/stray/stray.py", "not pinned")
		r.sign()
		o := r.options()
		o.modes, o.Binds = []Mode{mode}, []string{"extra", "absent"}
		o.KeepEnv = []string{"FORGE_RECIPE_PATH", "FORGE_WORK_DIR"}
		o.Env = append(o.Env, "PYTHONPATH=/evil", "PYTHONPATH=/evil2", "FORGE_CAPSULE_VERIFIED=x", "FORGE_RECIPE_PATH=/kept",
			"TUNEPLANE_RECIPE_PATH=/evil", "PYTHONPYCACHEPREFIX=/evil", "FORGE_WORK_DIR="+r.job, "STARFORGE_ENABLED=0", "LATIN=\xe9")
		o.Command = append(o.Command, "caf\xe9")
		rec, err := r.launch(o)
		s, ran := r.saw()
		if err != nil || !ran {
			t.Fatalf("did not run: %v", err)
		}
		if s.Dir != rec.Root || s.Env["FORGE_WORK_DIR"] != rec.Root || s.Env["PWD"] != rec.Root || rec.Root == r.job {
			t.Errorf("directory %q, FORGE_WORK_DIR %q, PWD %q, expected the root %q", s.Dir, s.Env["FORGE_WORK_DIR"], s.Env["PWD"], rec.Root)
		}
		if !slices.Equal([]byte(s.Latin), []byte("\xe9")) || !slices.Equal(s.LastArg, []byte("caf\xe9")) {
			t.Errorf("bytes that are not UTF-8 arrived as %q and %q", s.Latin, s.LastArg)
		}
		want := map[string]string{"experiments/": "", "common/": "", "extra/": ""}
		for p, sum := range sums(t, filepath.Join(r.base, "published", "lab", "alpha")) {
			want["forge_plugins/alpha/"+p] = sum
		}
		for p, sum := range sums(t, filepath.Join(r.job, ".starforge")) {
			want[".starforge/"+p] = sum
		}
		if diff := cmp.Diff(want, s.Files); diff != "" {
			t.Errorf("files (-want +got)\n%s", diff)
		}
		if len(s.Writable) > 0 {
			t.Errorf("the command could write to %v", s.Writable)
		}
		if diff := cmp.Diff(descriptors(), s.Descriptors); diff != "" {
			t.Errorf("descriptors (-what this test was given +what the command has)\n%s", diff)
		}
		if s.Caps != noCaps || s.NoNewPrivs != "1" {
			t.Errorf("capabilities %s, no_new_privs %s", s.Caps, s.NoNewPrivs)
		}
		for name, value := range map[string]string{
			"PYTHONPATH": "", "PYTHONPYCACHEPREFIX": "", "FORGE_CAPSULE_VERIFIED": "", "TUNEPLANE_RECIPE_PATH": "",
			"FORGE_RECIPE_PATH": "/kept", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONNOUSERSITE": "1", "STARFORGE_ENABLED": "0",
			"FORGE_OUT_DIR": filepath.Join(r.job, "experiments/demo/outputs"),
		} {
			if s.Env[name] != value {
				t.Errorf("%s is %q, expected %q", name, s.Env[name], value)
			}
		}
		if diff := cmp.Diff([]string{"FORGE_CAPSULE_VERIFIED", "PYTHONPATH", "PYTHONPYCACHEPREFIX", "TUNEPLANE_RECIPE_PATH"}, rec.RemovedEnv); diff != "" {
			t.Errorf("removed (-want +got)\n%s", diff)
		}
		if rec.Mode != mode || rec.Receipt.IsZero() || rec.KeysFrom != FromFile || !rec.Started || rec.Decision == nil || !rec.Decision.Allowed || rec.CoreVersion != "0.4.0" {
			t.Errorf("record: %+v", rec)
		}
		if diff := cmp.Diff([]string{"experiments", "common", "extra"}, rec.Binds); diff != "" {
			t.Errorf("binds (-want +got)\n%s", diff)
		}
		nothingLeft(t, r)
	})
}

// nothingLeft fails when a launch left more behind than its cache.
func nothingLeft(t *testing.T, r *rig) {
	t.Helper()
	for _, sub := range []string{"tmp", "roots"} {
		entries, err := os.ReadDir(filepath.Join(r.base, "cache", sub))
		if err != nil || len(entries) > 0 {
			t.Errorf("left in the cache's %s: %v, %v", sub, entries, err)
		}
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err == nil && strings.Contains(string(mounts), "gatehouse ") {
		t.Errorf("a mount is left: %s", mounts)
	}
}

// A descriptor that the caller left open for the command arrives under its own number.
func TestForeignDescriptorPasses(t *testing.T) {
	eachMode(t, func(t *testing.T, mode Mode) {
		r := newRig(t, dialect.Forge)
		r.spec()
		r.sign()
		f, err := os.Create(filepath.Join(r.base, "for-the-command"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD, 40)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
		o := r.options()
		o.modes = []Mode{mode}
		if _, err := r.launch(o); err != nil {
			t.Fatal(err)
		}
		s, _ := r.saw()
		if want := strconv.Itoa(fd) + " " + f.Name(); !slices.Contains(s.Descriptors, want) {
			t.Errorf("the command has descriptors %v, expected %q among them", s.Descriptors, want)
		}
	})
}

// A private copy that the job changed is said to have changed.
func TestPrivateCopyIsCheckedAgain(t *testing.T) {
	for name, script := range map[string]string{
		"untouched": "true",
		"changed":   "chmod u+w forge_plugins/alpha/* && echo '#' >> forge_plugins/alpha/alpha_patch.py",
	} {
		r := newRig(t, dialect.Forge)
		r.spec(r.plugin("lab/alpha", true, nil))
		r.sign()
		o := r.options("sh", "-c", script)
		o.modes = []Mode{ModePrivateCopy}
		rec, err := r.launch(o)
		if err != nil || rec.ExitCode != 0 || rec.Changed != (name == "changed") {
			t.Errorf("%s: changed %v, exit code %d, %v", name, rec.Changed, rec.ExitCode, err)
		}
		nothingLeft(t, r)
	}
}

// Without a private root and without leave to do without, nothing starts.
func TestPrivateCopyNeedsLeave(t *testing.T) {
	r := newRig(t, dialect.Forge)
	r.spec()
	r.sign()
	o := r.options()
	o.AllowPrivateCopy = false
	o.MountPoint = r.base // anybody could remove it
	rec, err := r.launch(o)
	if !slices.Equal(violated(err), []rule.ID{"launch.protection"}) || ExitCode(rec, err) != 3 {
		t.Errorf("got %v, exit code %d", err, ExitCode(rec, err))
	}
	if _, ran := r.saw(); ran || rec.Started {
		t.Error("the command ran")
	}
	if len(rec.Unavailable) == 0 {
		t.Error("the record does not say why")
	}
}

// The experiment may not stand where pinned files lie, and what is bound is no link.
func TestBinds(t *testing.T) {
	for name, spoil := range map[string]func(r *rig, o *Options){
		"experiment in the plugins' folder": func(r *rig, o *Options) {
			src, _ := os.ReadFile(r.specPath())
			r.write(".starforge/jobspec.json", strings.Replace(string(src), "experiments/demo", "Forge_Plugins/x", 1))
		},
		"bind of the spec's folder": func(r *rig, o *Options) { o.Binds = []string{".starforge"} },
		"linked bind":               func(r *rig, o *Options) { os.Symlink("/etc", filepath.Join(r.job, "configs")) },
		"fifo":                      func(r *rig, o *Options) { syscall.Mkfifo(filepath.Join(r.job, "configs"), 0o644) },
	} {
		r := newRig(t, dialect.Forge)
		r.spec()
		o := r.options()
		spoil(r, &o)
		r.sign()
		rec, err := r.launch(o)
		want := rule.ID("launch.bind")
		if strings.HasPrefix(name, "experiment") {
			want = "job.source.exp.reserved" // gate 2's own rule
		}
		if !slices.Equal(violated(err), []rule.ID{want}) || ExitCode(rec, err) != 3 {
			t.Errorf("%s: got %v", name, err)
		}
		if _, ran := r.saw(); ran {
			t.Errorf("%s: the command ran", name)
		}
	}
	for _, bad := range []string{"a/b", "..", ".", "", "a\x00b"} {
		r := newRig(t, dialect.Forge)
		r.spec()
		r.sign()
		o := r.options()
		o.Binds = []string{bad}
		if rec, err := r.launch(o); ExitCode(rec, err) != 2 {
			t.Errorf("bind %q: got %v", bad, err)
		}
	}
}

// The spec's folder goes into the root as it is, so it holds nothing odd; neither is the spec a link.
func TestSpecFolder(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(r *rig)
		want  rule.ID
	}{
		"spec is a link": {func(r *rig) {
			os.Rename(r.specPath(), filepath.Join(r.base, "spec"))
			os.Symlink(filepath.Join(r.base, "spec"), r.specPath())
		}, "launch.spec.file"},
		"spec is a fifo": {func(r *rig) { os.Remove(r.specPath()); syscall.Mkfifo(r.specPath(), 0o644) }, "launch.spec.file"},
		"spec too large": {func(r *rig) { r.write(".starforge/jobspec.json", strings.Repeat(" ", 1<<20+1)) }, "launch.spec.file"},
		"no spec":        {func(r *rig) { os.Remove(r.specPath()) }, "launch.spec.missing"},
		"link beside":    {func(r *rig) { os.Symlink("/etc", filepath.Join(r.job, ".starforge/x")) }, "launch.spec.folder"},
		"fifo beside":    {func(r *rig) { syscall.Mkfifo(filepath.Join(r.job, ".starforge/x"), 0o644) }, "launch.spec.folder"},
		"folder is a link": {func(r *rig) {
			os.Rename(filepath.Join(r.job, ".starforge"), filepath.Join(r.base, "away"))
			os.Symlink(filepath.Join(r.base, "away"), filepath.Join(r.job, ".starforge"))
		}, "launch.spec.folder"},
	} {
		r := newRig(t, dialect.Forge)
		r.spec()
		r.sign()
		c.spoil(r)
		rec, err := r.launch(r.options())
		if !slices.Equal(violated(err), []rule.ID{c.want}) || ExitCode(rec, err) != 3 {
			t.Errorf("%s: got %v, expected %s", name, err, c.want)
		}
	}
}

// However hostile a job directory is, a launch answers with a rule, starts nothing and leaves nothing behind.
func TestHostileJobDirectories(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(r *rig, dir string)
		want  rule.ID
		code  int
	}{
		"10,001 files more": {func(r *rig, dir string) {
			for i := range 10_001 {
				os.WriteFile(filepath.Join(dir, strconv.Itoa(i)), nil, 0o644)
			}
		}, "launch.plugin.unreadable", 3},
		"a name that is not UTF-8": {func(r *rig, dir string) { os.WriteFile(dir+"/a\xff.py", nil, 0o644) }, "launch.digest.content", 7},
		"a FIFO":                   {func(r *rig, dir string) { syscall.Mkfifo(dir+"/pipe", 0o644) }, "launch.plugin.special", 3},
		"a link that goes round":   {func(r *rig, dir string) { os.Symlink("loop", dir+"/loop") }, "launch.plugin.link", 3},
		"a link to the outside":    {func(r *rig, dir string) { os.Symlink("/etc/passwd", dir+"/passwd") }, "launch.plugin.link", 3},
		"the plugins' folder is a link": {func(r *rig, dir string) {
			os.Rename(filepath.Dir(dir), r.base+"/plugins")
			os.Symlink(r.base+"/plugins", filepath.Dir(dir))
		}, "launch.plugin.link", 3},
		"the plugins' folder is a file": {func(r *rig, dir string) {
			os.RemoveAll(filepath.Dir(dir))
			os.WriteFile(filepath.Dir(dir), nil, 0o644)
		}, "launch.plugin.missing", 3},
		"a file deep down": {func(r *rig, dir string) {
			deep := dir + strings.Repeat("/d", 400)
			os.MkdirAll(deep, 0o755)
			os.WriteFile(deep+"/f", nil, 0o644)
		}, "launch.digest.content", 7},
	} {
		r := newRig(t, dialect.Forge)
		r.spec(r.plugin("lab/alpha", true, nil))
		r.sign()
		c.spoil(r, filepath.Join(r.job, "forge_plugins", "alpha"))
		rec, err := r.launch(r.options())
		if !slices.Contains(violated(err), c.want) || ExitCode(rec, err) != c.code {
			t.Errorf("%s: got %v (exit code %d), expected %s", name, err, ExitCode(rec, err), c.want)
		}
		if err != nil && (strings.Contains(err.Error(), "\n") || !utf8.ValidString(err.Error())) {
			t.Errorf("%s: more than one line, or bytes from outside: %q", name, err)
		}
		if _, ran := r.saw(); ran || rec.Started {
			t.Errorf("%s: the command ran", name)
		}
		nothingLeft(t, r)
	}
}

// asNobody runs these tests again as an ordinary user.
const asNobody = 65534

// Everything that holds for root holds for an ordinary user, who has other protections. Root runs the tests again.
func TestAsOrdinaryUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("these tests run as an ordinary user already")
		return
	}
	base := newRig(t, dialect.Forge).base
	dir := filepath.Join(base, "module", "launchverify")
	if err := os.CopyFS(filepath.Join(base, "module", "testdata", "launch"), os.DirFS(filepath.Join("..", "testdata", "launch"))); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(base, "launchverify.test")
	copyProgram(t, program)
	tmp := filepath.Join(base, "tmp")
	if err := os.Mkdir(tmp, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(tmp, asNobody, asNobody); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "-test.run", "^(TestCases|TestWhatTheCommandSees|TestForeignDescriptorPasses|TestCommandEnds|TestSignals|TestNothingOutlives|TestAgentKilled|TestKilledTogether|TestAttackOnTheNextPlugin)$", "-test.v")
	cmd.Dir = dir
	cmd.Env = []string{noWait, "PATH=" + os.Getenv("PATH"), "HOME=" + tmp, "TMPDIR=" + tmp}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: asNobody, Gid: asNobody}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if !strings.Contains(string(out), "--- PASS: TestCases") {
		t.Errorf("the tests did not run:\n%s", out)
	}
}

func copyProgram(t *testing.T, to string) {
	t.Helper()
	in, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(out, in); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
}
