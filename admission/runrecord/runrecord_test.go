package runrecord

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/receipt"
	"github.com/gatehouse-registry/gatehouse/digest"
)

var at = time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC)

func d(s string) digest.Digest { return digest.FromBytes([]byte(s)) }

func private(seed byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize))
}

func trustOf(t testing.TB, seeds ...byte) receipt.TrustSet {
	t.Helper()
	var keys []ed25519.PublicKey
	for _, seed := range seeds {
		keys = append(keys, private(seed).Public().(ed25519.PublicKey))
	}
	set, err := receipt.NewTrustSet("", keys...)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func code(c int) *int { return &c }

// ended is a statement with every field, but for those that belong to other states.
func ended() Predicate {
	return Predicate{
		Run: strings.Repeat("0a", 16), State: StateEnded, Agent: "0.6.0", Node: Node{Name: "gpu-1"},
		Registry: "registry-1", Job: "job-1", Dialect: dialect.TunePlane, SpecBytes: d("spec"), Receipt: d("receipt"), KeysFrom: KeysFromRegistry, JobPackage: d("package"), User: User{1000, 100},
		Plugins: []receipt.Pin{
			{ID: "lab/alpha", Version: "1.0.0", Kind: "algorithm", Content: d("c"), Tree: d("t"), Manifest: d("m")},
			{ID: "tuneplane/framework-custom", Version: "0.4.0", Kind: "framework-integration", Content: d("f"), RuntimeSupplied: true},
		},
		Recipes:     []receipt.Pin{{ID: "lab/hook", Version: "1.0.0", Kind: "recipe", Content: d("rc"), Tree: d("rt"), Manifest: d("rm")}, {ID: "trl/tiny", Content: d("tiny")}},
		Protection:  Protection{Mode: "user", PIDNamespace: true, Tracking: "pid-namespace", Unavailable: map[string]string{"root": "not root"}},
		CoreVersion: "0.4.0", Decision: &Decision{Allowed: true, Rules: "r1", Warnings: []Finding{{Rule: "launch.recipe.unpinned", Message: "trl/tiny"}}},
		DenyList: &DenyList{Number: 7, IssuedAt: at, Expires: at.Add(time.Hour), Source: SourceCache, Problem: "the registry did not answer", Required: true},
		Command:  []string{"tuneplane-launch", "--é\n\t"}, CommandCut: true, RemovedEnv: []string{"PYTHONPATH"}, SetEnv: []string{"TUNEPLANE_WORK_DIR", "PWD"},
		StartedAt: at, EndedAt: at.Add(time.Minute), ExitCode: code(137), Signal: 9, Killed: 2, Changed: true, Training: Training{Seen: true, How: HowChild},
	}
}

func started() Predicate {
	p := ended()
	p.State, p.EndedAt, p.ExitCode, p.Signal, p.Killed, p.Changed, p.Training = StateStarted, time.Time{}, nil, 0, 0, false, Training{}
	return p
}

// refused is a launch that was refused before anything about it could be believed.
func refused() Predicate {
	return Predicate{
		Run: strings.Repeat("ff", 16), State: StateRefused, Agent: "0.6.0", Node: Node{Name: "gpu-1", SelfAsserted: true}, SpecBytes: d("spec"),
		Decision: &Decision{Rules: "r1", Violations: []Finding{{Rule: "launch.receipt.untrusted", Message: "no"}}}, Command: []string{"true"}, EndedAt: at, ExitCode: code(7),
	}
}

func signed(t testing.TB, s Statement, seed byte) []byte {
	t.Helper()
	envelope, err := Sign(s, private(seed))
	if err != nil {
		t.Fatal(err)
	}
	return envelope
}

var compareDigests = cmp.Comparer(func(a, b digest.Digest) bool { return a == b })

// Statements of every state are read back as they were signed, under any of overlapping keys.
func TestOpen(t *testing.T) {
	nothing := refused()
	nothing.SpecBytes, nothing.Decision, nothing.Problem = digest.Digest{}, nil, "no such file"
	for name, p := range map[string]Predicate{"started": started(), "ended": ended(), "refused": refused(), "no spec": nothing} {
		envelope := signed(t, New(p), 1)
		for _, seeds := range [][]byte{{1}, {1, 2}, {2, 1}} {
			keys := trustOf(t, seeds...)
			got, keyID, err := Open(envelope, keys)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			want := New(p)
			want.Predicate.Node.Key = trustOf(t, 1).Keys()[0].ID
			if diff := cmp.Diff(&want, got, compareDigests); diff != "" || keyID != want.Predicate.Node.Key {
				t.Errorf("%s: key %s, read back otherwise (-want +got):\n%s", name, keyID, diff)
			}
			unsigned, err := Read(envelope)
			if err != nil || cmp.Diff(got, unsigned, compareDigests) != "" {
				t.Errorf("%s: read without keys: %v, %v", name, unsigned, err)
			}
		}
	}
}

// An envelope that is not to be believed is refused for the right reason.
func TestOpenRefusals(t *testing.T) {
	good := signed(t, New(ended()), 1)
	payload, err := receipt.Peek(good, PayloadType, MaxEnvelope)
	if err != nil {
		t.Fatal(err)
	}
	as := func(payloadType string, payload []byte, seed byte) []byte {
		envelope, err := receipt.Sign(payloadType, payload, private(seed))
		if err != nil {
			t.Fatal(err)
		}
		return envelope
	}
	edit := func(old, new string) []byte {
		if !bytes.Contains(payload, []byte(old)) {
			t.Fatalf("%q does not stand in %s", old, payload)
		}
		return as(PayloadType, bytes.Replace(payload, []byte(old), []byte(new), 1), 1)
	}
	tampered := bytes.Replace(good, []byte(base64.StdEncoding.EncodeToString(payload)), []byte(base64.StdEncoding.EncodeToString(bytes.Replace(payload, []byte("gpu-1"), []byte("gpu-2"), 1))), 1)
	for name, c := range map[string]struct {
		envelope []byte
		want     receipt.Problem
	}{
		"signed by another key":                {signed(t, New(ended()), 2), receipt.Untrusted},
		"a tampered payload":                   {tampered, receipt.Untrusted},
		"signed twice, by strangers":           {bytes.Replace(signed(t, New(ended()), 2), []byte(`"signatures":[`), []byte(`"signatures":[{"keyid":"","sig":"AA=="},`), 1), receipt.Untrusted},
		"a receipt's payload type":             {as(receipt.PayloadType, payload, 1), receipt.Malformed},
		"another key's statement":              {as(PayloadType, bytes.ReplaceAll(payload, []byte(trustOf(t, 1).Keys()[0].ID), []byte(trustOf(t, 2).Keys()[0].ID)), 1), receipt.Malformed},
		"an unknown member":                    {edit(`"subject":`, `"more":1,"subject":`), receipt.Malformed},
		"an unknown member of the predicate":   {edit(`"run":`, `"more":1,"run":`), receipt.Malformed},
		"a repeated member":                    {edit(`"state":"ended"`, `"state":"ended","state":"ended"`), receipt.Malformed},
		"a member in two cases":                {edit(`"state":"ended"`, `"state":"ended","State":"refused"`), receipt.Malformed},
		"a member in another case":             {edit(`"state":`, `"State":`), receipt.Malformed},
		"a member that is null":                {edit(`"commandCut":true`, `"commandCut":null`), receipt.Malformed},
		"a time written otherwise":             {edit(`"startedAt":"2026-11-30T08:00:00Z"`, `"startedAt":"2026-11-30T08:00:00+00:00"`), receipt.Malformed},
		"another statement type":               {edit(StatementType, "https://in-toto.io/Statement/v0.1"), receipt.Malformed},
		"another predicate type":               {edit(PredicateType, "https://gatehouse.dev/launch/v2"), receipt.Malformed},
		"a subject that is not the plugin's":   {edit(d("m").Hex(), d("other").Hex()), receipt.Malformed},
		"an HTML page":                         {[]byte("<html>"), receipt.Malformed},
		"null":                                 {[]byte("null"), receipt.Malformed},
		"a payload that is null":               {as(PayloadType, []byte("null"), 1), receipt.Malformed},
		"seventeen signatures":                 {[]byte(`{"payloadType":"` + PayloadType + `","payload":"e30=","signatures":[` + strings.Repeat(`{"keyid":"","sig":""},`, 16) + `{"keyid":"","sig":""}]}`), receipt.Malformed},
		"more bytes than an envelope may have": {bytes.Repeat([]byte(" "), MaxEnvelope+1), receipt.Malformed},
	} {
		got, _, err := Open(c.envelope, trustOf(t, 1))
		var e *receipt.Error
		if got != nil || !errors.As(err, &e) || e.Problem != c.want {
			t.Errorf("%s: got %v, %v; expected no statement and %s", name, got, err, c.want)
		}
	}
	if _, _, err := Open(good, receipt.TrustSet{}); err == nil {
		t.Error("a set without keys opens an envelope")
	}
}

// What contradicts itself, or goes beyond a bound, is neither signed nor read.
func TestContradictions(t *testing.T) {
	for name, c := range map[string]struct {
		of   func() Predicate
		edit func(p *Predicate)
	}{
		"started and over":           {started, func(p *Predicate) { p.EndedAt = at }},
		"started with an exit code":  {started, func(p *Predicate) { p.ExitCode = code(0) }},
		"started and saw training":   {started, func(p *Predicate) { p.Training = Training{Seen: true, How: HowChild} }},
		"started without a start":    {started, func(p *Predicate) { p.StartedAt = time.Time{} }},
		"started although refused":   {started, func(p *Predicate) { p.Decision = refused().Decision }},
		"started without a decision": {started, func(p *Predicate) { p.Decision = nil }},
		"started without protection": {started, func(p *Predicate) { p.Protection.Mode = "" }},
		"started without a command":  {started, func(p *Predicate) { p.Command = nil }},
		"ended without an end":       {ended, func(p *Predicate) { p.EndedAt = time.Time{} }},
		"ended before it started":    {ended, func(p *Predicate) { p.EndedAt = at.Add(-time.Second) }},
		"ended without an exit code": {ended, func(p *Predicate) { p.ExitCode = nil }},
		"ended without a receipt": {ended, func(p *Predicate) {
			p.Receipt, p.Job, p.Registry, p.KeysFrom, p.Plugins, p.JobPackage = digest.Digest{}, "", "", "", nil, digest.Digest{}
		}},
		"an exit code beyond 255":             {ended, func(p *Predicate) { p.ExitCode = code(256) }},
		"refused with a start":                {refused, func(p *Predicate) { p.StartedAt = at }},
		"refused with exit code 0":            {refused, func(p *Predicate) { p.ExitCode = code(0) }},
		"refused without a reason":            {refused, func(p *Predicate) { p.Decision = nil }},
		"refused and allowed, with no reason": {refused, func(p *Predicate) { p.Decision = ended().Decision }},
		"refused and saw training":            {refused, func(p *Predicate) { p.Training = Training{Seen: true, How: HowChild} }},
		"refused without its end":             {refused, func(p *Predicate) { p.EndedAt = time.Time{} }},
		"an unknown state":                    {ended, func(p *Predicate) { p.State = "paused" }},
		"a short run id":                      {ended, func(p *Predicate) { p.Run = "0a" }},
		"an upper-case run id":                {ended, func(p *Predicate) { p.Run = strings.Repeat("0A", 16) }},
		"no node":                             {ended, func(p *Predicate) { p.Node.Name = "" }},
		"no agent":                            {ended, func(p *Predicate) { p.Agent = "" }},
		"an unknown dialect":                  {ended, func(p *Predicate) { p.Dialect = "other" }},
		"a receipt without a job":             {ended, func(p *Predicate) { p.Job = "" }},
		"a job without a receipt":             {refused, func(p *Predicate) { p.Job = "job-1" }},
		"keys without a receipt":              {refused, func(p *Predicate) { p.KeysFrom = KeysFromFile }},
		"keys from elsewhere":                 {ended, func(p *Predicate) { p.KeysFrom = "the net" }},
		"a package without a receipt":         {refused, func(p *Predicate) { p.JobPackage = d("package") }},
		"a negative uid":                      {ended, func(p *Predicate) { p.User.UID = -1 }},
		"pins without a receipt":              {refused, func(p *Predicate) { p.Plugins = ended().Plugins }},
		"a plugin without a manifest":         {ended, func(p *Predicate) { p.Plugins[0].Manifest = digest.Digest{} }},
		"a spec digest that is no sha256":     {ended, func(p *Predicate) { p.SpecBytes = digest.SHA512.FromBytes(nil) }},
		"a decision without rules":            {ended, func(p *Predicate) { p.Decision.Rules = "" }},
		"allowed with violations":             {ended, func(p *Predicate) { p.Decision.Violations = p.Decision.Warnings }},
		"refused without violations":          {refused, func(p *Predicate) { p.Decision.Violations = nil }},
		"a list without a number":             {ended, func(p *Predicate) { p.DenyList.Number = 0 }},
		"a list from nowhere":                 {ended, func(p *Predicate) { p.DenyList.Source = "" }},
		"no list and no reason":               {ended, func(p *Predicate) { p.DenyList = &DenyList{} }},
		"the value of a variable":             {ended, func(p *Predicate) { p.SetEnv = []string{"TOKEN=secret"} }},
		"training seen nowhere":               {ended, func(p *Predicate) { p.Training.How = "" }},
		"training not seen but known how":     {ended, func(p *Predicate) { p.Training.Seen = false }},
		"a control character":                 {ended, func(p *Predicate) { p.Command = []string{"a\x1b"} }},
		"an argument that is no text":         {ended, func(p *Predicate) { p.Command = []string{"\xff"} }},
		"a long argument":                     {ended, func(p *Predicate) { p.Command = []string{strings.Repeat("a", MaxText+1)} }},
		"long arguments":                      {ended, func(p *Predicate) { p.Command = slicesOf(strings.Repeat("a", MaxText), MaxCommand/MaxText+1) }},
		"many arguments":                      {ended, func(p *Predicate) { p.Command = slicesOf("a", MaxArguments+1) }},
		"many variables":                      {ended, func(p *Predicate) { p.RemovedEnv = slicesOf("A", MaxVariables+1) }},
		"a time of another zone":              {ended, func(p *Predicate) { p.StartedAt = p.StartedAt.In(time.FixedZone("", 3600)) }},
	} {
		p := c.of()
		c.edit(&p)
		s := New(p)
		s.Predicate.StartedAt = p.StartedAt // New makes it UTC
		if envelope, err := Sign(s, private(1)); err == nil {
			t.Errorf("%s: signed as %s", name, envelope)
			continue
		}
		s.Predicate.Node.Key = trustOf(t, 1).Keys()[0].ID
		payload, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		envelope, err := receipt.Sign(PayloadType, payload, private(1))
		if err != nil {
			t.Fatal(err)
		}
		if name == "an argument that is no text" {
			continue // JSON can't hold it
		}
		var e *receipt.Error
		if got, _, err := Open(envelope, trustOf(t, 1)); !errors.As(err, &e) || e.Problem != receipt.Malformed {
			t.Errorf("%s: read as %v, %v", name, got, err)
		}
	}
}

func slicesOf(text string, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = text
	}
	return all
}

// The greatest statement fits its envelope, and one pin more than that is refused before it is sent anywhere.
func TestGreatestStatement(t *testing.T) {
	p := ended()
	p.Plugins = nil
	for i := range 2000 {
		p.Plugins = append(p.Plugins, receipt.Pin{
			ID: fmt.Sprintf("%0128d/%0128d", i, i), Version: strings.Repeat("1", 128), Kind: "algorithm", Content: d("c"), Tree: d("t"), Manifest: d("m"),
		})
	}
	if _, _, err := Open(signed(t, New(p), 1), trustOf(t, 1)); err != nil {
		t.Fatal(err)
	}
	p.Plugins = append(p.Plugins, p.Plugins...)
	if _, err := Sign(New(p), private(1)); err == nil || !strings.Contains(err.Error(), "bytes") {
		t.Errorf("got %v, expected it to be too long", err)
	}
}

func TestLater(t *testing.T) {
	for _, c := range []struct {
		s, than State
		want    bool
	}{{StateEnded, StateStarted, true}, {StateStarted, StateEnded, false}, {StateStarted, StateStarted, false}, {StateEnded, StateEnded, false}, {StateRefused, StateEnded, false}, {StateEnded, StateRefused, false}} {
		if got := c.s.Later(c.than); got != c.want {
			t.Errorf("%s.Later(%s) = %v", c.s, c.than, got)
		}
	}
}

// Whatever comes in, reading answers with a statement that can be signed again, or an error of its own.
func FuzzParse(f *testing.F) {
	for _, p := range []Predicate{started(), ended(), refused()} {
		payload, err := receipt.Peek(signed(f, New(p), 1), PayloadType, MaxEnvelope)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(payload)
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		s, err := parse(payload)
		if err != nil {
			var e *receipt.Error
			if !errors.As(err, &e) || e.Problem != receipt.Malformed {
				t.Fatalf("got %v", err)
			}
			return
		}
		if _, _, err := Open(signed(t, *s, 1), trustOf(t, 1)); err != nil {
			t.Fatalf("%q was read, and signed again can't be: %v", payload, err)
		}
	})
}
