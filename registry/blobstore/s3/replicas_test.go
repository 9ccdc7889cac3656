package s3

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
)

// TestReplicasShareUploads lets the appends of one session go to several processes in turn, and any of them commit it.
func TestReplicasShareUploads(t *testing.T) {
	eachServer(t, func(t *testing.T, server string) {
		all := replicas(t, server, 3)
		content := random(5_000, 1)
		for committer := range all {
			must(t, all[2].CreateUpload(t.Context(), "u"))
			for i := range 5 {
				add(t, all[i%2], "u", int64(i)*1000, content[i*1000:(i+1)*1000])
			}
			if _, err := all[committer].CommitUpload(t.Context(), "u", described(content[:4000]).Digest); !isMismatch(err) {
				t.Errorf("commit by other bytes: got error %v", err)
			}
			if _, err := all[committer].CommitUpload(t.Context(), "u", described(content).Digest); err != nil {
				t.Fatalf("commit by replica %d: %v", committer, err)
			}
			for _, s := range all {
				if !bytes.Equal(read(t, s, described(content).Digest), content) {
					t.Error("a replica reads other bytes")
				}
				if _, err := s.UploadSize(t.Context(), "u"); registry.CodeOf(err) != registry.BlobUploadUnknown {
					t.Errorf("size of a session that was committed: got error %v", err)
				}
			}
			wantKeys(t, all[0], all[0].bucket.blobKey(described(content).Digest))
		}
	})
}

func isMismatch(err error) bool {
	_, ok := errors.AsType[*digest.MismatchError](err)
	return ok
}

// TestReplicasAppendAtOnce lets many processes append at one offset: one wins, the others hear the true offset, and the
// session holds the winner's bytes. The appends are one PUT, or a multipart upload.
func TestReplicasAppendAtOnce(t *testing.T) {
	eachServer(t, func(t *testing.T, server string) {
		all := replicas(t, server, 8)
		for _, size := range []int{1000, minPart + 1000} {
			must(t, all[0].CreateUpload(t.Context(), "u"))
			add(t, all[0], "u", 0, random(100, 99))
			results := make([]error, len(all))
			sizes := make([]int64, len(all))
			together(len(all), func(i int) {
				sizes[i], results[i] = all[i].AppendUpload(t.Context(), "u", 100, bytes.NewReader(random(size+i, byte(i))), 1<<40)
			})
			winner := -1
			for i, err := range results {
				switch {
				case err == nil && winner >= 0:
					t.Errorf("replicas %d and %d both won", winner, i)
				case err == nil:
					winner = i
				}
			}
			if winner < 0 {
				t.Fatalf("nobody won: %v", results)
			}
			end := int64(100 + size + winner)
			for i, err := range results {
				if i != winner && (registry.CodeOf(err) != registry.RangeInvalid || sizes[i] != end) {
					t.Errorf("replica %d: got size %d, error %v, want %d and RangeInvalid", i, sizes[i], err, end)
				}
			}
			want := append(random(100, 99), random(size+winner, byte(winner))...)
			if _, err := all[(winner+1)%len(all)].CommitUpload(t.Context(), "u", described(want).Digest); err != nil {
				t.Errorf("commit of what the winner wrote: %v", err)
			}
			wantKeys(t, all[0], all[0].bucket.blobKey(described(want).Digest))
			must(t, all[0].Delete(t.Context(), described(want).Digest))
		}
	})
}

// TestReplicaEndsUpload ends a session by one process while another appends to it.
func TestReplicaEndsUpload(t *testing.T) {
	eachServer(t, func(t *testing.T, server string) {
		all := replicas(t, server, 2)
		for _, size := range []int{100, minPart + 100} {
			must(t, all[0].CreateUpload(t.Context(), "u"))
			src := bytes.NewReader(random(size, 1))
			_, err := all[0].AppendUpload(t.Context(), "u", 0, readerFunc(func(p []byte) (int, error) {
				if src.Len() < size/2 {
					must(t, all[1].AbortUpload(context.Background(), "u"))
				}
				return src.Read(p[:min(len(p), size/3)])
			}), 1<<40)
			if registry.CodeOf(err) != registry.BlobUploadUnknown {
				t.Errorf("append of %d bytes to a session that another ended: got error %v", size, err)
			}
			wantKeys(t, all[0])
		}
	})
}

// readerFunc is a function as io.Reader.
type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

var _ io.Reader = readerFunc(nil)

// TestReplicaStartsAgain gives an id to a new session behind the back of a process that knows the hash of the first one.
func TestReplicaStartsAgain(t *testing.T) {
	eachServer(t, func(t *testing.T, server string) {
		all := replicas(t, server, 2)
		first, second := random(1000, 1), random(1000, 2)
		must(t, all[0].CreateUpload(t.Context(), "u"))
		add(t, all[0], "u", 0, first)
		must(t, all[1].AbortUpload(t.Context(), "u"))
		must(t, all[1].CreateUpload(t.Context(), "u"))
		add(t, all[1], "u", 0, second)
		if _, err := all[0].CommitUpload(t.Context(), "u", described(first).Digest); !isMismatch(err) {
			t.Errorf("commit of the first session's bytes: got error %v, want a mismatch", err)
		}
		if _, err := all[0].CommitUpload(t.Context(), "u", described(second).Digest); err != nil {
			t.Errorf("commit of the second session's bytes: %v", err)
		}
		if !bytes.Equal(read(t, all[0], described(second).Digest), second) {
			t.Error("the blob holds other bytes")
		}
	})
}

// TestReplicasPutAndDelete puts one blob by many processes while others delete it: whoever succeeds leaves whole bytes, and
// who meets a delete says so.
func TestReplicasPutAndDelete(t *testing.T) {
	eachServer(t, func(t *testing.T, server string) {
		all := replicas(t, server, 4)
		for _, size := range []int{1000, minPart + 1000} {
			content := random(size, 3)
			want := described(content)
			for range 5 {
				together(2*len(all), func(i int) {
					s := all[i%len(all)]
					if i%4 == 3 {
						if err := s.Delete(t.Context(), want.Digest); err != nil {
							t.Errorf("delete: %v", err)
						}
						return
					}
					if err := s.Put(t.Context(), want, bytes.NewReader(content)); err != nil && registry.CodeOf(err) != registry.Unavailable {
						t.Errorf("put: %v", err)
					}
				})
				for b, err := range all[0].All(t.Context()) {
					if err != nil || b.Digest != want.Digest || b.Size != want.Size {
						t.Errorf("lists %+v, error %v", b, err)
					}
				}
			}
			must(t, all[0].Put(t.Context(), want, bytes.NewReader(content)))
			if !bytes.Equal(read(t, all[1], want.Digest), content) {
				t.Error("the blob holds other bytes")
			}
			wantKeys(t, all[0], all[0].bucket.blobKey(want.Digest))
			must(t, all[0].Delete(t.Context(), want.Digest))
		}
	})
}

// TestReadOverRewrite reads a blob while another process puts it again, which gives the object another ETag, and while
// another takes it away.
func TestReadOverRewrite(t *testing.T) {
	eachServer(t, func(t *testing.T, server string) {
		all := replicas(t, server, 2)
		content := random(3*minPart, 4)
		want := described(content)
		must(t, all[0].Put(t.Context(), want, bytes.NewReader(content)))
		blob, _, err := all[0].Open(t.Context(), want.Digest)
		must(t, err)
		defer blob.Close()
		half := len(content) / 2
		must(t, all[1].bucket.compose(t.Context(), all[1].bucket.blobKey(want.Digest), // one part instead of three
			[]segment{{key: all[1].bucket.blobKey(want.Digest), etag: blob.(*reader).segments[0].etag, size: want.Size}}))
		got := make([]byte, half)
		if _, err := io.ReadFull(blob, got); err != nil || !bytes.Equal(got, content[:half]) {
			t.Fatalf("the first half, of an object that was written again: error %v", err)
		}
		if _, err := blob.Seek(10, io.SeekStart); err != nil { // the running request ends here
			t.Fatal(err)
		}
		if got, err := io.ReadAll(blob); err != nil || !bytes.Equal(got, content[10:]) {
			t.Errorf("from byte 10, after the rewrite: %d bytes, error %v", len(got), err)
		}
		must(t, all[1].Delete(t.Context(), want.Digest))
		if _, err := blob.Seek(10, io.SeekStart); err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(blob); err == nil {
			t.Errorf("a blob that was deleted: read %d bytes and no error", len(got))
		}
	})
}
