//go:build linux

package launchverify

import (
	"bytes"
	"crypto/ed25519"
	"path/filepath"
	"slices"
	"testing"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/receipt"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/registry/trust"
)

// While a registry changes its key nodes pin the old and the new one: receipts of either launch. Where one of them is pinned
// alone, the other's receipts don't.
func TestKeyRotation(t *testing.T) {
	r := newRig(t, dialect.Forge)
	r.spec(r.plugin("lab/alpha", true, nil))
	old := r.keys
	fresh, err := trust.Open(filepath.Join(r.base, "new-keys"))
	if err != nil {
		t.Fatal(err)
	}
	set := func(keyrings ...*trust.Keyring) receipt.TrustSet {
		var keys []ed25519.PublicKey
		for _, k := range keyrings {
			one, err := k.Trust(audience)
			if err != nil {
				t.Fatal(err)
			}
			for _, key := range one.Keys() {
				keys = append(keys, key.Public)
			}
		}
		all, err := receipt.NewTrustSet(audience, keys...)
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	// The same two keys as files one after the other, which is how they are pinned by hand.
	var file []byte
	for _, key := range set(old, fresh).Keys() {
		text, err := receipt.EncodeKey(key.Public)
		if err != nil {
			t.Fatal(err)
		}
		file = append(append(file, "# a key\n"...), text...)
	}
	byHand, err := receipt.ParseTrust(bytes.TrimSpace(file))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		signer *trust.Keyring
		pinned receipt.TrustSet
		runs   bool
	}{
		{"old, both pinned", old, set(old, fresh), true},
		{"new, both pinned", fresh, set(old, fresh), true},
		{"old, both pinned by hand", old, byHand, true},
		{"new, both pinned by hand", fresh, byHand, true},
		{"old, old pinned", old, set(old), true},
		{"new, new pinned", fresh, set(fresh), true},
		{"old, new pinned", old, set(fresh), false},
		{"new, old pinned", fresh, set(old), false},
	} {
		r.keys = c.signer
		r.sign()
		o := r.options()
		o.Trust = c.pinned
		rec, err := r.launch(o)
		if c.runs && (err != nil || !rec.Started) {
			t.Errorf("%s: %v", c.name, err)
		}
		if !c.runs && (rec.Started || !slices.Equal(violated(err), []rule.ID{"launch.receipt.untrusted"}) || ExitCode(rec, err) != 7) {
			t.Errorf("%s: %v (exit code %d)", c.name, err, ExitCode(rec, err))
		}
	}
}
