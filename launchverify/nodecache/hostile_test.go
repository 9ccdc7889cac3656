//go:build unix

package nodecache

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gatehouse-registry/gatehouse/admission/receipt"
)

// odd are things that somebody may put where something of the cache should be.
var odd = map[string]func(path, outside string) error{
	"a link to a file outside":   func(path, outside string) error { return os.Symlink(filepath.Join(outside, "secret"), path) },
	"a link to a folder outside": func(path, outside string) error { return os.Symlink(outside, path) },
	"a link to itself":           func(path, _ string) error { return os.Symlink(filepath.Base(path), path) },
	"a link to nothing":          func(path, _ string) error { return os.Symlink("nothing", path) },
	"a FIFO":                     func(path, _ string) error { return syscall.Mkfifo(path, 0o666) },
	"a socket": func(path, _ string) error {
		fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
		if err != nil {
			return err
		}
		defer syscall.Close(fd)
		dir, err := os.MkdirTemp("", "s") // names of sockets are short
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		if err := syscall.Bind(fd, &syscall.SockaddrUnix{Name: filepath.Join(dir, "s")}); err != nil {
			return err
		}
		return os.Rename(filepath.Join(dir, "s"), path)
	},
	"an empty file": func(path, _ string) error { return os.WriteFile(path, nil, 0o644) },
	"a huge file": func(path, _ string) error {
		if err := os.WriteFile(path, []byte("{"), 0o644); err != nil {
			return err
		}
		return os.Truncate(path, 1<<40)
	},
	"an empty folder": func(path, _ string) error { return os.Mkdir(path, 0o755) },
	"a folder of odd names": func(path, _ string) error {
		for i := range 20 {
			if err := os.MkdirAll(filepath.Join(path, fmt.Sprintf("%s\xff%d", strings.Repeat("n", 200), i)), 0o755); err != nil {
				return err
			}
		}
		return nil
	},
	"a folder of links and FIFOs": func(path, outside string) error {
		if err := os.Mkdir(path, 0o755); err != nil {
			return err
		}
		if err := os.Symlink(outside, filepath.Join(path, "link")); err != nil {
			return err
		}
		return syscall.Mkfifo(filepath.Join(path, "plugin.yaml"), 0o666)
	},
}

// Whatever lies where something of the cache should be, a use ends soon with the right bytes, and nothing outside was
// read, written or removed.
func TestHostileCache(t *testing.T) {
	s := &shelf{}
	pin := s.publish(t, "lab/alpha", small)
	warm := t.TempDir()
	c := open(t, warm, Options{})
	if err := use(c, pin, s, small); err != nil {
		t.Fatal(err)
	}
	var archived string
	for _, e := range c.List() {
		if e.Kind == "blob" {
			archived = e.key
		}
	}
	tree := keyOf(trees, pin.Manifest)
	me, err := self()
	if err != nil {
		t.Fatal(err)
	}
	claimed := "claims/" + strings.ReplaceAll(tree, "/", "-")
	places := map[string][]string{
		"the tree": {tree}, "the archive": {archived}, "the claim": {claimed}, "the folders": folders,
		"everything": {
			tree, archived, recordOf(tree), claimed, "holds/" + another(t, 7).String(), "holds/" + me.String(),
			"tmp/" + another(t, 7).String() + ".1", "roots/x", "seen/" + me.node, "documents/list",
		},
	}
	for what, put := range odd {
		for where, paths := range places {
			for _, cold := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s/%s/cold=%v", what, where, cold), func(t *testing.T) {
					t.Parallel()
					tryHostile(t, s, pin, paths, put, cold)
				})
			}
		}
	}
}

func tryHostile(t *testing.T, s *shelf, pin receipt.Pin, places []string, put func(path, outside string) error, cold bool) {
	outside := t.TempDir()
	write(t, filepath.Join(outside, "secret"), "secret")
	write(t, filepath.Join(outside, "plugin.yaml"), "secret")
	before, err := texts(outside)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if !cold {
		c := open(t, dir, Options{})
		if err := use(c, pin, s, small); err != nil {
			t.Fatal(err)
		}
		c.Close()
	}
	for _, place := range places {
		at := filepath.Join(dir, place)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(at); err != nil {
			t.Fatal(err)
		}
		if err := put(at, outside); err != nil {
			t.Fatal(err)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		c := open(t, dir, Options{})
		if err := use(c, pin, s, small); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > 2*claimSilence+2*time.Second {
			t.Errorf("it took %v", took)
		}
		if err := c.SetDocument("list", []byte("new")); err != nil {
			t.Error(err)
		}
		if b, err := c.Document("list"); err != nil || string(b) != "new" {
			t.Errorf("the document is %q, %v", b, err)
		}
		if _, err := c.Verify(context.Background(), true, func(Verdict) error { return nil }); err != nil {
			t.Error(err)
		}
		if _, err := c.Collect(0, false); err != nil {
			t.Error(err)
		}
		if _, err := c.PrivateFolder(false); err != nil {
			t.Error(err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	if after, err := texts(outside); err != nil || len(after) != len(before) || after["secret"] != "secret" || after["plugin.yaml"] != "secret" {
		t.Errorf("outside the cache there is %v (%v), before there was %v", after, err, before)
	}
}

// A folder with very many names costs a launch little: only Collect looks at all of them.
func TestManyNames(t *testing.T) {
	s := &shelf{}
	pin := s.publish(t, "lab/alpha", small)
	dir := t.TempDir()
	const n = 1500
	for _, sub := range []string{"tmp", "holds", "trees"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			t.Fatal(err)
		}
		for i := range n {
			if f, err := os.Create(filepath.Join(dir, sub, fmt.Sprint(i))); err != nil {
				t.Fatal(err)
			} else {
				f.Close()
			}
		}
	}
	c := open(t, dir, Options{})
	if err := use(c, pin, s, small); err != nil {
		t.Fatal(err)
	}
	out, err := c.Collect(-1, false)
	if err != nil || out.Strays != 3*n {
		t.Errorf("Collect removed %d strays (%v), expected %d", out.Strays, err, 3*n)
	}
	if err := use(c, pin, &shelf{down: true}, small); err != nil {
		t.Error(err)
	}
}

// An entry that changes while it is used is never taken for the right one.
func TestChangingEntry(t *testing.T) {
	s := &shelf{}
	pin := s.publish(t, "lab/alpha", small)
	dir := t.TempDir()
	c := open(t, dir, Options{})
	if err := use(c, pin, s, small); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			for _, sub := range []string{trees, blobs, "records", "claims", "holds"} {
				names, _ := os.ReadDir(filepath.Join(dir, sub))
				for _, e := range names {
					path := filepath.Join(dir, sub, e.Name())
					switch i % 3 {
					case 0:
						_ = os.RemoveAll(path)
					case 1:
						_ = os.WriteFile(path, []byte("evil"), 0o644)
					default:
						_ = os.WriteFile(filepath.Join(path, "plugin.yaml"), []byte("evil"), 0o644)
					}
				}
			}
			time.Sleep(3 * time.Millisecond)
		}
	})
	for range 50 {
		e, err := c.Tree(context.Background(), pin, s)
		if err != nil {
			continue // somebody removes what is made as soon as it is there: an error is all that can be had
		}
		_ = c.Drop(e)
	}
	close(stop)
	wg.Wait()
	for range 3 { // what is left of it goes
		if err := use(c, pin, s, small); err != nil {
			t.Fatal(err)
		}
	}
}
