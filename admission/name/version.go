package name

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/admission/pep440"
	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/internal/pattern"
)

// The rules that ParseVersion applies. The first is the clients' own.
const (
	RuleVersion         rule.ID = "manifest.version"
	RuleVersionReserved rule.ID = "publish.version"
	RuleVersionLength   rule.ID = "manifest.version.length"
)

// VersionError is the error of ParseVersion: the rule that a text breaks, what was found, and how to mend it.
type VersionError struct {
	Rule    rule.ID
	Message string
	Hint    string
}

func (e *VersionError) Error() string { return e.Message }

// Version is the version of a pack. Its text is the tag in the registry.
type Version struct {
	text string
	pep  *pep440.Version // nil when PEP 440 can't read the text
}

// signatureTag is a tag by which cosign and the referrers fallback of the distribution protocol name what belongs to
// a digest.
var signatureTag = pattern.New(`^(?i:sha256|sha512)-[0-9a-fA-F]{64}(?:\..*)?$`)

const versionHint = "Write a version such as 1.2.0: begin with a letter or digit, then only ASCII letters, digits, '.', '_' and '-'."

// ownTag is the exact form of such a tag.
var ownTag = pattern.New(`^(?:sha256|sha512)-[0-9a-f]{64}(?:\.(?:sig|att|sbom))?$`)

// IsSignatureTag reports whether a tag is one by which cosign, or the referrers fallback of the distribution protocol,
// names what belongs to a digest. No version looks like one.
func IsSignatureTag(tag string) bool { return ownTag.MatchString(tag) }

// ParseVersion reads a version of a pack: the clients' grammar (packs.md 3.2), at most limit.Name characters, and
// neither "latest" nor a signature's tag. White space around it is no part of it. Its errors are *VersionError.
func ParseVersion(s string) (Version, error) {
	text := pyvalue.Strip(s)
	switch {
	case !IsSegment(text):
		return Version{}, &VersionError{RuleVersion, fmt.Sprintf("found the version %.100q", s), versionHint}
	case strings.EqualFold(text, "latest"):
		return Version{}, &VersionError{RuleVersionReserved, fmt.Sprintf("%q is no version: it stands for the newest one", text), versionHint}
	case signatureTag.MatchString(text):
		return Version{}, &VersionError{RuleVersionReserved, fmt.Sprintf("%.100q is no version: signatures of a digest are stored under that tag", text), versionHint}
	case len(text) > limit.Name:
		return Version{}, &VersionError{RuleVersionLength, fmt.Sprintf("the version has %d characters, at most %d are allowed", len(text), limit.Name), "Choose a shorter version."}
	}
	return read(text), nil
}

func read(text string) Version {
	v := Version{text: text}
	if pep, err := pep440.ParseVersion(text); err == nil {
		v.pep = &pep
	}
	return v
}

// String is the version as it was written: the tag.
func (v Version) String() string { return v.text }

// Canonical is the form that spellings of one version share: PEP 440's normal form without zeros at the end of the
// release, or the text in lower case when PEP 440 can't read it. Two versions of one repository may not have the
// same.
func (v Version) Canonical() string {
	if v.pep == nil {
		return strings.ToLower(v.text)
	}
	return v.pep.Canonical()
}

// Equal reports whether two texts name one version: equal under PEP 440, or but for case.
func Equal(a, b string) bool {
	return read(pyvalue.Strip(a)).Canonical() == read(pyvalue.Strip(b)).Canonical()
}

// Published is a version and when it was published.
type Published struct {
	Version string
	At      time.Time
}

// Compare is the order by which the registry calls a version newer: releases by PEP 440 stand above pre-releases by
// PEP 440, and those above versions that PEP 440 can't read, which go by time.
func Compare(a, b Published) int {
	va, vb := read(a.Version), read(b.Version)
	if c := cmp.Compare(va.rank(), vb.rank()); c != 0 {
		return c
	}
	if va.pep != nil {
		if c := va.pep.Compare(*vb.pep); c != 0 {
			return c
		}
	}
	return cmp.Or(a.At.Compare(b.At), strings.Compare(a.Version, b.Version))
}

func (v Version) rank() int {
	switch {
	case v.pep == nil:
		return 0
	case v.pep.IsPrerelease():
		return 1
	}
	return 2
}

// Latest is the newest of the given versions by Compare; false when there is none. The caller gives the enabled ones.
func Latest(versions []Published) (Published, bool) {
	if len(versions) == 0 {
		return Published{}, false
	}
	return slices.MaxFunc(versions, Compare), true
}
