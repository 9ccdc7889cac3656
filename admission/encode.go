package admission

import (
	"encoding/json"
	"strconv"

	"github.com/gatehouse-registry/gatehouse/admission/receipt"
	"github.com/gatehouse-registry/gatehouse/digest"
)

// EncodeDecision is the JSON of a decision, byte for byte that of json.Marshal. Of an allowed submission nearly all of it is the
// value, with the spec and its pins, which is written here at a fifth of the price: every submission is answered with it, and
// stored with it.
func EncodeDecision(d Decision) ([]byte, error) {
	value, ok := d.Value.(SubmissionValue)
	if !ok || !plainText(value.Spec) {
		return json.Marshal(d)
	}
	d.Value = nil
	head, err := json.Marshal(d)
	if err != nil {
		return nil, err
	}
	b := make([]byte, 0, len(head)+len(value.Spec)+512*(2+len(value.Plugins)+len(value.Recipes)))
	b = append(append(b, head[:len(head)-1]...), `,"value":`...)
	if b, err = value.appendJSON(b); err != nil {
		return nil, err
	}
	return append(b, '}'), nil
}

// plainText reports whether a compact JSON text holds nothing that json.Marshal would write in another way.
func plainText(text []byte) bool {
	for _, c := range text {
		if c < 0x20 || c >= 0x7f || c == '<' || c == '>' || c == '&' {
			return false
		}
	}
	return len(text) > 0
}

func (v SubmissionValue) appendJSON(b []byte) ([]byte, error) {
	b = append(append(b, `{"spec":`...), v.Spec...)
	b = appendDigest(append(b, `,"specDigest":`...), v.SpecDigest)
	b = appendDigest(append(b, `,"specBytes":`...), v.SpecBytes)
	b = strconv.AppendInt(append(b, `,"totalGpus":`...), v.TotalGPUs, 10)
	b = receipt.AppendPins(append(b, `,"plugins":`...), v.Plugins)
	b = receipt.AppendPins(append(b, `,"recipes":`...), v.Recipes)
	rest, err := json.Marshal(struct {
		Unchecked []Unchecked    `json:"unchecked"`
		Catalogue *CatalogueUsed `json:"catalogue,omitempty"`
	}{v.Unchecked, v.Catalogue})
	if err != nil {
		return nil, err
	}
	b = append(b, ',')
	return append(b, rest[1:]...), nil
}

func appendDigest(b []byte, d digest.Digest) []byte {
	b = append(b, '"')
	if !d.IsZero() {
		b = append(b, d.String()...)
	}
	return append(b, '"')
}
