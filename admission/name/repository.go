package name

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/internal/pattern"
)

// component is one element of an OCI repository name.
var component = pattern.New(`^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*$`)

// MaxRepository is the longest repository name that clients of the distribution protocol agree on, in bytes.
const MaxRepository = 255

// IsComponent reports whether s is one element of an OCI repository name. Owners are.
func IsComponent(s string) bool { return component.MatchString(s) }

// reservedOwners name what ships with the clients, and what addresses of the registry begin with (design.md 3, 9).
var reservedOwners = []string{"tuneplane", "starforge", "builtin", "api", "v2"}

// IsReservedOwner reports whether nobody may publish below the owner.
func IsReservedOwner(owner string) bool { return slices.Contains(reservedOwners, owner) }

// RepositoryName is where packs of that owner and name lie: <owner>/<name>, the name in lower case. The owner must be
// an OCI path component as it stands. A name that passes the clients' grammar but is no OCI name in lower case
// ("a..b", "a.") is refused with an *Error whose field is "name" or "owner".
func RepositoryName(owner, name string) (string, error) {
	if !component.MatchString(owner) {
		return "", &Error{"owner", fmt.Sprintf("found the owner %.100q", owner), "Use lower-case ASCII letters and digits, with single '.', '_', '__' or any number of '-' between them."}
	}
	if _, err := Segment(name, "name"); err != nil {
		return "", err
	}
	if len(name) > limit.Name || len(owner)+1+len(name) > MaxRepository {
		return "", &Error{"name", fmt.Sprintf("the name has %d characters, at most %d are allowed (and %d together with the owner)", len(name), limit.Name, MaxRepository), "Choose a shorter name."}
	}
	lower := strings.ToLower(name)
	if !component.MatchString(lower) {
		return "", &Error{"name", fmt.Sprintf("found the name %.100q, which in lower case is no repository name", name),
			"End with a letter or digit, and between letters and digits put one '.', one or two '_', or any number of '-'."}
	}
	return owner + "/" + lower, nil
}

// Fold maps a pack name to what must be unique among the packs of one owner: two names with one fold differ only in
// case or in '-', '_' and '.', and people take them for each other.
func Fold(name string) string {
	var b strings.Builder
	separated := false
	for _, r := range strings.ToLower(name) {
		if r == '-' || r == '_' || r == '.' {
			separated = true
			continue
		}
		if separated {
			b.WriteByte('-')
			separated = false
		}
		b.WriteRune(r)
	}
	if separated {
		b.WriteByte('-')
	}
	return b.String()
}
