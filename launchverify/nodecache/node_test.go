package nodecache

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gatehouse-registry/gatehouse/admission/receipt"
	"github.com/gatehouse-registry/gatehouse/digest"
)

// another is an owner on another node.
func another(t *testing.T, n int) owner {
	t.Helper()
	o, err := self()
	if err != nil {
		t.Fatal(err)
	}
	o.node = fmt.Sprintf("%016x", n)
	return o
}

// deadOwner is an owner on this node whose process has ended.
func deadOwner(t *testing.T) owner {
	t.Helper()
	o, err := self()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("true")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	o.pid = cmd.Process.Pid
	return o
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// use takes a pack as a launch does: what is wrong is dropped and asked for again, once.
func use(c *Cache, pin receipt.Pin, from Source, want map[string]string) error {
	for attempt := 0; ; attempt++ {
		e, err := c.Tree(context.Background(), pin, from)
		if err != nil {
			return err
		}
		got, err := texts(e.Path())
		if err == nil && maps.Equal(got, want) {
			e.Release()
			return nil
		}
		if attempt == 2 {
			return fmt.Errorf("%s: after three tries the files %v are not the right ones (%v)", pin, slices.Sorted(maps.Keys(got)), err)
		}
		if err := c.Drop(e); err != nil {
			return err
		}
	}
}

func claimPath(dir string, pin receipt.Pin) string {
	return filepath.Join(dir, "claims", strings.ReplaceAll(keyOf(trees, pin.Manifest), "/", "-"))
}

// Whose claim it is decides how long others wait for it, by their own clock.
func TestClaims(t *testing.T) {
	for _, c := range []struct {
		name    string
		text    func(t *testing.T) string
		atLeast time.Duration
		atMost  time.Duration
	}{
		{"a dead process of this node", func(t *testing.T) string { return beatText(7) + "\n" + deadOwner(t).String() + "\n" }, 0, time.Second},
		{"another process with the id of a dead one", func(t *testing.T) string {
			o, _ := self()
			o.start++
			return beatText(7) + "\n" + o.String() + "\n"
		}, 0, time.Second},
		{"silent, of another node", func(t *testing.T) string { return beatText(7) + "\n" + another(t, 1).String() + "\n" }, claimSilence, claimSilence + 2*time.Second},
		{"silent, of a living process of this node", func(t *testing.T) string { o, _ := self(); return beatText(7) + "\n" + o.String() + "\n" }, claimSilence, claimSilence + 2*time.Second},
		{"of nobody", func(*testing.T) string { return "" }, claimSilence, claimSilence + 2*time.Second},
		{"huge", func(*testing.T) string { return strings.Repeat("x", 1<<20) }, claimSilence, claimSilence + 2*time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &shelf{}
			pin := s.publish(t, "lab/alpha", small)
			dir := t.TempDir()
			write(t, claimPath(dir, pin), c.text(t))
			synctest.Test(t, func(t *testing.T) {
				cache := open(t, dir, Options{})
				began := time.Now()
				if err := use(cache, pin, s, small); err != nil {
					t.Error(err)
				}
				if took := time.Since(began); took < c.atLeast || took > c.atMost || s.fetched != 1 {
					t.Errorf("it took %v and %d fetches, expected %v to %v and one", took, s.fetched, c.atLeast, c.atMost)
				}
				if left, _ := os.ReadDir(filepath.Join(dir, "claims")); len(left) > 0 {
					t.Errorf("claims are left: %v", left)
				}
				cache.Close()
			})
		})
	}
}

// slow is a source that takes its time.
type slow struct {
	*shelf
	takes time.Duration
}

func (s slow) Fetch(ctx context.Context, pin receipt.Pin) (io.ReadCloser, error) {
	if err := sleep(ctx, s.takes); err != nil {
		return nil, err
	}
	return s.shelf.Fetch(ctx, pin)
}

// However long one node fetches, the others wait, because its heartbeat changes: one fetch for all of them.
func TestOneFetchForManyNodes(t *testing.T) {
	s := &shelf{}
	pin := s.publish(t, "lab/alpha", small)
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var wg sync.WaitGroup
		for n := range 20 {
			wg.Go(func() {
				c := openAs(dir, Options{}, another(t, n+1))
				defer c.Close()
				if err := use(c, pin, slow{s, 3 * time.Minute}, small); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if s.fetched != 1 {
			t.Errorf("%d fetches, expected one", s.fetched)
		}
	})
}

// A fetch that fails does not keep the others from trying: each fails for itself.
func TestFailedFetch(t *testing.T) {
	s := &shelf{down: true}
	pin := s.publish(t, "lab/alpha", small)
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var wg sync.WaitGroup
		for n := range 5 {
			wg.Go(func() {
				c := openAs(dir, Options{}, another(t, n+1))
				defer c.Close()
				if err := use(c, pin, s, small); err == nil {
					t.Error("no error")
				}
			})
		}
		wg.Wait()
	})
	for _, sub := range []string{"claims", "tmp", "trees", "blobs", "holds"} {
		if left, _ := os.ReadDir(filepath.Join(dir, sub)); len(left) > 0 {
			t.Errorf("%s holds %v", sub, left)
		}
	}
}

// packs publishes n packs of some 100 kB.
func packs(t *testing.T, s *shelf, n int) []receipt.Pin {
	t.Helper()
	var pins []receipt.Pin
	for i := range n {
		noise := make([]byte, 100_000)
		for j := range noise {
			noise[j] = byte(j*j*7 + i*j + j>>8)
		}
		pins = append(pins, s.publish(t, fmt.Sprintf("lab/p%d", i), map[string]string{"plugin.yaml": fmt.Sprintf("n: %d\n", i), "data": string(noise)}))
	}
	return pins
}

func kinds(all []Info, kind string) []string {
	var ids []string
	for _, e := range all {
		if e.Kind == kind {
			ids = append(ids, e.ID)
		}
	}
	return ids
}

// What was not used for the longest goes first, and never what somebody holds: a process of this node while it lives, one of
// another node until this node saw the same heartbeat for ten minutes. No clock but the node's own decides.
func TestEviction(t *testing.T) {
	s := &shelf{}
	pins := packs(t, s, 6)
	dir := t.TempDir()
	c := open(t, dir, Options{})
	for i, pin := range pins {
		e, err := c.Tree(context.Background(), pin, s)
		if err != nil {
			t.Fatal(err)
		}
		if i > 0 {
			e.Release()
		}
		// Uses that are a day apart, by a file server whose clock is 10 days ahead.
		at := time.Now().Add(10*24*time.Hour - time.Duration(10-i)*24*time.Hour)
		if err := os.Chtimes(e.Path(), at, at); err != nil {
			t.Fatal(err)
		}
	}
	far := openAs(dir, Options{}, another(t, 1))
	e, err := far.Tree(context.Background(), pins[1], s)
	if err != nil {
		t.Fatal(err)
	}
	past := time.Now().Add(-10 * 24 * time.Hour) // whatever its clock says
	for _, path := range []string{e.Path(), filepath.Join(dir, "holds", far.me.String())} {
		if err := os.Chtimes(path, past, past); err != nil {
			t.Fatal(err)
		}
	}

	var used int64
	for _, e := range c.List() {
		used += e.Bytes
	}
	dry, err := c.Collect(0, true)
	if err != nil || len(dry.Evicted) != 10 || dry.Kept+dry.Freed != used {
		t.Errorf("a dry run would evict %d of %d bytes and keep %d (%v), expected 10 of %d", len(dry.Evicted), dry.Freed, dry.Kept, err, used)
	}
	if n := len(c.List()); n != 12 {
		t.Fatalf("a dry run left %d entries of 12", n)
	}
	// A little less than all, again and again: what was not used for the longest goes first.
	for _, e := range dry.Evicted[:9] {
		out, err := c.Collect(used-1, false)
		if err != nil || len(out.Evicted) != 1 || out.Evicted[0].Digest != e.Digest {
			t.Fatalf("evicted %v (%v), expected %v alone", out.Evicted, err, e)
		}
		used -= e.Bytes
	}
	if last := dry.Evicted[9]; last.ID != "lab/p5" || dry.Evicted[8].ID != "lab/p4" {
		t.Errorf("last came %v, expected what was used last", last)
	}
	if _, err := c.Collect(0, false); err != nil {
		t.Fatal(err)
	}
	left := kinds(c.List(), "tree")
	slices.Sort(left)
	if !slices.Equal(left, []string{"lab/p0", "lab/p1"}) {
		t.Errorf("after everything was evicted the trees %v are left, expected those that are held", left)
	}

	// The other node's process is killed: nothing of it changes any more.
	up := uptime()
	c.uptime = func() time.Duration { return up }
	for _, wait := range []time.Duration{0, holdSilence - time.Second} {
		up += wait
		if _, err := c.Collect(0, false); err != nil || len(kinds(c.List(), "tree")) != 2 {
			t.Errorf("after %v: %v, %v", wait, c.List(), err)
		}
	}
	far.holding().put(beatText(99), 0)
	for _, wait := range []time.Duration{time.Second, holdSilence - time.Second} {
		up += wait
		if _, err := c.Collect(0, false); err != nil || len(kinds(c.List(), "tree")) != 2 {
			t.Errorf("%v after it was seen alive: %v, %v", wait, c.List(), err)
		}
	}
	up += 2 * time.Second
	if _, err := c.Collect(0, false); err != nil || !slices.Equal(kinds(c.List(), "tree"), []string{"lab/p0"}) {
		t.Errorf("when it was silent for ten minutes: %v, %v", c.List(), err)
	}
	c.Close()
	c = open(t, dir, Options{})
	if _, err := c.Collect(0, false); err != nil || len(c.List()) != 0 {
		t.Errorf("when nobody holds anything: %v, %v", c.List(), err)
	}
}

// A cache stays within its size, whatever is fetched; what is held may exceed it for as long as it is held.
func TestSizeIsBounded(t *testing.T) {
	s := &shelf{}
	pins := packs(t, s, 8)
	dir := t.TempDir()
	const max = 600_000
	size := func(c *Cache) (n int64) {
		for _, e := range c.List() {
			n += e.Bytes
		}
		return n
	}
	for _, pin := range pins {
		c := open(t, dir, Options{MaxBytes: max})
		if _, err := c.Tree(context.Background(), pin, s); err != nil {
			t.Fatal(err)
		}
		if n := size(c); n > max {
			t.Errorf("with %s the cache has %d bytes, at most %d are allowed", pin.ID, n, max)
		}
		c.Close()
	}
	c := open(t, dir, Options{MaxBytes: max})
	for _, pin := range pins {
		if _, err := c.Tree(context.Background(), pin, s); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(kinds(c.List(), "tree")); n != len(pins) {
		t.Errorf("%d trees are there, %d are held", n, len(pins))
	}
	c.Close()
	if n := size(open(t, dir, Options{MaxBytes: max})); n > max {
		t.Errorf("when nothing is held any more the cache has %d bytes, at most %d are allowed", n, max)
	}
}

// Blobs are hashed while they are read, fetched once, and fetched again when they were damaged.
func TestBlobs(t *testing.T) {
	c := open(t, t.TempDir(), Options{})
	content := bytes.Repeat([]byte("x"), 100_000)
	d := digest.Descriptor{Digest: digest.FromBytes(content), Size: 1 << 20}
	fetched := 0
	get := func() (*Entry, []byte, error) {
		e, err := c.Blob(context.Background(), d, func(context.Context) (io.ReadCloser, error) {
			fetched++
			return io.NopCloser(bytes.NewReader(content)), nil
		})
		if err != nil {
			return nil, nil, err
		}
		r, err := e.Open()
		if err != nil {
			return e, nil, err
		}
		defer r.Close()
		b, err := io.ReadAll(r)
		return e, b, err
	}
	for range 2 {
		if _, b, err := get(); err != nil || !bytes.Equal(b, content) || fetched != 1 {
			t.Fatalf("%d bytes, %v, %d fetches", len(b), err, fetched)
		}
	}
	for what, spoil := range map[string]func(path string) error{
		"another byte": func(path string) error { return os.WriteFile(path, append(bytes.Clone(content[1:]), 'y'), 0o644) },
		"cut":          func(path string) error { return os.Truncate(path, 5) },
		"longer":       func(path string) error { return os.Truncate(path, 200_000) },
		"huge":         func(path string) error { return os.Truncate(path, 1<<40) },
	} {
		e, _, err := get()
		if err != nil {
			t.Fatal(err)
		}
		os.Chmod(e.Path(), 0o644)
		if err := spoil(e.Path()); err != nil {
			t.Fatal(err)
		}
		before := fetched
		e, _, err = get()
		if err == nil {
			t.Errorf("%s: nothing was noticed", what)
			continue
		}
		if err := c.Drop(e); err != nil {
			t.Fatal(err)
		}
		if _, b, err := get(); err != nil || !bytes.Equal(b, content) || fetched != before+1 {
			t.Errorf("%s, fetched again: %d bytes, %v", what, len(b), err)
		}
	}
	for what, source := range map[string]string{"wrong": "y", "too much": strings.Repeat("x", 2<<20)} {
		_, err := c.Blob(context.Background(), digest.Descriptor{Digest: digest.FromBytes([]byte("z")), Size: 1 << 20}, func(context.Context) (io.ReadCloser, error) {
			return io.NopCloser(strings.NewReader(source)), nil
		})
		if err == nil {
			t.Errorf("a source that sends %s: no error", what)
		}
	}
	if left, _ := os.ReadDir(filepath.Join(c.Dir(), "tmp")); len(left) > 0 {
		t.Errorf("tmp holds %v", left)
	}
}
