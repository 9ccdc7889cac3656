package registry

import (
	"context"
	"io"
	"iter"
	"time"

	"github.com/gatehouse-registry/gatehouse/admission/denylist"
	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/receipt"
	"github.com/gatehouse-registry/gatehouse/digest"
)

// Blob is an open blob. The fs back-end gives an *os.File, so that serving it can use sendfile.
type Blob interface {
	io.ReadSeekCloser
	io.ReaderAt
}

// BlobStore keeps bytes by their digest. Every byte that it gives was verified when it was stored. All methods are
// safe for concurrent use.
type BlobStore interface {
	// Stat is the blob's size in bytes. Errors: ErrBlobUnknown.
	Stat(ctx context.Context, d digest.Digest) (int64, error)
	// Open opens a blob for reading and gives its size. Errors: ErrBlobUnknown.
	Open(ctx context.Context, d digest.Digest) (Blob, int64, error)
	// Put stores the bytes of r, which must be exactly those of want. It is atomic, idempotent, and durable when it
	// returns nil: file and folder are fsynced. Errors: *digest.MismatchError.
	Put(ctx context.Context, want digest.Descriptor, r io.Reader) error
	// Delete removes a blob; an absent one is no error.
	Delete(ctx context.Context, d digest.Digest) error
	// All lists every blob, in no order.
	All(ctx context.Context) iter.Seq2[StoredBlob, error]
	// Quarantine takes a blob whose bytes are damaged out of reading and keeps them aside for an administrator. Open and
	// Stat then answer ErrBlobUnknown, and Put stores good bytes in its place. Errors: ErrBlobUnknown.
	Quarantine(ctx context.Context, d digest.Digest) error

	// CreateUpload starts an upload session with no bytes. Errors: ErrConflict when the id is taken.
	CreateUpload(ctx context.Context, id string) error
	// UploadSize is how many bytes the session holds. Errors: ErrUploadUnknown.
	UploadSize(ctx context.Context, id string) (int64, error)
	// AppendUpload adds r's bytes at offset, which must be the session's size (Errors: RangeInvalid), and gives the
	// new size. When total would exceed max it fails with TooLarge and keeps what was there. When r fails, the bytes
	// that came before stay, as the distribution protocol wants. One append of a session at a time: a second one
	// fails with Conflict.
	AppendUpload(ctx context.Context, id string, offset int64, r io.Reader, max int64) (int64, error)
	// CommitUpload verifies the session's bytes against want, stores them durably as a blob and ends the session.
	// Errors: ErrUploadUnknown, *digest.MismatchError (the session stays).
	CommitUpload(ctx context.Context, id string, want digest.Digest) (digest.Descriptor, error)
	// OpenUpload reads what a session holds. Errors: ErrUploadUnknown.
	OpenUpload(ctx context.Context, id string) (Blob, int64, error)
	// AbortUpload ends a session and frees its bytes; an absent one is no error.
	AbortUpload(ctx context.Context, id string) error
	// Uploads lists the sessions with the time of their last write.
	Uploads(ctx context.Context) iter.Seq2[UploadSession, error]
}

// Presigner is a BlobStore whose blobs clients may fetch straight from the store.
type Presigner interface {
	// Presign gives an address at which a GET answers with the blob as application/octet-stream for ttl.
	Presign(ctx context.Context, d digest.Digest, ttl time.Duration) (string, error)
}

// StoredBlob is a blob as its store lists it.
type StoredBlob struct {
	Digest   digest.Digest
	Size     int64
	StoredAt time.Time // when its bytes were last put, by the store's clock: a Put of what is there moves it
}

// UploadSession is an upload that a BlobStore holds.
type UploadSession struct {
	ID        string
	Size      int64
	TouchedAt time.Time
}

// MetaStore keeps everything but bytes.
type MetaStore interface {
	// Generation counts the commits of this store. Where exact is true, it moves after every commit and before that is
	// acknowledged, and nobody else writes to the store: what a View read that began after a call of Generation is true
	// for as long as Generation gives the same number. Where exact is false, others may commit unseen.
	Generation() (g uint64, exact bool)
	// AccessGeneration is Generation for what says who may do what: it stays while commits change nothing but content, its
	// bytes and the audit log. So reads of accounts, tokens, repositories and the like stay true while others push.
	AccessGeneration() (g uint64, exact bool)
	// View runs fn in a read-only transaction with one consistent view.
	View(ctx context.Context, fn func(Tx) error) error
	// Update runs fn in a read-write transaction that commits, durably, when fn returns nil. fn may run again after
	// a serialization failure: it must have no side effects outside the transaction.
	Update(ctx context.Context, fn func(Tx) error) error
	Close() error
}

// Tx is a transaction of a MetaStore. A lookup that finds nothing returns the named sentinel, an insert that meets
// a unique constraint returns an *Error with Code Conflict.
type Tx interface {
	AccountTx
	ContentTx
	PackTx
	JobTx
	HandoverTx
	AuditTx
	AccessTx
	SessionTx
	CollectionTx
	CatalogueTx
	SuiteTx
	RunTx
	NodeTx
	RevocationTx
}

// AccountTx is the part of Tx about accounts and tokens.
type AccountTx interface {
	InsertAccount(Account) error               // Conflict: the name is taken
	Account(name string) (Account, error)      // ErrNotFound
	Accounts() ([]Account, error)              // sorted by name
	UpdateAccount(Account) error               // by name; ErrNotFound
	InsertToken(Token) error                   // NotFound: no such account
	TokenByHash(hash [32]byte) (Token, error)  // ErrNotFound; revoked and expired ones too
	Tokens(account string) ([]Token, error)    // sorted by creation; "" means all accounts
	RevokeToken(id string, at time.Time) error // ErrNotFound; revoking twice keeps the first time
}

// ContentTx is the part of Tx about repositories, blobs, manifests, tags and uploads that ended.
type ContentTx interface {
	Repository(name string) (Repository, error)                               // ErrNameUnknown
	EnsureRepository(Repository) error                                        // keeps an existing row
	SetPackRepository(name, packName, fold, kind string) error                // ErrNameUnknown; Conflict: another pack repository of the owner has the fold
	PackByFold(owner, fold string) (Repository, error)                        // ErrNameUnknown; see admission/name.Fold
	Repositories(after string, limit int) ([]string, error)                   // names of the visible ones in byte order, after is exclusive; limit < 0: all
	RepositoryVisible(name string) (bool, error)                              // whether it holds a manifest: blobs alone make nothing that anybody sees
	LinkBlob(repository string, b digest.Descriptor, at time.Time) error      // idempotent
	LinkedBlob(repository string, d digest.Digest) (digest.Descriptor, error) // ErrBlobUnknown
	// HeldBlob is LinkedBlob with the pack's version that was revoked and whose archive it is, "" for any other blob.
	HeldBlob(repository string, d digest.Digest) (HeldBlob, error)  // ErrBlobUnknown
	UnlinkBlob(repository string, d digest.Digest) error            // ErrBlobUnknown
	BlobRepositories(d digest.Digest) ([]string, error)             // repositories that link the blob, sorted
	BlobReferences(repository string, d digest.Digest) (int, error) // manifests of the repository, and files of versions that are not sealed, that are or name d
	PutManifest(Manifest) error                                     // idempotent by repository and digest
	Manifest(repository string, d digest.Digest) (Manifest, error)  // ErrManifestUnknown
	DeleteManifest(repository string, d digest.Digest) error        // with its tags; ErrManifestUnknown
	// Referrers yields the manifests whose subject is the given one, by digest from the one behind after, without their
	// References, until yield gives false. artifactType "" takes every type. yield must not use the transaction.
	Referrers(repository string, subject digest.Digest, artifactType string, after digest.Digest, yield func(Manifest) bool) error
	PutTag(Tag) error                                           // moves an existing tag
	Tag(repository, name string) (Tag, error)                   // ErrManifestUnknown
	DeleteTag(repository, name string) error                    // ErrManifestUnknown
	Tags(repository, after string, limit int) ([]string, error) // names in byte order, after is exclusive; limit < 0: all
	// FindManifest gives the manifest that a tag or a digest names, without its References: one row, one query.
	FindManifest(repository string, ref Reference) (Manifest, error) // ErrManifestUnknown
	// PutSmall keeps the bytes of a small blob, which the caller has compared with the digest, beside its rows. It replaces
	// what is there and makes it as young as a new one.
	PutSmall(d digest.Digest, content []byte, at time.Time) error
	Small(d digest.Digest) ([]byte, error)                           // ErrBlobUnknown
	StatSmall(d digest.Digest) (StoredBlob, error)                   // ErrBlobUnknown
	DeleteSmall(d digest.Digest) error                               // an absent one is no error
	SmallBlobs(after digest.Digest, limit int) ([]StoredBlob, error) // by digest, after is exclusive; limit < 0: all
	CloseUpload(id string, until time.Time) error                    // remembers that the upload has ended; idempotent
	UploadClosed(id string) (bool, error)                            // whether CloseUpload was called for it
	ForgetClosedUploads(now time.Time) error                         // those whose until has passed
}

// PackTx is the part of Tx about packs and the ledger. A list of versions leaves out Summary, Document and
// Catalogue, which can be large: a request must not hold those of every version of a pack.
type PackTx interface {
	InsertVersion(Version) error                                                     // Conflict: the version, or its Key, is taken, by Versions or by the ledger
	Version(repository, version string) (Version, error)                             // ErrNotFound; exact
	Versions(repository string) ([]Version, error)                                   // a list, by time of publishing
	LastVersions(repository string, limit int) ([]Version, error)                    // a list of those published last, the last one first
	AllVersions(yield func(Version) error) error                                     // a list, of every pack: by repository, then time
	SetEnabled(repository, version string, enabled bool, reason string) (int, error) // version "" means all; how many rows there are that are not revoked, which stay as they are
	VersionsByContent(content digest.Digest) ([]Version, error)                      // a list, of every pack with the content digest
	VersionByManifest(repository string, d digest.Digest) (Version, error)           // ErrNotFound
	Ledger(afterSeq int64, limit int) ([]LedgerRow, error)                           // in order; InsertVersion appends the row
	MergeLedger(repository, key string, row LedgerRow) (bool, error)                 // adds a row of the ledger file that a restored backup lacks; true when it did; Conflict: another manifest, or the key is taken
	Activation(kind string) (Activation, error)                                      // generation 0 and null before the first change
	PutActivation(a Activation, expected int64) error                                // Code Precondition when the generation moved
}

// CatalogueTx is the part of Tx about what clients find: the shelf, the ids by which they know what was published, and what
// their releases ship.
type CatalogueTx interface {
	// CatalogueStamp is a text that every change of the part replaces by a new one; "" before the first change.
	CatalogueStamp(d dialect.Dialect, part CataloguePart) (string, error)
	PutCatalogueStamp(d dialect.Dialect, part CataloguePart, stamp string) error
	PutShelved(Shelved) error                                          // replaces that of its dialect and repository; NotFound: no such version
	TakeOffShelf(d dialect.Dialect, repository string) (bool, error)   // whether there was one
	Shelved(d dialect.Dialect, repository string) (Shelved, error)     // ErrNotFound
	ShelvedRecipe(d dialect.Dialect, id string) ([]Shelved, error)     // whose recipe has the id, then whose alias is it: at most one each
	Shelf(d dialect.Dialect, yield func(Shelved) error) error          // all, by repository, without what the catalogue says of them
	ShelvedRecipes(d dialect.Dialect, yield func(Shelved) error) error // those of recipes, by recipe id
	// ShelvedDigests yields recipe id, version and digest of every recipe, by id.
	ShelvedDigests(d dialect.Dialect, yield func(id, version, digest string)) error
	ShelvedNames(d dialect.Dialect, prefix string, limit int) ([]string, error) // ids of recipes that begin with the prefix, sorted

	TakeClientID(ClientID) error                                         // Conflict: another pack has it, in any case; an alias gives way instead. The same pack again is fine
	ClientIDHolder(d dialect.Dialect, kind, id string) (ClientID, error) // in any case of its letters; ErrNotFound
	ClientIDs(d dialect.Dialect, kind string) ([]ClientID, error)        // sorted by id, without aliases

	PutSnapshot(Snapshot) error                                   // replaces the one of its dialect and release
	Snapshot(d dialect.Dialect, release string) (Snapshot, error) // ErrNotFound
	Snapshots(d dialect.Dialect) ([]Snapshot, error)              // without Document; newest import last
}

// JobTx is the part of Tx about submissions.
type JobTx interface {
	InsertJob(Job) error                                             // with the packs that it pins; Conflict: the id, or the account's Key, is taken
	Job(id string) (Job, error)                                      // ErrNotFound
	JobByKey(account, key string) (Job, error)                       // ErrNotFound
	Jobs(account string, limit int) ([]Job, error)                   // newest first, without Spec, Meta, Decision and Receipt; "" means all accounts
	SetJobStatus(id string, s JobStatus, leaseUntil time.Time) error // ErrNotFound
	Leased(account string, now time.Time) (Leased, error)            // what the jobs whose lease runs hold
	InsertPackageUpload(PackageUpload) error                         // Conflict: the id is taken
	PackageUpload(id string) (PackageUpload, error)                  // ErrNotFound
	MarkPackageStored(id, experiment string) error                   // what PackageUpload.Experiment says; ErrNotFound
	FindJobs(JobFilter) ([]Job, error)                               // as Jobs
	InsertPreview(Preview) error                                     // Conflict: the id is taken
	Preview(id string) (Preview, error)                              // ErrNotFound
	MarkPreviewCommitted(id, jobID string) error                     // ErrNotFound
	DeleteExpired(now time.Time) error                               // previews without a job and package uploads
}

// HandoverTx is the part of Tx about the outbox.
type HandoverTx interface {
	InsertHandover(Handover) error                                            // Conflict: the id, or the job's event for the target, is taken; NotFound: no such job
	Handover(id string) (Handover, error)                                     // ErrNotFound
	Handovers(HandoverFilter) ([]Handover, error)                             // newest job first
	DueHandovers(target string, now time.Time, limit int) ([]Handover, error) // that may be tried now, the longest due first; see below
	UpdateHandover(Handover) error                                            // all but what names it and CreatedAt; ErrNotFound
	HandoverCounts() ([]HandoverCount, error)                                 // of pending and dead rows, by target and state
	ReleaseHandovers(target string) (int, error)                              // nobody holds a row of the target any more; how many were held
	// A row may be tried while it is pending, due, and not held. A cancellation waits until the admission that came before it is no
	// longer pending nor held, so that a target never hears them the other way round.
}

// AuditTx is the part of Tx about the audit log and settings of the registry itself.
type AuditTx interface {
	InsertAudit(AuditRow) error                          // Seq is given by the store
	Audit(afterSeq int64, limit int) ([]AuditRow, error) // in order
	Setting(key string) (string, error)                  // ErrNotFound
	PutSetting(key, value string) error                  // replaces
}

// AccessTx is the part of Tx about robots, private repositories, owners of other names and failed sign-ins.
type AccessTx interface {
	RepositoryAccess(name, account string) (RepositoryAccess, error)         // ErrNameUnknown; Listed is about the account
	SetRepositoryAccess(name string, private bool, readers []string) error   // replaces the readers; ErrNameUnknown; NotFound: no such account
	RepositoryReaders(name string) ([]string, error)                         // sorted
	ReadableRepositories(account, after string, limit int) ([]string, error) // as Repositories, without the private ones that account neither owns nor is listed for
	HiddenPacks(account string) ([]string, error)                            // private pack repositories that account neither owns nor is listed for, sorted
	InsertRobot(Robot) error                                                 // Conflict: the name is taken; NotFound: no such account or owner
	Robot(name string) (Robot, error)                                        // ErrNotFound
	Robots(owner string) ([]Robot, error)                                    // by name; "" means of all owners
	DeleteRobot(name string) error                                           // with its account and tokens; ErrNotFound
	PutNamespace(Namespace) error                                            // replaces the one of its pattern; NotFound: no such owner
	NamespaceOf(patterns []string) (Namespace, error)                        // the first of the patterns that has one; ErrNotFound
	Namespaces() ([]Namespace, error)                                        // by pattern
	DeleteNamespace(pattern string) error                                    // ErrNotFound
	TokenByID(id string) (Token, error)                                      // ErrNotFound; revoked and expired ones too
	DeleteExpiredTokens(before time.Time) error                              // that expired before the time
	SignInFailures(subject string) (SignInFailures, error)                   // zero counts when there were none
	PutSignInFailures(SignInFailures) error                                  // replaces
	DeleteSignInFailures(before time.Time) error                             // whose last one was before the time
}

// SessionTx is the part of Tx about sessions and the codes that they are begun with.
type SessionTx interface {
	InsertSession(Session) error                                        // Conflict: the id is taken; NotFound: no such account
	Session(id string) (Session, error)                                 // ErrNotFound; revoked and expired ones too
	Sessions(account string, now time.Time) ([]Session, error)          // that are neither revoked nor expired, by creation; "" means all accounts
	UpdateSession(Session) error                                        // all but account, kind, device and creation; ErrNotFound
	RevokeSessions(account, except string, at time.Time) (int, error)   // those that live, but for the one of the id; how many
	DeleteEndedSessions(before time.Time) error                         // that were revoked or expired before the time
	InsertDeviceCode(DeviceCode) error                                  // Conflict: the hash or the user code is taken
	DeviceCode(hash [32]byte) (DeviceCode, error)                       // ErrNotFound; expired ones too
	DeviceCodeOf(userCode string) (DeviceCode, error)                   // ErrNotFound; expired ones too
	UpdateDeviceCode(DeviceCode) error                                  // state, account, credential, time of the poll; ErrNotFound
	DeviceCodes(network string, now time.Time) (of, all int, err error) // how many are pending and have not expired: of the network, and altogether
	InsertAuthorizationCode(AuthorizationCode) error                    // Conflict: the hash is taken
	AuthorizationCode(hash [32]byte) (AuthorizationCode, error)         // ErrNotFound; expired and used ones too
	UseAuthorizationCode(hash [32]byte, session string) error           // ErrNotFound
	DeleteExpiredCodes(before time.Time) error                          // codes of both kinds that expired before the time
}

// CollectionTx is the part of Tx about what may be removed, and about what owners hold. A list gives at most limit
// entries in byte order behind after.
type CollectionTx interface {
	// Condemn marks a digest whose bytes are about to be deleted, unless a row names it: then it answers false.
	Condemn(d digest.Digest, at time.Time) (bool, error)
	Pardon(blobs []digest.Digest) error                                        // ends Condemn, once the bytes are gone; counts in Pardons
	Condemned(limit int) ([]digest.Digest, error)                              // those that were not pardoned, by digest
	CondemnedAmong(blobs []digest.Digest) ([]digest.Digest, error)             // those of blobs that are condemned
	Pardons() (int64, error)                                                   // how often Pardon was called
	Links(after Link, limit int) ([]Link, error)                               // the blobs of every repository, by repository and digest
	Link(repository string, d digest.Digest) (Link, error)                     // ErrBlobUnknown
	Unlink(repository string, d digest.Digest, before time.Time) (bool, error) // unless a manifest of the repository names it, or it was linked later
	UnnamedSmall(before time.Time, after digest.Digest, limit int) ([]StoredBlob, error)
	DeleteUnnamedSmall(d digest.Digest, before time.Time) (bool, error) // unless a row names it, or it was stored later
	BlobNamed(d digest.Digest) (bool, error)                            // whether a row names its bytes

	// HeldManifests lists a repository's manifests with what keeps each, by digest.
	HeldManifests(repository string, after digest.Digest, limit int) ([]HeldManifest, error)
	MarkLoose(repository string, d digest.Digest, since time.Time) error      // since when nothing keeps it; ErrManifestUnknown
	ManifestHolders(repository string, d digest.Digest) (HeldManifest, error) // ErrManifestUnknown
	TagRows(repository, after string, limit int) ([]Tag, error)
	AllRepositories(after string, limit int) ([]Repository, error) // those that hold nothing too

	NamedBlobs(after digest.Digest, limit int) ([]digest.Descriptor, error) // whose bytes a row names; one that rows give several sizes comes once for each
	BlobHolders(d digest.Digest, limit int) ([]string, error)               // who names the bytes: repositories, versions, jobs
	// LooseReferences lists what manifests of the media types name and their repository does not hold as a blob.
	LooseReferences(mediaTypes []string, after BlobReference, limit int) ([]BlobReference, error)
	LostTags(limit int) ([]Tag, error)        // tags whose manifest is not there
	LostVersions(limit int) ([]string, error) // versions that the ledger, their tag or their manifest contradicts

	OwnerUsage(owner string) (OwnerUsage, error)                  // zeroes for one that holds nothing
	OwnerUsages(after string, limit int) ([]OwnerUsage, error)    // of everybody who holds something or has a limit of its own
	PutOwnerQuota(owner string, q *Quota) error                   // nil takes the own limit away
	UsageDrift(limit int) (kept, counted []OwnerUsage, err error) // owners whose usage is not what the rows say
	RecountUsage() error
}

// LedgerFile is the exportable copy of the ledger (design.md 2). Append is durable when it returns and skips rows
// that are already there.
type LedgerFile interface {
	LastSeq() int64
	Last() (row LedgerRow, ok bool)    // the file's last row; false when it has none
	Append(rows []LedgerRow) error     // Conflict: the file has one of the versions with another manifest
	Rows() iter.Seq2[LedgerRow, error] // what the file holds, in its order
}

// Signer is the registry's key.
type Signer interface {
	// Trust is the set that accepts this key's receipts for an audience.
	Trust(audience string) (receipt.TrustSet, error)
	// SignReceipt makes the DSSE envelope of a receipt.
	SignReceipt(receipt.Receipt) (envelope []byte, err error)
	// SignDenyList makes the DSSE envelope of a deny list.
	SignDenyList(denylist.List) (envelope []byte, err error)
}
