package blobtest

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
)

// uploadTests are about upload sessions.
var uploadTests = map[string]func(*testing.T, *place){
	"UploadInChunks":       testUploadInChunks,
	"UploadOfNothing":      testUploadOfNothing,
	"UploadIDs":            testUploadIDs,
	"UploadOffset":         testUploadOffset,
	"UploadTooLarge":       testUploadTooLarge,
	"UploadFailingReader":  testUploadFailingReader,
	"UploadMismatch":       testUploadMismatch,
	"UploadUnknown":        testUploadUnknown,
	"UploadAbort":          testUploadAbort,
	"UploadRead":           testUploadRead,
	"UploadOfKnownBlob":    testUploadOfKnownBlob,
	"UploadOverRestart":    testUploadOverRestart,
	"UploadList":           testUploadList,
	"UploadLimitIsTheSize": testUploadLimitIsTheSize,
}

func testUploadInChunks(t *testing.T, p *place) {
	content := random(300_000, 20)
	for _, a := range algorithms {
		id := string(a)
		p.create(id)
		for at := 0; at < len(content); at += 70_000 {
			p.append(id, int64(at), content[at:min(at+70_000, len(content))])
		}
		if size, err := p.UploadSize(context.Background(), id); err != nil || size != 300_000 {
			t.Errorf("size: got %d, %v, want 300000", size, err)
		}
		p.commit(id, a, content)
	}
	p.holds([]digest.Descriptor{describe(digest.SHA256, content), describe(digest.SHA512, content)}, nil)
}

func testUploadOfNothing(t *testing.T, p *place) {
	p.create("empty")
	p.commit("empty", digest.SHA256, nil)
	p.create("empty2")
	p.append("empty2", 0, nil)
	p.commit("empty2", digest.SHA512, nil)
	p.holds([]digest.Descriptor{describe(digest.SHA256, nil), describe(digest.SHA512, nil)}, nil)
}

func testUploadIDs(t *testing.T, p *place) {
	ctx := context.Background()
	good := []string{"a", "0", "0123456789abcdef", "A-b_C", strings.Repeat("x", 128)}
	held := map[string]int64{}
	for _, id := range good {
		p.create(id)
		held[id] = 0
		wantCode(t, "second create of "+id, p.CreateUpload(ctx, id), registry.Conflict)
	}
	bad := []string{"", ".", "..", "../up", "a/b", `a\b`, "/etc/passwd", "a\x00b", "a b", "é", "a.b", strings.Repeat("x", 129), "up\n"}
	for _, id := range bad {
		wantCode(t, "create of a bad id", p.CreateUpload(ctx, id), registry.Invalid)
		_, err := p.UploadSize(ctx, id)
		wantCode(t, "size of a bad id", err, registry.BlobUploadUnknown)
		_, err = p.AppendUpload(ctx, id, 0, strings.NewReader("x"), 10)
		wantCode(t, "append to a bad id", err, registry.BlobUploadUnknown)
		_, err = p.CommitUpload(ctx, id, describe(digest.SHA256, nil).Digest)
		wantCode(t, "commit of a bad id", err, registry.BlobUploadUnknown)
		_, _, err = p.OpenUpload(ctx, id)
		wantCode(t, "open of a bad id", err, registry.BlobUploadUnknown)
		if err := p.AbortUpload(ctx, id); err != nil {
			t.Errorf("abort of the bad id %q: %v", id, err)
		}
	}
	p.holds(nil, held)
}

func testUploadOffset(t *testing.T, p *place) {
	content := random(1000, 21)
	p.create("u")
	p.append("u", 0, content[:600])
	for _, offset := range []int64{-1, 0, 599, 601, 1 << 40} {
		size, err := p.AppendUpload(context.Background(), "u", offset, bytes.NewReader(content[600:]), 1<<20)
		wantCode(t, "append at a wrong offset", err, registry.RangeInvalid)
		if size != 600 {
			t.Errorf("append at offset %d: got size %d, want the session's 600", offset, size)
		}
	}
	p.append("u", 600, content[600:])
	p.commit("u", digest.SHA256, content)
}

func testUploadTooLarge(t *testing.T, p *place) {
	content := random(100_000, 22)
	p.create("u")
	p.append("u", 0, content[:40_000])
	size, err := p.AppendUpload(context.Background(), "u", 40_000, bytes.NewReader(content[40_000:]), 99_999)
	wantCode(t, "append beyond the limit", err, registry.TooLarge)
	if size != 40_000 {
		t.Errorf("size after a refused append: got %d, want 40000", size)
	}
	endless := readerFunc(func(b []byte) (int, error) { return len(b), nil })
	_, err = p.AppendUpload(context.Background(), "u", 40_000, endless, 1<<20)
	wantCode(t, "append without an end", err, registry.TooLarge)
	_, err = p.AppendUpload(context.Background(), "u", 40_000, bytes.NewReader(content), 39_000)
	wantCode(t, "append to a session beyond its limit", err, registry.TooLarge)
	p.holds(nil, map[string]int64{"u": 40_000})
	p.append("u", 40_000, content[40_000:])
	p.commit("u", digest.SHA256, content)
}

func testUploadLimitIsTheSize(t *testing.T, p *place) {
	content := random(5000, 23)
	p.create("u")
	if size, err := p.AppendUpload(context.Background(), "u", 0, bytes.NewReader(content), 5000); err != nil || size != 5000 {
		t.Errorf("append of exactly the limit: got %d, %v, want 5000", size, err)
	}
	if size, err := p.AppendUpload(context.Background(), "u", 5000, bytes.NewReader(nil), 5000); err != nil || size != 5000 {
		t.Errorf("append of nothing at the limit: got %d, %v, want 5000", size, err)
	}
	p.commit("u", digest.SHA256, content)
}

func testUploadFailingReader(t *testing.T, p *place) {
	content := random(90_000, 24)
	for _, a := range algorithms {
		id := string(a)
		p.create(id)
		size, err := p.AppendUpload(context.Background(), id, 0, failing(content[:50_000]), 1<<20)
		if !errors.Is(err, errReader) || size != 50_000 {
			t.Fatalf("append with a failing reader: got %d, %v, want 50000 and the reader's error", size, err)
		}
		if size, err := p.UploadSize(context.Background(), id); err != nil || size != 50_000 {
			t.Errorf("size after a failed reader: got %d, %v, want 50000", size, err)
		}
		both := readerFunc(func(b []byte) (int, error) { return copy(b, content[50_000:50_010]), errReader })
		size, err = p.AppendUpload(context.Background(), id, 50_000, both, 1<<20)
		if !errors.Is(err, errReader) || size != 50_010 {
			t.Fatalf("append with a reader that gives bytes and an error: got %d, %v, want 50010 and the reader's error", size, err)
		}
		p.append(id, 50_010, content[50_010:])
		p.commit(id, a, content)
	}
}

func testUploadMismatch(t *testing.T, p *place) {
	content := random(10_000, 25)
	for _, a := range algorithms {
		id := string(a)
		p.create(id)
		p.append(id, 0, content[:9_999])
		_, err := p.CommitUpload(context.Background(), id, describe(a, content).Digest)
		wantMismatch(t, "commit of 9,999 of 10,000 bytes", err)
		_, err = p.CommitUpload(context.Background(), id, digest.Digest{})
		wantCode(t, "commit without a digest", err, registry.DigestInvalid)
		p.holds(nil, map[string]int64{id: 9_999})
		p.append(id, 9_999, content[9_999:])
		p.commit(id, a, content)
		if err := p.Delete(context.Background(), describe(a, content).Digest); err != nil {
			t.Fatal(err)
		}
	}
}

func testUploadUnknown(t *testing.T, p *place) {
	ctx := context.Background()
	content := random(100, 26)
	p.create("done")
	p.append("done", 0, content)
	p.commit("done", digest.SHA256, content)
	for _, id := range []string{"never", "done"} {
		_, err := p.UploadSize(ctx, id)
		wantCode(t, "size", err, registry.BlobUploadUnknown)
		_, err = p.AppendUpload(ctx, id, 0, bytes.NewReader(content), 1000)
		wantCode(t, "append", err, registry.BlobUploadUnknown)
		_, err = p.CommitUpload(ctx, id, describe(digest.SHA256, content).Digest)
		wantCode(t, "commit", err, registry.BlobUploadUnknown)
		_, _, err = p.OpenUpload(ctx, id)
		wantCode(t, "open", err, registry.BlobUploadUnknown)
	}
}

func testUploadAbort(t *testing.T, p *place) {
	ctx := context.Background()
	p.create("u")
	p.append("u", 0, random(5000, 27))
	for range 2 {
		if err := p.AbortUpload(ctx, "u"); err != nil {
			t.Fatal(err)
		}
	}
	_, err := p.AppendUpload(ctx, "u", 5000, strings.NewReader("x"), 10_000)
	wantCode(t, "append after abort", err, registry.BlobUploadUnknown)
	p.holds(nil, nil)

	content := random(80, 28) // the same id again must not meet the hash of the first session
	p.create("u")
	p.append("u", 0, content)
	p.commit("u", digest.SHA256, content)
}

func testUploadRead(t *testing.T, p *place) {
	content := random(6000, 29)
	p.create("u")
	p.append("u", 0, content[:2500])
	p.append("u", 2500, content[2500:])
	blob, size, err := p.OpenUpload(context.Background(), "u")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(p.drain(blob, size), content) {
		t.Error("the session reads as other bytes than came")
	}
	p.commit("u", digest.SHA256, content)
}

func testUploadOfKnownBlob(t *testing.T, p *place) {
	content := random(6000, 30)
	want := p.put(content)
	p.create("u")
	p.append("u", 0, content)
	p.commit("u", digest.SHA256, content)
	p.holds([]digest.Descriptor{want}, nil)
}

func testUploadOverRestart(t *testing.T, p *place) {
	content := random(100_000, 31)
	for _, a := range algorithms {
		id := "r-" + string(a)
		p.create(id)
		p.append(id, 0, content[:30_000])
		p.restart()
		if size, err := p.UploadSize(context.Background(), id); err != nil || size != 30_000 {
			t.Fatalf("size after a restart: got %d, %v, want 30000", size, err)
		}
		p.append(id, 30_000, content[30_000:])
		p.commit(id, a, content)
	}
	p.create("whole")
	p.append("whole", 0, content)
	p.restart()
	p.commit("whole", digest.SHA256, content)
}

func testUploadList(t *testing.T, p *place) {
	want := map[string]int64{}
	for i := range 20 {
		id := "u" + strings.Repeat("x", i)
		p.create(id)
		p.append(id, 0, random(i, 32))
		want[id] = int64(i)
	}
	p.holds(nil, want)
	for range p.Uploads(context.Background()) {
		break // ends the listing early without a fault
	}
	p.restart()
	p.holds(nil, want)
}
