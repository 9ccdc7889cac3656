// Package s3 keeps blobs and upload sessions in a bucket of an S3 store. It is a back-end of blobstore.Store, which
// verifies; this package makes things atomic over any number of processes that share the bucket and keeps no state of
// its own. Below the prefix lie:
//
//	blobs/<algorithm>/<ab>/<hex>  a blob; ab is the first two digits of hex
//	uploads/<id>/start            an upload session; without it there is none, whatever else lies there
//	uploads/<id>/<offset>         what one append added, at its offset in 20 digits
//	quarantine/<algorithm>-<hex>  damaged bytes that an administrator may look at; nothing reads them
//	proof/<random>/…              what Prove writes and removes
//
// What is relied upon, and checked by Prove: a PUT and the completion of a multipart upload are atomic and seen by the
// next read and list; If-None-Match: * on both is honoured, of several writers one wins; If-Match and ranges on GET.
// So an object is either wholly there or absent: small ones are one PUT of bytes that lie in memory and are verified,
// large ones a multipart upload that is completed when their last byte is verified. Requests repeat only from memory.
// An answer that got lost is found out by a random mark that each writer leaves in the object's metadata.
package s3

import (
	"context"
	"net/url"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/blobstore"
)

// Sizes in bytes.
const (
	// partSize is the size of a part of a multipart upload, and of the greatest object that is one PUT. It grows for
	// very large objects (see partAt). A writer holds up to flights+1 parts in memory.
	partSize = 8 << 20
	flights  = 2
	// minPart is the least size of a part that is not the last one.
	minPart = 5 << 20
	// maxParts is how many parts a multipart upload may have.
	maxParts = 10_000
	// copyLimit is how much one request copies on the store's side, so that each is answered within the timeout.
	copyLimit = 1 << 30
)

const (
	// touchAfter is how old a blob must be for a Put of the same blob to renew its time, which costs a copy.
	touchAfter = 5 * time.Minute
	// staleAfter is how old an unfinished multipart upload of a blob must be to count as left behind: it is what an
	// upload session may take by default.
	staleAfter = 24 * time.Hour
)

// Store is a verified blob store in a bucket. It is also a registry.Presigner.
type Store struct {
	*blobstore.Store
	bucket *bucket
}

var (
	_ registry.BlobStore = (*Store)(nil)
	_ registry.Presigner = (*Store)(nil)
)

// Open connects to the bucket, proves that the store keeps what this package relies on (see Prove), and removes unfinished
// multipart uploads of blobs that are older than a day. Errors say which setting or right is wrong.
func Open(ctx context.Context, o Options) (*Store, error) {
	s, err := open(ctx, o)
	if err != nil {
		return nil, err
	}
	if err := s.Prove(ctx); err != nil {
		return nil, err
	}
	return s, s.bucket.sweep(ctx)
}

// open makes a store without a word to the server.
func open(ctx context.Context, o Options) (*Store, error) {
	b, err := newBucket(ctx, o)
	if err != nil {
		return nil, err
	}
	return &Store{Store: blobstore.New(b), bucket: b}, nil
}

// Presign implements registry.Presigner. It asks nobody whether the blob is there.
func (s *Store) Presign(ctx context.Context, d digest.Digest, ttl time.Duration) (string, error) {
	answer := url.Values{"response-content-type": {"application/octet-stream"}}
	u, err := s.bucket.public.PresignedGetObject(ctx, s.bucket.name, s.bucket.blobKey(d), ttl, answer)
	if err != nil {
		return "", classify(err)
	}
	return u.String(), nil
}

// bucket is a blobstore.Backend in a bucket.
type bucket struct {
	core   *minio.Core
	public *minio.Client // signs addresses for clients
	name   string
	prefix string // "" or ends with a slash
	// These are the constants above but in tests.
	touchAfter, staleAfter time.Duration
	partSize               int64
}

var _ blobstore.Backend = (*bucket)(nil)

// Close implements blobstore.Backend.
func (b *bucket) Close() error { return nil }

func (b *bucket) blobKey(d digest.Digest) string {
	hex := d.Hex()
	return b.prefix + "blobs/" + string(d.Algorithm()) + "/" + hex[:2] + "/" + hex
}

// digestOfKey is the blob that a key names.
func (b *bucket) digestOfKey(key string) (digest.Digest, bool) {
	rest, _ := strings.CutPrefix(key, b.prefix+"blobs/")
	algorithm, rest, _ := strings.Cut(rest, "/")
	_, hex, _ := strings.Cut(rest, "/")
	d, err := digest.Parse(algorithm + ":" + hex)
	return d, err == nil && b.blobKey(d) == key
}

func (b *bucket) quarantineKey(d digest.Digest) string {
	return b.prefix + "quarantine/" + string(d.Algorithm()) + "-" + d.Hex()
}
