// Package runspool keeps statements about runs on disk until the registry has them. Several agents of one node use one spool at
// once, and each may be killed at any moment:
//
//   - A statement is there whole, and on disk, when Put returns nil; kill -9 afterwards loses nothing.
//   - A statement is removed only when it was delivered, or found to be one that will never be taken, or when the spool is
//     full or it has grown old. The oldest go first, and Put says how many did.
//   - Two agents may deliver one statement at the same time: the receiver takes a statement twice as it takes it once.
//
// The folder is the owner's alone (mode 0700). What is not a file of ours in there is left alone and never read.
package runspool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gatehouse-registry/gatehouse/admission/runrecord"
	"github.com/gatehouse-registry/gatehouse/internal/durable"
	"github.com/gatehouse-registry/gatehouse/internal/pattern"
)

// Limits bound a spool; a zero field is its default.
type Limits struct {
	Bytes int64         // of all statements: DefaultBytes
	Count int           // of statements: DefaultCount
	Age   time.Duration // since a statement was spooled: DefaultAge
}

// Defaults.
const (
	DefaultBytes = 64 << 20
	DefaultCount = 20_000
	DefaultAge   = 60 * 24 * time.Hour
	// remnantAge is how long the temporary file of a statement is left alone, which takes milliseconds to write.
	remnantAge = 10 * time.Minute
)

// Spool is a folder of statements. It is safe for concurrent use, by processes too.
type Spool struct {
	dir    string
	limits Limits
	now    func() time.Time
}

// Open makes the folder, whose parent must be there, when it is not there, and removes what killed agents left half written.
func Open(dir string, l Limits) (*Spool, error) {
	if l.Bytes == 0 {
		l.Bytes = DefaultBytes
	}
	if l.Count == 0 {
		l.Count = DefaultCount
	}
	if l.Age == 0 {
		l.Age = DefaultAge
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("spool: %w", err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return nil, fmt.Errorf("spool: %w", err)
	}
	if !info.IsDir() || info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("spool: %s is no folder that only its owner may enter (mode 0700)", dir)
	}
	s := &Spool{dir, l, time.Now}
	return s, s.sweep()
}

// Entry is one statement in the spool.
type Entry struct {
	Name  string
	Run   string
	State runrecord.State
	At    time.Time // when it was spooled
	Bytes int64
	// Refused says that the registry will not take it, as it answered last time.
	Refused bool
}

// Names of files: when, which run, which state; refused ones end otherwise.
var nameForm = pattern.New(`^([0-9]{13})-([0-9a-f]{32})-(started|ended|refused)\.(json|rejected)$`)

func fileName(at time.Time, run string, state runrecord.State) string {
	return fmt.Sprintf("%013d-%s-%s.json", at.UnixMilli(), run, state)
}

// Put spools a statement's envelope and gives its entry. dropped is how many of the oldest had to go for it. A statement of the
// same run that this one makes needless goes too, and is not counted.
func (s *Spool) Put(run string, state runrecord.State, envelope []byte) (e Entry, dropped int, err error) {
	at := s.now()
	e = Entry{Name: fileName(at, run, state), Run: run, State: state, At: at, Bytes: int64(len(envelope))}
	if !nameForm.MatchString(e.Name) {
		return e, 0, fmt.Errorf("spool: %.100q is no run, or %.40q no state", run, state)
	}
	if e.Bytes > s.limits.Bytes {
		return e, 0, fmt.Errorf("spool: a statement of %d bytes, at most %d allowed", e.Bytes, s.limits.Bytes)
	}
	entries, err := s.List()
	if err != nil {
		return e, 0, err
	}
	if dropped, err = s.makeRoom(entries, e.Bytes); err != nil {
		return e, dropped, err
	}
	if err := durable.Replace(filepath.Join(s.dir, e.Name), envelope, 0o600); err != nil {
		return e, dropped, fmt.Errorf("spool: %w", err)
	}
	for _, old := range entries {
		if old.Run == run && state.Later(old.State) {
			if err := s.Remove(old); err != nil {
				return e, dropped, err
			}
		}
	}
	return e, dropped, nil
}

// makeRoom removes the oldest statements until one of some bytes fits.
func (s *Spool) makeRoom(entries []Entry, bytes int64) (dropped int, err error) {
	sum := bytes
	for _, e := range entries {
		sum += e.Bytes
	}
	oldest := s.now().Add(-s.limits.Age)
	for count := len(entries) + 1; len(entries) > 0; count-- {
		first := entries[0]
		if sum <= s.limits.Bytes && count <= s.limits.Count && !first.At.Before(oldest) {
			return dropped, nil
		}
		if err := s.Remove(first); err != nil {
			return dropped, err
		}
		entries, sum, dropped = entries[1:], sum-first.Bytes, dropped+1
	}
	return dropped, nil
}

// List gives what is in the spool, the oldest first.
func (s *Spool) List() ([]Entry, error) {
	files, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, fmt.Errorf("spool: %w", err)
	}
	var list []Entry
	for _, f := range files {
		m := nameForm.FindStringSubmatch(f.Name())
		if m == nil {
			continue
		}
		info, err := f.Info()
		if err != nil || !info.Mode().IsRegular() {
			continue // delivered meanwhile, or none of ours
		}
		ms, err := strconv.ParseInt(m[1], 10, 64)
		if err != nil {
			continue
		}
		list = append(list, Entry{f.Name(), m[2], runrecord.State(m[3]), time.UnixMilli(ms), info.Size(), m[4] == "rejected"})
	}
	slices.SortFunc(list, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// Read gives a statement's envelope. One that was delivered meanwhile is an fs.ErrNotExist.
func (s *Spool) Read(e Entry) ([]byte, error) {
	info, err := os.Lstat(filepath.Join(s.dir, e.Name))
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > runrecord.MaxEnvelope {
		return nil, fmt.Errorf("spool: %s is no statement", e.Name)
	}
	return os.ReadFile(filepath.Join(s.dir, e.Name))
}

// Remove takes a statement out of the spool; another agent may have done so before.
func (s *Spool) Remove(e Entry) error {
	if err := os.Remove(filepath.Join(s.dir, e.Name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("spool: %w", err)
	}
	return nil
}

// reject keeps a statement that the registry will not take, for people to see: Send leaves it alone.
func (s *Spool) reject(e Entry) error {
	from := filepath.Join(s.dir, e.Name)
	if err := os.Rename(from, strings.TrimSuffix(from, ".json")+".rejected"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("spool: %w", err)
	}
	return nil
}

// A Sender brings an envelope to the registry. An error that wraps ErrRejected says that it will never be taken as it is; any
// other, that the registry is away.
type Sender func(ctx context.Context, envelope []byte) error

// ErrRejected is wrapped by a Sender's error for a statement that will never be taken.
var ErrRejected = errors.New("the registry does not take this statement")

// Sent says what Send did.
type Sent struct {
	Sent     int
	Rejected int
	Left     int // that are still to be sent
}

// Send delivers what is in the spool, the oldest first, until the registry is away or ctx over. again sends what was rejected
// before too. The error says why it stopped, or the last rejection.
func (s *Spool) Send(ctx context.Context, again bool, send Sender) (did Sent, err error) {
	entries, err := s.List()
	if err != nil {
		return did, err
	}
	entries = slices.DeleteFunc(entries, func(e Entry) bool { return e.Refused && !again })
	var rejection error
	for i, e := range entries {
		switch err := s.SendOne(ctx, e, send); {
		case errors.Is(err, ErrRejected):
			did.Rejected++
			rejection = err
		case err != nil:
			did.Left = len(entries) - i
			return did, err
		default:
			did.Sent++
		}
	}
	return did, rejection
}

// SendOne delivers one statement and takes it out of the spool.
func (s *Spool) SendOne(ctx context.Context, e Entry, send Sender) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	envelope, err := s.Read(e)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // another agent delivered it
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrRejected, err)
	}
	err = send(ctx, envelope)
	switch {
	case err == nil:
		return s.Remove(e)
	case errors.Is(err, ErrRejected) && !e.Refused:
		return errors.Join(err, s.reject(e))
	}
	return err
}

// sweep removes the temporary files of agents that were killed while they wrote.
func (s *Spool) sweep() error {
	files, err := os.ReadDir(s.dir)
	if err != nil {
		return fmt.Errorf("spool: %w", err)
	}
	for _, f := range files {
		if !strings.HasPrefix(f.Name(), ".") {
			continue
		}
		info, err := f.Info()
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		if age := s.now().Sub(info.ModTime()); age > remnantAge || age < -remnantAge {
			if err := os.Remove(filepath.Join(s.dir, f.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("spool: %w", err)
			}
		}
	}
	return nil
}
