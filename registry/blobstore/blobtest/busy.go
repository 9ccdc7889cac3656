package blobtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
)

// busyTests are about calls that meet each other.
var busyTests = map[string]func(*testing.T, *place){
	"ConcurrentPuts":          testConcurrentPuts,
	"ConcurrentReadersOfPut":  testReadersDuringPut,
	"ConcurrentUploads":       testConcurrentUploads,
	"OneAppendAtATime":        testOneAppendAtATime,
	"ManyAppendsOneWins":      testManyAppends,
	"AbortDuringAppend":       testAbortDuringAppend,
	"CommitAgainstAbort":      testCommitAgainstAbort,
	"PutAgainstDelete":        testPutAgainstDelete,
	"CommitOfOneBlobManyWays": testCommitOneBlob,
}

// together runs f n times at once and waits.
func together(n int, f func(i int)) {
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-start
			f(i)
		})
	}
	close(start)
	wg.Wait()
}

func testConcurrentPuts(t *testing.T, p *place) {
	contents := [][]byte{random(100_000, 40), random(100_000, 41)}
	together(16, func(i int) {
		c := contents[i%2]
		if err := p.Put(context.Background(), describe(digest.SHA256, c), bytes.NewReader(c)); err != nil {
			t.Errorf("put %d: %v", i, err)
		}
	})
	var want []digest.Descriptor
	for _, c := range contents {
		want = append(want, describe(digest.SHA256, c))
		if !bytes.Equal(p.read(want[len(want)-1].Digest), c) {
			t.Error("the blob holds other bytes than were put")
		}
	}
	p.holds(want, nil)
}

// testReadersDuringPut checks that a reader never sees a part of a blob: it is absent or whole.
func testReadersDuringPut(t *testing.T, p *place) {
	content := random(400_000, 42)
	want := describe(digest.SHA256, content)
	stored := make(chan struct{})
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for {
				acknowledged := false
				select {
				case <-stored:
					acknowledged = true
				default:
				}
				blob, size, err := p.Open(context.Background(), want.Digest)
				if errors.Is(err, registry.ErrBlobUnknown) && !acknowledged {
					continue
				}
				if err != nil {
					t.Errorf("open: %v", err)
					return
				}
				if !bytes.Equal(p.drain(blob, size), content) {
					t.Error("a reader saw a part of a blob")
				}
				return
			}
		})
	}
	p.put(content)
	close(stored)
	readers.Wait()
}

func testConcurrentUploads(t *testing.T, p *place) {
	contents := make([][]byte, 8)
	for i := range contents {
		contents[i] = random(50_000+i, byte(43+i))
	}
	together(len(contents), func(i int) {
		id, c, ctx := fmt.Sprintf("u%d", i), contents[i], context.Background()
		if err := p.CreateUpload(ctx, id); err != nil {
			t.Errorf("create %s: %v", id, err)
		}
		for part := range slices.Chunk(c, 9_000) {
			size, err := p.UploadSize(ctx, id)
			if err == nil {
				_, err = p.AppendUpload(ctx, id, size, bytes.NewReader(part), 1<<20)
			}
			if err != nil {
				t.Errorf("append to %s: %v", id, err)
			}
		}
		want := describe(digest.SHA256, c)
		if got, err := p.CommitUpload(ctx, id, want.Digest); err != nil || got != want {
			t.Errorf("commit %s: got %v, %v, want %v", id, got, err, want)
		}
	})
	var want []digest.Descriptor
	for _, c := range contents {
		want = append(want, describe(digest.SHA256, c))
	}
	p.holds(want, nil)
}

// slowAppend starts an append that has written first and waits for its end: the pipe that feeds it, and its result.
func (p *place) slowAppend(id string, first []byte) (*io.PipeWriter, <-chan error) {
	p.t.Helper()
	r, w := io.Pipe()
	result := make(chan error, 1)
	go func() {
		_, err := p.AppendUpload(context.Background(), id, 0, r, 1<<20)
		r.CloseWithError(errReader)
		result <- err
	}()
	if _, err := w.Write(first); err != nil {
		p.t.Fatalf("the append did not take bytes: %v", err)
	}
	return w, result
}

func testOneAppendAtATime(t *testing.T, p *place) {
	ctx := context.Background()
	content := random(10_000, 51)
	p.create("u")
	w, result := p.slowAppend("u", content[:4_000])
	_, err := p.AppendUpload(ctx, "u", 0, bytes.NewReader(content), 1<<20)
	wantCode(t, "append beside an append", err, registry.Conflict)
	_, err = p.CommitUpload(ctx, "u", describe(digest.SHA256, content).Digest)
	wantCode(t, "commit beside an append", err, registry.Conflict)
	if _, err := w.Write(content[4_000:]); err != nil {
		t.Fatal(err)
	}
	w.Close()
	if err := <-result; err != nil {
		t.Errorf("the first append: %v", err)
	}
	p.commit("u", digest.SHA256, content)
}

func testManyAppends(t *testing.T, p *place) {
	content := random(60_000, 52)
	p.create("u")
	results := make([]error, 16)
	together(16, func(i int) {
		_, results[i] = p.AppendUpload(context.Background(), "u", 0, bytes.NewReader(content), 1<<20)
	})
	won := 0
	for _, err := range results {
		switch registry.CodeOf(err) {
		case "":
			won++
		case registry.Conflict, registry.RangeInvalid:
		default:
			t.Errorf("a losing append: got error %v, want Conflict or RangeInvalid", err)
		}
	}
	if won != 1 {
		t.Errorf("%d of 16 appends at offset 0 won, want 1", won)
	}
	p.commit("u", digest.SHA256, content)
}

func testAbortDuringAppend(t *testing.T, p *place) {
	p.create("u")
	w, result := p.slowAppend("u", random(100, 53))
	if err := p.AbortUpload(context.Background(), "u"); err != nil {
		t.Fatal(err)
	}
	w.Close()
	wantCode(t, "append to a session that was aborted meanwhile", <-result, registry.BlobUploadUnknown)
	p.holds(nil, nil)
}

func testCommitAgainstAbort(t *testing.T, p *place) {
	content := random(2_000, 54)
	want := describe(digest.SHA256, content)
	for range 20 {
		p.create("u")
		p.append("u", 0, content)
		var committed error
		together(2, func(i int) {
			if i == 0 {
				_, committed = p.CommitUpload(context.Background(), "u", want.Digest)
			} else if err := p.AbortUpload(context.Background(), "u"); err != nil {
				t.Errorf("abort: %v", err)
			}
		})
		if committed != nil {
			wantCode(t, "commit that lost against an abort", committed, registry.BlobUploadUnknown)
			p.holds(nil, nil)
			continue
		}
		p.holds([]digest.Descriptor{want}, nil)
		if err := p.Delete(context.Background(), want.Digest); err != nil {
			t.Fatal(err)
		}
	}
}

// testPutAgainstDelete checks that the two may meet in any order without a fault, and that what is there is whole.
func testPutAgainstDelete(t *testing.T, p *place) {
	content := random(2_000, 55)
	want := describe(digest.SHA256, content)
	for range 20 {
		together(4, func(i int) {
			var err error
			if i%2 == 0 {
				err = p.Put(context.Background(), want, bytes.NewReader(content))
				if registry.CodeOf(err) == registry.Unavailable {
					err = nil // a delete took away what this put relied on, and it says so
				}
			} else {
				err = p.Delete(context.Background(), want.Digest)
			}
			if err != nil {
				t.Errorf("put against delete: %v", err)
			}
		})
	}
	p.put(content)
	if !bytes.Equal(p.read(want.Digest), content) {
		t.Error("the blob holds other bytes than were put")
	}
}

func testCommitOneBlob(t *testing.T, p *place) {
	content := random(20_000, 56)
	for i := range 8 {
		p.create(fmt.Sprintf("u%d", i))
		p.append(fmt.Sprintf("u%d", i), 0, content)
	}
	want := describe(digest.SHA256, content)
	together(12, func(i int) {
		var err error
		if i < 8 {
			_, err = p.CommitUpload(context.Background(), fmt.Sprintf("u%d", i), want.Digest)
		} else {
			err = p.Put(context.Background(), want, bytes.NewReader(content))
		}
		if err != nil {
			t.Errorf("way %d: %v", i, err)
		}
	})
	p.holds([]digest.Descriptor{want}, nil)
}
