package name

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
	"github.com/gatehouse-registry/gatehouse/testdata"
	"github.com/google/go-cmp/cmp"
)

// outcome is what a client did with a name; testdata/vectors/README.md states the format.
type outcome struct {
	OK    any
	Error *struct{ Field *string }
}

type vector struct {
	ID    string
	Input struct{ Function, Value string }
	// Expect is an outcome, or one for each dialect's package.
	Expect json.RawMessage
}

func loadVectors(t testing.TB) []vector {
	t.Helper()
	raw, err := testdata.FS.ReadFile("vectors/names-vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var doc struct{ Vectors []vector }
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	return doc.Vectors
}

// outcomes are the results of both dialects; the rules are the same in both, only the clients' words differ.
func (v vector) outcomes(t *testing.T) []outcome {
	t.Helper()
	var both map[string]json.RawMessage
	if err := json.Unmarshal(v.Expect, &both); err != nil {
		t.Fatal(err)
	}
	all := []json.RawMessage{v.Expect}
	if sf, ok := both["starforge"]; ok {
		all = []json.RawMessage{sf, both["tuneplane"]}
	}
	outcomes := make([]outcome, len(all))
	for i, raw := range all {
		if err := json.Unmarshal(raw, &outcomes[i]); err != nil {
			t.Fatal(err)
		}
	}
	return outcomes
}

func call(function, value string) (any, error) {
	switch function {
	case "safe_segment":
		return Segment(value, "f")
	case "safe_versioned_ref":
		ref, err := VersionedRef(value, "f")
		return []any{ref.Owner, ref.Name, ref.Version}, err
	case "safe_recipe_id":
		return RecipeID(value, "f")
	case "safe_project":
		return Project(value)
	case "safe_exp_rel":
		return ExpPath(value)
	case "exp_basename":
		return ExpBasename(value)
	case "safe_run_id":
		return RunID(value)
	}
	return nil, errors.New("no such function")
}

func TestVectors(t *testing.T) {
	agree := 0
	for _, v := range loadVectors(t) {
		got, err := call(v.Input.Function, v.Input.Value)
		for _, want := range v.outcomes(t) {
			agree++
			if want.Error == nil {
				if diff := cmp.Diff(want.OK, got); err != nil || diff != "" {
					t.Errorf("%s %s(%q): error %v, value (-want +got)\n%s", v.ID, v.Input.Function, v.Input.Value, err, diff)
				}
				continue
			}
			refusal, ok := errors.AsType[*Error](err)
			if !ok {
				t.Errorf("%s %s(%q) = %v, %v; want a refusal", v.ID, v.Input.Function, v.Input.Value, got, err)
				continue
			}
			if refusal.Field != *want.Error.Field {
				t.Errorf("%s %s(%q): field %q, want %q", v.ID, v.Input.Function, v.Input.Value, refusal.Field, *want.Error.Field)
			}
			if refusal.Message == "" || refusal.Hint == "" {
				t.Errorf("%s: message %q, hint %q", v.ID, refusal.Message, refusal.Hint)
			}
		}
	}
	t.Logf("names: %d agree, 0 differ on purpose", agree)
}

func TestOddNames(t *testing.T) {
	for _, test := range []struct {
		function, value string
		want            any // nil: refused
	}{
		{"safe_recipe_id", "trl/ sft", "trl/ sft"},
		{"safe_recipe_id", "trl//sft", nil},
		{"safe_exp_rel", "a/ b", "a/ b"},
		{"safe_exp_rel", "a//b", nil},
		{"safe_exp_rel", "a/\u00a0", "a"}, // the blank at the end is stripped before the slash is
		{"safe_versioned_ref", "a/b@1@2", nil},
		{"safe_versioned_ref", "a//b", []any{"a", "b", ""}},
		{"safe_versioned_ref", "\u2003a / b\u2003@\u20031", []any{"a", "b", "1"}},
		{"exp_basename", "a/./", "a"},
		{"exp_basename", "a/b/..", nil},
		{"safe_project", "..", nil},
		{"safe_project", "\x1c", ""},
		{"safe_segment", "a\x00", nil},
		{"safe_segment", "\u212aelvin", nil},
	} {
		got, err := call(test.function, test.value)
		if (err == nil) != (test.want != nil) {
			t.Errorf("%s(%q) = %v, %v; want %v", test.function, test.value, got, err, test.want)
		} else if err == nil && !cmp.Equal(got, test.want) {
			t.Errorf("%s(%q) = %v, want %v", test.function, test.value, got, test.want)
		}
	}
}

func TestRefString(t *testing.T) {
	for _, text := range []string{"alice/my-algo", "alice/my-algo@1.0"} {
		ref, err := VersionedRef(text, "f")
		if err != nil || ref.String() != text {
			t.Errorf("VersionedRef(%q) = %q, %v", text, ref, err)
		}
	}
}

// FuzzReference holds that a reference that is read reads back from its own text, and that nothing panics.
func FuzzReference(f *testing.F) {
	for _, v := range loadVectors(f) {
		f.Add(v.Input.Value)
	}
	for _, s := range []string{"alice/algo@1.0", "a/b@sha256-x", "a/b:1", "A/B@V1", strings.Repeat("a/", 2000)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, function := range []string{"safe_segment", "safe_recipe_id", "safe_project", "safe_exp_rel", "exp_basename", "safe_run_id"} {
			got, err := call(function, s)
			if err != nil {
				continue
			}
			if again, err := call(function, got.(string)); err != nil || again != pyvalue.Strip(got.(string)) {
				t.Errorf("%s(%q) = %q, which reads as %v, %v", function, s, got, again, err)
			}
		}
		ref, err := VersionedRef(s, "f")
		if err != nil {
			return
		}
		if again, err := VersionedRef(ref.String(), "f"); err != nil || again != ref {
			t.Errorf("%q reads back as %q, %v", ref, again, err)
		}
		if repository, err := RepositoryName("owner", ref.Name); err == nil && repository != strings.ToLower(repository) {
			t.Errorf("repository %q is not in lower case", repository)
		}
		if v, err := ParseVersion(ref.Version); err == nil && !Equal(v.Canonical(), v.String()) {
			t.Errorf("version %q and its canonical form %q are not equal", v, v.Canonical())
		}
	})
}
