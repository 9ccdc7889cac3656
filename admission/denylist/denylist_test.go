package denylist

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-registry/gatehouse/admission/receipt"
	"github.com/gatehouse-registry/gatehouse/digest"
)

var at = time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC)

func d(s string) digest.Digest { return digest.FromBytes([]byte(s)) }

func sample() List {
	return List{Audience: "registry-1", Number: 7, IssuedAt: at, Expires: at.Add(time.Hour), Revoked: []Entry{
		{ID: "lab/alpha", Version: "1.0.0", Content: d("c"), Tree: d("t"), Manifest: d("m"), Reason: "sends the weights away", At: at},
		{ID: "tuneplane/framework-custom", Version: "0.4.0", Content: d("f"), Reason: "a client with a hole", At: at},
	}}
}

func private(seed byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize))
}

func trustOf(t *testing.T, audience string, seeds ...byte) receipt.TrustSet {
	t.Helper()
	var keys []ed25519.PublicKey
	for _, seed := range seeds {
		keys = append(keys, private(seed).Public().(ed25519.PublicKey))
	}
	set, err := receipt.NewTrustSet(audience, keys...)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func signed(t *testing.T, l List, seed byte) []byte {
	t.Helper()
	payload, err := l.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return signedAs(t, PayloadType, payload, seed)
}

func signedAs(t *testing.T, payloadType string, payload []byte, seed byte) []byte {
	t.Helper()
	envelope, err := receipt.Sign(payloadType, payload, private(seed))
	if err != nil {
		t.Fatal(err)
	}
	return envelope
}

// A list is read back as it was signed, under any of overlapping keys.
func TestVerify(t *testing.T) {
	want := sample()
	for _, seeds := range [][]byte{{1}, {1, 2}, {2, 1}} {
		got, err := Verify(signed(t, want, 1), trustOf(t, "registry-1", seeds...), "", at.Add(time.Minute))
		if err != nil {
			t.Fatalf("keys %v: %v", seeds, err)
		}
		if diff := cmp.Diff(&want, got, cmp.Comparer(func(a, b digest.Digest) bool { return a == b })); diff != "" {
			t.Errorf("keys %v: read back otherwise (-want +got):\n%s", seeds, diff)
		}
	}
}

// What is not to be believed is refused for the right reason.
func TestVerifyRefusals(t *testing.T) {
	list := sample()
	payload, err := list.Encode()
	if err != nil {
		t.Fatal(err)
	}
	edit := func(old, new string) []byte {
		if !bytes.Contains(payload, []byte(old)) {
			t.Fatalf("%q does not stand in %s", old, payload)
		}
		return signedAs(t, PayloadType, bytes.Replace(payload, []byte(old), []byte(new), 1), 1)
	}
	good := signed(t, list, 1)
	for name, c := range map[string]struct {
		envelope []byte
		audience string
		want     receipt.Problem
	}{
		"signed by another key":   {signed(t, list, 2), "", receipt.Untrusted},
		"a tampered payload":      {bytes.Replace(good, []byte(`"payload":"eyJ`), []byte(`"payload":"eyK`), 1), "", receipt.Untrusted},
		"no signature":            {[]byte(`{"payloadType":"` + PayloadType + `","payload":"e30=","signatures":[]}`), "", receipt.Untrusted},
		"a receipt's type":        {signedAs(t, receipt.PayloadType, payload, 1), "", receipt.Malformed},
		"of another registry":     {good, "registry-2", receipt.WrongAudience},
		"an unknown member":       {edit(`{"audience"`, `{"more":1,"audience"`), "", receipt.Malformed},
		"a repeated member":       {edit(`{"audience":"registry-1"`, `{"audience":"registry-1","audience":"registry-2"`), "", receipt.Malformed},
		"number zero":             {edit(`"number":7`, `"number":0`), "", receipt.Malformed},
		"a negative number":       {edit(`"number":7`, `"number":-7`), "", receipt.Malformed},
		"a number beyond 2^53":    {edit(`"number":7`, `"number":9007199254740992`), "", receipt.Malformed},
		"no list":                 {edit(`"revoked":[`, `"revoked":null,"x":[`), "", receipt.Malformed},
		"an id without an owner":  {edit(`"id":"lab/alpha"`, `"id":"alpha"`), "", receipt.Malformed},
		"an entry without reason": {edit(`"sends the weights away"`, `" "`), "", receipt.Malformed},
		"a reason of two lines":   {edit(`"sends the weights away"`, `"a\nb"`), "", receipt.Malformed},
		"a tree without manifest": {edit(`,"manifest":"`+d("m").String()+`"`, ``), "", receipt.Malformed},
		"expiry before issue":     {edit(`"expires":"2026-11-30T09`, `"expires":"2026-11-30T07`), "", receipt.Malformed},
		"an HTML page":            {[]byte("<html>"), "", receipt.Malformed},
		"too long":                {bytes.Repeat([]byte(" "), MaxEnvelope+1), "", receipt.Malformed},
	} {
		got, err := Verify(c.envelope, trustOf(t, "registry-1", 1), c.audience, at)
		var e *receipt.Error
		if got != nil || !errors.As(err, &e) || e.Problem != c.want {
			t.Errorf("%s: got %v, %v; expected no list and %s", name, got, err, c.want)
		}
	}
}

// A list that has expired still denies.
func TestExpired(t *testing.T) {
	got, err := Verify(signed(t, sample(), 1), trustOf(t, "", 1), "", at.Add(time.Hour))
	var e *receipt.Error
	if !errors.As(err, &e) || e.Problem != receipt.Expired {
		t.Fatalf("got %v, expected it to have expired", err)
	}
	if _, denied := got.Denies(receipt.Pin{ID: "lab/alpha", Version: "1.0.0"}); !denied {
		t.Error("an expired list no longer denies what it names")
	}
}

func TestDenies(t *testing.T) {
	list := sample()
	for name, c := range map[string]struct {
		pin  receipt.Pin
		want string
	}{
		"by name":                             {receipt.Pin{ID: "lab/alpha", Version: "1.0.0", Content: d("x"), Tree: d("x"), Manifest: d("x")}, "lab/alpha@1.0.0"},
		"another spelling of the version":     {receipt.Pin{ID: "lab/alpha", Version: "1.0"}, "lab/alpha@1.0.0"},
		"the manifest under another name":     {receipt.Pin{ID: "eve/beta", Version: "2", Manifest: d("m"), Tree: d("x")}, "lab/alpha@1.0.0"},
		"the same files under another name":   {receipt.Pin{ID: "eve/beta", Version: "2", Manifest: d("x"), Tree: d("t")}, "lab/alpha@1.0.0"},
		"what comes with the client, by name": {receipt.Pin{ID: "tuneplane/framework-custom", Version: "0.4.0", RuntimeSupplied: true}, "tuneplane/framework-custom@0.4.0"},
		"what comes with the client, renamed": {receipt.Pin{ID: "tuneplane/framework-trl", Version: "0.5.0", Content: d("f"), RuntimeSupplied: true}, "tuneplane/framework-custom@0.4.0"},
		"another version":                     {receipt.Pin{ID: "lab/alpha", Version: "1.0.1", Content: d("c"), Tree: d("t2"), Manifest: d("m2")}, ""},
		"another id":                          {receipt.Pin{ID: "lab/alph", Version: "1.0.0", Content: d("c"), Tree: d("t2"), Manifest: d("m2")}, ""},
		"no digests at all":                   {receipt.Pin{ID: "lab/gamma", Version: "0.4.0", RuntimeSupplied: true}, ""},
	} {
		entry, denied := list.Denies(c.pin)
		if denied != (c.want != "") || denied && entry.String() != c.want {
			t.Errorf("%s: got %v, %v; expected %q", name, entry, denied, c.want)
		}
	}
}

func TestHolds(t *testing.T) {
	all, none, one, other := sample(), List{}, List{Revoked: sample().Revoked[:1]}, List{Revoked: []Entry{{ID: "lab/alpha", Version: "1.0.1"}}}
	for _, c := range []struct {
		l, other *List
		want     bool
	}{{&all, &all, true}, {&all, &one, true}, {&one, &all, false}, {&all, &none, true}, {&none, &one, false}, {&all, &other, false}} {
		if got := c.l.Holds(c.other); got != c.want {
			t.Errorf("%v holds %v: %v, expected %v", c.l.Revoked, c.other.Revoked, got, c.want)
		}
	}
}

// The longest reason is that with the most bytes in the list.
func TestCheckReason(t *testing.T) {
	for reason, want := range map[string]bool{
		strings.Repeat("r", MaxReason): true, strings.Repeat("r", MaxReason+1): false,
		strings.Repeat("<", MaxReason): true, strings.Repeat("&", MaxReason): true,
		strings.Repeat(`"`, MaxReason/2): true, strings.Repeat(`"`, MaxReason/2+1): false,
		strings.Repeat(`\`, MaxReason/2+1): false, strings.Repeat("\u2028", MaxReason/6+1): false,
		"": false, " ": false, "a\nb": false, "a\xff": false, "it sends the weights away": true,
	} {
		if err := CheckReason(reason); (err == nil) != want {
			t.Errorf("%.20q of %d bytes: %v, expected it to be one: %v", reason, len(reason), err, want)
		}
	}
}

// A list of the greatest size fits its envelope, whatever the reasons hold.
func TestGreatestList(t *testing.T) {
	list := sample()
	long := strings.Repeat("a", 128)
	list.Revoked = nil
	reasons := []string{strings.Repeat("r", MaxReason), strings.Repeat("<", MaxReason), strings.Repeat(`"`, MaxReason/2)}
	for i := range MaxEntries {
		list.Revoked = append(list.Revoked, Entry{
			ID: long + "/" + fmt.Sprintf("%0128d", i), Version: long, Content: d("c"), Tree: d("t"), Manifest: d("m"),
			Reason: reasons[i%len(reasons)], At: at,
		})
	}
	got, err := Verify(signed(t, list, 1), trustOf(t, "", 1), "", at)
	if err != nil || len(got.Revoked) != MaxEntries {
		t.Fatalf("the greatest list: %v", err)
	}
	list.Revoked = append(list.Revoked, list.Revoked[0])
	if _, err := list.Encode(); err == nil {
		t.Errorf("a list of %d entries is written", MaxEntries+1)
	}
}

// Whatever comes in, Parse answers with a list that can be written again, or an error of its own.
func FuzzParse(f *testing.F) {
	payload, err := sample().Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(payload)
	f.Add([]byte(`{"audience":"r","number":1,"issuedAt":"2026-11-30T08:00:00Z","expires":"2026-11-30T09:00:00Z","revoked":[]}`))
	f.Fuzz(func(t *testing.T, src []byte) {
		list, err := Parse(src)
		if err != nil {
			var e *receipt.Error
			if !errors.As(err, &e) || e.Problem != receipt.Malformed {
				t.Fatalf("got %v", err)
			}
			return
		}
		if _, err := list.Encode(); err != nil {
			t.Fatalf("%q was read and can't be written: %v", src, err)
		}
		list.Denies(receipt.Pin{ID: "lab/alpha", Version: "1"})
	})
}
