package trust

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/receipt"
	"github.com/gatehouse-registry/gatehouse/digest"
)

var issued = time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC)

func sample() receipt.Receipt {
	d := func(s string) digest.Digest { return digest.FromBytes([]byte(s)) }
	return receipt.Receipt{
		Audience: "registry-1", Job: "job-1", Dialect: dialect.TunePlane, IssuedAt: issued, Expires: issued.Add(receipt.Lifetime),
		SpecBytes: d("bytes"), SpecDigest: d("spec"), JobPackage: d("package"),
		Plugins: []receipt.Pin{
			{ID: "lab/alpha", Version: "1.0.0", Kind: "algorithm", Content: d("c"), Tree: d("t"), Manifest: d("m")},
			{ID: "tuneplane/framework-custom", Version: "0.4.0", Kind: "framework-integration", Content: d("f"), RuntimeSupplied: true},
		},
		Recipes: []receipt.Pin{{ID: "lab/hook", Version: "1.0.0", Kind: "recipe", Content: d("rc"), Tree: d("rt"), Manifest: d("rm")}},
	}
}

func open(t *testing.T, dir string) *Keyring {
	t.Helper()
	k, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func sign(t *testing.T, k *Keyring, r receipt.Receipt) []byte {
	t.Helper()
	env, err := k.SignReceipt(r)
	if err != nil {
		t.Fatal(err)
	}
	return env
}

// What is signed reads back whole with the published key, in both forms of a trust file.
func TestSignedReceiptVerifies(t *testing.T) {
	k := open(t, t.TempDir())
	env := sign(t, k, sample())
	text, err := k.PublicPEM()
	if err != nil {
		t.Fatal(err)
	}
	set, err := k.Trust("registry-1")
	if err != nil {
		t.Fatal(err)
	}
	file, err := set.Encode()
	if err != nil {
		t.Fatal(err)
	}
	for name, src := range map[string][]byte{"pem": text, "json": file} {
		trust, err := receipt.ParseTrust(src)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got, err := receipt.Verify(env, trust, "registry-1", issued.Add(time.Hour))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want := sample()
		if diff := cmp.Diff(&want, got, cmp.Comparer(func(a, b digest.Digest) bool { return a == b })); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
		if trust.Keys()[0].ID != k.KeyID() {
			t.Errorf("%s: key id %s, expected %s", name, trust.Keys()[0].ID, k.KeyID())
		}
	}
}

// Every change of a signed envelope, of who is trusted, for whom it is and of the time is refused, by its problem.
func TestVerifyRefuses(t *testing.T) {
	k, other := open(t, t.TempDir()), open(t, t.TempDir())
	env := sign(t, k, sample())
	trust, _ := k.Trust("registry-1")
	strangers, _ := other.Trust("registry-1")
	edit := func(change func(m map[string]any)) []byte {
		var m map[string]any
		if err := json.Unmarshal(env, &m); err != nil {
			t.Fatal(err)
		}
		change(m)
		out, _ := json.Marshal(m)
		return out
	}
	payload := func(change func(string) string) []byte {
		return edit(func(m map[string]any) {
			raw, _ := base64.StdEncoding.DecodeString(m["payload"].(string))
			m["payload"] = base64.StdEncoding.EncodeToString([]byte(change(string(raw))))
		})
	}
	at := issued.Add(time.Hour)
	for _, c := range []struct {
		name     string
		env      []byte
		trust    receipt.TrustSet
		audience string
		now      time.Time
		want     receipt.Problem
	}{
		{"changed payload", payload(func(s string) string { return strings.Replace(s, "1.0.0", "1.0.1", 1) }), trust, "", at, receipt.Untrusted},
		{"other payload type", edit(func(m map[string]any) { m["payloadType"] = "application/json" }), trust, "", at, receipt.Malformed},
		{"no signature", edit(func(m map[string]any) { m["signatures"] = []any{} }), trust, "", at, receipt.Untrusted},
		{"17 signatures", edit(func(m map[string]any) {
			m["signatures"] = slices.Repeat(m["signatures"].([]any), 17)
		}), trust, "", at, receipt.Malformed},
		{"another key", env, strangers, "", at, receipt.Untrusted},
		{"nobody trusted", env, receipt.TrustSet{}, "", at, receipt.Untrusted},
		{"another audience", env, trust, "registry-2", at, receipt.WrongAudience},
		{"expired", env, trust, "", issued.Add(receipt.Lifetime), receipt.Expired},
		{"unknown key in the envelope", edit(func(m map[string]any) { m["x"] = 1 }), trust, "", at, receipt.Malformed},
		{"repeated key", bytes.Replace(env, []byte(`{"payloadType"`), []byte(`{"payloadType":"x","payloadType"`), 1), trust, "", at, receipt.Malformed},
		{"truncated", env[:len(env)-1], trust, "", at, receipt.Malformed},
		{"trailing text", append(bytes.Clone(env), '{'), trust, "", at, receipt.Malformed},
		{"too long", bytes.Repeat([]byte(" "), receipt.MaxEnvelope+1), trust, "", at, receipt.Malformed},
		{"empty", nil, trust, "", at, receipt.Malformed},
	} {
		_, err := receipt.Verify(c.env, c.trust, c.audience, c.now)
		var e *receipt.Error
		if !errors.As(err, &e) || e.Problem != c.want {
			t.Errorf("%s: got %v, expected problem %q", c.name, err, c.want)
		}
	}
	if _, err := receipt.Verify(env, trust, "", issued.Add(receipt.Lifetime-1)); err != nil {
		t.Errorf("last moment: %v", err)
	}
}

// A receipt that says too little or the impossible is not signed.
func TestSignRefuses(t *testing.T) {
	k := open(t, t.TempDir())
	for name, spoil := range map[string]func(*receipt.Receipt){
		"no audience":          func(r *receipt.Receipt) { r.Audience = "" },
		"no spec bytes":        func(r *receipt.Receipt) { r.SpecBytes = digest.Digest{} },
		"expires at once":      func(r *receipt.Receipt) { r.Expires = r.IssuedAt },
		"unknown dialect":      func(r *receipt.Receipt) { r.Dialect = "lab" },
		"id leaves the folder": func(r *receipt.Receipt) { r.Plugins[0].ID = "lab/.." },
		"id of three parts":    func(r *receipt.Receipt) { r.Plugins[0].ID = "lab/a/b" },
		"one leaf twice":       func(r *receipt.Receipt) { r.Plugins[1].ID = "other/alpha" },
		"no tree":              func(r *receipt.Receipt) { r.Plugins[0].Tree = digest.Digest{} },
		"runtime with a tree":  func(r *receipt.Receipt) { r.Plugins[0].RuntimeSupplied = true },
		"version of blanks":    func(r *receipt.Receipt) { r.Plugins[0].Version = " " },
	} {
		r := sample()
		spoil(&r)
		if _, err := k.SignReceipt(r); err == nil {
			t.Errorf("%s: signed", name)
		}
	}
}

// The key outlives the process, is private to its owner, and is one however many open the folder at once.
func TestOpenKeepsOneKey(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "folder")
	ids := make([]string, 8)
	var wg sync.WaitGroup
	for i := range ids {
		wg.Go(func() {
			k, err := Open(dir)
			if err != nil {
				t.Error(err)
				return
			}
			ids[i] = k.KeyID()
		})
	}
	wg.Wait()
	for _, id := range ids {
		if id != ids[0] {
			t.Fatalf("keys differ: %v", ids)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Fatalf("left in the folder: %v, %v", entries, err)
	}
	info, err := entries[0].Info()
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

// A key file that others may read, or that is none, is refused and left as it is.
func TestOpenRefuses(t *testing.T) {
	loose := t.TempDir()
	open(t, loose)
	if err := os.Chmod(filepath.Join(loose, KeyFile), 0o640); err != nil {
		t.Fatal(err)
	}
	broken := t.TempDir()
	if err := os.WriteFile(filepath.Join(broken, KeyFile), []byte("no key"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{loose, broken} {
		before, _ := os.ReadFile(filepath.Join(dir, KeyFile))
		if k, err := Open(dir); err == nil {
			t.Errorf("%s: opened as %s", dir, k.KeyID())
		}
		if after, _ := os.ReadFile(filepath.Join(dir, KeyFile)); !bytes.Equal(before, after) {
			t.Errorf("%s: the key file changed", dir)
		}
	}
}

// While a registry changes its key the one before counts: what it signed launches on, and the new one alone signs. The file of
// the others holds public keys that nobody else can add to.
func TestOtherKeysCount(t *testing.T) {
	before, after := open(t, t.TempDir()), t.TempDir()
	public, err := before.PublicPEM()
	if err != nil {
		t.Fatal(err)
	}
	others := filepath.Join(after, OtherKeysFile)
	if err := os.WriteFile(others, public, 0o644); err != nil {
		t.Fatal(err)
	}
	ring := open(t, after)
	set, err := ring.Trust("registry-1")
	if err != nil {
		t.Fatal(err)
	}
	keys := set.Keys()
	if len(keys) != 2 || keys[0].ID != ring.KeyID() || keys[1].ID != before.KeyID() {
		t.Fatalf("trusted are %s, expected %s and then %s", set, ring.KeyID(), before.KeyID())
	}
	for name, k := range map[string]*Keyring{"before": before, "after": ring} {
		r := sample()
		if _, err := receipt.Verify(sign(t, k, r), set, r.Audience, r.IssuedAt); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := os.Chmod(others, 0o664); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(after); err == nil {
		t.Error("a file that a group may write to was read")
	}
	if err := os.WriteFile(others, []byte("no key"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(others, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(after); err == nil {
		t.Error("a file without a key was read")
	}
}
