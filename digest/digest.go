// Package digest holds the values that name content: Digest and Descriptor, and readers and writers that
// verify bytes against them. It does no I/O of its own beyond the io interfaces it is handed.
//
// A Digest is a comparable value in the OCI form "<algorithm>:<lower-case hex>". Two algorithms are known,
// sha256 and sha512; the zero Digest is no digest and compares unequal to every parsed one.
package digest

import (
	"bytes"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"strings"
)

// Algorithm is a hash algorithm by its OCI name.
type Algorithm string

// The algorithms that Gatehouse stores blobs under.
const (
	SHA256 Algorithm = "sha256"
	SHA512 Algorithm = "sha512"
)

// ErrMalformed is wrapped by every error of Parse.
var ErrMalformed = errors.New("malformed digest")

// New returns a running hash of the algorithm, or nil when the algorithm is not known.
func (a Algorithm) New() hash.Hash {
	switch a {
	case SHA256:
		return sha256.New()
	case SHA512:
		return sha512.New()
	}
	return nil
}

// FromBytes is the digest of b by the algorithm, which must be a known one.
func (a Algorithm) FromBytes(b []byte) Digest {
	h := a.New()
	h.Write(b)
	return FromHash(a, h)
}

// hexLen is the number of hex digits of a digest of the algorithm, 0 when it is not known.
func (a Algorithm) hexLen() int {
	switch a {
	case SHA256:
		return 2 * sha256.Size
	case SHA512:
		return 2 * sha512.Size
	}
	return 0
}

// Digest names content by its hash. It is comparable and may be a map key.
type Digest struct{ text string }

// Parse reads "<algorithm>:<hex>". Upper-case hex, a wrong length and an unknown algorithm are refused with an
// error that wraps ErrMalformed and says what was found.
func Parse(s string) (Digest, error) {
	name, digits, ok := strings.Cut(s, ":")
	if !ok {
		return Digest{}, fmt.Errorf("%w: %.100q has no algorithm (expected sha256:<64 hex digits>)", ErrMalformed, s)
	}
	want := Algorithm(name).hexLen()
	if want == 0 {
		return Digest{}, fmt.Errorf("%w: unknown algorithm %.40q (expected sha256 or sha512)", ErrMalformed, name)
	}
	if len(digits) != want {
		return Digest{}, fmt.Errorf("%w: %s needs %d hex digits, found %d", ErrMalformed, name, want, len(digits))
	}
	for i := range len(digits) {
		if c := digits[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return Digest{}, fmt.Errorf("%w: %q is not a lower-case hex digit", ErrMalformed, c)
		}
	}
	return Digest{s}, nil
}

// MustParse is Parse for constants; it panics on a malformed text.
func MustParse(s string) Digest {
	d, err := Parse(s)
	if err != nil {
		panic(err)
	}
	return d
}

// FromBytes is the sha256 digest of b.
func FromBytes(b []byte) Digest {
	sum := sha256.Sum256(b)
	return FromSum(sum)
}

// FromSum is the sha256 digest whose hash value is sum.
func FromSum(sum [sha256.Size]byte) Digest {
	return Digest{"sha256:" + hex.EncodeToString(sum[:])}
}

// FromHash is the digest that h, a hash of algorithm a, has reached.
func FromHash(a Algorithm, h hash.Hash) Digest {
	return Digest{string(a) + ":" + hex.EncodeToString(h.Sum(nil))}
}

// String is the OCI form, "" for the zero Digest.
func (d Digest) String() string { return d.text }

// IsZero reports whether d names nothing.
func (d Digest) IsZero() bool { return d.text == "" }

// Algorithm is the part before the colon.
func (d Digest) Algorithm() Algorithm {
	name, _, _ := strings.Cut(d.text, ":")
	return Algorithm(name)
}

// Hex is the part after the colon.
func (d Digest) Hex() string {
	_, digits, _ := strings.Cut(d.text, ":")
	return digits
}

// MarshalText gives the OCI form; the zero Digest gives the empty text.
func (d Digest) MarshalText() ([]byte, error) { return []byte(d.text), nil }

// UnmarshalText parses the OCI form; the empty text gives the zero Digest.
func (d *Digest) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*d = Digest{}
		return nil
	}
	parsed, err := Parse(string(text))
	if err != nil {
		return err
	}
	*d = parsed
	return nil
}

// Descriptor says what content is: its media type, its digest and its size in bytes.
type Descriptor struct {
	MediaType string `json:"mediaType"`
	Digest    Digest `json:"digest"`
	Size      int64  `json:"size"`
}

// A MismatchError says that bytes are not those that a Descriptor promised.
type MismatchError struct {
	Want, Got         Digest
	WantSize, GotSize int64
}

func (e *MismatchError) Error() string {
	if e.WantSize != e.GotSize {
		return fmt.Sprintf("size differs: expected %d bytes of %s, found %d", e.WantSize, e.Want, e.GotSize)
	}
	return fmt.Sprintf("digest differs: expected %s, found %s", e.Want, e.Got)
}

// Reader passes bytes through and fails at the end unless they are exactly those of its descriptor.
type Reader struct {
	r    io.Reader
	h    hash.Hash
	want Descriptor
	n    int64
}

// NewReader verifies r against want.Digest and want.Size. At the end of r, Read returns io.EOF only when both
// agree, a *MismatchError otherwise; it fails as soon as more than want.Size bytes came.
func NewReader(r io.Reader, want Descriptor) *Reader {
	return &Reader{r: r, h: want.Digest.Algorithm().New(), want: want}
}

func (v *Reader) Read(p []byte) (int, error) {
	n, err := v.r.Read(p)
	v.n += int64(n)
	if v.h == nil {
		return 0, fmt.Errorf("%w: %q", ErrMalformed, v.want.Digest)
	}
	v.h.Write(p[:n])
	if v.n > v.want.Size {
		return 0, v.mismatch()
	}
	if err == io.EOF {
		if v.n != v.want.Size || FromHash(v.want.Digest.Algorithm(), v.h) != v.want.Digest {
			return n, v.mismatch()
		}
	}
	return n, err
}

// WriteTo is Read to the end, with the hash beside it (Copy): w gets at most one byte more than want.Size, and an error other
// than nil means that what it got is not the content.
func (v *Reader) WriteTo(w io.Writer) (int64, error) {
	if v.h == nil {
		return 0, fmt.Errorf("%w: %q", ErrMalformed, v.want.Digest)
	}
	n, err := Copy(w, io.LimitReader(v.r, v.want.Size-v.n+1), v.h)
	v.n += n
	if err == nil && (v.n != v.want.Size || FromHash(v.want.Digest.Algorithm(), v.h) != v.want.Digest) {
		err = v.mismatch()
	}
	return n, err
}

func (v *Reader) mismatch() error {
	return &MismatchError{
		Want: v.want.Digest, Got: FromHash(v.want.Digest.Algorithm(), v.h),
		WantSize: v.want.Size, GotSize: v.n,
	}
}

// room is how many bytes ReadAll makes room for before any came: a size is only what somebody said.
const room = 64 << 10

// ReadAll reads at most want.Size bytes of r and verifies them.
func ReadAll(r io.Reader, want Descriptor) ([]byte, error) {
	// One more than comes, so that the end is read without growing.
	b := bytes.NewBuffer(make([]byte, 0, min(max(want.Size, 0), room)+bytes.MinRead))
	_, err := b.ReadFrom(NewReader(r, want))
	return b.Bytes(), err
}
