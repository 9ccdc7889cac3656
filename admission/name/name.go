// Package name holds the grammars of names: those of the real clients (packs.md 12) and those by which the registry
// stores packs (design.md 2, Names).
//
// The clients' functions answer exactly as the clients do, oddities included: a value is stripped as Python strips,
// and the inner parts of a recipe id or experiment path are checked stripped but returned as they were, so "trl/ sft"
// passes and keeps its blank. Both dialects have the same rules.
package name

import (
	"fmt"
	"strings"

	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
)

// Error says which field holds a malformed name, what was found and how to mend it.
type Error struct {
	Field   string // the field as the clients name it
	Message string
	Hint    string
}

func (e *Error) Error() string {
	if e.Field == "" {
		return e.Message
	}
	return e.Field + ": " + e.Message
}

const segmentHint = "Begin with a letter or digit and use only ASCII letters, digits, '.', '_' and '-'."

// IsSegment reports whether s is one path-safe name as it stands: [A-Za-z0-9][A-Za-z0-9._-]*.
func IsSegment(s string) bool { return s != "" && alphanumeric(s[0]) && segmentChars(s) }

func segmentChars(s string) bool {
	for i := range len(s) {
		if c := s[i]; !alphanumeric(c) && c != '.' && c != '_' && c != '-' {
			return false
		}
	}
	return true
}

func alphanumeric(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// Segment checks one name and returns it stripped. It has no length limit. Its errors are *Error with the given
// field.
func Segment(value, field string) (string, error) {
	s := pyvalue.Strip(value)
	if !IsSegment(s) {
		return "", &Error{field, fmt.Sprintf("found the name %.100q", value), segmentHint}
	}
	return s, nil
}

// Ref names a pack: <owner>/<name>[@version].
type Ref struct {
	Owner, Name string
	Version     string // "" when the reference leaves it open
}

// String is the reference in its plain form.
func (r Ref) String() string {
	s := r.Owner + "/" + r.Name
	if r.Version != "" {
		s += "@" + r.Version
	}
	return s
}

// VersionedRef reads <owner>/<name>[@version]. Empty parts between slashes drop out, and "a/b@" has no version. Its
// errors are *Error whose field is the given one, or that with .owner, .name or .version.
func VersionedRef(value, field string) (Ref, error) {
	id, version, _ := strings.Cut(pyvalue.Strip(value), "@")
	parts := strings.FieldsFunc(id, func(r rune) bool { return r == '/' })
	if len(parts) != 2 {
		return Ref{}, &Error{field, fmt.Sprintf("found the reference %.100q, expected <owner>/<name>[@version]", value),
			"Write the owner and the name, for example alice/my-algo@1.0.0."}
	}
	var ref Ref
	var err error
	if ref.Owner, err = Segment(parts[0], field+".owner"); err != nil {
		return Ref{}, err
	}
	if ref.Name, err = Segment(parts[1], field+".name"); err != nil {
		return Ref{}, err
	}
	if ref.Version = pyvalue.Strip(version); ref.Version != "" {
		if _, err = Segment(ref.Version, field+".version"); err != nil {
			return Ref{}, err
		}
	}
	return ref, nil
}

// RecipeID reads <framework>/<method>, exactly two non-empty parts, and returns it with inner white space kept.
func RecipeID(value, field string) (string, error) {
	id := pyvalue.Strip(value)
	framework, method, ok := strings.Cut(id, "/")
	if !ok || framework == "" || method == "" || strings.Contains(method, "/") {
		return "", &Error{field, fmt.Sprintf("found the recipe id %.100q, expected <framework>/<method>", value),
			"Write the framework and the method, for example nemo-rl/grpo."}
	}
	for _, part := range []string{framework, method} {
		if _, err := Segment(part, field); err != nil {
			return "", err
		}
	}
	return id, nil
}

// Field names of the clients for names that stand in one place only.
const (
	projectField = "metadata.project"
	expField     = "spec.source.exp"
	runIDField   = "run_id"
)

// Project reads a project name. The empty name means none and is accepted.
func Project(value string) (string, error) {
	s := pyvalue.Strip(value)
	if s == "." || s == ".." || !segmentChars(s) {
		return "", &Error{projectField, fmt.Sprintf("found the project name %.100q", value),
			"Use only ASCII letters, digits, '.', '_' and '-', and neither . nor .. alone."}
	}
	return s, nil
}

// ExpPath reads the path of an experiment: relative, every part a segment; slashes at the end drop out.
func ExpPath(value string) (string, error) {
	s := pyvalue.Strip(value)
	if strings.HasPrefix(s, "/") {
		return "", &Error{expField, fmt.Sprintf("found the absolute path %.100q, expected one relative to the project", value),
			"Name the experiment from the project folder, for example experiments/my-run."}
	}
	s = strings.TrimRight(s, "/")
	if s == "" {
		return "", &Error{expField, fmt.Sprintf("found the experiment path %.100q, expected a folder", value),
			"Name the experiment from the project folder, for example experiments/my-run."}
	}
	for part := range strings.SplitSeq(s, "/") {
		if _, err := Segment(part, expField); err != nil {
			return "", err
		}
	}
	return s, nil
}

// ExpBasename is the last part of an experiment path, which must be a segment. Parts that are empty or "." don't
// count.
func ExpBasename(value string) (string, error) {
	parts := strings.Split(pyvalue.Strip(value), "/")
	last := ""
	for _, part := range parts {
		if part != "" && part != "." {
			last = part
		}
	}
	return Segment(last, expField)
}

// RunID reads the id of a run, one segment.
func RunID(value string) (string, error) { return Segment(value, runIDField) }
