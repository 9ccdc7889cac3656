package digest_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"
	"testing/iotest"

	"github.com/gatehouse-registry/gatehouse/digest"
)

// random gives n bytes that are the same in every run.
func random(n int) []byte {
	b := make([]byte, n)
	rand.NewChaCha8([32]byte{1}).Read(b)
	return b
}

// TestCopy copies contents around the size of a piece from readers of every kind: what is written and what is hashed are
// what came.
func TestCopy(t *testing.T) {
	broken := errors.New("broken")
	readers := map[string]struct {
		wrap func(io.Reader) io.Reader
		err  error
	}{
		"whole":           {func(r io.Reader) io.Reader { return r }, nil},
		"halves":          {iotest.HalfReader, nil},
		"end with bytes":  {iotest.DataErrReader, nil},
		"broken":          {func(r io.Reader) io.Reader { return io.MultiReader(r, iotest.ErrReader(broken)) }, broken},
		"broken at bytes": {func(r io.Reader) io.Reader { return iotest.DataErrReader(io.MultiReader(r, iotest.ErrReader(broken))) }, broken},
	}
	for name, reader := range readers {
		for _, size := range []int{0, 1, 1 << 17, 1<<17 + 1, 1 << 18, 1<<18 + 1, 3<<20 + 7} {
			t.Run(fmt.Sprintf("%s/%d", name, size), func(t *testing.T) {
				want := random(size)
				var out bytes.Buffer
				h := sha256.New()
				n, err := digest.Copy(&out, reader.wrap(bytes.NewReader(want)), h)
				if n != int64(size) || !errors.Is(err, reader.err) {
					t.Errorf("got %d bytes and error %v, want %d and %v", n, err, size, reader.err)
				}
				if !bytes.Equal(out.Bytes(), want) {
					t.Error("other bytes were written than came")
				}
				if got := digest.FromHash(digest.SHA256, h); got != digest.FromBytes(want) {
					t.Errorf("hashed %s, want %s", got, digest.FromBytes(want))
				}
			})
		}
	}
}

// stubborn takes most bytes and then fails, or takes fewer than it is given without saying why.
type stubborn struct {
	most int
	err  error
}

func (s *stubborn) Write(p []byte) (int, error) {
	n := min(len(p), s.most)
	s.most -= n
	if n < len(p) {
		return n, s.err
	}
	return n, nil
}

func TestCopyToAWriterThatFails(t *testing.T) {
	full := errors.New("full")
	for _, most := range []int{0, 100, 1 << 18, 1<<20 + 1} {
		for _, failure := range []struct{ with, want error }{{full, full}, {nil, io.ErrShortWrite}} {
			n, err := digest.Copy(&stubborn{most, failure.with}, bytes.NewReader(random(2<<20)), sha256.New())
			if n != int64(most) || !errors.Is(err, failure.want) {
				t.Errorf("writer of %d bytes that fails with %v: got %d bytes, error %v", most, failure.with, n, err)
			}
		}
	}
}

// TestReaderWriteTo checks that a verifying reader that is copied decides as one that is read.
func TestReaderWriteTo(t *testing.T) {
	content := random(1<<20 + 3)
	good := digest.Descriptor{Digest: digest.FromBytes(content), Size: int64(len(content))}
	other := digest.Descriptor{Digest: digest.FromBytes([]byte("other")), Size: good.Size}
	tests := map[string]struct {
		want digest.Descriptor
		came []byte
		ok   bool
	}{
		"the content":    {good, content, true},
		"a byte less":    {good, content[:len(content)-1], false},
		"a byte more":    {good, append(bytes.Clone(content), 0), false},
		"other bytes":    {other, content, false},
		"nothing":        {good, nil, false},
		"much more":      {digest.Descriptor{Digest: good.Digest, Size: 10}, content, false},
		"wanted nothing": {digest.Descriptor{Digest: digest.FromBytes(nil)}, nil, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			n, err := io.Copy(&out, digest.NewReader(bytes.NewReader(test.came), test.want))
			_, mismatch := errors.AsType[*digest.MismatchError](err)
			if test.ok != (err == nil) || test.ok == mismatch {
				t.Errorf("error %v", err)
			}
			if n != int64(out.Len()) || n > test.want.Size+1 {
				t.Errorf("%d bytes were counted, %d passed on of a content of %d", n, out.Len(), test.want.Size)
			}
		})
	}
	var out bytes.Buffer
	r := digest.NewReader(bytes.NewReader(content), good)
	if _, err := io.CopyN(&out, r, 1000); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(&out, r); err != nil || !bytes.Equal(out.Bytes(), content) {
		t.Errorf("read and then copied: error %v, %d bytes", err, out.Len())
	}
	if _, err := io.Copy(io.Discard, digest.NewReader(bytes.NewReader(nil), digest.Descriptor{})); !errors.Is(err, digest.ErrMalformed) {
		t.Errorf("without a digest: error %v, want %v", err, digest.ErrMalformed)
	}
}
