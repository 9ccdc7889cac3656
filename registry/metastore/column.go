package metastore

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
)

// storable gives the arguments of a statement as every engine takes them: a boolean as 0 or 1, text without what
// PostgreSQL can't hold. It is refused on every engine, so that each one's content can move to another. Errors: Invalid.
func storable(args []any) ([]any, error) {
	owned := false
	for i, arg := range args {
		switch v := arg.(type) {
		case string:
			if !holdable(v) {
				return nil, registry.Errorf(registry.Invalid, "the text %.60q can't be stored: it holds a NUL character or bytes that are not UTF-8", v)
			}
		case bool:
			if !owned {
				args, owned = slices.Clone(args), true
			}
			args[i] = number(v)
		}
	}
	return args, nil
}

// holdable reports whether a text column of every engine can hold s.
func holdable(s string) bool { return utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 }

// printable is s with U+FFFD in the place of what no text column can hold, for texts that tell people what came.
func printable(s string) string {
	if holdable(s) {
		return s
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// micros is how a time is stored: microseconds since 1970, 0 for the zero time.
func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// timeColumn scans what micros stored.
type timeColumn struct{ to *time.Time }

func (c timeColumn) Scan(src any) error {
	n, ok := src.(int64)
	if !ok {
		return fmt.Errorf("a column of microseconds holds a %T", src)
	}
	*c.to = time.Time{}
	if n != 0 {
		*c.to = time.UnixMicro(n).UTC()
	}
	return nil
}

// digestColumn scans a digest's text, "" for the zero digest.
type digestColumn struct{ to *digest.Digest }

func (c digestColumn) Scan(src any) error {
	s, ok := src.(string)
	if !ok {
		return fmt.Errorf("a column of digests holds a %T", src)
	}
	return c.to.UnmarshalText([]byte(s))
}

// hashColumn scans a sha256 sum.
type hashColumn struct{ to *[32]byte }

func (c hashColumn) Scan(src any) error {
	b, ok := src.([]byte)
	if !ok || len(b) != len(c.to) {
		return fmt.Errorf("a column of sha256 sums holds %d bytes of %T", len(b), src)
	}
	copy(c.to[:], b)
	return nil
}
