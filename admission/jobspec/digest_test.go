package jobspec

import (
	"bytes"
	"testing"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/digest/canonical"
)

// TestPlainForm compares the short way to RFC 8785 with the long one, on every document of the vectors and on odd ones.
func TestPlainForm(t *testing.T) {
	docs := map[string][]byte{}
	for _, d := range dialect.All {
		for _, v := range readVectors[vector](t, dialectFiles[d]) {
			docs[v.ID] = v.source()
		}
	}
	for name, params := range map[string]string{
		"escapes": `{"b":"\u0000\u001f\u007f\u2028\" \\ / \b\f\n\r\t é 😀","a":"x"}`, "keys out of order": `{"z":1,"a":2,"Z":3,"a1":4}`,
		"keys of other scripts": `{"é":1,"z":2,"\ud83d\ude00":3,"\uffee":4}`, "fractions": `{"a":1.5e-7,"b":100000000000000000000.0,"c":-0.0}`,
		"large": `{"a":9007199254740991,"b":9007199254740993,"c":-9007199254740992}`, "deep": `{"a":[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]}`,
		"control in a key": `{"a\u0001":1,"a":true,"b":null,"c":[]}`,
	} {
		docs[name] = []byte(`{"apiVersion":"forge/v2","kind":"TrainingJob","metadata":{"name":"demo"},"spec":{"recipe":{"name":"verl/grpo","version":"0.9.0",` +
			`"digest":"sha256:abababababababababababababababababababababababababababababababab"},"source":{"exp":"experiments/demo"},"framework":{"kind":"verl","version":"0.9.0"},` +
			`"resources":{"pools":[{"name":"all"}]},"hyperparams":` + params + `},"provenance":{"core_version":"0.3.56"}}`)
	}
	short := 0
	for name, src := range docs {
		spec, _ := Parse(src, Options{})
		if spec == nil {
			continue
		}
		v := spec.value()
		got, ok := appendPlain(nil, v, 0)
		if !ok {
			continue
		}
		short++
		want, err := canonical.JCS(appendJSON(nil, rounded(v)))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %s\nRFC 8785: %s, %v", name, got, want, err)
		}
	}
	t.Logf("%d of %d documents are plain", short, len(docs))
	if short < len(docs)/2 {
		t.Error("the short way is hardly ever taken")
	}
}
