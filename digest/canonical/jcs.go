package canonical

import (
	"errors"
	"io"
	"math/big"
	"strings"

	"github.com/gowebpki/jcs"

	"github.com/gatehouse-registry/gatehouse/digest/strictjson"
)

// maxSafe is the largest integer up to which doubles tell all integers apart.
var maxSafe = big.NewInt(1<<53 - 1)

// JCS rewrites a JSON text in the form of RFC 8785. Two texts that a careful reader takes for one document have one
// form, and two that it takes for different ones have two: a text that is no strict JSON (package strictjson, but
// keys may differ in case alone, and texts may hold escaped control characters), and an integer beyond 2^53-1, which RFC
// 8785 would round, are an *Error of reason Input. Nesting is limited by MaxDepth.
func JCS(src []byte) ([]byte, error) {
	if err := checkInput(src); err != nil {
		e := &Error{Reason: Input, Message: err.Error(), Err: err}
		if f, ok := errors.AsType[*strictjson.Fault](err); ok && f.Kind == strictjson.TooDeep {
			e.Reason = TooDeep
		}
		return nil, e
	}
	out, err := jcs.Transform(src)
	if err != nil {
		return nil, &Error{Reason: Input, Message: "canonical form: " + err.Error(), Err: err}
	}
	return out, nil
}

func checkInput(src []byte) error {
	r := strictjson.NewReader(src, strictjson.Options{MaxDepth: MaxDepth, Tolerate: func(f *strictjson.Fault) bool {
		return f.Kind == strictjson.Folded || f.Kind == strictjson.Control
	}})
	for {
		t, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if t.Type == strictjson.Number && !strings.ContainsAny(t.Text, ".eE") {
			if n, ok := new(big.Int).SetString(t.Text, 10); ok && n.CmpAbs(maxSafe) > 0 {
				return &strictjson.Fault{
					Kind: strictjson.Range, Offset: t.Offset, Line: t.Line, Column: t.Column,
					Message: "an integer beyond 2^53-1, which has no canonical form",
				}
			}
		}
	}
}
