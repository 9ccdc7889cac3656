//go:build unix

package fs_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/blobstore"
	blobfs "github.com/gatehouse-registry/gatehouse/registry/blobstore/fs"
)

// What the test binary does instead of testing when it is started again as a child.
const (
	childEnv  = "GATEHOUSE_BLOBSTORE_CHILD" // which of children to run
	dirEnv    = "GATEHOUSE_BLOBSTORE_DIR"
	seedEnv   = "GATEHOUSE_BLOBSTORE_SEED"
	childPuts = 50
)

var children = map[string]func(dir string, seed uint64) error{"put": childPut, "limit": childLimit}

func TestMain(m *testing.M) {
	child := children[os.Getenv(childEnv)]
	if child == nil {
		os.Exit(m.Run())
	}
	var seed uint64
	fmt.Sscan(os.Getenv(seedEnv), &seed)
	if err := child(os.Getenv(dirEnv), seed); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func childCommand(name, dir string, seed uint64) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+name, dirEnv+"="+dir, fmt.Sprint(seedEnv, "=", seed))
	cmd.Stderr = os.Stderr
	return cmd
}

// crashContent is the i-th blob of a seed: up to 256 KiB.
func crashContent(seed uint64, i int) []byte {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], seed)
	binary.LittleEndian.PutUint64(key[8:], uint64(i))
	source := rand.NewChaCha8(key)
	b := make([]byte, source.Uint64()%(256<<10))
	source.Read(b)
	return b
}

// childPut stores blobs, half of them by upload sessions, and says on stdout what was acknowledged.
func childPut(dir string, seed uint64) error {
	store, err := blobfs.Open(dir)
	if err != nil {
		return err
	}
	ctx := context.Background()
	for i := range childPuts {
		content := crashContent(seed, i)
		want := digest.Descriptor{Digest: digest.FromBytes(content), Size: int64(len(content))}
		if i%2 == 0 {
			err = store.Put(ctx, want, bytes.NewReader(content))
		} else {
			err = childUpload(store, fmt.Sprintf("s%d-%d", seed, i), content, want.Digest)
		}
		if err != nil {
			return err
		}
		fmt.Printf("blob %s %d\n", want.Digest, want.Size)
	}
	return nil
}

func childUpload(store *blobstore.Store, id string, content []byte, want digest.Digest) error {
	ctx := context.Background()
	if err := store.CreateUpload(ctx, id); err != nil {
		return err
	}
	half := len(content) / 2
	for _, part := range [][]byte{content[:half], content[half:]} {
		size, err := store.UploadSize(ctx, id)
		if err == nil {
			size, err = store.AppendUpload(ctx, id, size, bytes.NewReader(part), 1<<30)
		}
		if err != nil {
			return err
		}
		fmt.Printf("upload %s %d\n", id, size)
	}
	_, err := store.CommitUpload(ctx, id, want)
	return err
}

// TestKill kills a writing process at random points: what it acknowledged is there and whole, nothing that is there
// is half, and its open sessions hold at least what they acknowledged.
func TestKill(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rounds := 20
	if testing.Short() {
		rounds = 5
	}
	var acked []digest.Descriptor
	points := map[string]int{}
	for round := range rounds {
		lines := runAndKill(t, dir, uint64(round), rand.N(2*childPuts))
		uploads := map[string]int64{}
		for _, line := range lines {
			var kind, name string
			var size int64
			fmt.Sscan(line, &kind, &name, &size)
			switch kind {
			case "blob":
				acked = append(acked, digest.Descriptor{Digest: digest.MustParse(name), Size: size})
			case "upload":
				uploads[name] = size
			}
		}
		checkAfterKill(t, dir, uint64(round), acked, uploads, points)
	}
	t.Logf("%d blobs acknowledged over %d kills; left behind by the kills: %v", len(acked), rounds, points)
	if len(acked) == 0 {
		t.Error("no put was acknowledged in any round")
	}
}

// runAndKill runs a child, kills it a moment after its line number `after`, and gives its whole lines.
func runAndKill(t *testing.T, dir string, seed uint64, after int) []string {
	t.Helper()
	cmd := childCommand("put", dir, seed)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var lines []string
	r := bufio.NewReader(stdout)
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			break // the pipe ended with the child; an unfinished line acknowledges nothing
		}
		lines = append(lines, line)
		if len(lines) == after {
			time.Sleep(rand.N(3 * time.Millisecond)) // spreads the kills over the steps of the next put
			cmd.Process.Kill()
		}
	}
	io.Copy(io.Discard, r)
	if err := cmd.Wait(); err != nil && !strings.Contains(err.Error(), "killed") {
		t.Fatalf("the child: %v", err)
	}
	return lines
}

// checkAfterKill opens the store as the next process would.
func checkAfterKill(t *testing.T, dir string, seed uint64, acked []digest.Descriptor, uploads map[string]int64, points map[string]int) {
	t.Helper()
	left, err := os.ReadDir(filepath.Join(dir, "tmp"))
	if err != nil {
		t.Fatal(err)
	}
	points["files in tmp"] += len(left)
	store, ctx := open(t, dir), context.Background()
	defer store.Close()
	if left, _ = os.ReadDir(filepath.Join(dir, "tmp")); len(left) > 0 {
		t.Errorf("after the next Open tmp holds %v", left)
	}
	for _, want := range acked {
		if err := blobstore.Verify(ctx, store, want); err != nil {
			t.Errorf("acknowledged blob: %v", err)
		}
	}
	for d, err := range store.All(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		if err := blobstore.Verify(ctx, store, digest.Descriptor{Digest: d.Digest, Size: d.Size}); err != nil {
			t.Errorf("a blob that is not whole is visible: %v", err)
		}
	}
	for u, err := range store.Uploads(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		points["open uploads"]++
		finishAfterKill(t, store, seed, u, uploads[u.ID])
	}
}

// finishAfterKill goes on with a session where the killed process stopped.
func finishAfterKill(t *testing.T, store *blobstore.Store, seed uint64, u registry.UploadSession, acked int64) {
	t.Helper()
	var of uint64
	var i int
	fmt.Sscanf(u.ID, "s%d-%d", &of, &i)
	if u.Size < acked || of != seed {
		t.Errorf("upload %s holds %d bytes, acknowledged were %d", u.ID, u.Size, acked)
	}
	content, ctx := crashContent(of, i), context.Background()
	if _, err := store.AppendUpload(ctx, u.ID, u.Size, bytes.NewReader(content[u.Size:]), 1<<30); err != nil {
		t.Errorf("go on with upload %s: %v", u.ID, err)
	}
	if _, err := store.CommitUpload(ctx, u.ID, digest.FromBytes(content)); err != nil {
		t.Errorf("commit of upload %s: %v", u.ID, err)
	}
}

// limitContent is 100,000 bytes.
func limitContent() []byte { return bytes.Repeat([]byte("0123456789"), 10_000) }

// childLimit runs out of room for a file: the kernel refuses writes beyond 64 KiB, as a full disk does.
func childLimit(dir string, _ uint64) error {
	store, err := blobfs.Open(dir)
	if err != nil {
		return err
	}
	ctx := context.Background()
	if err := store.CreateUpload(ctx, "u"); err != nil {
		return err
	}
	content := limitContent()
	if _, err := store.AppendUpload(ctx, "u", 0, bytes.NewReader(content[:40_000]), 1<<30); err != nil {
		return err
	}
	room := syscall.Rlimit{Cur: 64 << 10, Max: 64 << 10}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &room); err != nil {
		return err
	}
	want := digest.Descriptor{Digest: digest.FromBytes(content), Size: 100_000}
	if err := store.Put(ctx, want, bytes.NewReader(content)); registry.CodeOf(err) != registry.TooLarge {
		return fmt.Errorf("put: got error %w, want code TooLarge", err)
	}
	size, err := store.AppendUpload(ctx, "u", 40_000, bytes.NewReader(content[40_000:]), 1<<30)
	if registry.CodeOf(err) != registry.TooLarge || size != 40_000 {
		return fmt.Errorf("append: got size %d, error %w, want 40000 and code TooLarge", size, err)
	}
	return nil
}

func TestNoRoom(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := childCommand("limit", dir, 0).Run(); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(filepath.Join(dir, "tmp")); err != nil || len(left) > 0 {
		t.Errorf("tmp after a failed put: holds %v, error %v, want nothing", left, err)
	}
	store, ctx := open(t, dir), context.Background()
	defer store.Close()
	for d := range store.All(ctx) {
		t.Errorf("a failed put left the blob %v", d)
	}
	content := limitContent()
	if _, err := store.AppendUpload(ctx, "u", 40_000, bytes.NewReader(content[40_000:]), 1<<30); err != nil {
		t.Fatal(err)
	}
	if _, err := store.CommitUpload(ctx, "u", digest.FromBytes(content)); err != nil {
		t.Errorf("the session that ran out of room, with room again: %v", err)
	}
}
