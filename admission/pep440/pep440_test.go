package pep440

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/gatehouse-registry/gatehouse/testdata"
)

// vectors is testdata/vectors/pep440-vectors.json; the script beside it states the shape.
type vectors struct {
	Packaging  string
	Versions   [][2]*string
	Order      []string
	Prerelease string
	Specifiers map[string]*struct{ Any, Final, Default string }
}

func load(t testing.TB) (v vectors, readable []Version) {
	t.Helper()
	raw, err := testdata.FS.ReadFile("vectors/pep440-vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	for _, pair := range v.Versions {
		text, normal := *pair[0], pair[1]
		version, err := ParseVersion(text)
		switch {
		case normal == nil && err == nil:
			t.Errorf("version %q: packaging refuses, we read %q", text, version)
		case normal != nil && err != nil:
			t.Errorf("version %q: %v, packaging reads %q", text, err, *normal)
		case normal != nil && version.String() != *normal:
			t.Errorf("version %q: normal form %q, packaging writes %q", text, version, *normal)
		case err != nil && !errors.Is(err, ErrInvalid):
			t.Errorf("version %q: error does not wrap ErrInvalid: %v", text, err)
		}
		if normal != nil {
			readable = append(readable, version)
		}
	}
	if len(readable) != len(v.Order) || len(readable) < 200 {
		t.Fatalf("%d readable versions for %d rows of order", len(readable), len(v.Order))
	}
	return v, readable
}

func TestVersionsAgreeWithPackaging(t *testing.T) {
	v, readable := load(t)
	for i, a := range readable {
		for j, b := range readable {
			if got, want := "<=>"[a.Compare(b)+1], v.Order[i][j]; got != want {
				t.Errorf("%q %c %q, packaging says %c", a, got, b, want)
			}
		}
		if got, want := a.IsPrerelease(), v.Prerelease[i] == '1'; got != want {
			t.Errorf("IsPrerelease(%q) = %v, packaging says %v", a, got, want)
		}
	}
	t.Logf("%d spellings, %d comparisons agree with packaging %s", len(v.Versions), len(readable)*len(readable), v.Packaging)
}

func TestSpecifiersAgreeWithPackaging(t *testing.T) {
	v, readable := load(t)
	questions := 0
	for text, want := range v.Specifiers {
		set, err := ParseSpecifierSet(text)
		if (err == nil) != (want != nil) {
			t.Errorf("specifier set %q: error %v, packaging reads it: %v", text, err, want != nil)
			continue
		}
		if want == nil {
			if !errors.Is(err, ErrInvalid) {
				t.Errorf("specifier set %q: error does not wrap ErrInvalid: %v", text, err)
			}
			continue
		}
		if want.Default != "" {
			t.Errorf("specifier set %q: packaging's default is no longer its prereleases=True", text)
		}
		for i, version := range readable {
			if got := set.Contains(version, true); got != (want.Any[i] == '1') {
				t.Errorf("%q in %q with pre-releases = %v, packaging says otherwise", version, text, got)
			}
			if got := set.Contains(version, false); got != (want.Final[i] == '1') {
				t.Errorf("%q in %q without pre-releases = %v, packaging says otherwise", version, text, got)
			}
			questions += 2
		}
	}
	t.Logf("%d sets, %d questions agree with packaging %s", len(v.Specifiers), questions, v.Packaging)
}

func TestNumbersHaveNoLimitButPythons(t *testing.T) {
	long := strings.Repeat("9", maxDigits)
	if _, err := ParseVersion("1." + long); err != nil {
		t.Errorf("%d digits: %v", maxDigits, err)
	}
	for _, text := range []string{"1." + long + "9", long + "9!1", "1+" + long + "9", "1a" + long + "9"} {
		if _, err := ParseVersion(text); !errors.Is(err, ErrInvalid) {
			t.Errorf("%d digits: error %v, want ErrInvalid", maxDigits+1, err)
		}
	}
}

func TestSpecifierSetString(t *testing.T) {
	set, err := ParseSpecifierSet(" >= 0.3 ,, <1 ,")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := set.String(), ">=0.3,<1"; got != want {
		t.Errorf("String() = %q, want %q", got, want)
	}
	if set.Empty() || !(SpecifierSet{}).Empty() {
		t.Error("Empty is wrong")
	}
}

func TestParts(t *testing.T) {
	v, err := ParseVersion("2!1.0+Ubuntu_07")
	if err != nil {
		t.Fatal(err)
	}
	if v.Epoch() != "2" || v.Local() != "ubuntu.7" || v.Public().String() != "2!1.0" {
		t.Errorf("epoch %q, local %q, public %q", v.Epoch(), v.Local(), v.Public())
	}
}

// FuzzPEP440 holds that the order is total, that a normal form reads back as itself and as the same version, and that
// sets never panic and read back from their own text.
func FuzzPEP440(f *testing.F) {
	v, _ := load(f)
	for i, pair := range v.Versions {
		f.Add(*pair[0], *v.Versions[(i+7)%len(v.Versions)][0], *v.Versions[(i+31)%len(v.Versions)][0])
	}
	for text := range v.Specifiers {
		f.Add("1.0", text, "2.0")
	}
	f.Fuzz(func(t *testing.T, a, b, c string) {
		checkSet(t, a, b)
		var versions []Version
		for _, text := range []string{a, b, c} {
			v, err := ParseVersion(text)
			if err != nil {
				return
			}
			checkNormalForm(t, v)
			versions = append(versions, v)
		}
		checkOrder(t, versions[0], versions[1], versions[2])
	})
}

func checkNormalForm(t *testing.T, v Version) {
	again, err := ParseVersion(v.String())
	if err != nil || again.String() != v.String() || again.Compare(v) != 0 {
		t.Errorf("%q reads back as %q (%v), compare %d", v, again, err, again.Compare(v))
	}
}

func checkOrder(t *testing.T, a, b, c Version) {
	if a.Compare(b) != -b.Compare(a) {
		t.Errorf("%q and %q are not ordered both ways alike", a, b)
	}
	if a.Compare(b) <= 0 && b.Compare(c) <= 0 && a.Compare(c) > 0 {
		t.Errorf("%q <= %q <= %q but not the first before the last", a, b, c)
	}
	if a.Compare(b) == 0 && a.Compare(c) != b.Compare(c) {
		t.Errorf("%q equals %q but they compare otherwise to %q", a, b, c)
	}
}

func checkSet(t *testing.T, version, specifiers string) {
	set, err := ParseSpecifierSet(specifiers)
	if err != nil {
		return
	}
	again, err := ParseSpecifierSet(set.String())
	if err != nil || again.String() != set.String() {
		t.Errorf("set %q reads back as %q (%v)", set, again, err)
	}
	if v, err := ParseVersion(version); err == nil {
		if set.Contains(v, false) && !set.Contains(v, true) {
			t.Errorf("%q is in %q only without pre-releases", v, set)
		}
		if set.Contains(v, true) != again.Contains(v, true) {
			t.Errorf("%q and its own text differ on %q", set, v)
		}
	}
}
