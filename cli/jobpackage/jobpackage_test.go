package jobpackage

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gatehouse-registry/gatehouse/admission/archive"
	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
)

// lay writes files below a new folder; a text that starts with "->" is the target of a link.
func lay(t *testing.T, files map[string]string) string {
	t.Helper()
	root := filepath.Join(t.TempDir(), "project")
	for name, text := range files {
		at := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		if target, link := strings.CutPrefix(text, "->"); link {
			err = os.Symlink(target, at)
		} else {
			err = os.WriteFile(at, []byte(text), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func repository(t *testing.T, root string, args ...[]string) {
	t.Helper()
	if len(args) == 0 {
		args = [][]string{{"init", "-q"}, {"add", "-A"}}
	}
	for _, a := range args {
		cmd := exec.Command("git", append([]string{"-C", root, "-c", "user.name=a", "-c", "user.email=a@example.invalid"}, a...)...)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", a, err, out)
		}
	}
}

func find(t *testing.T, root string, d dialect.Dialect) (List, rule.Report) {
	t.Helper()
	list, report, err := Find(t.Context(), Project{Root: root, Dialect: d, Exp: "experiments/x", MaxWalk: DefaultMaxWalk})
	if err != nil {
		t.Fatal(err)
	}
	return list, report
}

func paths(l List) []string {
	var all []string
	for _, m := range l.Members {
		all = append(all, m.Path)
	}
	return all
}

const config = "experiments/x/config.yaml"

// Every fault is found at once, under its rule and with its path.
func TestFaults(t *testing.T) {
	secret := lay(t, map[string]string{config: "", "common/.ENV": "", "configs/a.pem": "", "experiments/x/HF_TOKEN": "", "experiments/x/.env/file.txt": ""})
	repository(t, secret)
	_, report := find(t, secret, dialect.Forge)
	var named []string
	for _, v := range report.Violations {
		if v.Rule != "submit.package.secret" || v.Hint == "" {
			t.Errorf("%+v", v)
		}
		named = append(named, v.File)
	}
	if want := []string{"common/.ENV", "configs/a.pem", "experiments/x/HF_TOKEN"}; !slices.Equal(named, want) {
		t.Errorf("secrets %q, want %q", named, want)
	}

	outside := filepath.Join(t.TempDir(), "secret.txt")
	if err := os.WriteFile(outside, []byte("s"), 0o600); err != nil {
		t.Fatal(err)
	}
	for target, want := range map[string]rule.ID{
		outside: "submit.package.link", "../../../secret.txt": "submit.package.link", "../../README.md": "submit.package.link",
		"gone": "submit.package.link", "../../common": "submit.package.link", "loop": "submit.package.link",
		"config.yaml": "", "../../common/a.py": "", "two": "",
	} {
		root := lay(t, map[string]string{config: "", "common/a.py": "", "README.md": "", "experiments/x/l": "->" + target, "experiments/x/two": "->../x/config.yaml", "experiments/x/loop": "->loop2", "experiments/x/loop2": "->loop"})
		if target != "loop" {
			for _, name := range []string{"loop", "loop2"} {
				if err := os.Remove(filepath.Join(root, "experiments/x", name)); err != nil {
					t.Fatal(err)
				}
			}
		}
		repository(t, root)
		_, report := find(t, root, dialect.TunePlane)
		if found := len(report.Violations) > 0; found != (want != "") || found && report.Violations[0].Rule != want {
			t.Errorf("a link to %s: %v, want %q", target, report.Violations, want)
		}
	}
}

// A script that is a link is packed as what it leads to, but never from outside.
func TestScriptLinks(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "run.sh")
	if err := os.WriteFile(outside, []byte("s"), 0o600); err != nil {
		t.Fatal(err)
	}
	root := lay(t, map[string]string{config: "", "tools/run.sh": "a\r\nb\rc\n", "experiments/x/run.sh": "->../../tools/run.sh"})
	repository(t, root)
	list, report := find(t, root, dialect.Forge)
	if !report.OK() {
		t.Fatal(report.Violations)
	}
	var archive bytes.Buffer
	if err := list.Pack(&archive, nil); err != nil {
		t.Fatal(err)
	}
	if text := members(t, archive.Bytes())["experiments/x/run.sh"]; text != "a\nb\nc\n" {
		t.Errorf("the script is %q", text)
	}
	root = lay(t, map[string]string{config: "", "experiments/x/run.sh": "->" + outside})
	repository(t, root)
	if _, report := find(t, root, dialect.Forge); len(report.Violations) != 1 || report.Violations[0].Rule != "submit.package.link" {
		t.Errorf("a script outside: %v", report.Violations)
	}
}

func members(t *testing.T, archive []byte) map[string]string {
	t.Helper()
	zr, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]string)
	for tr := tar.NewReader(zr); ; {
		h, err := tr.Next()
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		all[h.Name] = string(text) + h.Linkname
	}
}

// What is no regular file is refused and never opened: a pipe would block for ever.
func TestSpecialFiles(t *testing.T) {
	root := lay(t, map[string]string{config: "a: 1\n"})
	if err := syscall.Mkfifo(filepath.Join(root, "experiments/x/pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(root, "experiments/x/socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, report := find(t, root, dialect.TunePlane)
	if len(report.Violations) != 2 || !strings.Contains(report.Violations[0].Message, "a named pipe") || !strings.Contains(report.Violations[1].Message, "a socket") {
		t.Errorf("%v", report.Violations)
	}
	// A pipe that takes a tracked file's place.
	root = lay(t, map[string]string{config: "a: 1\n", "experiments/x/a": ""})
	repository(t, root)
	if err := os.Remove(filepath.Join(root, "experiments/x/a")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(root, "experiments/x/a"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, report := find(t, root, dialect.Forge); len(report.Violations) != 1 || report.Violations[0].File != "experiments/x/a" {
		t.Errorf("%v", report.Violations)
	}
}

// A folder on the way to a tracked file that became a link out of the project is not followed.
func TestFolderBecomesLink(t *testing.T) {
	away := t.TempDir()
	if err := os.WriteFile(filepath.Join(away, "a.py"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	root := lay(t, map[string]string{config: "", "common/a.py": "fine"})
	repository(t, root)
	if err := os.RemoveAll(filepath.Join(root, "common")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(away, filepath.Join(root, "common")); err != nil {
		t.Fatal(err)
	}
	if _, report := find(t, root, dialect.Forge); len(report.Violations) != 1 || report.Violations[0].File != "common/a.py" {
		t.Errorf("%v", report.Violations)
	}
}

// A repository inside the experiment is one entry of git's list; its files would be lost.
func TestRepositoryInside(t *testing.T) {
	root := lay(t, map[string]string{config: "", "experiments/x/sub/a.py": ""})
	repository(t, filepath.Join(root, "experiments/x/sub"))
	repository(t, root, []string{"init", "-q"}, []string{"add", config})
	_, report := find(t, root, dialect.Forge)
	if len(report.Violations) != 1 || !strings.Contains(report.Violations[0].Message, "a repository of its own") {
		t.Errorf("%v", report.Violations)
	}
}

// A repository's own configuration starts nothing.
func TestRepositoryRunsNothing(t *testing.T) {
	root := lay(t, map[string]string{config: "", "monitor": "#!/bin/sh\ntouch \"$(dirname \"$0\")/ran\"\n"})
	if err := os.Chmod(filepath.Join(root, "monitor"), 0o755); err != nil {
		t.Fatal(err)
	}
	repository(t, root)
	repository(t, root, []string{"config", "core.fsmonitor", filepath.Join(root, "monitor")})
	find(t, root, dialect.Forge)
	if _, err := os.Stat(filepath.Join(root, "ran")); err == nil {
		t.Error("the monitor that the repository names was started")
	}
}

// What git can't read is no reason to pack what .gitignore keeps out.
func TestBrokenRepository(t *testing.T) {
	root := lay(t, map[string]string{config: "", ".git/HEAD": "nonsense"})
	for _, d := range dialect.All {
		_, _, err := Find(t.Context(), Project{Root: root, Dialect: d, Exp: "experiments/x"})
		if err == nil || !strings.Contains(err.Error(), "git can't read the repository") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", d, err)
		}
	}
}

// One tree gives one archive, whatever the times and the umask.
func TestDeterministic(t *testing.T) {
	pack := func(mode os.FileMode, at time.Time) []byte {
		root := lay(t, map[string]string{config: "a: 1\n", "common/ü.py": "p", "experiments/x/" + strings.Repeat("n", 150): "long", "experiments/x/run": "r"})
		for _, name := range []string{config, "common/ü.py"} {
			if err := os.Chmod(filepath.Join(root, name), mode); err != nil {
				t.Fatal(err)
			}
			if err := os.Chtimes(filepath.Join(root, name), at, at); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chmod(filepath.Join(root, "experiments/x/run"), 0o755); err != nil {
			t.Fatal(err)
		}
		list, report := find(t, root, dialect.TunePlane)
		if !report.OK() {
			t.Fatal(report.Violations)
		}
		var archive bytes.Buffer
		if err := list.Pack(&archive, nil); err != nil {
			t.Fatal(err)
		}
		return archive.Bytes()
	}
	if !bytes.Equal(pack(0o644, time.Unix(1e9, 5)), pack(0o600, time.Unix(2e9, 0))) {
		t.Error("two archives of one tree")
	}
}

// A file that changes while it is packed is an error, not half a file.
func TestFileChanges(t *testing.T) {
	for name, change := range map[string]func(at string) error{
		"grows":  func(at string) error { return os.WriteFile(at, []byte("longer"), 0o644) },
		"goes":   os.Remove,
		"a pipe": func(at string) error { os.Remove(at); return syscall.Mkfifo(at, 0o600) },
		"a link": func(at string) error { os.Remove(at); return os.Symlink("/etc/hostname", at) },
	} {
		root := lay(t, map[string]string{config: "a", "common/b": "b"})
		list, report := find(t, root, dialect.TunePlane)
		if !report.OK() {
			t.Fatal(report.Violations)
		}
		if err := change(filepath.Join(root, config)); err != nil {
			t.Fatal(err)
		}
		if err := list.Pack(io.Discard, nil); err == nil || !strings.Contains(err.Error(), config) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSizes(t *testing.T) {
	root := lay(t, map[string]string{config: ""})
	for name, size := range map[string]int64{"experiments/x/big.bin": 3 * limit.MiB, "common/small": 10} {
		f, err := os.Create(filepath.Join(lay2(t, root, name)))
		if err == nil {
			err = f.Truncate(size)
		}
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	p := Project{Root: root, Dialect: dialect.TunePlane, Exp: "experiments/x", MaxWalk: 2 * limit.MiB}
	_, report, err := Find(t.Context(), p)
	if err != nil || len(report.Violations) != 1 || report.Violations[0].Rule != "submit.package.size" || !strings.Contains(report.Violations[0].Message, "experiments/x/big.bin (3.0 MiB)") {
		t.Errorf("%v %v", err, report.Violations)
	}
	for _, bound := range []int64{0, 4 * limit.MiB} {
		p.MaxWalk = bound
		if _, report, err := Find(t.Context(), p); err != nil || !report.OK() {
			t.Errorf("bound %d: %v %v", bound, err, report.Violations)
		}
	}
	repository(t, root)
	p.MaxWalk = 1
	if _, report, err := Find(t.Context(), p); err != nil || !report.OK() {
		t.Errorf("with git: %v %v", err, report.Violations)
	}
	if f, err := os.OpenFile(filepath.Join(root, "experiments/x/big.bin"), os.O_WRONLY, 0); err != nil || f.Truncate(limit.JobUnpacked+1) != nil {
		t.Fatal(err)
	}
	if _, report, err := Find(t.Context(), p); err != nil || len(report.Violations) != 1 || report.Violations[0].Rule != "submit.package.size" {
		t.Errorf("over the package's limit: %v %v", err, report.Violations)
	}
}

func lay2(t *testing.T, root, name string) string {
	t.Helper()
	at := filepath.Join(root, name)
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		t.Fatal(err)
	}
	return at
}

// A hundred thousand files in the repository cost a listing, not an answer for each; too many in the experiment are refused
// in one line.
func TestManyFiles(t *testing.T) {
	index := func(root, format string, n int) {
		var entries strings.Builder
		for i := range n {
			fmt.Fprintf(&entries, "100644 e69de29bb2d1d6434b8b29ae775ad8c2e48c5391 0\t"+format+"\n", i/1000, i)
		}
		cmd := exec.Command("git", "-C", root, "update-index", "--index-info")
		cmd.Stdin = strings.NewReader(entries.String())
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	root := lay(t, map[string]string{config: ""})
	repository(t, root)
	index(root, "docs/%d/%d.txt", 100_000)
	if list, report := find(t, root, dialect.Forge); !report.OK() || !slices.Equal(paths(list), []string{config}) {
		t.Errorf("%v %v", paths(list), report.Violations)
	}
	index(root, "experiments/x/%d/%d.txt", limit.JobFiles)
	_, report := find(t, root, dialect.Forge)
	if len(report.Violations) != 1 || report.Violations[0].Rule != "submit.package.size" || !strings.Contains(report.Violations[0].Message, "20001 files") {
		t.Errorf("git: %v", report.Violations)
	}
}

// Without git a walk stops when there is too much.
func TestManyFilesWalked(t *testing.T) {
	root := lay(t, map[string]string{config: ""})
	for i := range limit.JobFiles + maxFaults {
		if err := os.Link(filepath.Join(root, config), filepath.Join(root, "experiments/x", fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
	}
	_, _, err := Find(t.Context(), Project{Root: root, Dialect: dialect.TunePlane, Exp: "experiments/x"})
	if err == nil || !strings.Contains(err.Error(), "more than 20000 files lie in experiments/x") {
		t.Errorf("%v", err)
	}
}

// An experiment whose files repeat themselves packs into an archive that the gate takes.
func TestPackWhatRepeats(t *testing.T) {
	root := lay(t, map[string]string{config: "a: 1\n", "experiments/x/weights.bin": string(make([]byte, 20*limit.MiB))})
	list, report := find(t, root, dialect.TunePlane)
	if !report.OK() {
		t.Fatal(report.Violations)
	}
	var packed bytes.Buffer
	if err := list.Pack(&packed, nil); err != nil {
		t.Fatal(err)
	}
	found, report, err := archive.CheckJob(archive.FromBytes(packed.Bytes()), rule.Policy{})
	if err != nil || !report.OK() || found.Files != 2 {
		t.Errorf("%d files, %v, %v", found.Files, err, report.Violations)
	}
}
