package wire

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/gatehouse-registry/gatehouse/digest"
)

// BenchmarkExtensionList writes what a client syncs where there are 5,000 packs.
func BenchmarkExtensionList(b *testing.B) {
	list := ExtensionList{Extensions: make([]ExtensionRow, 5000)}
	for i := range list.Extensions {
		sum := digest.FromBytes(fmt.Append(nil, i))
		list.Extensions[i] = ExtensionRow{ID: fmt.Sprintf("alice/pack-%d", i), Kind: "recipe", Version: "1.0.0", Digest: sum, Enabled: true, TreeDigest: sum}
	}
	for b.Loop() {
		if _, err := json.Marshal(list); err != nil {
			b.Fatal(err)
		}
	}
}
