package registry_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
)

// TestOpenUploadsCostNothing starts ten thousand uploads: nothing of them is in any store, and each takes its blob.
func TestOpenUploadsCostNothing(t *testing.T) {
	s, meta := newCaching(t, false)
	ctx := t.Context()
	generation, _ := meta.Generation()
	ids := map[string]bool{}
	var last string
	for range 10_000 {
		u, err := s.StartUpload(ctx, root, "a/x")
		if err != nil {
			t.Fatal(err)
		}
		last, ids[u.ID] = u.ID, true
	}
	if len(ids) != 10_000 {
		t.Errorf("%d different ids of 10,000", len(ids))
	}
	if g, _ := meta.Generation(); g != generation {
		t.Errorf("starting uploads committed %d times", g-generation)
	}
	if size, err := s.UploadStatus(ctx, root, "a/x", last); size != 0 || err != nil {
		t.Errorf("status of an upload without bytes: %d, %v", size, err)
	}
	content := []byte("content")
	chunk := registry.Chunk{Offset: -1, Size: int64(len(content)), Body: bytes.NewReader(content)}
	if _, err := s.FinishUpload(ctx, root, "a/x", last, chunk, digest.FromBytes(content)); err != nil {
		t.Error(err)
	}
}

// TestUploadIDsAreBound uses ids where, by whom and when they were not made for: each is unknown, and so is a closed one.
func TestUploadIDsAreBound(t *testing.T) {
	s, meta := newCaching(t, false)
	ctx := t.Context()
	u, err := s.StartUpload(ctx, root, "a/x")
	if err != nil {
		t.Fatal(err)
	}
	other := auth.Principal{Account: "other", Role: auth.Admin}
	unknown := func(what string, err error) {
		t.Helper()
		if registry.CodeOf(err) != registry.BlobUploadUnknown {
			t.Errorf("%s: got error %v, want %s", what, err, registry.BlobUploadUnknown)
		}
	}
	status := func(p auth.Principal, repository, id string) error {
		_, err := s.UploadStatus(ctx, p, repository, id)
		return err
	}
	if err := status(root, "a/x", u.ID); err != nil {
		t.Error(err)
	}
	unknown("another repository", status(root, "a/y", u.ID))
	unknown("another account", status(other, "a/x", u.ID))
	for at := range u.ID {
		changed := u.ID[:at] + string("0123456789abcdef"[(strings.IndexByte("0123456789abcdef", u.ID[at])+1)%16]) + u.ID[at+1:]
		unknown(fmt.Sprint("another digit at ", at), status(root, "a/x", changed))
	}
	for _, id := range []string{"", "0", u.ID[:32], u.ID + "0", strings.ToUpper(u.ID)} {
		unknown("id "+id, status(root, "a/x", id))
	}
	meta.later.Store(int64(registry.DefaultSettings().UploadTTL - time.Minute))
	if err := status(root, "a/x", u.ID); err != nil {
		t.Errorf("a minute before it expires: %v", err)
	}
	meta.later.Store(int64(registry.DefaultSettings().UploadTTL))
	unknown("expired", status(root, "a/x", u.ID))

	meta.later.Store(0)
	for what, end := range map[string]func(id string) error{
		"finished": func(id string) error {
			_, err := s.FinishUpload(ctx, root, "a/x", id, registry.Chunk{Offset: -1, Body: strings.NewReader("")}, digest.FromBytes(nil))
			return err
		},
		"cancelled": func(id string) error { return s.CancelUpload(ctx, root, "a/x", id) },
	} {
		u, err := s.StartUpload(ctx, root, "a/x")
		if err != nil {
			t.Fatal(err)
		}
		if err := end(u.ID); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		unknown(what+", status", status(root, "a/x", u.ID))
		_, err = s.AppendUpload(ctx, root, "a/x", u.ID, registry.Chunk{Offset: -1, Size: 1, Body: strings.NewReader("x")})
		unknown(what+", append", err)
		unknown(what+", again", end(u.ID))
	}
}

// TestContentAroundTheBound pushes blobs on both sides of what lies beside its row: they are read back alike, whole and in
// chunks, and a mount and a second push work alike.
func TestContentAroundTheBound(t *testing.T) {
	s, _ := newCaching(t, false)
	ctx := t.Context()
	for _, size := range []int{0, 1, 32<<10 - 1, 32 << 10, 32<<10 + 1, 100 << 10} {
		for _, chunked := range []bool{false, true} {
			content := bytes.Repeat([]byte{byte(size), 7, 1}, size/3+1)[:size]
			if chunked {
				content = append(content, 9)
			}
			d := digest.FromBytes(content)
			u, err := s.StartUpload(ctx, root, "a/x")
			if err != nil {
				t.Fatal(err)
			}
			last := registry.Chunk{Offset: -1, Size: int64(len(content)), Body: bytes.NewReader(content)}
			if chunked {
				half := len(content) / 2
				if _, err := s.AppendUpload(ctx, root, "a/x", u.ID, registry.Chunk{Offset: 0, Size: int64(half), Body: bytes.NewReader(content[:half])}); err != nil {
					t.Fatal(err)
				}
				last = registry.Chunk{Offset: int64(half), Size: -1, Body: bytes.NewReader(content[half:])}
			}
			if _, err := s.FinishUpload(ctx, root, "a/x", u.ID, last, d); err != nil {
				t.Fatalf("%d bytes, chunked %t: %v", len(content), chunked, err)
			}
			if ok, err := s.MountBlob(ctx, root, "a/y", "a/x", d); !ok || err != nil {
				t.Errorf("%d bytes: mounted %t, %v", len(content), ok, err)
			}
			for _, repository := range []string{"a/x", "a/y"} {
				blob, desc, err := s.OpenBlob(ctx, root, repository, d)
				if err != nil {
					t.Fatalf("%d bytes in %s: %v", len(content), repository, err)
				}
				got, err := digest.ReadAll(blob, desc)
				if err != nil || !bytes.Equal(got, content) {
					t.Errorf("%d bytes in %s: read %d, %v", len(content), repository, len(got), err)
				}
				blob.Close()
				if stat, err := s.StatBlob(ctx, root, repository, d); stat.Size != int64(len(content)) || err != nil {
					t.Errorf("%d bytes in %s: stat %d, %v", len(content), repository, stat.Size, err)
				}
			}
		}
	}
	wrong := registry.Chunk{Size: 4, Body: strings.NewReader("lies")}
	if _, err := s.PutBlob(ctx, root, "a/x", digest.FromBytes([]byte("else")), wrong); registry.CodeOf(err) != registry.DigestInvalid {
		t.Errorf("other bytes than the digest's: %v", err)
	}
}

// TestFinishIsRepeated holds that a client whose last request failed after its bytes had been stored may repeat that, with the
// last chunk or without one; that who never brought the bytes gains nothing by the same request; and that nothing stays.
func TestFinishIsRepeated(t *testing.T) {
	t.Parallel()
	everyEngine(t, eager(), func(t *testing.T, w *world) {
		ctx := t.Context()
		for n, rest := range []int{0, 1000} {
			bytesOf, repository := large(fmt.Sprint("finished twice ", n)), fmt.Sprint("alice/app", n)
			d, split := digest.FromBytes(bytesOf), len(bytesOf)-rest
			begin := func(content []byte) registry.Upload {
				t.Helper()
				u, err := w.other.StartUpload(ctx, root, repository)
				w.must("start", err)
				if len(content) > 0 {
					_, err = w.other.AppendUpload(ctx, root, repository, u.ID, registry.Chunk{Size: int64(len(content)), Body: bytes.NewReader(content)})
					w.must("append", err)
				}
				return u
			}
			finish := func(s *registry.Service, u registry.Upload) error {
				c := registry.Chunk{Offset: -1, Size: int64(rest), Body: bytes.NewReader(bytesOf[split:])}
				if rest > 0 {
					c.Offset = int64(split)
				}
				_, err := s.FinishUpload(ctx, root, repository, u.ID, c, d)
				return err
			}
			mine, empty, wrong := begin(bytesOf[:split]), begin(nil), begin([]byte("something else"))
			w.must("read-only", registry.SetReadOnly(ctx, w.bare, "for a moment"))
			for range 2 {
				if err := finish(w.other, mine); registry.CodeOf(err) != registry.Unavailable {
					t.Errorf("finish while read-only: %v, want Unavailable", err)
				}
			}
			w.must("writable", registry.SetReadOnly(ctx, w.bare, ""))
			for what, u := range map[string]registry.Upload{"without bytes": empty, "of other bytes": wrong} {
				if err := finish(w.janitor, u); err == nil {
					t.Errorf("an upload %s became the blob that another had brought", what)
				}
			}
			w.must("finish again, at the other replica", finish(w.janitor, mine))
			w.must("pull", pullBlob(w.other, repository, d))
			if err := finish(w.other, mine); registry.CodeOf(err) != registry.BlobUploadUnknown {
				t.Errorf("finish of a finished upload: %v", err)
			}
			w.must("cancel", w.other.CancelUpload(ctx, root, repository, wrong.ID))
		}
		if left, err := os.ReadDir(filepath.Join(w.dir, "uploads")); err != nil || len(left) != 0 {
			t.Errorf("uploads that stay: %v, %v", left, err)
		}
	})
}
