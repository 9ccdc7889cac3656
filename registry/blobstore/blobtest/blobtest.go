// Package blobtest is the contract of registry.BlobStore as tests. Every back-end runs the same suite, so that one can
// take the place of another.
package blobtest

import (
	"bytes"
	"context"
	"crypto/sha512"
	"errors"
	"io"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
)

// Open opens the store that lives at dir, a folder of its own. Opening one dir again, after the store was closed, is a
// restart and finds what was there. A store that holds resources implements io.Closer; the suite closes it.
type Open func(t *testing.T, dir string) registry.BlobStore

// Run runs the suite; every test has a store of its own.
func Run(t *testing.T, open Open) {
	tests := map[string]func(*testing.T, *place){}
	maps.Copy(tests, blobTests)
	maps.Copy(tests, ageTests)
	maps.Copy(tests, uploadTests)
	maps.Copy(tests, busyTests)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &place{t: t, open: open, dir: t.TempDir()}
			p.start()
			t.Cleanup(p.stop)
			test(t, p)
		})
	}
}

// place is a store of one test and where it lives.
type place struct {
	registry.BlobStore
	t    *testing.T
	open Open
	dir  string
}

func (p *place) start() { p.BlobStore = p.open(p.t, p.dir) }

func (p *place) stop() {
	if c, ok := p.BlobStore.(io.Closer); ok {
		if err := c.Close(); err != nil {
			p.t.Errorf("close: %v", err)
		}
	}
}

func (p *place) restart() {
	p.stop()
	p.start()
}

// algorithms are those that a store must take.
var algorithms = []digest.Algorithm{digest.SHA256, digest.SHA512}

// describe is the descriptor of content under the algorithm.
func describe(a digest.Algorithm, content []byte) digest.Descriptor {
	h := a.New()
	h.Write(content)
	return digest.Descriptor{Digest: digest.FromHash(a, h), Size: int64(len(content))}
}

// random is n bytes that depend on nothing but n and seed.
func random(n int, seed byte) []byte {
	b := make([]byte, n)
	rand.NewChaCha8(sha512.Sum512_256([]byte{seed})).Read(b)
	return b
}

// put stores content under sha256 and gives its descriptor.
func (p *place) put(content []byte) digest.Descriptor {
	p.t.Helper()
	want := describe(digest.SHA256, content)
	if err := p.Put(context.Background(), want, bytes.NewReader(content)); err != nil {
		p.t.Fatalf("put of %d bytes: %v", len(content), err)
	}
	return want
}

// read is the whole blob.
func (p *place) read(d digest.Digest) []byte {
	p.t.Helper()
	blob, size, err := p.Open(context.Background(), d)
	if err != nil {
		p.t.Fatalf("open %s: %v", d, err)
	}
	return p.drain(blob, size)
}

// drain reads and closes an open blob and compares its size.
func (p *place) drain(blob registry.Blob, size int64) []byte {
	p.t.Helper()
	content, err := io.ReadAll(blob)
	if err := errors.Join(err, blob.Close()); err != nil {
		p.t.Fatalf("read: %v", err)
	}
	if int64(len(content)) != size {
		p.t.Errorf("size: got %d, but %d bytes came", size, len(content))
	}
	return content
}

// create starts a session.
func (p *place) create(id string) {
	p.t.Helper()
	if err := p.CreateUpload(context.Background(), id); err != nil {
		p.t.Fatalf("create upload %q: %v", id, err)
	}
}

// append adds content at offset without a limit that matters.
func (p *place) append(id string, offset int64, content []byte) {
	p.t.Helper()
	size, err := p.AppendUpload(context.Background(), id, offset, bytes.NewReader(content), 1<<40)
	if err != nil || size != offset+int64(len(content)) {
		p.t.Fatalf("append of %d bytes at %d: got size %d, error %v", len(content), offset, size, err)
	}
}

// commit ends a session whose bytes must be content, and checks the blob.
func (p *place) commit(id string, a digest.Algorithm, content []byte) {
	p.t.Helper()
	want := describe(a, content)
	got, err := p.CommitUpload(context.Background(), id, want.Digest)
	if err != nil || got != want {
		p.t.Fatalf("commit: got %v, error %v, want %v", got, err, want)
	}
	if !bytes.Equal(p.read(want.Digest), content) {
		p.t.Errorf("the committed blob holds other bytes than the upload")
	}
}

// holds checks that the store holds exactly these blobs and upload sessions (id to size).
func (p *place) holds(blobs []digest.Descriptor, uploads map[string]int64) {
	p.t.Helper()
	want := map[digest.Descriptor]int{}
	for _, b := range blobs {
		want[b] = 1
	}
	got := map[digest.Descriptor]int{}
	for d, err := range p.All(context.Background()) {
		if err != nil {
			p.t.Fatalf("list blobs: %v", err)
		}
		got[digest.Descriptor{Digest: d.Digest, Size: d.Size}]++
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(digest.Digest{})); diff != "" {
		p.t.Errorf("blobs differ (-want +got):\n%s", diff)
	}
	sessions := map[string]int64{}
	for u, err := range p.Uploads(context.Background()) {
		if err != nil {
			p.t.Fatalf("list uploads: %v", err)
		}
		if u.TouchedAt.IsZero() {
			p.t.Errorf("upload %q was touched at no time", u.ID)
		}
		sessions[u.ID] = u.Size
	}
	if uploads == nil {
		uploads = map[string]int64{}
	}
	if diff := cmp.Diff(uploads, sessions); diff != "" {
		p.t.Errorf("uploads differ (-want +got):\n%s", diff)
	}
}

// wantCode checks the code of an error.
func wantCode(t *testing.T, what string, err error, want registry.Code) {
	t.Helper()
	if got := registry.CodeOf(err); got != want {
		t.Errorf("%s: got error %v (code %q), want code %q", what, err, got, want)
	}
}

// wantMismatch checks that err is a *digest.MismatchError.
func wantMismatch(t *testing.T, what string, err error) {
	t.Helper()
	if _, ok := errors.AsType[*digest.MismatchError](err); !ok {
		t.Errorf("%s: got error %v, want a *digest.MismatchError", what, err)
	}
}

// errReader is what failing readers fail with.
var errReader = errors.New("the reader's own error")

// failing gives content and then errReader instead of io.EOF.
func failing(content []byte) io.Reader {
	return io.MultiReader(bytes.NewReader(content), readerFunc(func([]byte) (int, error) { return 0, errReader }))
}

// readerFunc is a function as io.Reader.
type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
