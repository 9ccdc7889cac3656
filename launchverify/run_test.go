//go:build linux

package launchverify

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/receipt"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/digest"
)

// A launch whose receipt does not hold, or does not hold for this spec, starts nothing and exits 7.
func TestReceiptRefusals(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(r *rig, o *Options)
		want  rule.ID
	}{
		{"none", func(r *rig, o *Options) { os.Remove(r.job + receipt.Suffix) }, "launch.receipt.missing"},
		{"none where one is named", func(r *rig, o *Options) { o.Receipt = filepath.Join(r.base, "nowhere") }, "launch.receipt.missing"},
		{"none and no key", func(r *rig, o *Options) { os.Remove(r.job + receipt.Suffix); o.Trust = receipt.TrustSet{} }, "launch.receipt.missing"},
		{"of another job", func(r *rig, o *Options) { o.Job = "job-2" }, "launch.receipt.job"},
		{"no key to verify it with", func(r *rig, o *Options) { o.Trust = receipt.TrustSet{} }, "launch.receipt.untrusted"},
		{"of a stranger", func(r *rig, o *Options) {
			other := newRig(r.t, r.d)
			o.Trust, _ = other.keys.Trust(audience)
		}, "launch.receipt.untrusted"},
		{"for another registry", func(r *rig, o *Options) { o.Audience = "registry-2" }, "launch.receipt.audience"},
		{"expired", func(r *rig, o *Options) { o.Now = time.Now().Add(receipt.Lifetime + time.Minute) }, "launch.receipt.expired"},
		{"no receipt in it", func(r *rig, o *Options) { os.WriteFile(r.job+receipt.Suffix, []byte("{}"), 0o644) }, "launch.receipt.malformed"},
		{"a folder", func(r *rig, o *Options) { os.Remove(r.job + receipt.Suffix); os.Mkdir(r.job+receipt.Suffix, 0o755) }, "launch.receipt.malformed"},
		{"of another spec", func(r *rig, o *Options) {
			src, _ := os.ReadFile(r.specPath())
			r.write(".starforge/jobspec.json", strings.Replace(string(src), `"demo"`, `"other"`, 1))
		}, "launch.receipt.spec"},
		{"of other plugins", func(r *rig, o *Options) {
			src, _ := os.ReadFile(r.specPath())
			now := time.Now()
			r.signed(receipt.Receipt{Audience: audience, Job: "j", Dialect: r.d, IssuedAt: now, Expires: now.Add(time.Hour),
				SpecBytes: digest.FromBytes(src), SpecDigest: digest.FromBytes(src)})
		}, "launch.digest.pin"},
	} {
		r := newRig(t, dialect.Forge)
		r.spec(r.plugin("lab/alpha", true, nil))
		r.sign()
		o := r.options()
		c.spoil(r, &o)
		rec, err := r.launch(o)
		if !slices.Equal(violated(err), []rule.ID{c.want}) || ExitCode(rec, err) != 7 {
			t.Errorf("%s: got %v (exit code %d), expected %s", c.name, err, ExitCode(rec, err), c.want)
		}
		if _, ran := r.saw(); ran || rec.Started {
			t.Errorf("%s: the command ran", c.name)
		}
	}
}

// With a warm cache no network is needed; what got damaged there is fetched again and never run.
func TestCache(t *testing.T) {
	r := newRig(t, dialect.Forge)
	pin := r.plugin("lab/alpha", true, nil)
	r.spec(pin)
	r.sign()
	o := r.options()
	launch := func() (Record, error) {
		os.Remove(filepath.Join(r.base, "look.json"))
		return r.launch(o)
	}
	if _, err := launch(); err != nil || r.shelf.fetched != 1 {
		t.Fatalf("cold: %v, fetched %d times", err, r.shelf.fetched)
	}
	r.shelf.down = true
	if _, err := launch(); err != nil {
		t.Fatalf("warm, without a registry: %v", err)
	}

	entry := entryOf(o.CacheDir, pin)
	spoil := func() {
		file := filepath.Join(entry, "alpha_patch.py")
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("evil"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	spoilArchive := func() {
		archives, err := filepath.Glob(filepath.Join(o.CacheDir, "blobs", "*"))
		if err != nil || len(archives) != 1 {
			t.Fatalf("the cache holds the archives %v (%v), expected one", archives, err)
		}
		if err := errors.Join(os.Remove(archives[0]), os.WriteFile(archives[0], []byte("evil"), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	spoil()
	rec, err := launch()
	if err != nil || r.shelf.fetched != 1 {
		t.Errorf("damaged, without a registry but with the archive: %v, fetched %d times", err, r.shelf.fetched)
	}
	published := sums(t, filepath.Join(r.base, "published/lab/alpha"))["alpha_patch.py"]
	if s, ran := r.saw(); !ran || s.Files["forge_plugins/alpha/alpha_patch.py"] != published {
		t.Errorf("the command did not see the published file: %+v", rec)
	}
	if err := os.Symlink("/etc", filepath.Join(entry, "x")); err != nil {
		t.Fatal(err)
	}
	if _, err := launch(); err != nil || r.shelf.fetched != 1 {
		t.Fatalf("a link in the cache: %v, fetched %d times", err, r.shelf.fetched)
	}
	spoil()
	spoilArchive()
	if rec, err := launch(); err == nil || rec.Started || ExitCode(rec, err) != 5 {
		t.Errorf("damaged, and the archive, without a registry: %v (exit code %d)", err, ExitCode(rec, err))
	}
	if _, ran := r.saw(); ran {
		t.Error("the command ran with a damaged copy")
	}
	r.shelf.down = false
	rec, err = launch()
	if err != nil || r.shelf.fetched != 2 {
		t.Errorf("fetched again: %v, fetched %d times", err, r.shelf.fetched)
	}
	if s, ran := r.saw(); !ran || s.Files["forge_plugins/alpha/alpha_patch.py"] != published {
		t.Errorf("the command did not see the published file: %+v", rec)
	}
	nothingLeft(t, r)
}

// Whatever somebody put into the cache in place of a pack's files, the launch is one of what was published: they are made
// again, and nothing outside the cache is read.
func TestOddCacheEntries(t *testing.T) {
	r := newRig(t, dialect.Forge)
	pin := r.plugin("lab/alpha", true, nil)
	r.spec(pin)
	r.sign()
	o := r.options()
	if _, err := r.launch(o); err != nil {
		t.Fatal(err)
	}
	entry := entryOf(o.CacheDir, pin)
	file := filepath.Join(entry, "alpha_patch.py")
	published := sums(t, filepath.Join(r.base, "published/lab/alpha"))["alpha_patch.py"]
	for what, spoil := range map[string]func() error{
		"a link in place of the tree": func() error { return errors.Join(os.RemoveAll(entry), os.Symlink(r.base, entry)) },
		"a file in place of the tree": func() error { return errors.Join(os.RemoveAll(entry), os.WriteFile(entry, nil, 0o644)) },
		"a FIFO in place of the tree": func() error { return errors.Join(os.RemoveAll(entry), syscall.Mkfifo(entry, 0o666)) },
		"a FIFO in place of a file":   func() error { return errors.Join(os.Remove(file), syscall.Mkfifo(file, 0o666)) },
		"a huge file":                 func() error { return errors.Join(os.Chmod(file, 0o644), os.Truncate(file, 1<<40)) },
		"a link in place of the trees": func() error {
			return errors.Join(os.RemoveAll(filepath.Dir(entry)), os.Symlink(r.base, filepath.Dir(entry)))
		},
	} {
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		if _, err := r.launch(o); err != nil || r.shelf.fetched != 1 {
			t.Errorf("%s: %v, fetched %d times", what, err, r.shelf.fetched)
		}
		if s, ran := r.saw(); !ran || s.Files["forge_plugins/alpha/alpha_patch.py"] != published {
			t.Errorf("%s: the command did not see the published file", what)
		}
		os.Remove(filepath.Join(r.base, "look.json"))
	}
	nothingLeft(t, r)
}

// A registry that sends something else than what is pinned, too much, or nothing whole: nothing stays in the cache.
func TestFetchRefusals(t *testing.T) {
	good := func(r *rig, pin receipt.Pin) []byte { return r.shelf.archives[pin.Manifest] }
	for _, c := range []struct {
		name string
		send func(r *rig, pin receipt.Pin) []byte
		code int
	}{
		{"another tree", func(r *rig, pin receipt.Pin) []byte {
			return good(r, r.plugin("lab/alpha", false, map[string]string{"more.txt": "x"}))
		}, 7},
		{"truncated", func(r *rig, pin receipt.Pin) []byte { b := good(r, pin); return b[:len(b)/2] }, 3},
		{"no archive", func(r *rig, pin receipt.Pin) []byte { return []byte("<html>") }, 3},
		{"too long", func(r *rig, pin receipt.Pin) []byte { return bytes.Repeat([]byte{0x1f}, 32<<20+1) }, 1},
	} {
		r := newRig(t, dialect.Forge)
		pin := r.plugin("lab/alpha", true, nil)
		r.spec(pin)
		r.sign()
		r.shelf.archives[pin.Manifest] = c.send(r, pin)
		rec, err := r.launch(r.options())
		if err == nil || rec.Started || ExitCode(rec, err) != c.code {
			t.Errorf("%s: exit code %d, expected %d, %v", c.name, ExitCode(rec, err), c.code, err)
		}
		trees, readErr := os.ReadDir(filepath.Join(r.base, "cache", "trees"))
		if readErr != nil || len(trees) > 0 {
			t.Errorf("%s: left in the cache: %v, %v", c.name, trees, readErr)
		}
		nothingLeft(t, r)
	}
}

// entryOf is where the cache keeps a pack's files.
func entryOf(dir string, pin receipt.Pin) string {
	return filepath.Join(dir, "trees", strings.Replace(pin.Manifest.String(), ":", "-", 1))
}

// A recipe pack that the receipt pins is the job's own copy as well, template and all, and must lie in the job directory.
func TestPinnedRecipe(t *testing.T) {
	packDir := filepath.Join("..", "testdata", "packs", "tiny-sft")
	launch := func(inject func(r *rig)) (*rig, Record, error) {
		r := newRig(t, dialect.Forge)
		r.spec()
		inject(r)
		pin := r.shelf.publish("lab/tiny-sft", "0.3.0", packDir)
		pin.Kind = "recipe"
		r.sign(pin)
		rec, err := r.launch(r.options())
		return r, rec, err
	}
	copyPack := func(r *rig) {
		if err := os.CopyFS(filepath.Join(r.job, "forge_recipes/lab/tiny-sft"), os.DirFS(packDir)); err != nil {
			t.Fatal(err)
		}
	}
	r, _, err := launch(copyPack)
	s, ran := r.saw()
	if err != nil || !ran || s.Files["forge_recipes/lab/tiny-sft/template/config.yaml"] == "" {
		t.Errorf("did not run with the recipe: %v, %v", err, s.Files)
	}
	_, rec, err := launch(func(r *rig) {})
	if !slices.Equal(violated(err), []rule.ID{"launch.recipe.missing"}) || ExitCode(rec, err) != 3 {
		t.Errorf("not injected: %v", err)
	}
	_, rec, err = launch(func(r *rig) {
		copyPack(r)
		r.write("forge_recipes/lab/tiny-sft/template/config.yaml", "changed: 1\n")
	})
	if !slices.Equal(violated(err), []rule.ID{"launch.digest.content"}) || ExitCode(rec, err) != 7 {
		t.Errorf("changed template: %v", err)
	}
}

// What can't be followed is a usage error, before anything is done.
func TestUsage(t *testing.T) {
	r := newRig(t, dialect.Forge)
	r.spec()
	r.sign()
	for name, spoil := range map[string]func(o *Options){
		"no spec":          func(o *Options) { o.JobSpec = "" },
		"spec elsewhere":   func(o *Options) { o.JobSpec = filepath.Join(r.job, "jobspec.json") },
		"no command":       func(o *Options) { o.Command = nil },
		"an empty command": func(o *Options) { o.Command = []string{""} },
		"no cache":         func(o *Options) { o.CacheDir = "" },
		"no fetcher":       func(o *Options) { o.Fetcher = nil },
	} {
		o := r.options()
		spoil(&o)
		if rec, err := r.launch(o); ExitCode(rec, err) != 2 || rec.Started {
			t.Errorf("%s: exit code %d, %v", name, ExitCode(rec, err), err)
		}
	}
}

// A launch that is given up before the command runs starts nothing.
func TestCancelled(t *testing.T) {
	r := newRig(t, dialect.Forge)
	r.spec(r.plugin("lab/alpha", true, nil))
	r.sign()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	rec, err := Run(ctx, r.options())
	if err == nil || rec.Started || ExitCode(rec, err) != 130 {
		t.Errorf("started %v, exit code %d, %v", rec.Started, ExitCode(rec, err), err)
	}
	if _, ran := r.saw(); ran {
		t.Error("the command ran")
	}
	nothingLeft(t, r)
}
