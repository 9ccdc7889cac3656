// Package registry is the domain of Gatehouse: names, packs, jobs, accounts, and the use cases over them. It knows
// no HTTP and no SQL: Service works through the ports BlobStore, MetaStore and Signer, asks the gates of package
// admission, and answers with values or an *Error.
package registry

import (
	"errors"
	"fmt"
	"time"

	"github.com/gatehouse-registry/gatehouse/admission/rule"
)

// Code classifies an error for clients. The OCI codes keep the spelling of the distribution specification.
type Code string

// The codes.
const (
	BlobUnknown         Code = "BLOB_UNKNOWN"
	BlobUploadInvalid   Code = "BLOB_UPLOAD_INVALID"
	BlobUploadUnknown   Code = "BLOB_UPLOAD_UNKNOWN"
	DigestInvalid       Code = "DIGEST_INVALID"
	ManifestBlobUnknown Code = "MANIFEST_BLOB_UNKNOWN"
	ManifestInvalid     Code = "MANIFEST_INVALID"
	ManifestUnknown     Code = "MANIFEST_UNKNOWN"
	NameInvalid         Code = "NAME_INVALID"
	NameUnknown         Code = "NAME_UNKNOWN"
	SizeInvalid         Code = "SIZE_INVALID"
	TagInvalid          Code = "TAG_INVALID"
	Unauthorized        Code = "UNAUTHORIZED"
	Denied              Code = "DENIED"
	Unsupported         Code = "UNSUPPORTED"
	TooManyRequests     Code = "TOOMANYREQUESTS"

	RangeInvalid     Code = "RANGE_INVALID" // a range or an upload offset that does not fit
	PageInvalid      Code = "PAGINATION_NUMBER_INVALID"
	VersionImmutable Code = "VERSION_IMMUTABLE" // a version, or what it protects, can't be written again
	Conflict         Code = "CONFLICT"          // any other clash with what exists
	TooLarge         Code = "TOO_LARGE"         // a size limit
	AdmissionDenied  Code = "ADMISSION_DENIED"  // a gate refused; Detail holds the Decision
	NotFound         Code = "NOT_FOUND"         // an account, a job, a preview, a plugin
	Invalid          Code = "INVALID"           // a malformed request
	Outside          Code = "OUTSIDE"           // a request of the platforms that this product does not serve
	Unavailable      Code = "UNAVAILABLE"       // a dependency is down; try again
	Internal         Code = "INTERNAL"          // anything unforeseen; the cause is only logged
	Precondition     Code = "PRECONDITION"      // a compare-and-set that lost
	Damaged          Code = "DAMAGED"           // promised content that the store lost
	Disabled         Code = "DISABLED"          // a version that an administrator disabled
	RevokedVersion   Code = "REVOKED"           // the files of a version that an administrator revoked

	GrantPending Code = "GRANT_PENDING" // a device flow that nobody has approved yet; the message is what its client reads
	GrantInvalid Code = "GRANT_INVALID" // a code of a sign-in that is none, or none any more
)

// Meaning is what a code is turned into at the edges. Status and exit code of an error stand here alone.
type Meaning struct {
	Status int    // HTTP status
	Exit   int    // exit code of the CLI (design.md 7)
	Text   string // public text when the error carries no message
}

// meanings is the table of codes. docs/errors.md is checked against it.
var meanings = map[Code]Meaning{
	BlobUnknown:         {404, 5, "blob unknown to the repository"},
	BlobUploadInvalid:   {400, 1, "blob upload invalid"},
	BlobUploadUnknown:   {404, 5, "blob upload unknown"},
	DigestInvalid:       {400, 7, "digest is malformed or does not match the content"},
	ManifestBlobUnknown: {404, 5, "the manifest references content that the repository does not hold"},
	ManifestInvalid:     {400, 3, "manifest invalid"},
	ManifestUnknown:     {404, 5, "manifest unknown to the repository"},
	NameInvalid:         {400, 2, "repository name invalid"},
	NameUnknown:         {404, 5, "repository unknown"},
	SizeInvalid:         {400, 7, "size does not match the content"},
	TagInvalid:          {400, 2, "tag invalid"},
	Unauthorized:        {401, 4, "authentication required"},
	Denied:              {403, 4, "not allowed"},
	Unsupported:         {405, 1, "the operation is not supported"},
	TooManyRequests:     {429, 1, "too many requests"},
	RangeInvalid:        {416, 1, "range not satisfiable"},
	PageInvalid:         {400, 2, "the size of a page is a number, 0 or more"},
	VersionImmutable:    {409, 6, "versions are immutable"},
	Conflict:            {409, 6, "conflict"},
	TooLarge:            {413, 3, "too large"},
	AdmissionDenied:     {422, 3, "refused by a gate"},
	NotFound:            {404, 5, "not found"},
	Invalid:             {422, 2, "malformed request"},
	Outside:             {501, 1, "not part of this registry"},
	Unavailable:         {503, 1, "temporarily unavailable"},
	Internal:            {500, 1, "internal error"},
	Precondition:        {409, 6, "the state has moved on"},
	Damaged:             {500, 7, "content is damaged or missing in the store"},
	Disabled:            {403, 3, "disabled by an administrator"},
	RevokedVersion:      {403, 3, "revoked by an administrator"},
	GrantPending:        {400, 4, "authorization_pending"},
	GrantInvalid:        {400, 4, "the code is not valid, or no more: sign in again"},
}

// Meaning looks the code up; an unknown code means Internal.
func (c Code) Meaning() Meaning {
	if m, ok := meanings[c]; ok {
		return m
	}
	return meanings[Internal]
}

// Known reports whether the code is one of the table.
func (c Code) Known() bool {
	_, ok := meanings[c]
	return ok
}

// Codes lists every code of the table, in no order.
func Codes() []Code {
	codes := make([]Code, 0, len(meanings))
	for c := range meanings {
		codes = append(codes, c)
	}
	return codes
}

// Error is an error that clients may see: Code, Message and Detail are public, Err is not.
type Error struct {
	Code    Code
	Message string // "" means the code's text
	Detail  any    // for AdmissionDenied the Decision; else nil or a small JSON value
	Err     error  // the cause, for logs only
	// RetryAfter is when to try again, for TooManyRequests and Unavailable; 0 leaves it to the edge.
	RetryAfter time.Duration
}

// Errorf makes an Error. A %w verb keeps its operand as the hidden cause and shows it in the message.
func Errorf(code Code, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Code: code, Message: err.Error(), Err: errors.Unwrap(err)}
}

func (e *Error) Error() string {
	if e.Message != "" {
		return e.Message
	}
	return e.Code.Meaning().Text
}

// Unwrap gives the hidden cause.
func (e *Error) Unwrap() error { return e.Err }

// Is compares by code, so that an error that came over the wire equals a local one.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Message == "" && t.Code == e.Code
}

// CodeOf is the code of the first *Error in err's chain, that of the decision when a gate refused, Internal when the
// chain holds neither, "" for nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	if denied, ok := errors.AsType[*rule.Denied](err); ok {
		return CodeOfDecision(denied.Decision)
	}
	return Internal
}

// DecisionOf is the decision that an error carries: of a gate that refused here, or as the detail of an answer that came
// over the wire. nil when it carries none.
func DecisionOf(err error) *rule.Decision {
	if denied, ok := errors.AsType[*rule.Denied](err); ok {
		return &denied.Decision
	}
	if e, ok := errors.AsType[*Error](err); ok {
		switch d := e.Detail.(type) {
		case rule.Decision:
			return &d
		case *rule.Decision:
			return d
		}
	}
	return nil
}

// CodeOfDecision is the code of a refusal: by its gravest violation (design.md 9), and where only the content is wrong,
// by the gate (wire.md 4.3 and 6).
func CodeOfDecision(d rule.Decision) Code {
	switch class := d.Class(); {
	case class == rule.Forbidden:
		return Denied
	case class == rule.TooLarge:
		return TooLarge
	case class == rule.Conflict:
		return Conflict
	case d.Gate == rule.Publish:
		return ManifestInvalid
	}
	return AdmissionDenied
}

// Sentinels for errors.Is: they match every Error of their code.
var (
	ErrBlobUnknown     = &Error{Code: BlobUnknown}
	ErrUploadUnknown   = &Error{Code: BlobUploadUnknown}
	ErrManifestUnknown = &Error{Code: ManifestUnknown}
	ErrNameUnknown     = &Error{Code: NameUnknown}
	ErrNotFound        = &Error{Code: NotFound}
	ErrConflict        = &Error{Code: Conflict}
)
