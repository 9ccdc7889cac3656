package pyvalue

import "testing"

func TestLower(t *testing.T) {
	for in, want := range map[string]string{
		"":                 "",
		"ABC-xyz":          "abc-xyz",
		"İ":                "i\u0307",
		"ẞß":               "ßß",
		"Σ":                "σ",
		"ΑΣ":               "ας",
		"ΑΣ.":              "ας.",
		"aΣb":              "aσb",
		"Α\u0301Σ\u0301 x": "α\u0301ς\u0301 x",
		"ÀÉ":               "àé",
		"a\xffB":           "a\xffb",
	} {
		if got := Lower(in); got != want {
			t.Errorf("Lower(%q) = %q, want %q", in, got, want)
		}
	}
}
