package registry_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/internal/testservice"
	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
	"github.com/gatehouse-registry/gatehouse/registry/blobstore/fs"
	"github.com/gatehouse-registry/gatehouse/registry/blobstore/s3"
	"github.com/gatehouse-registry/gatehouse/registry/metastore"
)

// world is a registry of two replicas: janitor collects, other serves clients. With SQLite both are Services of one process.
type world struct {
	t       testing.TB
	janitor *registry.Service
	other   *registry.Service
	blobs   *steppedBlobs
	metas   []*steppedMeta
	bare    registry.MetaStore // without steps
	later   atomic.Int64       // how far the clock is put forward
	dir     string
}

var root = auth.Principal{Account: "root", Role: auth.Admin}

// everyEngine runs a test on worlds of both engines.
func everyEngine(t *testing.T, set registry.Settings, test func(t *testing.T, w *world)) {
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(t, newSQLiteWorld(t, set))
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		test(t, newWorld(t, set, postgres(t)))
	})
}

// eager are settings in which nothing is too young to be collected.
func eager() registry.Settings {
	set := registry.DefaultSettings()
	set.Collection.Grace = 0
	return set
}

// newSQLiteWorld is a world on SQLite.
func newSQLiteWorld(t testing.TB, set registry.Settings) *world {
	return newWorld(t, set, func() *metastore.Store { return nil })
}

// newSharedWorld is a world on PostgreSQL and S3.
func newSharedWorld(t testing.TB, set registry.Settings) *world {
	t.Helper()
	bucket := testservice.S3(t)
	o, err := s3.ParseURL(bucket.Address())
	if err != nil {
		t.Fatal(err)
	}
	o.AccessKey, o.SecretKey = bucket.AccessKey, bucket.SecretKey
	blobs, err := s3.Open(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { blobs.Close() })
	w := &world{t: t, dir: t.TempDir(), blobs: &steppedBlobs{BlobStore: blobs}}
	w.begin(set, postgres(t))
	return w
}

// postgres opens stores on one database, as replicas do.
func postgres(t testing.TB) func() *metastore.Store {
	address := testservice.Postgres(t)
	return func() *metastore.Store {
		s, err := metastore.OpenPostgres(context.Background(), address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
}

func newWorld(t testing.TB, set registry.Settings, open func() *metastore.Store) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir()}
	blobs, err := fs.Open(w.dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { blobs.Close() })
	w.blobs = &steppedBlobs{BlobStore: blobs}
	w.begin(set, open)
	return w
}

// begin makes the world's Services over the stores that open gives; nil is SQLite.
func (w *world) begin(set registry.Settings, open func() *metastore.Store) {
	t := w.t
	t.Helper()
	first, second := open(), open()
	if first == nil {
		var err error
		if first, err = metastore.OpenSQLite(context.Background(), filepath.Join(w.dir, "gatehouse.db")); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { first.Close() })
		second = first
	}
	w.bare = first
	w.janitor, w.other = w.service(first, set, false), w.service(second, set, false)
}

// service makes a Service over the world's stores.
func (w *world) service(meta registry.MetaStore, set registry.Settings, alone bool) *registry.Service {
	w.t.Helper()
	stepped := &steppedMeta{MetaStore: meta}
	w.metas = append(w.metas, stepped)
	ledger, err := metastore.OpenLedger(filepath.Join(w.dir, fmt.Sprintf("ledger-%d", len(w.metas))))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { ledger.Close() })
	s, err := registry.New(context.Background(), registry.Deps{Blobs: w.blobs, Meta: stepped, Ledger: ledger, Alone: alone,
		Now: func() time.Time { return time.Now().Add(time.Duration(w.later.Load())) }}, set)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// pass puts the clock forward.
func (w *world) pass(d time.Duration) { w.later.Add(int64(d)) }

// steps says what happens between the steps of whoever works with a context that carries it: at step number at, do is called;
// from then on every step fails when dead is set, as for a process that was killed.
type steps struct {
	at   int
	do   func()
	dead bool

	n       int
	reached bool
	inside  bool
}

type stepsKey struct{}

var errKilled = errors.New("the process was killed here")

func (s *steps) context() context.Context {
	return context.WithValue(context.Background(), stepsKey{}, s)
}

// step is a place between two steps.
func step(ctx context.Context) error {
	s, ok := ctx.Value(stepsKey{}).(*steps)
	if !ok || s.inside {
		return nil
	}
	if s.reached && s.dead {
		return errKilled
	}
	s.n++
	if s.n-1 != s.at {
		return nil
	}
	s.reached = true
	if s.do != nil {
		s.inside = true
		s.do()
		s.inside = false
	}
	if s.dead {
		return errKilled
	}
	return nil
}

// steppedMeta has a step before and after every change.
type steppedMeta struct{ registry.MetaStore }

func (m *steppedMeta) Update(ctx context.Context, fn func(registry.Tx) error) error {
	if err := step(ctx); err != nil {
		return err
	}
	err := m.MetaStore.Update(ctx, fn)
	return errors.Join(err, step(ctx))
}

// steppedBlobs has a step before and after everything that changes or asks for bytes.
type steppedBlobs struct{ registry.BlobStore }

func (b *steppedBlobs) between(ctx context.Context, op func() error) error {
	if err := step(ctx); err != nil {
		return err
	}
	return errors.Join(op(), step(ctx))
}

func (b *steppedBlobs) Put(ctx context.Context, want digest.Descriptor, r io.Reader) error {
	return b.between(ctx, func() error { return b.BlobStore.Put(ctx, want, r) })
}

func (b *steppedBlobs) Stat(ctx context.Context, d digest.Digest) (size int64, err error) {
	if err := step(ctx); err != nil {
		return 0, err
	}
	size, err = b.BlobStore.Stat(ctx, d)
	if stepErr := step(ctx); stepErr != nil {
		return 0, stepErr
	}
	return size, err
}

func (b *steppedBlobs) Delete(ctx context.Context, d digest.Digest) error {
	return b.between(ctx, func() error { return b.BlobStore.Delete(ctx, d) })
}

func (b *steppedBlobs) CommitUpload(ctx context.Context, id string, want digest.Digest) (d digest.Descriptor, err error) {
	err = b.between(ctx, func() error {
		d, err = b.BlobStore.CommitUpload(ctx, id, want)
		return err
	})
	return d, err
}

// large is content that lies in the BlobStore.
func large(text string) []byte { return bytes.Repeat([]byte(text+"\n"), 40<<10/(len(text)+1)+1) }

// push uploads a blob by a session of two chunks, or at once.
func push(ctx context.Context, s *registry.Service, repository string, content []byte, inChunks bool) error {
	d := digest.FromBytes(content)
	if !inChunks {
		_, err := s.PutBlob(ctx, root, repository, d, registry.Chunk{Size: int64(len(content)), Body: bytes.NewReader(content)})
		return err
	}
	u, err := s.StartUpload(ctx, root, repository)
	if err != nil {
		return err
	}
	half := len(content) / 2
	if _, err := s.AppendUpload(ctx, root, repository, u.ID, registry.Chunk{Size: int64(half), Body: bytes.NewReader(content[:half])}); err != nil {
		return err
	}
	rest := content[half:]
	_, err = s.FinishUpload(ctx, root, repository, u.ID, registry.Chunk{Offset: int64(half), Size: int64(len(rest)), Body: bytes.NewReader(rest)}, d)
	return err
}

const (
	imageType = "application/vnd.oci.image.manifest.v1+json"
	indexType = "application/vnd.oci.image.index.v1+json"
)

// image is the manifest of an image of one layer, with a subject unless that is zero.
func image(config, layer []byte, subject digest.Digest) []byte {
	describe := func(mediaType string, content []byte) map[string]any {
		return map[string]any{"mediaType": mediaType, "digest": digest.FromBytes(content).String(), "size": len(content)}
	}
	m := map[string]any{"schemaVersion": 2, "mediaType": imageType, "config": describe("application/vnd.example.config", config),
		"layers": []any{describe("application/vnd.example.layer", layer)}}
	if !subject.IsZero() {
		m["subject"] = map[string]any{"mediaType": imageType, "digest": subject.String(), "size": 1}
	}
	text, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	return text
}

func putManifest(ctx context.Context, s *registry.Service, repository, reference string, content []byte) error {
	ref, err := registry.ParseReference(reference)
	if err != nil {
		return err
	}
	mediaType := imageType
	if bytes.Contains(content, []byte(indexType)) {
		mediaType = indexType
	}
	_, err = s.PutManifest(ctx, root, repository, ref, mediaType, content)
	return err
}

// pull reads an artifact whole, as a client does that was told 2xx.
func pull(s *registry.Service, repository, reference string) error {
	ctx := context.Background()
	ref, err := registry.ParseReference(reference)
	if err != nil {
		return err
	}
	m, content, err := s.GetManifest(ctx, root, repository, ref)
	if err != nil {
		return fmt.Errorf("manifest %s: %w", reference, err)
	}
	if digest.FromBytes(content) != m.Digest {
		return fmt.Errorf("manifest %s has other bytes", reference)
	}
	var doc struct {
		Config *digest.Descriptor  `json:"config"`
		Layers []digest.Descriptor `json:"layers"`
	}
	if err := json.Unmarshal(content, &doc); err != nil {
		return err
	}
	if doc.Config != nil {
		doc.Layers = append(doc.Layers, *doc.Config)
	}
	for _, d := range doc.Layers {
		if err := pullBlob(s, repository, d.Digest); err != nil {
			return err
		}
	}
	return nil
}

func pullBlob(s *registry.Service, repository string, d digest.Digest) error {
	b, desc, err := s.OpenBlob(context.Background(), root, repository, d)
	if err != nil {
		return fmt.Errorf("blob %s: %w", d, err)
	}
	defer b.Close()
	_, err = io.Copy(io.Discard, digest.NewReader(b, desc))
	return err
}

// collect runs a collection that nothing disturbs.
func (w *world) collect() registry.CollectReport {
	w.t.Helper()
	r, err := w.janitor.Collect(context.Background(), root, registry.CollectOptions{})
	if err != nil {
		w.t.Fatalf("collect: %v", err)
	}
	return r
}

// must ends the test on an error.
func (w *world) must(what string, err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatalf("%s: %v", what, err)
	}
}

// again reports whether an error tells a client to push again: the content went while the push ran.
func again(err error) bool {
	switch registry.CodeOf(err) {
	case registry.Unavailable, registry.ManifestBlobUnknown, registry.BlobUnknown, registry.ManifestUnknown:
		return true
	}
	return false
}

// stored lists the digests in the BlobStore.
func (w *world) stored() string {
	var list []string
	for b, err := range w.blobs.BlobStore.All(context.Background()) {
		if err != nil {
			w.t.Fatal(err)
		}
		list = append(list, b.Digest.String())
	}
	return strings.Join(list, " ")
}
