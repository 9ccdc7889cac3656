package metastore

import (
	"fmt"
	"time"

	"github.com/gatehouse-registry/gatehouse/digest"
)

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
