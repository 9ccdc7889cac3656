package registry

import (
	"strings"

	"github.com/gatehouse-registry/gatehouse/admission/name"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/internal/pattern"
)

// tagName is the grammar of tags in the distribution specification.
var tagName = pattern.New(`^[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}$`)

// CheckRepositoryName refuses what is no OCI repository name, with NameInvalid.
func CheckRepositoryName(repository string) error {
	if len(repository) > name.MaxRepository {
		return Errorf(NameInvalid, "repository name has %d bytes, at most %d are allowed", len(repository), name.MaxRepository)
	}
	for component := range strings.SplitSeq(repository, "/") {
		if !name.IsComponent(component) {
			return Errorf(NameInvalid, "%.100q is not a repository name: lower-case letters, digits and single . _ - between them, parts joined by /", repository)
		}
	}
	return nil
}

// Owner is the namespace of a repository: the part before the first slash.
func Owner(repository string) string {
	owner, _, _ := strings.Cut(repository, "/")
	return owner
}

// Reference is what a manifest is asked for by: a tag or a digest. A push may name both: then the tag is set, and the
// digest is what the content must have.
type Reference struct {
	Tag    string
	Digest digest.Digest
}

// ParseReference reads a tag or a digest. Errors: DigestInvalid for what has a colon, else TagInvalid.
func ParseReference(s string) (Reference, error) {
	if strings.Contains(s, ":") {
		d, err := digest.Parse(s)
		if err != nil {
			return Reference{}, Errorf(DigestInvalid, "%w", err)
		}
		return Reference{Digest: d}, nil
	}
	if !tagName.MatchString(s) {
		return Reference{}, Errorf(TagInvalid, "%.150q is not a tag: a letter, digit or _, then at most 127 of these and . -", s)
	}
	return Reference{Tag: s}, nil
}

func (r Reference) String() string {
	if r.Tag != "" {
		return r.Tag
	}
	return r.Digest.String()
}
