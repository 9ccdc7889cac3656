package jobspec

import (
	"fmt"
	"math/big"

	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/digest/canonical"
)

// Digest names the job: sha256 of the RFC 8785 form of the normalised document (jobspec.md 7). Stamp the owner first. Two
// documents that normalise alike have one digest. It fails only for a spec that a report refused.
//
// RFC 8785 writes numbers as doubles, so hyperparameters beyond 2^53 that round to one double share a digest. What is
// stored, pinned and launched is bound by the digest of its bytes besides.
func (s *Spec) Digest() (digest.Digest, error) {
	form, err := canonical.JCS(appendJSON(nil, rounded(s.value())))
	if err != nil {
		return digest.Digest{}, fmt.Errorf("canonical form of the spec: %w", err)
	}
	return digest.FromBytes(form), nil
}

// rounded writes integers that doubles can't tell apart as the doubles that RFC 8785 makes of them.
func rounded(v *pyvalue.Value) *pyvalue.Value {
	switch v.Kind {
	case pyvalue.Int:
		if v.Int.BitLen() > 53 {
			f, _ := new(big.Float).SetInt(v.Int).Float64()
			return &pyvalue.Value{Kind: pyvalue.Float, Float: f}
		}
	case pyvalue.List:
		out := &pyvalue.Value{Kind: pyvalue.List, List: make([]*pyvalue.Value, len(v.List))}
		for i, item := range v.List {
			out.List[i] = rounded(item)
		}
		return out
	case pyvalue.Map:
		out := &pyvalue.Value{Kind: pyvalue.Map, Items: make([]pyvalue.Item, len(v.Items))}
		for i, it := range v.Items {
			out.Items[i] = pyvalue.Item{Key: it.Key, Value: rounded(it.Value)}
		}
		return out
	}
	return v
}
