package server_test

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
)

// errInjected is what a failing store answers.
var errInjected = errors.New("injected failure of a store")

// moment is when a step fails.
type moment uint8

const (
	before moment = iota // nothing of it happened
	after                // all of it happened, and its answer was lost
)

// faults counts the steps of the stores and lets one of them fail.
type faults struct {
	meta registry.MetaStore // the real one, which never fails

	mu    sync.Mutex
	left  int // steps until the one that fails; negative: none does
	when  moment
	fired string // the step that failed, "" while none did
}

// arm lets the n-th step from now fail, counted from 0.
func (f *faults) arm(n int, when moment) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left, f.when, f.fired = n, when, ""
}

// disarm gives the step that failed.
func (f *faults) disarm() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left = -1
	return f.fired
}

// step runs do, which may be the step that fails.
func (f *faults) step(name string, do func() error) error {
	f.mu.Lock()
	now := f.left == 0
	when := f.when
	if f.left >= 0 {
		f.left--
	}
	if now {
		f.fired = name
	}
	f.mu.Unlock()
	if now && when == before {
		return errInjected
	}
	err := do()
	if now && err == nil {
		return errInjected
	}
	return err
}

// stepValue is step for what gives a value.
func stepValue[T any](f *faults, name string, do func() (T, error)) (v T, err error) {
	err = f.step(name, func() (err error) {
		v, err = do()
		return err
	})
	return v, err
}

// faultyBlobs is a real blob store whose steps may fail.
type faultyBlobs struct {
	registry.BlobStore
	f *faults
}

func (b faultyBlobs) Put(ctx context.Context, want digest.Descriptor, r io.Reader) error {
	return b.f.step("blobs.Put", func() error { return b.BlobStore.Put(ctx, want, r) })
}

func (b faultyBlobs) CreateUpload(ctx context.Context, id string) error {
	return b.f.step("blobs.CreateUpload", func() error { return b.BlobStore.CreateUpload(ctx, id) })
}

func (b faultyBlobs) UploadSize(ctx context.Context, id string) (int64, error) {
	return stepValue(b.f, "blobs.UploadSize", func() (int64, error) { return b.BlobStore.UploadSize(ctx, id) })
}

func (b faultyBlobs) AppendUpload(ctx context.Context, id string, offset int64, r io.Reader, max int64) (int64, error) {
	return stepValue(b.f, "blobs.AppendUpload", func() (int64, error) { return b.BlobStore.AppendUpload(ctx, id, offset, r, max) })
}

func (b faultyBlobs) CommitUpload(ctx context.Context, id string, want digest.Digest) (digest.Descriptor, error) {
	return stepValue(b.f, "blobs.CommitUpload", func() (digest.Descriptor, error) { return b.BlobStore.CommitUpload(ctx, id, want) })
}

func (b faultyBlobs) AbortUpload(ctx context.Context, id string) error {
	return b.f.step("blobs.AbortUpload", func() error { return b.BlobStore.AbortUpload(ctx, id) })
}

func (b faultyBlobs) Open(ctx context.Context, d digest.Digest) (registry.Blob, int64, error) {
	return b.open("blobs.Open", func() (registry.Blob, int64, error) { return b.BlobStore.Open(ctx, d) })
}

func (b faultyBlobs) OpenUpload(ctx context.Context, id string) (registry.Blob, int64, error) {
	return b.open("blobs.OpenUpload", func() (registry.Blob, int64, error) { return b.BlobStore.OpenUpload(ctx, id) })
}

func (b faultyBlobs) open(name string, do func() (registry.Blob, int64, error)) (blob registry.Blob, size int64, err error) {
	err = b.f.step(name, func() (err error) {
		blob, size, err = do()
		return err
	})
	if err != nil {
		if blob != nil {
			blob.Close()
		}
		return nil, 0, err
	}
	return faultyBlob{blob, b.f}, size, nil
}

// faultyBlob fails while it is read.
type faultyBlob struct {
	registry.Blob
	f *faults
}

func (b faultyBlob) Read(p []byte) (n int, err error) {
	eof := false
	err = b.f.step("blob.Read", func() (err error) {
		n, err = b.Blob.Read(p)
		eof = err == io.EOF
		if eof {
			return nil
		}
		return err
	})
	if err == nil && eof {
		err = io.EOF
	}
	return n, err
}

// faultyMeta is a real metadata store whose transactions, their steps and their commits may fail.
type faultyMeta struct {
	registry.MetaStore
	f *faults
}

func (m faultyMeta) View(ctx context.Context, fn func(registry.Tx) error) error {
	return m.f.step("View", func() error {
		return m.MetaStore.View(ctx, func(tx registry.Tx) error { return fn(faultyTx{tx, m.f}) })
	})
}

func (m faultyMeta) Update(ctx context.Context, fn func(registry.Tx) error) error {
	return m.f.step("Update", func() error {
		return m.MetaStore.Update(ctx, func(tx registry.Tx) error {
			if err := fn(faultyTx{tx, m.f}); err != nil {
				return err
			}
			return m.f.step("commit", func() error { return nil })
		})
	})
}

// faultyTx has a step for each row that a publish or a submission reads or writes.
type faultyTx struct {
	registry.Tx
	f *faults
}

func (t faultyTx) TokenByHash(h [32]byte) (registry.Token, error) {
	return stepValue(t.f, "TokenByHash", func() (registry.Token, error) { return t.Tx.TokenByHash(h) })
}
func (t faultyTx) Account(name string) (registry.Account, error) {
	return stepValue(t.f, "Account", func() (registry.Account, error) { return t.Tx.Account(name) })
}
func (t faultyTx) Versions(r string) ([]registry.Version, error) {
	return stepValue(t.f, "Versions", func() ([]registry.Version, error) { return t.Tx.Versions(r) })
}
func (t faultyTx) LastVersions(r string, n int) ([]registry.Version, error) {
	return stepValue(t.f, "LastVersions", func() ([]registry.Version, error) { return t.Tx.LastVersions(r, n) })
}
func (t faultyTx) Version(r, v string) (registry.Version, error) {
	return stepValue(t.f, "Version", func() (registry.Version, error) { return t.Tx.Version(r, v) })
}
func (t faultyTx) VersionsByContent(d digest.Digest) ([]registry.Version, error) {
	return stepValue(t.f, "VersionsByContent", func() ([]registry.Version, error) { return t.Tx.VersionsByContent(d) })
}
func (t faultyTx) AllVersions(yield func(registry.Version) error) error {
	return t.f.step("AllVersions", func() error { return t.Tx.AllVersions(yield) })
}
func (t faultyTx) PackByFold(owner, fold string) (registry.Repository, error) {
	return stepValue(t.f, "PackByFold", func() (registry.Repository, error) { return t.Tx.PackByFold(owner, fold) })
}
func (t faultyTx) ClientIDHolder(d dialect.Dialect, kind, id string) (registry.ClientID, error) {
	return stepValue(t.f, "ClientIDHolder", func() (registry.ClientID, error) { return t.Tx.ClientIDHolder(d, kind, id) })
}
func (t faultyTx) Snapshots(d dialect.Dialect) ([]registry.Snapshot, error) {
	return stepValue(t.f, "Snapshots", func() ([]registry.Snapshot, error) { return t.Tx.Snapshots(d) })
}
func (t faultyTx) LinkedBlob(r string, d digest.Digest) (digest.Descriptor, error) {
	return stepValue(t.f, "LinkedBlob", func() (digest.Descriptor, error) { return t.Tx.LinkedBlob(r, d) })
}
func (t faultyTx) EnsureRepository(r registry.Repository) error {
	return t.f.step("EnsureRepository", func() error { return t.Tx.EnsureRepository(r) })
}
func (t faultyTx) SetPackRepository(name, packName, fold, kind string) error {
	return t.f.step("SetPackRepository", func() error { return t.Tx.SetPackRepository(name, packName, fold, kind) })
}
func (t faultyTx) TakeClientID(c registry.ClientID) error {
	return t.f.step("TakeClientID", func() error { return t.Tx.TakeClientID(c) })
}

func (t faultyTx) PutShelved(v registry.Shelved) error {
	return t.f.step("PutShelved", func() error { return t.Tx.PutShelved(v) })
}

func (t faultyTx) PutCatalogueStamp(d dialect.Dialect, part registry.CataloguePart, stamp string) error {
	return t.f.step("PutCatalogueStamp", func() error { return t.Tx.PutCatalogueStamp(d, part, stamp) })
}
func (t faultyTx) LinkBlob(r string, d digest.Descriptor, at time.Time) error {
	return t.f.step("LinkBlob", func() error { return t.Tx.LinkBlob(r, d, at) })
}
func (t faultyTx) PutSmall(d digest.Digest, content []byte, at time.Time) error {
	return t.f.step("PutSmall", func() error { return t.Tx.PutSmall(d, content, at) })
}
func (t faultyTx) Small(d digest.Digest) ([]byte, error) {
	return stepValue(t.f, "Small", func() ([]byte, error) { return t.Tx.Small(d) })
}
func (t faultyTx) PutManifest(m registry.Manifest) error {
	return t.f.step("PutManifest", func() error { return t.Tx.PutManifest(m) })
}
func (t faultyTx) InsertVersion(v registry.Version) error {
	return t.f.step("InsertVersion", func() error { return t.Tx.InsertVersion(v) })
}
func (t faultyTx) PutTag(tag registry.Tag) error {
	return t.f.step("PutTag", func() error { return t.Tx.PutTag(tag) })
}
func (t faultyTx) InsertAudit(a registry.AuditRow) error {
	return t.f.step("InsertAudit", func() error { return t.Tx.InsertAudit(a) })
}
func (t faultyTx) Ledger(seq int64, limit int) ([]registry.LedgerRow, error) {
	return stepValue(t.f, "Ledger", func() ([]registry.LedgerRow, error) { return t.Tx.Ledger(seq, limit) })
}
func (t faultyTx) Leased(account string, now time.Time) (registry.Leased, error) {
	return stepValue(t.f, "Leased", func() (registry.Leased, error) { return t.Tx.Leased(account, now) })
}
func (t faultyTx) InsertJob(j registry.Job) error {
	return t.f.step("InsertJob", func() error { return t.Tx.InsertJob(j) })
}
func (t faultyTx) Preview(id string) (registry.Preview, error) {
	return stepValue(t.f, "Preview", func() (registry.Preview, error) { return t.Tx.Preview(id) })
}
func (t faultyTx) InsertPreview(p registry.Preview) error {
	return t.f.step("InsertPreview", func() error { return t.Tx.InsertPreview(p) })
}
func (t faultyTx) JobByKey(account, key string) (registry.Job, error) {
	return stepValue(t.f, "JobByKey", func() (registry.Job, error) { return t.Tx.JobByKey(account, key) })
}
func (t faultyTx) MarkPreviewCommitted(id, job string) error {
	return t.f.step("MarkPreviewCommitted", func() error { return t.Tx.MarkPreviewCommitted(id, job) })
}

// faultyLedger is a real ledger file whose appends may fail.
type faultyLedger struct {
	registry.LedgerFile
	f *faults
}

func (l faultyLedger) Append(rows []registry.LedgerRow) error {
	return l.f.step("ledger.Append", func() error { return l.LedgerFile.Append(rows) })
}
