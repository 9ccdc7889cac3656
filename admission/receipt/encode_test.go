package receipt

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/digest"
)

// TestEncodeIsJSON compares what is signed with what json.Marshal makes of it.
func TestEncodeIsJSON(t *testing.T) {
	d := digest.FromBytes([]byte("x"))
	at := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	pins := []Pin{{ID: "a/b", Version: "1", Kind: "algorithm", Content: d, Tree: d, Manifest: d}, {ID: "t/f", Version: "0.4.0", Kind: "framework-integration", Content: d, RuntimeSupplied: true}}
	for what, r := range map[string]Receipt{"pins": {Plugins: pins, Recipes: pins[:1]}, "none": {Plugins: []Pin{}, Recipes: []Pin{}}, "with a package": {Plugins: pins, Recipes: []Pin{}, JobPackage: d}} {
		r.Audience, r.Job, r.Dialect, r.IssuedAt, r.Expires, r.SpecBytes, r.SpecDigest = "<reg>", "run-1", dialect.Forge, at, at.Add(time.Hour), d, d
		got, err := r.Encode()
		if err != nil {
			t.Fatal(err)
		}
		want, err := json.Marshal(r)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: got\n%s\nwant\n%s, %v", what, got, want, err)
		}
	}
	for _, odd := range [][]Pin{nil, {}, {{ID: "é<\"\\", Version: "\u2028\x00"}}} {
		want, err := json.Marshal(odd)
		if got := AppendPins(nil, odd); err != nil || !bytes.Equal(got, want) {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
