package pattern

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPatternIsThatOfRegexp(t *testing.T) {
	p := New(`a(b+)`)
	if p.MatchString("ac") || !p.MatchString("xabb") {
		t.Error("MatchString")
	}
	if diff := cmp.Diff([]string{"abb", "bb"}, p.FindStringSubmatch("xabb")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([][]int{{0, 2}, {3, 6}}, p.FindAllIndex([]byte("ab abb"), -1)); diff != "" {
		t.Error(diff)
	}
}

// A wrong expression stops nobody who does not use it, and is not taken for one that matches nothing.
func TestWrongExpressionPanicsWhenUsed(t *testing.T) {
	p := New(`(`)
	for range 2 {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("a wrong expression matched")
				}
			}()
			p.MatchString("a")
		}()
	}
}
