//go:build linux

package launchverify

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/receipt"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/digest"
)

// crowd makes a folder of 100,000 names; the entries are folders or empty files.
func crowd(t *testing.T, dir string, folders bool) {
	t.Helper()
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range 100_000 {
		path := dir + "/" + strconv.Itoa(i)
		err := error(nil)
		if folders {
			err = syscall.Mkdir(path, 0o755)
		} else {
			err = syscall.Mknod(path, syscall.S_IFREG|0o644, 0)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// memoryFiles is where a system keeps files in memory.
const memoryFiles = "/dev/shm"

// socket makes a special file that anybody may make.
func socket(t *testing.T, path string) {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
}

// Whatever spec, receipt, spec folder and recipes are, a launch answers in one line by the rule and with the exit code that
// stand here, starts nothing and leaves nothing.
func TestHostileInput(t *testing.T) {
	if info, err := os.Stat(memoryFiles); err == nil && info.IsDir() && unix.Access(memoryFiles, unix.W_OK) == nil {
		t.Setenv("TMPDIR", memoryFiles) // 200,000 names are many for a disk
	}
	shared := t.TempDir()
	files, folders := filepath.Join(shared, "files"), filepath.Join(shared, "folders")
	crowd(t, files, false)
	crowd(t, folders, true)
	borrow := func(r *rig, from, name string) {
		to := filepath.Join(r.job, name)
		r.mkdir(filepath.Dir(to))
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
		r.t.Cleanup(func() { os.Rename(to, from) })
	}
	fifo := func(path string) {
		os.Remove(path)
		if err := syscall.Mkfifo(path, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	link := func(path, to string) {
		os.RemoveAll(path)
		if err := os.Symlink(to, path); err != nil {
			t.Fatal(err)
		}
	}
	write := func(path, text string) {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	truncate := func(path string, size int64) {
		if err := os.Truncate(path, size); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		spoil func(r *rig)
		want  rule.ID
		code  int
	}{
		"spec: a FIFO":               {func(r *rig) { fifo(r.specPath()) }, "launch.spec.file", 3},
		"spec: a link":               {func(r *rig) { link(r.specPath(), "/etc/passwd") }, "launch.spec.file", 3},
		"spec: a folder":             {func(r *rig) { os.Remove(r.specPath()); r.mkdir(r.specPath()) }, "launch.spec.file", 3},
		"spec: a socket":             {func(r *rig) { os.Remove(r.specPath()); socket(t, r.specPath()) }, "launch.spec.file", 3},
		"spec: huge":                 {func(r *rig) { truncate(r.specPath(), 1<<40) }, "launch.spec.file", 3},
		"spec: cut":                  {func(r *rig) { truncate(r.specPath(), 100); r.sign() }, "job.json.syntax", 3},
		"spec: empty":                {func(r *rig) { truncate(r.specPath(), 0); r.sign() }, "job.json.syntax", 3},
		"spec: its folder is a link": {func(r *rig) { os.Rename(r.job+"/.starforge", r.base+"/s"); link(r.job+"/.starforge", r.base+"/s") }, "launch.spec.folder", 3},
		"receipt: a FIFO":            {func(r *rig) { fifo(r.job + receipt.Suffix) }, "launch.receipt.malformed", 7},
		"receipt: a link":            {func(r *rig) { link(r.job+receipt.Suffix, "/dev/zero") }, "launch.receipt.malformed", 7},
		"receipt: huge":              {func(r *rig) { truncate(r.job+receipt.Suffix, 1<<40) }, "launch.receipt.malformed", 7},
		"receipt: cut":               {func(r *rig) { truncate(r.job+receipt.Suffix, 200) }, "launch.receipt.malformed", 7},
		"receipt: empty":             {func(r *rig) { truncate(r.job+receipt.Suffix, 0) }, "launch.receipt.malformed", 7},
		"spec folder: a FIFO":        {func(r *rig) { fifo(r.job + "/.starforge/pipe") }, "launch.spec.folder", 3},
		"spec folder: a socket":      {func(r *rig) { socket(t, r.job+"/.starforge/s") }, "launch.spec.folder", 3},
		"spec folder: a link":        {func(r *rig) { link(r.job+"/.starforge/l", "jobspec.json") }, "launch.spec.folder", 3},
		"spec folder: no UTF-8":      {func(r *rig) { write(r.job+"/.starforge/\xff", "") }, "", 0},
		"spec folder: huge":          {func(r *rig) { write(r.job+"/.starforge/h", ""); truncate(r.job+"/.starforge/h", 1<<40) }, "launch.spec.folder", 3},
		"spec folder: 100,000 files": {func(r *rig) { borrow(r, files, ".starforge/files") }, "launch.spec.folder", 3},
		"plugin: 100,000 files":      {func(r *rig) { borrow(r, files, "forge_plugins/alpha/files") }, "launch.plugin.unreadable", 3},
		"plugin: 100,000 folders":    {func(r *rig) { borrow(r, folders, "forge_plugins/alpha/folders") }, "launch.plugin.unreadable", 3},
		"recipes: 100,000 folders":   {func(r *rig) { borrow(r, folders, "forge_recipes") }, "launch.recipe.folder", 3},
		"recipes: 100,000 of one":    {func(r *rig) { borrow(r, folders, "forge_recipes/lab") }, "launch.recipe.folder", 3},
		"recipes: much to read": {func(r *rig) {
			for i := range 20 {
				r.write("forge_recipes/lab/r"+strconv.Itoa(i)+"/recipe.yaml", strings.Repeat("#\n", 1<<19))
			}
		}, "launch.recipe.folder", 3},
		"recipes: a FIFO": {func(r *rig) { r.mkdir(r.job + "/forge_recipes/a/b"); fifo(r.job + "/forge_recipes/a/b/recipe.yaml") }, "", 0},
		"top: 100,000 files that nobody reads": {func(r *rig) {
			os.Remove(r.job + "/common")
			borrow(r, files, "common")
		}, "", 0},
		"top: a FIFO":   {func(r *rig) { fifo(r.job + "/common") }, "launch.bind", 3},
		"top: a socket": {func(r *rig) { socket(t, r.job+"/configs") }, "launch.bind", 3},
		"top: no UTF-8": {func(r *rig) { write(r.job+"/\xff\xfe", "") }, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, dialect.Forge)
			r.spec(r.plugin("lab/alpha", true, nil))
			r.sign()
			c.spoil(r)
			rec, err := r.launch(r.options())
			_, ran := r.saw()
			switch {
			case c.want == "" && (err != nil || !ran):
				t.Errorf("did not run: %v", err)
			case c.want != "" && (ran || rec.Started):
				t.Error("the command ran")
			case c.want != "" && (!slices.Contains(violated(err), c.want) || ExitCode(rec, err) != c.code):
				t.Errorf("got %v (exit code %d), expected %s and %d", err, ExitCode(rec, err), c.want, c.code)
			}
			if err != nil && strings.Contains(err.Error(), "\n") {
				t.Errorf("more than one line: %q", err)
			}
			entries, _ := filepath.Glob(filepath.Join(r.base, "cache", "*", "*.*.*"))
			if len(entries) > 0 {
				t.Errorf("left in the cache: %v", entries)
			}
		})
	}
}

// A spec that changes all the time is either the admitted one, when it was read, or refused.
func TestSpecChanges(t *testing.T) {
	r := newRig(t, dialect.Forge)
	r.spec(r.plugin("lab/alpha", true, nil))
	r.sign()
	good, err := os.ReadFile(r.specPath())
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(r.base, "other")
	if err := os.WriteFile(other, []byte(strings.Replace(string(good), `"demo"`, `"evil"`, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				swap(other, r.specPath())
			}
		}
	}()
	ran := 0
	for range 20 {
		os.Remove(filepath.Join(r.base, "look.json"))
		rec, err := r.launch(r.options())
		s, saw := r.saw()
		switch {
		case err == nil && saw:
			ran++
			if s.Files[".starforge/jobspec.json"] != digest.FromBytes(good).Hex() {
				t.Errorf("another spec ran: %v", s.Files)
			}
		case saw || rec.Started || !slices.Equal(violated(err), []rule.ID{"launch.receipt.spec"}):
			t.Errorf("record %+v, %v", rec, err)
		}
	}
	close(stop)
	<-stopped
	t.Logf("%d of 20 ran", ran)
}

// swap puts two files in place of each other at once.
func swap(a, b string) {
	unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
}

// What is not read in time refuses the launch: reading by the agent, and by the stage.
func TestSlow(t *testing.T) {
	defer func(d time.Duration) { readTime = d }(readTime)
	readTime = 50 * time.Millisecond
	forever := make(chan struct{})
	defer close(forever)
	if err := patiently(func() error { <-forever; return nil }); !errors.Is(err, errSlow) {
		t.Errorf("waited: %v", err)
	}
	if err := patiently(func() error { return os.ErrInvalid }); !errors.Is(err, os.ErrInvalid) {
		t.Errorf("another error: %v", err)
	}
	readTime = time.Minute
	for _, mode := range modes(t) {
		r := newRig(t, dialect.Forge)
		r.spec(r.plugin("lab/alpha", true, nil))
		r.sign()
		o := r.options()
		o.modes, o.hurry = []Mode{mode}, true
		rec, err := r.launch(o)
		if _, ran := r.saw(); ran || rec.Started || !slices.Equal(violated(err), []rule.ID{"launch.slow"}) || ExitCode(rec, err) != 3 {
			t.Errorf("%s: record %+v, %v", mode, rec, err)
		}
		nothingLeft(t, r)
	}
}

// A root that does not fit says how much it needs and what there is, and leaves nothing.
func TestRoom(t *testing.T) {
	for _, mode := range modes(t) {
		if mode == ModePrivateCopy {
			continue // it lies on the cache's disk, which the pack filled before
		}
		r := newRig(t, dialect.Forge)
		r.spec(r.plugin("lab/alpha", true, map[string]string{"weights": strings.Repeat("x", 1<<20)}))
		r.sign()
		o := r.options()
		o.modes, o.rootBytes = []Mode{mode}, 512<<10
		rec, err := r.launch(o)
		if !slices.Equal(violated(err), []rule.ID{"launch.room"}) || ExitCode(rec, err) != 3 {
			t.Fatalf("%s: %v (exit code %d)", mode, err, ExitCode(rec, err))
		}
		if text := err.Error(); !strings.Contains(text, "needs 5") || !strings.Contains(text, "its file system has 524288 bytes") || strings.Contains(text, "\n") {
			t.Errorf("%s: %s", mode, text)
		}
		if _, ran := r.saw(); ran || rec.Started {
			t.Errorf("%s: the command ran", mode)
		}
		nothingLeft(t, r)
	}
	s := stage{plan: plan{Mode: ModeUser}}
	if err := s.checkRoom(1 << 50); !slices.Equal(violated(err), []rule.ID{"launch.room"}) || !strings.Contains(err.Error(), "limited by ") {
		t.Errorf("a petabyte: %v", err)
	}
	if err := s.checkRoom(4096); err != nil {
		t.Errorf("a page: %v", err)
	}
}
