package blobtest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
)

// blobTests are about blobs that come in one piece.
var blobTests = map[string]func(*testing.T, *place){
	"PutAndRead":            testPutAndRead,
	"PutAgain":              testPutAgain,
	"PutOtherBytes":         testPutOtherBytes,
	"PutFailingReader":      testPutFailingReader,
	"PutWithErrorAndBytes":  testPutWithErrorAndBytes,
	"PutCancelled":          testPutCancelled,
	"UnknownBlob":           testUnknownBlob,
	"Delete":                testDelete,
	"List":                  testList,
	"BlobsStayAfterRestart": testBlobsStay,
	"CancelledContext":      testCancelledContext,
}

func testPutAndRead(t *testing.T, p *place) {
	ctx := context.Background()
	for _, a := range algorithms {
		for _, size := range []int{0, 1, 4096, 32<<10 + 1, 1<<20 + 3} {
			content := random(size, 1)
			want := describe(a, content)
			if err := p.Put(ctx, want, bytes.NewReader(content)); err != nil {
				t.Fatalf("put %s of %d bytes: %v", a, size, err)
			}
			if got, err := p.Stat(ctx, want.Digest); err != nil || got != want.Size {
				t.Errorf("stat %s: got %d, %v, want %d", a, got, err, want.Size)
			}
			if !bytes.Equal(p.read(want.Digest), content) {
				t.Errorf("%s of %d bytes: read other bytes than were put", a, size)
			}
		}
	}
	content := random(1000, 2)
	blob, _, err := p.Open(ctx, p.put(content).Digest)
	if err != nil {
		t.Fatal(err)
	}
	defer blob.Close()
	part := make([]byte, 100)
	if _, err := blob.ReadAt(part, 450); err != nil || !bytes.Equal(part, content[450:550]) {
		t.Errorf("ReadAt 450: wrong bytes, error %v", err)
	}
	if at, err := blob.Seek(-10, io.SeekEnd); err != nil || at != 990 {
		t.Errorf("Seek: got %d, %v, want 990", at, err)
	}
	if tail, err := io.ReadAll(blob); err != nil || !bytes.Equal(tail, content[990:]) {
		t.Errorf("read after Seek: wrong bytes, error %v", err)
	}
}

func testPutAgain(t *testing.T, p *place) {
	content := random(5000, 3)
	want := p.put(content)
	p.put(content)
	if !bytes.Equal(p.read(want.Digest), content) {
		t.Error("the second put changed the blob")
	}
	p.holds([]digest.Descriptor{want}, nil)
}

func testPutOtherBytes(t *testing.T, p *place) {
	ctx := context.Background()
	content := random(70_000, 4)
	changed := bytes.Clone(content)
	changed[69_999] ^= 1
	bad := map[string][]byte{
		"changed byte": changed, "one byte short": content[:69_999], "one byte more": append(bytes.Clone(content), 0), "nothing": nil,
	}
	for _, a := range algorithms {
		want := describe(a, content)
		for name, b := range bad {
			wantMismatch(t, string(a)+", "+name, p.Put(ctx, want, bytes.NewReader(b)))
		}
		wrongSize := digest.Descriptor{Digest: want.Digest, Size: want.Size - 1}
		wantMismatch(t, "right digest, wrong size", p.Put(ctx, wrongSize, bytes.NewReader(content)))
		wrongSize.Size = -1
		wantMismatch(t, "right digest, negative size", p.Put(ctx, wrongSize, bytes.NewReader(content)))
	}
	p.holds(nil, nil)

	want := p.put(content)
	for name, b := range bad {
		wantMismatch(t, "blob that is there, "+name, p.Put(ctx, want, bytes.NewReader(b)))
	}
	if !bytes.Equal(p.read(want.Digest), content) {
		t.Error("a refused put changed the blob that was there")
	}
	p.holds([]digest.Descriptor{want}, nil)
}

func testPutFailingReader(t *testing.T, p *place) {
	content := random(200_000, 5)
	for _, came := range []int{0, 1, 100_000, 200_000} {
		err := p.Put(context.Background(), describe(digest.SHA256, content), failing(content[:came]))
		if !errors.Is(err, errReader) {
			t.Errorf("reader that fails after %d of 200000 bytes: got error %v, want the reader's", came, err)
		}
	}
	p.holds(nil, nil)
}

func testPutWithErrorAndBytes(t *testing.T, p *place) {
	content := random(100, 6)
	want := describe(digest.SHA256, content)
	all := func(err error) io.Reader {
		return readerFunc(func(b []byte) (int, error) { return copy(b, content), err })
	}
	if err := p.Put(context.Background(), want, all(errReader)); !errors.Is(err, errReader) {
		t.Errorf("reader that gives all bytes and an error: got error %v, want the reader's", err)
	}
	p.holds(nil, nil)
	if err := p.Put(context.Background(), want, all(io.EOF)); err != nil {
		t.Errorf("reader that gives all bytes and io.EOF: got error %v", err)
	}
	p.holds([]digest.Descriptor{want}, nil)
}

func testPutCancelled(t *testing.T, p *place) {
	ctx, cancel := context.WithCancel(context.Background())
	content := random(1<<20, 7)
	src := bytes.NewReader(content)
	err := p.Put(ctx, describe(digest.SHA256, content), readerFunc(func(b []byte) (int, error) {
		if src.Len() < 1<<19 {
			cancel()
		}
		return src.Read(b)
	}))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v, want context.Canceled", err)
	}
	p.holds(nil, nil)
}

func testUnknownBlob(t *testing.T, p *place) {
	ctx := context.Background()
	for _, d := range []digest.Digest{{}, describe(digest.SHA256, []byte("absent")).Digest, describe(digest.SHA512, []byte("absent")).Digest} {
		_, err := p.Stat(ctx, d)
		wantCode(t, "stat", err, registry.BlobUnknown)
		_, _, err = p.Open(ctx, d)
		wantCode(t, "open", err, registry.BlobUnknown)
		if err := p.Delete(ctx, d); err != nil {
			t.Errorf("delete of an absent blob: %v", err)
		}
	}
	wantCode(t, "put without a digest", p.Put(ctx, digest.Descriptor{}, bytes.NewReader(nil)), registry.DigestInvalid)
	p.holds(nil, nil)
}

func testDelete(t *testing.T, p *place) {
	ctx := context.Background()
	kept, gone := p.put(random(10, 8)), p.put(random(10, 9))
	for range 2 {
		if err := p.Delete(ctx, gone.Digest); err != nil {
			t.Fatal(err)
		}
	}
	_, err := p.Stat(ctx, gone.Digest)
	wantCode(t, "stat after delete", err, registry.BlobUnknown)
	p.holds([]digest.Descriptor{kept}, nil)
	p.put(random(10, 9))
	p.holds([]digest.Descriptor{kept, gone}, nil)
}

func testList(t *testing.T, p *place) {
	p.holds(nil, nil)
	var want []digest.Descriptor
	for i := range 300 {
		content := random(i, 10)
		if i%3 == 0 {
			d := describe(digest.SHA512, content)
			if err := p.Put(context.Background(), d, bytes.NewReader(content)); err != nil {
				t.Fatal(err)
			}
			want = append(want, d)
			continue
		}
		want = append(want, p.put(content))
	}
	p.holds(want, nil)
	for range p.All(context.Background()) {
		break // ends the listing early without a fault
	}
}

func testBlobsStay(t *testing.T, p *place) {
	content := random(3000, 11)
	want := p.put(content)
	p.restart()
	if !bytes.Equal(p.read(want.Digest), content) {
		t.Error("after a restart the blob holds other bytes")
	}
	p.holds([]digest.Descriptor{want}, nil)
}

func testCancelledContext(t *testing.T, p *place) {
	content := random(100, 12)
	want := p.put(content)
	p.create("open")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	calls := map[string]func() error{
		"Stat":         func() error { _, err := p.Stat(ctx, want.Digest); return err },
		"Open":         func() error { _, _, err := p.Open(ctx, want.Digest); return err },
		"Put":          func() error { return p.Put(ctx, want, bytes.NewReader(content)) },
		"Delete":       func() error { return p.Delete(ctx, want.Digest) },
		"CreateUpload": func() error { return p.CreateUpload(ctx, "new") },
		"UploadSize":   func() error { _, err := p.UploadSize(ctx, "open"); return err },
		"AppendUpload": func() error { _, err := p.AppendUpload(ctx, "open", 0, bytes.NewReader(content), 1000); return err },
		"CommitUpload": func() error { _, err := p.CommitUpload(ctx, "open", want.Digest); return err },
		"OpenUpload":   func() error { _, _, err := p.OpenUpload(ctx, "open"); return err },
		"AbortUpload":  func() error { return p.AbortUpload(ctx, "open") },
		"All": func() (last error) {
			for _, err := range p.All(ctx) {
				last = err
			}
			return last
		},
		"Uploads": func() (last error) {
			for _, err := range p.Uploads(ctx) {
				last = err
			}
			return last
		},
	}
	for name, call := range calls {
		if err := call(); !errors.Is(err, context.Canceled) {
			t.Errorf("%s with a cancelled context: got error %v, want context.Canceled", name, err)
		}
	}
	p.holds([]digest.Descriptor{want}, map[string]int64{"open": 0})
}
