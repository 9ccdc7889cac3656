package pyvalue

import (
	"math"
	"testing"
)

func TestParseFloat(t *testing.T) {
	for text, want := range map[string]float64{
		"1": 1, " 1.5 ": 1.5, "1e-4": 1e-4, "1E+2": 100, ".5": 0.5, "5.": 5, "-.5e1": -5, "1_000.5_5": 1000.55, "0x": math.NaN(),
		"１２.５": 12.5, "٣": 3, "1e999": math.Inf(1), "-1e999": math.Inf(-1), "1e-999": 0, "007": 7, "-0": math.Copysign(0, -1),
		"+Infinity": math.Inf(1), "-inf": math.Inf(-1), "1e1_0": 1e10,
	} {
		got, ok := ParseFloat(text)
		if text == "0x" {
			if ok {
				t.Errorf("%q is read as %v", text, got)
			}
			continue
		}
		if !ok || got != want || math.Signbit(got) != math.Signbit(want) {
			t.Errorf("%q is %v, %t; want %v", text, got, ok, want)
		}
	}
	for _, text := range []string{"nan", "-NaN", "+nan"} {
		if got, ok := ParseFloat(text); !ok || !math.IsNaN(got) {
			t.Errorf("%q is %v, %t", text, got, ok)
		}
	}
	for _, text := range []string{"", ".", "e5", "1e", "1e+", "_1", "1_", "1__0", "1._5", "1_.5", "0x10", "0x1p-2", "1 2", "--1", "in", "infin", "1,5", "²", "1e5.0"} {
		if got, ok := ParseFloat(text); ok {
			t.Errorf("%q is read as %v", text, got)
		}
	}
}
