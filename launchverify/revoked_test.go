//go:build linux

package launchverify

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-registry/gatehouse/admission/denylist"
	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/receipt"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/admission/runrecord"
	"github.com/gatehouse-registry/gatehouse/digest"
)

// listKey is the new key of a registry that changes keys: it signs deny lists, and the old one signed the receipts.
var listKey = ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize))

// revoking is a registry that answers with what it is told to.
type revoking struct {
	t *testing.T

	mu    sync.Mutex
	reply func() ([]byte, error)
	asked int
	sent  int
}

// source asks the registry; like a server it does not send a list that the node has.
func (s *revoking) source(_ context.Context, tag string) ([]byte, error) {
	s.mu.Lock()
	s.asked++
	reply := s.reply
	s.mu.Unlock()
	envelope, err := reply()
	if err == nil && tag == denylist.Tag(envelope) {
		return nil, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent++
	return envelope, err
}

// answers makes the registry answer otherwise.
func (s *revoking) answers(reply func() ([]byte, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reply = reply
}

// counts says how often the registry was asked, and how often it sent something.
func (s *revoking) counts() (asked, sent int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked, s.sent
}

// sends makes the registry answer with a list.
func (s *revoking) sends(number uint64, issued time.Time, revoked ...denylist.Entry) {
	envelope := signedList(s.t, listKey, audience, number, issued, revoked...)
	s.answers(func() ([]byte, error) { return envelope, nil })
}

func (s *revoking) fails() {
	s.answers(func() ([]byte, error) { return nil, errors.New("connection refused") })
}

func signedList(t *testing.T, key ed25519.PrivateKey, audience string, number uint64, issued time.Time, revoked ...denylist.Entry) []byte {
	t.Helper()
	payload, err := denylist.List{Audience: audience, Number: number, IssuedAt: issued, Expires: issued.Add(time.Hour), Revoked: revoked}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	envelope, err := receipt.Sign(denylist.PayloadType, payload, key)
	if err != nil {
		t.Fatal(err)
	}
	return envelope
}

func revocation(pin receipt.Pin) denylist.Entry {
	return denylist.Entry{ID: pin.ID, Version: pin.Version, Content: pin.Content, Tree: pin.Tree, Manifest: pin.Manifest, Reason: "it sends the weights away", At: time.Now()}
}

// revocable is a job with one plugin, and a registry that lists what it revoked.
func revocable(t *testing.T) (*rig, receipt.Pin, *revoking, Options) {
	r := newRig(t, dialect.Forge)
	pin := r.plugin("lab/alpha", true, nil)
	r.spec(pin)
	r.sign()
	s := &revoking{t: t}
	o := r.options("true")
	keys := []ed25519.PublicKey{listKey.Public().(ed25519.PublicKey)}
	for _, k := range o.Trust.Keys() {
		keys = append(keys, k.Public)
	}
	var err error
	if o.Trust, err = receipt.NewTrustSet(audience, keys...); err != nil {
		t.Fatal(err)
	}
	o.DenyList, o.modes = s.source, []Mode{ModePrivateCopy}
	return r, pin, s, o
}

// What is revoked is refused: by name, by its files under another name, by a list that has expired, and by one that can't be
// asked for again. Nothing is fetched for it.
func TestRevoked(t *testing.T) {
	now := time.Now()
	for name, list := range map[string]func(s *revoking, pin receipt.Pin){
		"by name": func(s *revoking, pin receipt.Pin) {
			e := revocation(pin)
			e.Tree, e.Manifest = digest.FromBytes(nil), digest.FromBytes(nil)
			s.sends(7, now, e)
		},
		"by its files": func(s *revoking, pin receipt.Pin) {
			e := revocation(pin)
			e.ID, e.Manifest = "lab/beta", digest.FromBytes(nil)
			s.sends(7, now, e)
		},
		"among others": func(s *revoking, pin receipt.Pin) {
			other := revocation(pin)
			other.ID, other.Content, other.Tree, other.Manifest = "lab/other", digest.FromBytes(nil), digest.FromBytes(nil), digest.FromBytes(nil)
			s.sends(7, now, other, revocation(pin))
		},
		"by an expired list": func(s *revoking, pin receipt.Pin) { s.sends(7, now.Add(-48*time.Hour), revocation(pin)) },
	} {
		r, pin, s, o := revocable(t)
		list(s, pin)
		for _, then := range []string{"", " when the registry is away", " when the registry takes it back", " when it no longer answers but with garbage"} {
			switch then {
			case " when the registry is away":
				s.fails()
			case " when the registry takes it back":
				s.sends(6, now)
			case " when it no longer answers but with garbage":
				s.answers(func() ([]byte, error) { return []byte("<html>"), nil })
			}
			rec, err := r.launch(o)
			if !slices.Equal(violated(err), []rule.ID{"launch.revoked"}) || ExitCode(rec, err) != 3 || rec.Started {
				t.Fatalf("%s%s: got %v (exit code %d)", name, then, err, ExitCode(rec, err))
			}
			if text := err.Error(); !strings.Contains(text, "lab/alpha@1.0.0") || !strings.Contains(text, "it sends the weights away") || !strings.Contains(text, "deny list 7") {
				t.Errorf("%s%s: %s", name, then, text)
			}
			if rec.DenyList == nil || rec.DenyList.Number != 7 || r.shelf.fetched != 0 {
				t.Errorf("%s%s: the record says %+v, fetched %d times", name, then, rec.DenyList, r.shelf.fetched)
			}
		}
	}
}

// What can't be known is said in the record, and refuses the launch only where that is required.
func TestDenyListProblems(t *testing.T) {
	now := time.Now()
	strange := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{8}, ed25519.SeedSize))
	for name, c := range map[string]struct {
		reply func() ([]byte, error)
		want  rule.ID
	}{
		"away":                {func() ([]byte, error) { return nil, errors.New("connection refused") }, "launch.denylist.missing"},
		"an HTML page":        {func() ([]byte, error) { return []byte("<html>"), nil }, "launch.denylist.malformed"},
		"a stranger's":        {func() ([]byte, error) { return signedList(t, strange, audience, 9, now), nil }, "launch.denylist.untrusted"},
		"another registry's":  {func() ([]byte, error) { return signedList(t, listKey, "registry-2", 9, now), nil }, "launch.denylist.audience"},
		"of yesterday":        {func() ([]byte, error) { return signedList(t, listKey, audience, 9, now.Add(-24*time.Hour)), nil }, "launch.denylist.expired"},
		"older than the copy": {func() ([]byte, error) { return signedList(t, listKey, audience, 4, now), nil }, "launch.denylist.older"},
		"no registry":         {nil, "launch.denylist.missing"},
		"a registry that never answers": {func() ([]byte, error) {
			<-t.Context().Done()
			return nil, nil
		}, "launch.denylist.missing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, _, s, o := revocable(t)
			if name == "older than the copy" {
				s.sends(5, now.Add(-30*time.Minute))
				if _, err := r.launch(o); err != nil {
					t.Fatal(err)
				}
			}
			if s.answers(c.reply); c.reply == nil {
				o.DenyList = nil
			}
			o.RequireDenyList = true
			rec, err := r.launch(o)
			if !slices.Equal(violated(err), []rule.ID{c.want}) || ExitCode(rec, err) != 7 || rec.Started || rec.DenyList == nil || !rec.DenyList.Required {
				t.Errorf("required: got %v (exit code %d), %+v", err, ExitCode(rec, err), rec.DenyList)
			}
			o.RequireDenyList = false
			rec, err = r.launch(o)
			if err != nil || !rec.Started {
				t.Errorf("preferred: %v", err)
			}
			if none := c.reply == nil; none != (rec.DenyList == nil) || !none && rec.DenyList.Problem == "" {
				t.Errorf("preferred: the record says %+v", rec.DenyList)
			}
		})
	}
}

// Every launch asks, and is sent what it does not have. A registry that let a launch wait is not asked again for a moment, but
// where a list is required.
func TestDenyListIsKept(t *testing.T) {
	now := time.Now()
	r, _, s, o := revocable(t)
	s.sends(5, now)
	launch := func(at time.Time) Record {
		t.Helper()
		o.Now = at
		rec, err := r.launch(o)
		if err != nil {
			t.Fatal(err)
		}
		return rec
	}
	want := func(what string, rec Record, asked, sent int, number uint64, source string) {
		t.Helper()
		if gotAsked, gotSent := s.counts(); rec.DenyList == nil || rec.DenyList.Number != number || rec.DenyList.Source != source || gotAsked != asked || gotSent != sent {
			t.Errorf("%s: asked %d times, sent %d, the record says %+v; expected %d and %d, list %d of the %s", what, gotAsked, gotSent, rec.DenyList, asked, sent, number, source)
		}
	}
	want("at first", launch(now), 1, 1, 5, runrecord.SourceRegistry)
	want("again", launch(now.Add(time.Minute)), 2, 1, 5, runrecord.SourceRegistry)
	s.sends(6, now)
	want("a newer one", launch(now.Add(time.Minute)), 3, 2, 6, runrecord.SourceRegistry)
	want("with a clock that is behind", launch(now.Add(-time.Hour)), 4, 2, 6, runrecord.SourceRegistry)
	s.fails()
	want("away", launch(now.Add(time.Minute)), 5, 3, 6, runrecord.SourceCache)
	want("still away", launch(now.Add(time.Minute)), 6, 4, 6, runrecord.SourceCache)
	s.answers(func() ([]byte, error) { <-t.Context().Done(); return nil, nil })
	want("silent", launch(now.Add(time.Minute)), 7, 4, 6, runrecord.SourceCache)
	s.sends(7, now)
	want("silent a moment ago", launch(now.Add(time.Minute)), 7, 4, 6, runrecord.SourceCache)
	o.RequireDenyList = true
	want("silent a moment ago, where it is required", launch(now.Add(time.Minute)), 8, 5, 7, runrecord.SourceRegistry)
}

// A registry that was restored from an older backup reaches the number of a list again with other revocations. What was revoked
// once stays so, and what it revokes now counts although its number is an old one.
func TestDenyListOfARestoredRegistry(t *testing.T) {
	now := time.Now()
	other := func(id string) denylist.Entry {
		return denylist.Entry{ID: id, Version: "1", Content: digest.FromBytes([]byte(id)), Reason: "why", At: now}
	}
	r, pin, s, o := revocable(t)
	refused := func(what string, number uint64) {
		t.Helper()
		rec, err := r.launch(o)
		if !slices.Equal(violated(err), []rule.ID{"launch.revoked"}) || rec.Started || rec.DenyList == nil || rec.DenyList.Number != number {
			t.Errorf("%s: %v, the record says %+v", what, err, rec.DenyList)
		}
	}
	s.sends(6, now, revocation(pin))
	refused("revoked", 6)
	s.sends(6, now, other("lab/x"))
	refused("the same number without it", 6)
	refused("once more", 6)
	s.fails()
	refused("and the registry is away", 6)
	s.sends(9, now, other("lab/y"))
	refused("a second one that lacks what the first restored registry revoked", 6)
	s.sends(9, now, other("lab/x"), other("lab/y"))
	refused("a later number", 9)
	s.sends(10, now, other("lab/x"), other("lab/y"), revocation(pin))
	refused("revoked anew", 10)
	o.CacheDir = t.TempDir()
	s.sends(20, now)
	if _, err := r.launch(o); err != nil {
		t.Fatal(err)
	}
	s.sends(3, now, revocation(pin))
	refused("an older list revokes it", 20)
}

// A copy that somebody planted in the cache is not believed, and does no harm.
func TestPlantedDenyList(t *testing.T) {
	now := time.Now()
	r, pin, s, o := revocable(t)
	s.sends(5, now)
	if _, err := r.launch(o); err != nil {
		t.Fatal(err)
	}
	copies, err := filepath.Glob(filepath.Join(o.CacheDir, "documents", "denylist-*.json"))
	if err != nil || len(copies) != 1 {
		t.Fatalf("the cache keeps %v, %v", copies, err)
	}
	strange := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{8}, ed25519.SeedSize))
	for name, text := range map[string][]byte{
		"garbage":                     []byte("{"),
		"a stranger's list":           signedList(t, strange, audience, 99, now, revocation(pin)),
		"the list of another one":     signedList(t, listKey, "registry-2", 99, now, revocation(pin)),
		"a receipt instead of a list": mustRead(t, r.job+receipt.Suffix),
	} {
		if err := os.WriteFile(copies[0], text, 0o644); err != nil {
			t.Fatal(err)
		}
		if rec, err := r.launch(o); err != nil || rec.DenyList.Number != 5 || rec.DenyList.Source != runrecord.SourceRegistry {
			t.Errorf("%s: %v, the record says %+v", name, err, rec.DenyList)
		}
	}
}

// Another account that can write to the cache does not keep the node from asking.
func TestPlantedSilence(t *testing.T) {
	r, _, s, o := revocable(t)
	s.sends(5, time.Now())
	if _, err := r.launch(o); err != nil {
		t.Fatal(err)
	}
	known := denyLists{launch: &launch{rcp: &receipt.Receipt{Audience: audience}}}
	planted := filepath.Join(o.CacheDir, "documents", known.silence())
	if err := os.WriteFile(planted, []byte(time.Now().UTC().Format(time.RFC3339Nano)), 0o644); err != nil {
		t.Fatal(err)
	}
	want := 1 // it is our own, and believed
	if os.Geteuid() == 0 {
		want = 2
		if err := os.Chown(planted, 65534, 65534); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.launch(o); err != nil {
		t.Fatal(err)
	}
	if asked, _ := s.counts(); asked != want {
		t.Errorf("the registry was asked %d times, expected %d", asked, want)
	}
}

func mustRead(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Whatever became of a launch, its record becomes a statement that can be signed and read.
func TestStatements(t *testing.T) {
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	w := Witness{Run: strings.Repeat("ab", 16), Agent: "test", Node: runrecord.Node{Name: "gpu-1"}}
	sign := func(what string, s runrecord.Statement) runrecord.Predicate {
		t.Helper()
		envelope, err := runrecord.Sign(s, key)
		if err != nil {
			t.Errorf("%s: %v", what, err)
			return runrecord.Predicate{}
		}
		read, err := runrecord.Read(envelope)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		return read.Predicate
	}
	for name, c := range map[string]struct {
		spoil   func(r *rig, o *Options)
		state   runrecord.State // "" for none
		exit    int
		rule    rule.ID
		problem string
	}{
		"it ended":      {func(r *rig, o *Options) {}, runrecord.StateEnded, 0, "", ""},
		"it failed":     {func(r *rig, o *Options) { o.Command = []string{"sh", "-c", "exit 9"} }, runrecord.StateEnded, 9, "", ""},
		"it was killed": {func(r *rig, o *Options) { o.Command = []string{"sh", "-c", "kill -9 $$"} }, runrecord.StateEnded, 137, "", ""},
		"odd arguments": {func(r *rig, o *Options) {
			o.Command = []string{"true", "\xff\x00"[:1], "\x1b[31m", strings.Repeat("é", 5000)}
		}, runrecord.StateEnded, 0, "", ""},
		"many arguments":     {func(r *rig, o *Options) { o.Command = slices.Repeat([]string{"true"}, 3000) }, runrecord.StateEnded, 0, "", ""},
		"no command":         {func(r *rig, o *Options) { o.Command = []string{"/nowhere/at-all"} }, runrecord.StateRefused, 127, "", "no such file"},
		"no receipt":         {func(r *rig, o *Options) { os.Remove(r.job + receipt.Suffix) }, "", 7, "", ""},
		"no spec":            {func(r *rig, o *Options) { os.Remove(r.specPath()) }, "", 3, "", ""},
		"a changed plugin":   {func(r *rig, o *Options) { r.write("forge_plugins/alpha/alpha_patch.py", "import os\n") }, runrecord.StateRefused, 7, "launch.digest.content", ""},
		"the registry away":  {func(r *rig, o *Options) { r.shelf.down = true }, runrecord.StateRefused, 5, "", "not found"},
		"only checked":       {func(r *rig, o *Options) { o.CheckOnly, o.Command = true, nil }, "", 0, "", ""},
		"checked in vain":    {func(r *rig, o *Options) { o.CheckOnly, o.Command = true, nil; os.Remove(r.job + receipt.Suffix) }, "", 7, "", ""},
		"impossible options": {func(r *rig, o *Options) { o.Command = nil }, "", 2, "", ""},
	} {
		r, pin, s, o := revocable(t)
		s.sends(5, time.Now())
		o.Env = append(o.Env, "PYTHONPATH=/secret-place", "FORGE_CAPSULE_VERIFIED=1")
		begun := make(chan Record, 1)
		o.Started = func(rec Record) { begun <- rec }
		c.spoil(r, &o)
		rec, err := r.launch(o)
		statement, ok := EndedStatement(rec, err, ExitCode(rec, err), time.Now(), w)
		if ok != (c.state != "") {
			t.Errorf("%s: there is something to say: %v", name, ok)
			continue
		}
		if !ok {
			continue
		}
		p := sign(name, statement)
		if p.State != c.state || p.ExitCode == nil || *p.ExitCode != c.exit || !strings.Contains(p.Problem, c.problem) || (p.Problem == "") != (c.problem == "") {
			t.Errorf("%s: %s with exit code %v, problem %q; launched: %v", name, p.State, p.ExitCode, p.Problem, err)
		}
		if c.rule != "" && (p.Decision == nil || p.Decision.Allowed || p.Decision.Violations[0].Rule != c.rule) {
			t.Errorf("%s: %+v, expected %s", name, p.Decision, c.rule)
		}
		if text := fmt.Sprintf("%+v", p); strings.Contains(text, "secret-place") {
			t.Errorf("%s: the value of a variable: %s", name, text)
		}
		if p.State != runrecord.StateEnded {
			continue
		}
		if diff := cmp.Diff([]receipt.Pin{pin}, p.Plugins, cmp.Comparer(func(a, b digest.Digest) bool { return a == b })); diff != "" ||
			p.Job != "job-1" || p.Registry != audience || p.KeysFrom != FromFile || p.User.UID != os.Getuid() || p.DenyList.Number != 5 || p.Protection.Mode != string(ModePrivateCopy) ||
			!slices.Contains(p.RemovedEnv, "PYTHONPATH") || !slices.Contains(p.SetEnv, "FORGE_WORK_DIR") {
			t.Errorf("%s: %+v\n%s", name, p, diff)
		}
		first := sign(name, StartedStatement(<-begun, w))
		if first.State != runrecord.StateStarted || !first.StartedAt.Equal(p.StartedAt) || first.Run != p.Run {
			t.Errorf("%s: begun as %+v", name, first)
		}
	}
}
