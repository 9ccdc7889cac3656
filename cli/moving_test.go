package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gatehouse-registry/gatehouse/internal/testservice"
	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/blobstore"
	"github.com/gatehouse-registry/gatehouse/registry/moving"
	"github.com/gatehouse-registry/gatehouse/registry/server"
)

// command is sf in a process of its own.
func command(t *testing.T, env []string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	cmd.Env = append(append(os.Environ(), asCommand+"=1", "GATEHOUSE_HOME="+t.TempDir()), env...)
	return cmd
}

// sf runs a command and fails the test unless it ends with the exit code.
func sf(t *testing.T, env []string, code int, args ...string) (stdout, stderr string) {
	t.Helper()
	var out, errOut bytes.Buffer
	cmd := command(t, env, args...)
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := cmd.Run()
	exit, failed := errors.AsType[*exec.ExitError](err)
	got := 0
	if failed {
		got = exit.ExitCode()
	}
	if (err != nil && !failed) || got != code {
		t.Fatalf("sf %s: exit %d (%v), want %d\n%s%s", strings.Join(args, " "), got, err, code, out.String(), errOut.String())
	}
	return out.String(), errOut.String()
}

// killed runs a command and kills it after a while. It reports whether it was in the middle.
func killed(t *testing.T, env []string, after time.Duration, args ...string) bool {
	t.Helper()
	cmd := command(t, env, args...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(after, func() { cmd.Process.Kill() })
	defer timer.Stop()
	exit, failed := errors.AsType[*exec.ExitError](cmd.Wait())
	return failed && !exit.Exited()
}

// soak publishes versions, one after another, until it is stopped, and says which were acknowledged so far.
type soak struct {
	stop  chan struct{}
	ended sync.WaitGroup
	mu    sync.Mutex
	all   []*attempt
	n     atomic.Int64
}

// startSoak begins to publish as name@1.0, 1.1, and so on, small and large archives in turn.
func startSoak(t *testing.T, p *process, name string) *soak {
	t.Helper()
	s := &soak{stop: make(chan struct{})}
	to, token := p.connect(t, p.adminToken(t)), p.adminToken(t)
	random := rand.New(rand.NewPCG(1, 2))
	s.ended.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-s.stop:
				return
			default:
			}
			noise := make([]byte, 1+(i%2)*(200<<10))
			for j := range noise {
				noise[j] = byte(random.Uint32())
			}
			a := makeAttempt(t, name, fmt.Sprintf("1.%d", i), noise)
			a.rest = i%3 == 0
			a.acked = publishAttempt(to, token, a) == nil
			s.mu.Lock()
			s.all = append(s.all, a)
			s.mu.Unlock()
			s.n.Add(1)
		}
	})
	return s
}

// sofar are the attempts that have an answer.
func (s *soak) sofar() []*attempt {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*attempt(nil), s.all...)
}

// grow waits until n more attempts have an answer.
func (s *soak) grow(n int64) {
	for want := s.n.Load() + n; s.n.Load() < want; {
		time.Sleep(time.Millisecond)
	}
}

func (s *soak) end() []*attempt {
	close(s.stop)
	s.ended.Wait()
	return s.sofar()
}

// holds fails the test unless a server has every acknowledged version with its bytes.
func holds(t *testing.T, p *process, token string, all []*attempt) {
	t.Helper()
	c := &crash{t: t, data: p.data, server: p, client: p.connect(t, token), token: token}
	acked := 0
	for _, a := range all {
		if a.acked {
			acked++
			c.settled(a)
		}
	}
	if acked == 0 {
		t.Fatal("nothing was acknowledged")
	}
}

// whole reads every blob that the metadata of a data directory name again.
func whole(t *testing.T, c server.Config) {
	t.Helper()
	s, err := server.OpenSource(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	n := 0
	err = moving.EachBlob(t.Context(), s.Meta, func(b moving.NamedBlob) error {
		n++
		if b.Small {
			return nil
		}
		return blobstore.Verify(t.Context(), s.Blobs, b.Descriptor)
	})
	if err != nil || n == 0 {
		t.Errorf("%d blobs read again: %v", n, err)
	}
	if small, damaged, err := moving.CheckSmall(t.Context(), s.Meta); err != nil || small == 0 || len(damaged) > 0 {
		t.Errorf("%d small blobs read again: %v", small, err)
	}
}

// trust is the registry's public key and id.
func trustOf(t *testing.T, p *process, token string) string {
	t.Helper()
	text, err := p.connect(t, token).Trust(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Backups of a registry that is being written to, some of them killed, hold everything that was acknowledged before they
// began; a restore, killed and run again, gives a registry that has it, with the same key; versions that were published
// after the backup stay taken when the newer ledger is given.
func TestBackupAndRestore(t *testing.T) {
	dir := t.TempDir()
	data, out, back := filepath.Join(dir, "data"), filepath.Join(dir, "out"), filepath.Join(dir, "back")
	p := startProcess(t, data, nil)
	defer func() { p.kill() }()
	token := p.adminToken(t)
	s := startSoak(t, p, "soaked")
	s.grow(6)
	sf(t, nil, 0, "admin", "backup", "--data", data, out)
	first, err := moving.Read(out)
	if err != nil {
		t.Fatal(err)
	}
	kills := 0
	for after := time.Millisecond; after < 2*time.Second && kills < 12; after = after*3/2 + time.Millisecond {
		if killed(t, nil, after, "admin", "backup", "--data", data, out) {
			kills++
		}
		if _, err := moving.Read(out); err != nil {
			t.Fatalf("after a backup that was killed: %v", err)
		}
	}
	s.grow(2)
	before := s.sofar()
	sf(t, nil, 0, "admin", "backup", "--data", data, "--prune", out)
	m, err := moving.Read(out)
	if err != nil || m.Blobs < first.Blobs || m.LedgerSeq < int64(len(before)) || len(m.Lost) != 0 {
		t.Fatalf("manifest %+v (%v), want at least %d blobs and %d versions", m, err, first.Blobs, len(before))
	}
	s.grow(2)
	all := s.end()
	trust := trustOf(t, p, token)
	p.kill()

	sf(t, nil, registry.Conflict.Meaning().Exit, "admin", "restore", out, "--data", data)
	for after := time.Millisecond; after < 200*time.Millisecond; after *= 2 {
		killed(t, nil, after, "admin", "restore", out, "--data", back)
		if _, err := os.Stat(filepath.Join(back, "restoring")); err == nil {
			_, stderr := sf(t, nil, 1, "serve", "--data", back, "--listen", "127.0.0.1:0")
			if !strings.Contains(stderr, "was not finished") {
				t.Errorf("a server in a half-restored directory says %q", stderr)
			}
		} else if err := os.RemoveAll(back); err != nil { // it was quicker
			t.Fatal(err)
		}
	}
	sf(t, nil, 0, "admin", "restore", out, "--data", back, "--ledger", filepath.Join(data, "ledger.jsonl"))
	whole(t, server.Config{Data: back})
	r := startProcess(t, back, nil)
	defer r.kill()
	holds(t, r, token, before)
	if got := trustOf(t, r, token); got != trust {
		t.Errorf("the key is another one:\n%s\n%s", got, trust)
	}
	last := all[len(all)-1]
	other := makeAttempt(t, last.ref().Name, last.ref().Version, []byte("other bytes"))
	if err := publishAttempt(r.connect(t, token), token, other); registry.CodeOf(err).Meaning().Exit != exitConflict {
		t.Errorf("a version that was published after the backup, published again with other bytes: %v, want a conflict", err)
	}
	t.Logf("%d backups killed; %d versions before the last backup, %d after", kills, len(before), len(all)-len(before))
}

// A damaged blob never becomes part of a backup, nor of what is restored.
func TestDamagedBackup(t *testing.T) {
	dir := t.TempDir()
	data, out := filepath.Join(dir, "data"), filepath.Join(dir, "out")
	p := startProcess(t, data, nil)
	defer func() { p.kill() }()
	s := startSoak(t, p, "damaged")
	s.grow(6)
	s.end()
	sf(t, nil, 0, "admin", "backup", "--data", data, out)
	spoil(t, filepath.Join(out, "blobs"))
	sf(t, nil, exitVerification, "admin", "restore", out, "--data", filepath.Join(dir, "a"))
	spoil(t, filepath.Join(data, "blobs"))
	stdout, _ := sf(t, nil, exitVerification, "admin", "backup", "--json", "--data", data, filepath.Join(dir, "other"))
	var m moving.Manifest
	if err := json.Unmarshal([]byte(stdout), &m); err != nil || len(m.Lost) != 1 || m.Blobs == 0 {
		t.Errorf("manifest %+v (%v), want one lost blob and the others kept", m, err)
	}
	sf(t, nil, 0, "admin", "restore", filepath.Join(dir, "other"), "--data", filepath.Join(dir, "b"))
}

// spoil changes a byte of one blob below a folder.
func spoil(t *testing.T, dir string) {
	t.Helper()
	done := errors.New("done")
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		content[len(content)/2] ^= 1
		if err := errors.Join(os.Chmod(path, 0o600), os.WriteFile(path, content, 0o600)); err != nil {
			return err
		}
		return done
	})
	if !errors.Is(err, done) {
		t.Fatalf("no blob was spoilt: %v", err)
	}
}

// A disk that is full ends a backup with a clear error and leaves the one before it.
func TestBackupOnFullDisk(t *testing.T) {
	dir := t.TempDir()
	data, out := filepath.Join(dir, "data"), filepath.Join(dir, "out")
	p := startProcess(t, data, nil)
	defer func() { p.kill() }()
	s := startSoak(t, p, "full")
	s.grow(2)
	s.end()
	sf(t, nil, 0, "admin", "backup", "--data", data, out)
	before, err := moving.Read(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, most := range []string{"1", "4096", "100000", "190000"} {
		_, stderr := sf(t, []string{fileLimit + "=" + most}, 1, "admin", "backup", "--data", data, out)
		if !strings.Contains(stderr, "full") && !strings.Contains(stderr, "disk I/O error") { // SQLite has no other word for this limit
			t.Errorf("files of at most %s bytes: %q", most, stderr)
		}
		after, err := moving.Read(out)
		if err != nil || after.Database != before.Database {
			t.Errorf("files of at most %s bytes: the backup before is %+v (%v)", most, after, err)
		}
		sf(t, []string{fileLimit + "=" + most}, 1, "admin", "restore", out, "--data", filepath.Join(dir, "r"+most))
		sf(t, nil, 0, "admin", "restore", out, "--data", filepath.Join(dir, "r"+most))
	}
	whole(t, server.Config{Data: filepath.Join(dir, "r1")})
}

// A registry moves from one disk to PostgreSQL + S3 while it is written to, and back, killed on the way and taken up again:
// everything that was acknowledged is there, the key and the id are the same, and the old place takes no writes.
func TestMigrate(t *testing.T) {
	dir := t.TempDir()
	bucket, database := testservice.S3(t), testservice.Postgres(t)
	env := bucket.Environment()
	far := []string{"--db", database, "--blobs", bucket.Address()}
	toFar := []string{"admin", "migrate", "--from", filepath.Join(dir, "near"), "--to", filepath.Join(dir, "far"), "--to-db", database, "--to-blobs", bucket.Address()}

	near := startProcess(t, filepath.Join(dir, "near"), nil)
	defer func() { near.kill() }()
	token := near.adminToken(t)
	s := startSoak(t, near, "moved")
	s.grow(6)
	for after := 50 * time.Millisecond; after < 700*time.Millisecond; after *= 2 {
		killed(t, env, after, toFar...)
		sf(t, nil, 0, "admin", "read-only", "off", "--data", near.data) // it may have been in its last pass
	}
	sf(t, env, 0, toFar...)
	s.grow(2)
	all := s.end()
	late := all[len(all)-1]
	if late.acked {
		t.Errorf("%s was taken by the old place after the move", late.ref())
	}
	if err := publishAttempt(near.connect(t, token), token, makeAttempt(t, "late", "1.0", nil)); registry.CodeOf(err) != registry.Unavailable || !strings.Contains(err.Error(), "moved") {
		t.Errorf("publishing at the old place: %v, want Unavailable and why", err)
	}
	trust := trustOf(t, near, token)
	_, stderr := sf(t, env, registry.Conflict.Meaning().Exit, toFar...)
	if !strings.Contains(stderr, "moved to the target already") {
		t.Errorf("a second move says %q", stderr)
	}
	near.kill()

	moved := startProcess(t, filepath.Join(dir, "far"), env, far...)
	defer func() { moved.kill() }()
	holds(t, moved, token, all)
	if got := trustOf(t, moved, token); got != trust {
		t.Errorf("the key is another one:\n%s\n%s", got, trust)
	}
	fresh := makeAttempt(t, "fresh", "1.0", make([]byte, 100<<10))
	if err := publishAttempt(moved.connect(t, token), token, fresh); err != nil {
		t.Fatal(err)
	}
	fresh.acked = true

	back := filepath.Join(dir, "back")
	stdout, _ := sf(t, env, 0, "admin", "migrate", "--json", "--reread", "--from", moved.data, "--from-db", database, "--from-blobs", bucket.Address(), "--to", back)
	var done moving.Migrated
	if err := json.Unmarshal([]byte(stdout), &done); err != nil || done.Blobs == 0 || done.Small == 0 {
		t.Errorf("the move back says %+v (%v)", done, err)
	}
	moved.kill()
	whole(t, server.Config{Data: back})
	again := startProcess(t, back, nil)
	defer again.kill()
	holds(t, again, token, append(all, fresh))
	if got := trustOf(t, again, token); got != trust {
		t.Errorf("the key is another one:\n%s\n%s", got, trust)
	}
}

// A target that is another registry's is left alone.
func TestMigrateOntoAnother(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a", "b"} {
		startProcess(t, filepath.Join(dir, name), nil).kill()
	}
	_, stderr := sf(t, nil, registry.Conflict.Meaning().Exit, "admin", "migrate", "--from", filepath.Join(dir, "a"), "--to", filepath.Join(dir, "b"))
	if !strings.Contains(stderr, "holds the registry") {
		t.Errorf("it says %q", stderr)
	}
	sf(t, nil, exitNotFound, "admin", "migrate", "--from", filepath.Join(dir, "none"), "--to", filepath.Join(dir, "c"))
	sf(t, nil, exitUsage, "admin", "migrate", "--to", filepath.Join(dir, "c"))
}

// A mirror that is killed at any moment is taken up by running it again; then both registries give the same bytes.
func TestKilledMirror(t *testing.T) {
	dir := t.TempDir()
	from := startProcess(t, filepath.Join(dir, "from"), nil)
	defer from.kill()
	to := startProcess(t, filepath.Join(dir, "to"), nil)
	defer to.kill()
	s := startSoak(t, from, "mirrored")
	s.grow(12)
	all := s.end()
	env := []string{"GATEHOUSE_SRC_USER=admin", "GATEHOUSE_SRC_PASSWORD=" + from.adminToken(t), "GATEHOUSE_DST_USER=admin", "GATEHOUSE_DST_PASSWORD=" + to.adminToken(t)}
	kills := 0
	for after := 5 * time.Millisecond; after < time.Second; after = after * 3 / 2 {
		if !killed(t, env, after, "mirror", from.address, to.address) {
			break
		}
		kills++
	}
	sf(t, env, 0, "mirror", from.address, to.address)
	stdout, _ := sf(t, env, 0, "mirror", "--json", from.address, to.address)
	var again struct{ Tags, Manifests, Blobs int }
	if err := json.Unmarshal([]byte(stdout), &again); err != nil || again.Tags < len(all) || again.Manifests != 0 || again.Blobs != 0 {
		t.Errorf("one more run: %+v (%v), want %d tags and nothing copied", again, err, len(all))
	}
	holds(t, to, to.adminToken(t), all)
	whole(t, server.Config{Data: to.data})
	t.Logf("killed %d times", kills)
}
