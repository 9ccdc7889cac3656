package s3

import (
	"bytes"
	"context"
	"crypto/sha512"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/internal/testservice"
	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/blobstore/blobtest"
)

// options are those of a bucket.
func options(b testservice.S3Bucket) Options {
	return Options{
		Bucket: b.Name, Endpoint: b.Endpoint, Region: b.Region, PathStyle: true, AccessKey: b.AccessKey, SecretKey: b.SecretKey,
	}
}

// store opens a store whose parts are small and whose times are short, so that a test meets every way.
func store(t testing.TB, o Options) *Store {
	t.Helper()
	s, err := open(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	s.bucket.touchAfter, s.bucket.staleAfter = 0, 0
	t.Cleanup(func() { s.Close() })
	return s
}

// eachServer runs a test on every S3 server there is.
func eachServer(t *testing.T, test func(t *testing.T, server string)) {
	t.Helper()
	t.Parallel()
	for _, server := range testservice.S3Servers() {
		t.Run(server, func(t *testing.T) { test(t, server) })
	}
}

func TestBlobStore(t *testing.T) {
	eachServer(t, func(t *testing.T, server string) {
		bucket := testservice.S3On(t, server)
		blobtest.Run(t, func(t *testing.T, dir string) registry.BlobStore {
			o := options(bucket)
			o.Prefix = dir // each test's folder is a prefix of its own
			return store(t, o)
		})
	})
}

// replicas are stores of several processes on one bucket, with parts as small as a store takes them.
func replicas(t testing.TB, server string, n int) []*Store {
	t.Helper()
	o := options(testservice.S3On(t, server))
	o.Prefix = "registry"
	all := make([]*Store, n)
	for i := range all {
		all[i] = store(t, o)
		all[i].bucket.partSize = minPart
	}
	return all
}

// random is n bytes that depend on nothing but n and seed.
func random(n int, seed byte) []byte {
	b := make([]byte, n)
	rand.NewChaCha8(sha512.Sum512_256([]byte{seed})).Read(b)
	return b
}

func described(b []byte) digest.Descriptor {
	return digest.Descriptor{Digest: digest.FromBytes(b), Size: int64(len(b))}
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

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// read is the whole blob.
func read(t testing.TB, s *Store, d digest.Digest) []byte {
	t.Helper()
	blob, size, err := s.Open(t.Context(), d)
	must(t, err)
	content, err := io.ReadAll(blob)
	must(t, errors.Join(err, blob.Close()))
	if int64(len(content)) != size {
		t.Errorf("size: got %d, but %d bytes came", size, len(content))
	}
	return content
}

// keys are all objects of the bucket, and its unfinished multipart uploads.
func keys(t testing.TB, s *Store) []string {
	t.Helper()
	var all []string
	for info, err := range s.bucket.list(t.Context(), "") {
		must(t, err)
		all = append(all, info.Key)
	}
	for left, err := range s.bucket.unfinished(t.Context(), "") {
		must(t, err)
		all = append(all, "unfinished "+left.Key)
	}
	slices.Sort(all)
	return all
}

// wantKeys checks what the bucket holds.
func wantKeys(t testing.TB, s *Store, want ...string) {
	t.Helper()
	if got := keys(t, s); !slices.Equal(got, want) {
		t.Errorf("the bucket holds %q, want %q", got, want)
	}
}

func add(t testing.TB, s *Store, id string, offset int64, part []byte) {
	t.Helper()
	size, err := s.AppendUpload(t.Context(), id, offset, bytes.NewReader(part), 1<<40)
	if err != nil || size != offset+int64(len(part)) {
		t.Fatalf("append of %d bytes at %d: got size %d, error %v", len(part), offset, size, err)
	}
}

// TestLargeBlobs takes each way in with bytes of more than one part, and reads at each border.
func TestLargeBlobs(t *testing.T) {
	eachServer(t, func(t *testing.T, server string) {
		s := replicas(t, server, 1)[0]
		var want []string
		check := func(content []byte) {
			t.Helper()
			d := described(content).Digest
			if !bytes.Equal(read(t, s, d), content) {
				t.Errorf("%d bytes came back as others", len(content))
			}
			want = append(want, s.bucket.blobKey(d))
			slices.Sort(want)
			want = slices.Compact(want)
			wantKeys(t, s, want...)
		}
		for i, size := range []int{minPart - 1, minPart, minPart + 1, 3*minPart + 7} {
			content := random(size, byte(i))
			must(t, s.Put(t.Context(), described(content), bytes.NewReader(content)))
			check(content)
			must(t, s.Put(t.Context(), described(content), bytes.NewReader(content)))
			check(content)
		}
		for i, chunk := range []int{2*minPart + 1, minPart, minPart + 5, minPart / 3} { // one object; parts; too small for parts
			content := random(2*minPart+1, byte(20+i))
			must(t, s.CreateUpload(t.Context(), "u"))
			at := int64(0)
			for part := range slices.Chunk(content, chunk) {
				add(t, s, "u", at, part)
				at += int64(len(part))
			}
			if got, err := s.CommitUpload(t.Context(), "u", described(content).Digest); err != nil || got != described(content) {
				t.Fatalf("commit: got %v, error %v", got, err)
			}
			check(content)
		}
	})
}

// TestPartsOfUploads reads a session of several objects from every place, and commits it by another algorithm, which
// reads it again.
func TestPartsOfUploads(t *testing.T) {
	eachServer(t, func(t *testing.T, server string) {
		s := replicas(t, server, 1)[0]
		content := random(10_000, 1)
		must(t, s.CreateUpload(t.Context(), "u"))
		for at := int64(0); at < 10_000; at += 999 {
			add(t, s, "u", at, content[at:min(at+999, 10_000)])
		}
		blob, size, err := s.OpenUpload(t.Context(), "u")
		must(t, err)
		defer blob.Close()
		for _, at := range []int64{0, 998, 999, 1000, 5000, 9990, 9999} {
			if _, err := blob.Seek(at, io.SeekStart); err != nil {
				t.Fatal(err)
			}
			if rest, err := io.ReadAll(blob); err != nil || !bytes.Equal(rest, content[at:]) {
				t.Errorf("from %d: %d bytes, error %v", at, len(rest), err)
			}
			p := make([]byte, 1500)
			n, err := blob.ReadAt(p, at)
			if want := content[at:min(at+1500, size)]; !bytes.Equal(p[:n], want) || (err == io.EOF) != (at+1500 > size) {
				t.Errorf("ReadAt %d: %d bytes, error %v, want %d", at, n, err, len(want))
			}
		}
		h := digest.SHA512.New()
		h.Write(content)
		want := digest.FromHash(digest.SHA512, h)
		if _, err := s.CommitUpload(t.Context(), "u", want); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(read(t, s, want), content) {
			t.Error("the blob holds other bytes")
		}
	})
}

// TestPresign fetches a blob as a client does, without credentials.
func TestPresign(t *testing.T) {
	eachServer(t, func(t *testing.T, server string) {
		s := replicas(t, server, 1)[0]
		content := random(1000, 1)
		must(t, s.Put(t.Context(), described(content), bytes.NewReader(content)))
		address, err := s.Presign(t.Context(), described(content).Digest, time.Minute)
		must(t, err)
		answer, err := http.Get(address)
		must(t, err)
		defer answer.Body.Close()
		got, err := io.ReadAll(answer.Body)
		must(t, err)
		if answer.StatusCode != http.StatusOK || !bytes.Equal(got, content) || answer.Header.Get("Content-Type") != "application/octet-stream" {
			t.Errorf("status %d, type %q, %d bytes", answer.StatusCode, answer.Header.Get("Content-Type"), len(got))
		}
	})
}

// TestLargeFailures ends large writes in the middle, or with other bytes than were named: nothing stays.
func TestLargeFailures(t *testing.T) {
	eachServer(t, func(t *testing.T, server string) {
		s := replicas(t, server, 1)[0]
		content := random(2*minPart+100, 1)
		broken := errors.New("the reader's own error")
		src := io.MultiReader(bytes.NewReader(content[:minPart+50]), readerFunc(func([]byte) (int, error) { return 0, broken }))
		if err := s.Put(t.Context(), described(content), src); !errors.Is(err, broken) {
			t.Errorf("put with a reader that fails: got error %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		whole := bytes.NewReader(content)
		err := s.Put(ctx, described(content), readerFunc(func(p []byte) (int, error) {
			if whole.Len() < minPart {
				cancel()
			}
			return whole.Read(p)
		}))
		if !errors.Is(err, context.Canceled) {
			t.Errorf("put whose caller goes away: got error %v", err)
		}
		other := bytes.Clone(content)
		other[len(other)-1] ^= 1
		if err := s.Put(t.Context(), described(content), bytes.NewReader(other)); !isMismatch(err) {
			t.Errorf("put of other bytes: got error %v", err)
		}
		wantKeys(t, s)
		must(t, s.CreateUpload(t.Context(), "u"))
		if _, err := s.AppendUpload(t.Context(), "u", 0, bytes.NewReader(content), minPart+1); registry.CodeOf(err) != registry.TooLarge {
			t.Errorf("append beyond the limit: got error %v", err)
		}
		wantKeys(t, s, "registry/uploads/u/start")
		src = io.MultiReader(bytes.NewReader(content[:minPart+50]), readerFunc(func([]byte) (int, error) { return 0, broken }))
		if size, err := s.AppendUpload(t.Context(), "u", 0, src, 1<<30); !errors.Is(err, broken) || size != minPart+50 {
			t.Errorf("append with a reader that fails: got size %d, error %v", size, err)
		}
		add(t, s, "u", minPart+50, content[minPart+50:])
		if _, err := s.CommitUpload(t.Context(), "u", described(content).Digest); err != nil {
			t.Error(err)
		}
	})
}

// TestStoreGoesAway stops the store's server and starts it again.
func TestStoreGoesAway(t *testing.T) {
	t.Parallel()
	server, bucket := testservice.OwnS3(t)
	s := store(t, options(bucket))
	content := random(1000, 1)
	must(t, s.Put(t.Context(), described(content), bytes.NewReader(content)))
	must(t, s.CreateUpload(t.Context(), "u"))
	add(t, s, "u", 0, content[:400])
	must(t, server.Stop())
	for name, err := range map[string]error{
		"put":    s.Put(t.Context(), described(content[:10]), bytes.NewReader(content[:10])),
		"create": s.CreateUpload(t.Context(), "v"),
		"delete": s.Delete(t.Context(), described(content).Digest),
	} {
		if e, ok := errors.AsType[*registry.Error](err); !ok || e.Code != registry.Unavailable || e.RetryAfter == 0 {
			t.Errorf("%s without a server: got error %v, want code Unavailable and when to try again", name, err)
		}
	}
	must(t, server.Start())
	if !bytes.Equal(read(t, s, described(content).Digest), content) {
		t.Error("the blob holds other bytes")
	}
	add(t, s, "u", 400, content[400:])
	if _, err := s.CommitUpload(t.Context(), "u", described(content).Digest); err != nil {
		t.Error(err)
	}
}
