package nodecache

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gatehouse-registry/gatehouse/admission/receipt"
	"github.com/gatehouse-registry/gatehouse/digest"
)

// The test program is also what runs in namespaces of its own, and the processes of other nodes.
func TestMain(m *testing.M) {
	switch os.Getenv("NODECACHE_TEST") {
	case "disk":
		os.Exit(ended(onSmallDisk(os.Args[1])))
	case "worker":
		os.Exit(ended(work(os.Args[1])))
	}
	os.Exit(m.Run())
}

func ended(err error) int {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// handed is what a test gives to another process.
type handed struct {
	Pins     []receipt.Pin
	Archives map[string][]byte // by manifest
	Want     []map[string]string
	Dir      string
	Seed     int
}

func (h handed) shelf() *shelf {
	s := &shelf{archives: map[digest.Digest][]byte{}}
	for d, b := range h.Archives {
		s.archives[digest.MustParse(d)] = b
	}
	return s
}

// hand writes what another process needs.
func hand(t *testing.T, s *shelf, pins []receipt.Pin, want []map[string]string, dir string) string {
	t.Helper()
	h := handed{Pins: pins, Archives: map[string][]byte{}, Want: want, Dir: dir}
	for _, pin := range pins {
		h.Archives[pin.Manifest.String()] = s.archives[pin.Manifest]
	}
	b, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "handed.json")
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func taken(path string) (h handed, err error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return h, err
	}
	return h, json.Unmarshal(b, &h)
}

// On a full disk what nobody holds makes room; when that is not enough the error says how much is needed, and nothing is
// left behind. A cache that can't be written to serves what it has, and the rest comes from a temporary place.
func TestFullAndReadOnlyDisk(t *testing.T) {
	s := &shelf{}
	var pins []receipt.Pin
	var want []map[string]string
	for i := range 4 {
		files := map[string]string{"plugin.yaml": fmt.Sprintf("n: %d\n", i), "data": noise(400_000, i)}
		pins, want = append(pins, s.publish(t, fmt.Sprintf("lab/p%d", i), files)), append(want, files)
	}
	cmd := exec.Command("/proc/self/exe", hand(t, s, pins, want, t.TempDir()))
	cmd.Env = append(os.Environ(), "NODECACHE_TEST=disk", "TMPDIR="+t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

// noise is text that hardly compresses.
func noise(n, seed int) string {
	b := make([]byte, n)
	x := uint64(seed)*2862933555777941757 + 3037000493
	for i := range b {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		b[i] = letters[(x>>32)%64]
	}
	return string(b)
}

func onSmallDisk(path string) error {
	h, err := taken(path)
	if err != nil {
		return err
	}
	s := h.shelf()
	// Room for one pack with its archive and a little, not for two.
	if err := unix.Mount("none", h.Dir, "tmpfs", 0, "size=1000k"); err != nil {
		return fmt.Errorf("mount: %w", err)
	}
	dir := filepath.Join(h.Dir, "cache")
	for i, pin := range h.Pins {
		c, err := Open(dir, Options{})
		if err != nil {
			return err
		}
		if err := use(c, pin, s, h.Want[i]); err != nil {
			return fmt.Errorf("pack %d on a full disk: %w", i, err)
		}
		if err := clean(dir, 1); err != nil {
			return err
		}
		c.Close()
	}

	// What a running job holds makes no room.
	c, err := Open(dir, Options{})
	if err != nil {
		return err
	}
	held, err := c.Tree(context.Background(), h.Pins[3], s)
	if err != nil {
		return err
	}
	_, err = c.Tree(context.Background(), h.Pins[0], sized{s})
	if !errors.Is(err, unix.ENOSPC) || !strings.Contains(err.Error(), "is full: at least ") || strings.Contains(err.Error(), "at least 0 bytes") {
		return fmt.Errorf("without room: %v, expected an error that says how much is needed", err)
	}
	if err := clean(dir, 1); err != nil {
		return err
	}
	if got, err := texts(held.Path()); err != nil || got["data"] != h.Want[3]["data"] {
		return fmt.Errorf("what was held: %v", err)
	}
	c.Close()

	// Claims that can't be taken away keep nobody waiting.
	dead := me(1 << 30)
	for _, pin := range h.Pins {
		claim := filepath.Join(dir, "claims", strings.ReplaceAll(keyOf(trees, pin.Manifest), "/", "-"))
		if err := os.WriteFile(claim, []byte(beatText(1)+"\n"+dead.String()+"\n"), 0o644); err != nil {
			return err
		}
	}
	if err := unix.Mount("none", h.Dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, "size=1000k"); err != nil {
		return fmt.Errorf("remount: %w", err)
	}
	if c, err = Open(dir, Options{}); err != nil {
		return err
	}
	if err := use(c, h.Pins[3], &shelf{down: true}, h.Want[3]); err != nil {
		return fmt.Errorf("warm and read-only: %w", err)
	}
	if err := use(c, h.Pins[1], s, h.Want[1]); err != nil {
		return fmt.Errorf("cold and read-only: %w", err)
	}
	if err := use(c, h.Pins[1], &shelf{down: true}, h.Want[1]); err != nil {
		return fmt.Errorf("once fetched, read-only: %w", err)
	}
	if _, err := c.PrivateFolder(true); err != nil {
		return fmt.Errorf("a private copy, read-only: %w", err)
	}
	if err := errors.Join(c.SetDocument("list", []byte("x")), readBack(c)); err != nil {
		return err
	}
	if reserves() != 1 {
		return fmt.Errorf("%d temporary caches, expected one", reserves())
	}
	if err := c.Close(); err != nil || reserves() != 0 {
		return fmt.Errorf("%d temporary caches are left (%v)", reserves(), err)
	}

	// The same where there is no folder and none can be made.
	if c, err = Open(filepath.Join(h.Dir, "none", "cache"), Options{}); err != nil {
		return err
	}
	if err := use(c, h.Pins[2], s, h.Want[2]); err != nil {
		return fmt.Errorf("no cache: %w", err)
	}
	return c.Close()
}

// me is an owner on this node with another process id, which no process has.
func me(pid int) owner {
	o, _ := self()
	o.pid = pid
	return o
}

// sized says how many bytes come.
type sized struct{ *shelf }

func (s sized) Fetch(ctx context.Context, pin receipt.Pin) (io.ReadCloser, error) {
	r, err := s.shelf.Fetch(ctx, pin)
	return struct {
		io.ReadCloser
		size
	}{r, size(len(s.archives[pin.Manifest]))}, err
}

type size int64

func (s size) Size() int64 { return int64(s) }

func readBack(c *Cache) error {
	b, err := c.Document("list")
	if err == nil && string(b) != "x" {
		err = fmt.Errorf("the document is %q", b)
	}
	return err
}

func reserves() int {
	all, _ := filepath.Glob(filepath.Join(os.TempDir(), reservePrefix+"*"))
	return len(all)
}

// clean reports what should not be there beside so many trees.
func clean(dir string, n int) error {
	for _, sub := range []string{"tmp", "claims"} {
		if left, err := os.ReadDir(filepath.Join(dir, sub)); err != nil || len(left) > 0 {
			return fmt.Errorf("%s holds %v (%v)", sub, left, err)
		}
	}
	all, err := os.ReadDir(filepath.Join(dir, trees))
	if err != nil || len(all) != n {
		return fmt.Errorf("%d trees (%v), expected %d", len(all), err, n)
	}
	return nil
}

// work is one process of some node: it uses packs for a while, evicts now and then, and damages what it finds.
func work(path string) error {
	h, err := taken(path)
	if err != nil {
		return err
	}
	me, err := self()
	if err != nil {
		return err
	}
	if node := os.Getenv("NODECACHE_NODE"); node != "" {
		me.node = node
	}
	s := h.shelf()
	random := uint64(os.Getpid())
	next := func(n int) int {
		random = random*6364136223846793005 + 1442695040888963407
		return int(random>>33) % n
	}
	for end := time.Now().Add(time.Second); time.Now().Before(end); {
		c := openAs(h.Dir, Options{MaxBytes: 400_000}, me)
		c.silence = 100 * time.Millisecond // claims of living processes are taken over too
		n := next(len(h.Pins))
		if err := use(c, h.Pins[n], s, h.Want[n]); err != nil && !isRemoved(err) {
			return fmt.Errorf("pack %d: %w", n, err)
		}
		switch next(12) {
		case 0:
			_, _ = c.Collect(int64(next(400_000)), false) // others do the same at the same time
		case 1:
			damage(h.Dir, next)
		case 2:
			at := time.Now().Add(time.Duration(next(20)-10) * 24 * time.Hour)
			_ = filepath.WalkDir(h.Dir, func(path string, _ os.DirEntry, _ error) error { return os.Chtimes(path, at, at) })
		}
		c.Close()
		me.nonce = fmt.Sprintf("%08x", next(1<<30))
	}
	return nil
}

// isRemoved is the one error that a use may end with while others evict and damage everything at once.
func isRemoved(err error) bool { return strings.Contains(err.Error(), "as soon as it was there") }

// damage does something to a file of an entry.
func damage(dir string, next func(int) int) {
	all, _ := filepath.Glob(filepath.Join(dir, "*", "*-*"))
	if len(all) == 0 {
		return
	}
	path := all[next(len(all))]
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, "plugin.yaml")
	}
	switch next(3) {
	case 0:
		os.Remove(path)
	case 1:
		os.Truncate(path, int64(next(100)))
	default:
		os.Chmod(path, 0o644)
		os.WriteFile(path, []byte("evil"), 0o644)
	}
}

// Processes of three nodes use, evict, damage and are killed on one folder: no use ends with a wrong byte, and nothing is
// left in the end.
func TestManyProcesses(t *testing.T) {
	s := &shelf{}
	var pins []receipt.Pin
	var want []map[string]string
	for i := range 5 {
		files := map[string]string{"plugin.yaml": fmt.Sprintf("n: %d\n", i), "data": noise(30_000, i), "a/b.py": "x\n"}
		pins, want = append(pins, s.publish(t, fmt.Sprintf("lab/p%d", i), files)), append(want, files)
	}
	dir := t.TempDir()
	path := hand(t, s, pins, want, dir)
	nodes := []string{"", "000000000000000a", "000000000000000b"}
	var workers []*exec.Cmd
	for i := range 9 {
		cmd := exec.Command("/proc/self/exe", path)
		cmd.Env = append(os.Environ(), "NODECACHE_TEST=worker", "NODECACHE_NODE="+nodes[i%3])
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		workers = append(workers, cmd)
	}
	for i, cmd := range workers {
		if i >= 6 { // two of three live to the end
			time.Sleep(time.Duration(50+70*i) * time.Millisecond)
			cmd.Process.Kill()
		}
	}
	for i, cmd := range workers {
		if err := cmd.Wait(); err != nil && i < 6 {
			t.Errorf("worker %d: %v", i, err)
		}
	}
	c := open(t, dir, Options{})
	up := uptime()
	c.uptime = func() time.Duration { return up }
	for range 2 {
		if _, err := c.Collect(-1, false); err != nil {
			t.Error(err)
		}
		up += holdSilence + time.Second
	}
	for i, pin := range pins {
		if err := use(c, pin, s, want[i]); err != nil {
			t.Error(err)
		}
	}
	if _, err := c.Verify(context.Background(), true, func(Verdict) error { return nil }); err != nil {
		t.Error(err)
	}
	c.Close()
	for _, sub := range []string{"tmp", "claims", "holds", "roots"} {
		if left, err := os.ReadDir(filepath.Join(dir, sub)); err != nil || len(left) > 0 {
			t.Errorf("%s holds %v (%v)", sub, left, err)
		}
	}
}
