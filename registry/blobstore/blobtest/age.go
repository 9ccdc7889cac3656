package blobtest

import (
	"bytes"
	"context"
	"io"
	"testing"
	"time"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
)

// ageTests are about what collection and scrubbing need of a store: how old a blob is, damaged ones set aside, and a Put
// that meets a Delete.
var ageTests = map[string]func(*testing.T, *place){
	"StoredAt":                 testStoredAt,
	"PutMakesYoung":            testPutMakesYoung,
	"Quarantine":               testQuarantine,
	"PutWhileDeleted":          testPutWhileDeleted,
	"QuarantineAgainstReaders": testQuarantineAgainstReaders,
}

// storedAt is when All says that the blob was stored.
func (p *place) storedAt(d digest.Digest) time.Time {
	p.t.Helper()
	for b, err := range p.All(context.Background()) {
		if err != nil {
			p.t.Fatalf("list blobs: %v", err)
		}
		if b.Digest == d {
			return b.StoredAt
		}
	}
	p.t.Fatalf("blob %s is not listed", d)
	return time.Time{}
}

func testStoredAt(t *testing.T, p *place) {
	first := p.put(random(100, 70))
	at := p.storedAt(first.Digest)
	if at.IsZero() {
		t.Fatal("the blob was stored at no time")
	}
	p.restart()
	if again := p.storedAt(first.Digest); !again.Equal(at) {
		t.Errorf("after a restart: stored at %v, before %v", again, at)
	}
	p.read(first.Digest)
	if again := p.storedAt(first.Digest); !again.Equal(at) {
		t.Errorf("after a read: stored at %v, before %v", again, at)
	}
	p.create("u")
	p.append("u", 0, random(100, 71))
	p.commit("u", digest.SHA256, random(100, 71))
	if later := p.storedAt(describe(digest.SHA256, random(100, 71)).Digest); later.Before(at) {
		t.Errorf("a blob that was stored later has the time %v, the first one %v", later, at)
	}
}

// testPutMakesYoung puts what is there until the store's clock has moved on, which may take a tick of a second: then the
// blob must be younger, however it came.
func testPutMakesYoung(t *testing.T, p *place) {
	content := random(100, 72)
	want := p.put(content)
	old := p.storedAt(want.Digest)
	ticks := 0
	for ; !p.storedAt(want.Digest).After(old); ticks++ {
		if ticks == 400 {
			t.Fatalf("after %d puts over more than two ticks the blob is as old as before: %v", ticks, old)
		}
		time.Sleep(5 * time.Millisecond) // the store's clock may tick once a second
		p.put(content)
	}
	if !bytes.Equal(p.read(want.Digest), content) {
		t.Error("the blob that was made young holds other bytes")
	}
	p.holds([]digest.Descriptor{want}, nil)
}

func testQuarantine(t *testing.T, p *place) {
	ctx := context.Background()
	content := random(3000, 73)
	want, kept := p.put(content), p.put(random(10, 74))
	for range 2 { // a blob may be damaged, and repaired, more than once
		if err := p.Quarantine(ctx, want.Digest); err != nil {
			t.Fatal(err)
		}
		_, err := p.Stat(ctx, want.Digest)
		wantCode(t, "stat of a blob that was set aside", err, registry.BlobUnknown)
		_, _, err = p.Open(ctx, want.Digest)
		wantCode(t, "open of a blob that was set aside", err, registry.BlobUnknown)
		wantCode(t, "quarantine of an absent blob", p.Quarantine(ctx, want.Digest), registry.BlobUnknown)
		p.holds([]digest.Descriptor{kept}, nil)
		p.restart()
		p.holds([]digest.Descriptor{kept}, nil)
		p.put(content)
		if !bytes.Equal(p.read(want.Digest), content) {
			t.Error("the blob that took the place of a damaged one holds other bytes")
		}
		p.holds([]digest.Descriptor{want, kept}, nil)
	}
	wantCode(t, "quarantine without a digest", p.Quarantine(ctx, digest.Digest{}), registry.BlobUnknown)
}

// testQuarantineAgainstReaders checks that a reader who has a blob open when it is set aside reads it to its end or fails:
// it never ends early as if the blob were shorter.
func testQuarantineAgainstReaders(t *testing.T, p *place) {
	content := random(200_000, 75)
	want := p.put(content)
	blob, _, err := p.Open(context.Background(), want.Digest)
	if err != nil {
		t.Fatal(err)
	}
	defer blob.Close()
	head := make([]byte, 10)
	if _, err := io.ReadFull(blob, head); err != nil {
		t.Fatal(err)
	}
	if err := p.Quarantine(context.Background(), want.Digest); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(blob)
	if err == nil && !bytes.Equal(append(head, rest...), content) {
		t.Errorf("a reader got %d of %d bytes and no error", 10+len(rest), len(content))
	}
}

// testPutWhileDeleted removes the blob while a Put of the same blob reads its last bytes: the Put ends with the bytes
// stored, or says that they have to be put again.
func testPutWhileDeleted(t *testing.T, p *place) {
	ctx := context.Background()
	content := random(100_000, 76)
	want := describe(digest.SHA256, content)
	for _, there := range []bool{false, true} {
		for name, remove := range map[string]func() error{
			"delete": func() error { return p.Delete(ctx, want.Digest) },
			"quarantine": func() error {
				if err := p.Quarantine(ctx, want.Digest); registry.CodeOf(err) != registry.BlobUnknown {
					return err
				}
				return nil
			},
		} {
			if there {
				p.put(content)
			}
			src, removed := bytes.NewReader(content), false
			err := p.Put(ctx, want, readerFunc(func(b []byte) (int, error) {
				if src.Len() < len(content)/2 && !removed {
					removed = true
					if err := remove(); err != nil {
						t.Errorf("%s: %v", name, err)
					}
				}
				return src.Read(b)
			}))
			if !removed {
				t.Fatalf("%s: the reader was never read to its middle", name)
			}
			if err == nil {
				if !bytes.Equal(p.read(want.Digest), content) {
					t.Errorf("%s: the put succeeded and the blob holds other bytes", name)
				}
			} else {
				wantCode(t, "put against "+name, err, registry.Unavailable)
			}
			if err := p.Delete(ctx, want.Digest); err != nil {
				t.Fatal(err)
			}
		}
	}
	p.holds(nil, nil)
}
