// Package denylist is the registry's signed list of revoked versions, which a launch checks even when the job was admitted
// long ago (docs/runs.md). A revocation is final. The list is a JSON document in a DSSE envelope, signed with the key that signs
// receipts, so one trust file verifies both. Nothing here does I/O, reads a clock or touches a network.
package denylist

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/admission/name"
	"github.com/gatehouse-registry/gatehouse/admission/receipt"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/digest/strictjson"
)

const (
	// PayloadType is the DSSE payload type of a deny list.
	PayloadType = "application/vnd.gatehouse.denylist.v1+json"
	// MaxEnvelope bounds an envelope in bytes, MaxEntries what a list holds.
	MaxEnvelope = 16 * limit.MiB
	MaxEntries  = 10_000
	maxPayload  = MaxEnvelope/4*3 - 4*limit.KiB
	// MaxReason bounds a reason in bytes.
	MaxReason = 500
	// maxNumber is the greatest number that every reader of JSON reads alike.
	maxNumber = 1<<53 - 1
)

// List names every version that was revoked.
type List struct {
	Audience string    `json:"audience"` // the registry's id
	Number   uint64    `json:"number"`   // at least 1; grows with every revocation, never falls
	IssuedAt time.Time `json:"issuedAt"`
	Expires  time.Time `json:"expires"` // after which it no longer proves that a version was not revoked
	Revoked  []Entry   `json:"revoked"`
}

// Entry is one revoked version.
type Entry struct {
	ID      string        `json:"id"` // <owner>/<name>
	Version string        `json:"version"`
	Content digest.Digest `json:"content"` // as in receipt.Pin
	// Tree and Manifest are zero for a package that has no bytes in the registry.
	Tree     digest.Digest `json:"tree,omitzero"`
	Manifest digest.Digest `json:"manifest,omitzero"`
	Reason   string        `json:"reason"` // at most MaxReason bytes, on one line
	At       time.Time     `json:"at"`
}

// String is id@version.
func (e Entry) String() string { return e.ID + "@" + e.Version }

// Denies finds the entry that forbids a pack: the same version of the same id, the same manifest, or the same files under
// another name. A package that ships inside the client has no files of its own here; its content digest counts.
func (l *List) Denies(pin receipt.Pin) (Entry, bool) {
	for _, e := range l.Revoked {
		switch {
		case e.ID == pin.ID && name.Equal(e.Version, pin.Version),
			!pin.Manifest.IsZero() && e.Manifest == pin.Manifest,
			!pin.Tree.IsZero() && e.Tree == pin.Tree,
			pin.RuntimeSupplied && e.Content == pin.Content:
			return e, true
		}
	}
	return Entry{}, false
}

// Holds reports whether a list revokes every version that the other one does.
func (l *List) Holds(other *List) bool {
	type version struct{ id, version string }
	mine := make(map[version]bool, len(l.Revoked))
	for _, e := range l.Revoked {
		mine[version{e.ID, e.Version}] = true
	}
	return !slices.ContainsFunc(other.Revoked, func(e Entry) bool { return !mine[version{e.ID, e.Version}] })
}

// Tag names an envelope by its bytes: the entity tag, without quotes, under which a registry serves it.
func Tag(envelope []byte) string { return digest.FromBytes(envelope).Hex()[:32] }

// Check says what makes a list unfit to be signed or used.
func (l *List) Check() error {
	switch {
	case l.Audience == "" || len(l.Audience) > limit.Name:
		return fmt.Errorf("audience: expected a registry's id, found %.100q", l.Audience)
	case l.Number < 1 || l.Number > maxNumber:
		return fmt.Errorf("number: expected 1 to %d, found %d", uint64(maxNumber), l.Number)
	case l.IssuedAt.IsZero() || !l.Expires.After(l.IssuedAt):
		return fmt.Errorf("it must expire after it was issued, found %s and %s", l.IssuedAt, l.Expires)
	case l.Revoked == nil || len(l.Revoked) > MaxEntries:
		return fmt.Errorf("revoked: expected a list of at most %d, found %d", MaxEntries, len(l.Revoked))
	}
	for i, e := range l.Revoked {
		if err := e.check(); err != nil {
			return fmt.Errorf("revoked[%d]: %w", i, err)
		}
	}
	return nil
}

func (e Entry) check() error {
	owner, pack, ok := strings.Cut(e.ID, "/")
	switch {
	case !ok || !name.IsSegment(owner) || !name.IsSegment(pack) || len(e.ID) > 2*limit.Name+1:
		return fmt.Errorf("id %.100q is no <owner>/<name>", e.ID)
	case !name.IsSegment(e.Version) || len(e.Version) > limit.Name:
		return fmt.Errorf("%s: version %.100q is none", e.ID, e.Version)
	case e.Content.Algorithm() != digest.SHA256:
		return fmt.Errorf("%s: content must be a sha256 digest, found %.100q", e, e.Content)
	case e.Tree.IsZero() != e.Manifest.IsZero() || !e.Tree.IsZero() && e.Tree.Algorithm() != digest.SHA256:
		return fmt.Errorf("%s: tree and manifest go together, found %.100q and %.100q", e, e.Tree, e.Manifest)
	case e.At.IsZero():
		return fmt.Errorf("%s: it must say since when", e)
	}
	return checkReason(e.Reason)
}

// Encode is the list's payload: the bytes that are signed. It fails when Check does.
func (l List) Encode() ([]byte, error) {
	l.IssuedAt, l.Expires = l.IssuedAt.UTC(), l.Expires.UTC()
	if l.Revoked == nil {
		l.Revoked = []Entry{}
	}
	if err := l.Check(); err != nil {
		return nil, fmt.Errorf("deny list: %w", err)
	}
	b, err := encode(l)
	if err != nil {
		return nil, err
	}
	if len(b) > maxPayload {
		return nil, fmt.Errorf("deny list: %d bytes, at most %d allowed", len(b), maxPayload)
	}
	return b, nil
}

// Parse reads a payload. It proves nothing: use Verify for what came from outside.
func Parse(payload []byte) (*List, error) {
	var l List
	if err := strictjson.Decode(payload, maxPayload, strictjson.Options{MaxDepth: 4}, &l); err != nil {
		return nil, &receipt.Error{Problem: receipt.Malformed, Message: "the deny list can't be read", Err: err}
	}
	if err := l.Check(); err != nil {
		return nil, &receipt.Error{Problem: receipt.Malformed, Message: "the deny list says too little or the impossible", Err: err}
	}
	return &l, nil
}

// Verify opens an envelope: a key of trust must have signed it, and the list must be of audience; an empty audience stands for
// the trust set's own. A list that has expired is returned together with an error that says so: what it revokes stays
// revoked, but it no longer proves that nothing else was. Every error is a *receipt.Error.
func Verify(envelope []byte, trust receipt.TrustSet, audience string, now time.Time) (*List, error) {
	payload, _, err := trust.Open(envelope, PayloadType, MaxEnvelope)
	if err != nil {
		return nil, err
	}
	l, err := Parse(payload)
	if err != nil {
		return nil, err
	}
	if audience == "" {
		audience = trust.Audience
	}
	if audience != "" && l.Audience != audience {
		return nil, &receipt.Error{Problem: receipt.WrongAudience, Message: fmt.Sprintf("the deny list is of registry %.100q, expected %.100q", l.Audience, audience)}
	}
	if !now.Before(l.Expires) {
		return l, &receipt.Error{Problem: receipt.Expired, Message: fmt.Sprintf("the deny list expired at %s, it is %s", l.Expires.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339))}
	}
	return l, nil
}
