package runspool

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-registry/gatehouse/admission/runrecord"
)

// The test program is the agent that is killed, too.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == writerVerb {
		os.Exit(writer(os.Args[2]))
	}
	os.Exit(m.Run())
}

func open(t *testing.T, l Limits) *Spool {
	t.Helper()
	s, err := Open(filepath.Join(t.TempDir(), "spool"), l)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func newRun() string {
	b := make([]byte, 16)
	rand.Read(b)
	return hex.EncodeToString(b)
}

func put(t *testing.T, s *Spool, run string, state runrecord.State, text string) Entry {
	t.Helper()
	e, _, err := s.Put(run, state, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// held is what lies in the spool, by run and state.
func held(t *testing.T, s *Spool) []string {
	t.Helper()
	entries, err := s.List()
	if err != nil {
		t.Fatal(err)
	}
	all := []string{}
	for _, e := range entries {
		text, err := s.Read(e)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(text))
	}
	return all
}

// clock gives one millisecond after the other, so that the order of what is put is known.
func clock(s *Spool) {
	now := time.Now()
	s.now = func() time.Time { now = now.Add(time.Millisecond); return now }
}

// registry is a receiver: it takes a statement twice as it takes it once.
type registry struct {
	mu    sync.Mutex
	have  map[string]int
	order []string
	err   error
}

func (r *registry) take(_ context.Context, envelope []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return r.err
	}
	if r.have == nil {
		r.have = map[string]int{}
	}
	r.have[string(envelope)]++
	r.order = append(r.order, string(envelope))
	return nil
}

// What is put is sent in its order and then gone; while the registry is away it stays.
func TestSend(t *testing.T) {
	s := open(t, Limits{})
	clock(s)
	for _, text := range []string{"a", "b", "c"} {
		put(t, s, newRun(), runrecord.StateEnded, text)
	}
	away := &registry{err: errors.New("connection refused")}
	did, err := s.Send(t.Context(), false, away.take)
	if err == nil || did != (Sent{Left: 3}) {
		t.Errorf("away: %+v, %v", did, err)
	}
	var r registry
	did, err = s.Send(t.Context(), false, r.take)
	if err != nil || did != (Sent{Sent: 3}) {
		t.Errorf("back: %+v, %v", did, err)
	}
	if diff := cmp.Diff([]string{"a", "b", "c"}, r.order); diff != "" {
		t.Errorf("sent otherwise (-want +got):\n%s", diff)
	}
	if left := held(t, s); len(left) > 0 {
		t.Errorf("still there: %q", left)
	}
}

// A run that has ended needs no word of its start any more, in whatever order they come.
func TestLaterStateReplaces(t *testing.T) {
	s := open(t, Limits{})
	clock(s)
	run := newRun()
	put(t, s, run, runrecord.StateStarted, "started")
	put(t, s, newRun(), runrecord.StateStarted, "another run")
	put(t, s, run, runrecord.StateEnded, "ended")
	if diff := cmp.Diff([]string{"another run", "ended"}, held(t, s)); diff != "" {
		t.Errorf("the spool holds (-want +got):\n%s", diff)
	}
}

// A statement that the registry will never take does not hold up the others, and is kept for people to see.
func TestRejected(t *testing.T) {
	s := open(t, Limits{})
	clock(s)
	put(t, s, newRun(), runrecord.StateEnded, "bad")
	put(t, s, newRun(), runrecord.StateEnded, "good")
	var r registry
	picky := func(ctx context.Context, envelope []byte) error {
		if string(envelope) == "bad" {
			return fmt.Errorf("%w: it is malformed", ErrRejected)
		}
		return r.take(ctx, envelope)
	}
	did, err := s.Send(t.Context(), false, picky)
	if !errors.Is(err, ErrRejected) || did != (Sent{Sent: 1, Rejected: 1}) || r.have["good"] != 1 {
		t.Errorf("%+v, %v", did, err)
	}
	if did, err := s.Send(t.Context(), false, picky); err != nil || did != (Sent{}) {
		t.Errorf("it was tried again: %+v, %v", did, err)
	}
	if did, err := s.Send(t.Context(), true, picky); !errors.Is(err, ErrRejected) || did != (Sent{Rejected: 1}) {
		t.Errorf("again: %+v, %v", did, err)
	}
	if did, err := s.Send(t.Context(), true, r.take); err != nil || did != (Sent{Sent: 1}) || r.have["bad"] != 1 {
		t.Errorf("taken after all: %+v, %v", did, err)
	}
}

// A full spool loses its oldest statements and says so; what is too large for it altogether is refused.
func TestBounds(t *testing.T) {
	for name, l := range map[string]Limits{"bytes": {Bytes: 30}, "count": {Count: 3}} {
		s := open(t, l)
		clock(s)
		lost := 0
		for i := range 7 {
			_, dropped, err := s.Put(newRun(), runrecord.StateEnded, fmt.Appendf(nil, "statement%d", i))
			if err != nil {
				t.Fatal(err)
			}
			lost += dropped
		}
		if diff := cmp.Diff([]string{"statement4", "statement5", "statement6"}, held(t, s)); diff != "" || lost != 4 {
			t.Errorf("%s: %d were said to be lost, the spool holds (-want +got):\n%s", name, lost, diff)
		}
	}
	s := open(t, Limits{Bytes: 5, Age: time.Hour})
	if _, _, err := s.Put(newRun(), runrecord.StateEnded, []byte("longer")); err == nil {
		t.Error("a statement larger than the spool is taken")
	}
	put(t, s, newRun(), runrecord.StateEnded, "old")
	s.now = func() time.Time { return time.Now().Add(2 * time.Hour) }
	if _, dropped, err := s.Put(newRun(), runrecord.StateEnded, []byte("n")); err != nil || dropped != 1 {
		t.Errorf("an old statement: %d dropped, %v", dropped, err)
	}
}

// Nothing but our own files is read or removed, and no name leads out of the folder.
func TestOddFiles(t *testing.T) {
	s := open(t, Limits{})
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	names := []string{"readme", "0000000000000-" + strings.Repeat("a", 32) + "-paused.json"}
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(s.dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(secret, filepath.Join(s.dir, "0000000000001-"+strings.Repeat("a", 32)+"-ended.json")); err != nil {
		t.Fatal(err)
	}
	var r registry
	if did, err := s.Send(t.Context(), true, r.take); err != nil || did != (Sent{}) {
		t.Errorf("sent %+v, %v: %q", did, err, r.order)
	}
	for _, run := range []string{"", "../" + strings.Repeat("a", 29), strings.Repeat("A", 32)} {
		if _, _, err := s.Put(run, runrecord.StateEnded, nil); err == nil {
			t.Errorf("%q is taken for a run", run)
		}
	}
	if files, err := os.ReadDir(s.dir); err != nil || len(files) != 3 {
		t.Errorf("the folder holds %v, %v", files, err)
	}
}

// A folder that others may enter is no spool; temporary files of killed agents go.
func TestOpen(t *testing.T) {
	dir := t.TempDir()
	for _, mode := range []fs.FileMode{0o755, 0o770, 0o701} {
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(dir, Limits{}); err == nil {
			t.Errorf("mode %o is taken", mode)
		}
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, age := range map[string]time.Duration{".old": time.Hour, ".of-the-future": -time.Hour, ".being-written": 0} {
		path := filepath.Join(dir, name)
		at := time.Now().Add(-age)
		if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Chtimes(path, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Open(dir, Limits{}); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 1 || files[0].Name() != ".being-written" {
		t.Errorf("left over: %v, %v", files, err)
	}
}

// Several agents use one spool at once: everything arrives, nothing is left.
func TestTogether(t *testing.T) {
	s := open(t, Limits{})
	var r registry
	var wg sync.WaitGroup
	for agent := range 8 {
		wg.Go(func() {
			mine, err := Open(s.dir, Limits{})
			if err != nil {
				t.Error(err)
				return
			}
			for i := range 5 {
				if _, _, err := mine.Put(newRun(), runrecord.StateEnded, fmt.Appendf(nil, "%d-%d", agent, i)); err != nil {
					t.Error(err)
				}
				if _, err := mine.Send(t.Context(), false, r.take); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if len(r.have) != 40 || len(held(t, s)) != 0 {
		t.Errorf("%d arrived, %d are left", len(r.have), len(held(t, s)))
	}
}

const writerVerb = "write"

// writer spools statements and says each one's text once Put has returned.
func writer(dir string) int {
	s, err := Open(dir, Limits{})
	if err != nil {
		return 1
	}
	for i := 0; ; i++ {
		text := fmt.Sprintf("%d-%d;", os.Getpid(), i)
		if _, _, err := s.Put(newRun(), runrecord.StateEnded, bytes.Repeat([]byte(text), 100)); err != nil {
			return 1
		}
		fmt.Println(text)
	}
}

// kill -9 at any moment loses nothing that was spooled, and leaves no half statement.
func TestKilled(t *testing.T) {
	s := open(t, Limits{})
	said := map[string]bool{}
	for round := range 6 {
		cmd := exec.Command(os.Args[0], writerVerb, s.dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 1<<12)
		var text []byte
		for bytes.Count(text, []byte("\n")) < 3*(round+1) {
			n, err := out.Read(buf)
			if err != nil {
				t.Fatal(err)
			}
			text = append(text, buf[:n]...)
		}
		cmd.Process.Kill()
		for err == nil {
			var n int
			n, err = out.Read(buf)
			text = append(text, buf[:n]...)
		}
		cmd.Wait()
		lines := strings.Split(string(text), "\n")
		for _, line := range lines[:len(lines)-1] {
			said[line] = true
		}
	}
	var r registry
	if _, err := s.Send(t.Context(), false, r.take); err != nil {
		t.Fatal(err)
	}
	for line := range said {
		if r.have[strings.Repeat(line, 100)] != 1 {
			t.Errorf("%s was spooled and did not arrive once", line)
		}
	}
	for text := range r.have {
		if line, _, _ := strings.Cut(text, ";"); text != strings.Repeat(line+";", 100) {
			t.Errorf("a half statement arrived: %.40q", text)
		}
	}
}

// What is spooled is what was signed.
func TestStatementSurvives(t *testing.T) {
	s := open(t, Limits{})
	code := 3
	statement := runrecord.New(runrecord.Predicate{
		Run: newRun(), State: runrecord.StateRefused, Agent: "t", Node: runrecord.Node{Name: "n"}, Problem: "no", EndedAt: time.Unix(0, 0), ExitCode: &code,
	})
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	envelope, err := runrecord.Sign(statement, key)
	if err != nil {
		t.Fatal(err)
	}
	e := put(t, s, statement.Predicate.Run, runrecord.StateRefused, string(envelope))
	text, err := s.Read(e)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := runrecord.Read(text); err != nil || got.Predicate.Run != e.Run {
		t.Errorf("read back as %v, %v", got, err)
	}
}
