package registry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/gatehouse-registry/gatehouse/digest"
)

// The bytes of blobs and manifests lie in one of two places. A small one lies beside the rows that name it and is written
// in their transaction: a small artifact costs a share of a group commit and no file. A larger one lies in the BlobStore and
// is stored before its row. This file is the only one that knows which is where.

// smallContent is how many bytes lie beside their row at most.
const smallContent = 32 << 10

// content is verified bytes on their way into the registry: a large one is stored already, a small one is carried along
// until commitContent writes it.
type content struct {
	digest.Descriptor
	small []byte // nil when the bytes lie in the BlobStore
}

// take reads what must be exactly want's bytes; want.Size must be known. Errors: *digest.MismatchError.
func (s *Service) take(ctx context.Context, want digest.Descriptor, r io.Reader) (content, error) {
	if want.Size > smallContent {
		return content{Descriptor: want}, s.blobs.Put(ctx, want, r)
	}
	if want.Digest.IsZero() {
		return content{}, Errorf(DigestInvalid, "a blob needs a digest")
	}
	b, err := digest.ReadAll(r, want)
	return content{Descriptor: want, small: nonNil(b)}, err
}

// nonNil makes an empty slice of nil: empty content is small content too.
func nonNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// received is a body that was read whole before anybody knew its digest: a small one in memory, another in a session of
// the BlobStore.
type received struct {
	small   []byte
	session string // "" for a small one
	size    int64
}

// receive reads a body of at most max bytes. Whoever receives calls keep or abandon. Errors: TooLarge.
func (s *Service) receive(ctx context.Context, body io.Reader, max int64) (received, error) {
	head, whole, err := readHead(body, int(min(smallContent, max)))
	if err != nil || whole {
		return received{small: head, size: int64(len(head))}, err
	}
	rec := received{session: newSession(s.now())}
	if err := s.blobs.CreateUpload(ctx, rec.session); err != nil {
		return received{}, err
	}
	rec.size, err = s.blobs.AppendUpload(ctx, rec.session, 0, io.MultiReader(bytes.NewReader(head), body), max)
	if err != nil {
		s.abandon(ctx, rec)
		return received{}, err
	}
	return rec, nil
}

// readHead reads the first most+1 bytes of r; whole says that r ended before. Only io.EOF itself is an end.
func readHead(r io.Reader, most int) (head []byte, whole bool, err error) {
	head = make([]byte, 0, most+1)
	for len(head) <= most {
		n, err := r.Read(head[len(head):cap(head)])
		head = head[:len(head)+n]
		if err == io.EOF {
			return head, len(head) <= most, nil
		}
		if err != nil {
			return head, false, err
		}
	}
	return head, false, nil
}

// open reads what was received, as often as wanted.
func (s *Service) open(ctx context.Context, rec received) (Blob, error) {
	if rec.session == "" {
		return memory{bytes.NewReader(rec.small)}, nil
	}
	b, _, err := s.blobs.OpenUpload(ctx, rec.session)
	return b, err
}

// keep turns what was received into content, and frees it when that fails.
func (s *Service) keep(ctx context.Context, rec received, want digest.Digest) (content, error) {
	if rec.session == "" {
		return s.take(ctx, digest.Descriptor{Digest: want, Size: rec.size}, bytes.NewReader(rec.small))
	}
	d, err := s.blobs.CommitUpload(ctx, rec.session, want)
	if err != nil {
		s.abandon(ctx, rec)
	}
	return content{Descriptor: d}, err
}

// abandon frees what was received once its request is decided: what can't be removed now goes when it expires, and changes
// nothing about the answer.
func (s *Service) abandon(ctx context.Context, rec received) {
	if rec.session == "" {
		return
	}
	if err := s.blobs.AbortUpload(context.WithoutCancel(ctx), rec.session); err != nil {
		s.log.WarnContext(ctx, "an upload stays until it expires", "upload", rec.session, "err", err)
	}
}

// commitContent runs fn, whose rows name the contents, in one transaction that writes the small ones too. Contents that
// came before the transaction are anchored: no collection deletes them meanwhile.
func (s *Service) commitContent(ctx context.Context, contents []content, fn func(Tx) error) error {
	var before []digest.Descriptor
	for _, c := range contents {
		if c.small == nil && !c.Digest.IsZero() {
			before = append(before, c.Descriptor)
		}
	}
	return s.anchored(ctx, before, func(tx Tx) error {
		if err := fn(tx); err != nil {
			return err
		}
		for _, c := range contents {
			if c.small == nil {
				continue
			}
			if err := tx.PutSmall(c.Digest, c.small, s.now()); err != nil {
				return err
			}
		}
		return nil
	})
}

// openContent opens the bytes of a row. Errors: ErrBlobUnknown; Damaged when a row names them and they are not there.
func (s *Service) openContent(ctx context.Context, d digest.Descriptor) (Blob, error) {
	if d.Size <= smallContent {
		b, err := s.smallBytes(ctx, d)
		if !errors.Is(err, ErrBlobUnknown) {
			return memory{bytes.NewReader(b)}, s.lost(ctx, d.Digest, err)
		}
	}
	b, size, err := s.blobs.Open(ctx, d.Digest)
	if err == nil && size != d.Size {
		err = errors.Join(wrongSize(d, size), b.Close())
		return nil, s.lost(ctx, d.Digest, err)
	}
	return b, s.lost(ctx, d.Digest, err)
}

// wrongSize says that the store has other bytes than those of a row.
func wrongSize(want digest.Descriptor, found int64) error {
	return &digest.MismatchError{Want: want.Digest, Got: want.Digest, WantSize: want.Size, GotSize: found}
}

// damaged reports whether an error says that bytes are not those of their digest.
func damaged(err error) bool {
	_, yes := errors.AsType[*digest.MismatchError](err)
	return yes
}

// lost turns the store's "not there", or bytes that are not those of their digest, into what a client must hear of content
// that was promised: neither that it never was, nor that nobody knows what is wrong.
func (s *Service) lost(ctx context.Context, d digest.Digest, cause error) error {
	if !damaged(cause) && !errors.Is(cause, ErrBlobUnknown) {
		return cause
	}
	named := false
	err := s.meta.View(ctx, func(tx Tx) (err error) {
		named, err = tx.BlobNamed(d)
		return err
	})
	if err != nil || !named {
		return cause // it was deleted meanwhile
	}
	return &Error{Code: Damaged, Message: fmt.Sprintf("the content of %s is damaged or missing in the registry's store; an administrator can repair it (sf admin fsck --repair), or push it again", d), Err: cause}
}

// readContent reads bytes that are known to be few: a manifest or a config. The caller doesn't change them.
func (s *Service) readContent(ctx context.Context, d digest.Descriptor) ([]byte, error) {
	if d.Size <= smallContent {
		if b, err := s.smallBytes(ctx, d); !errors.Is(err, ErrBlobUnknown) {
			return b, s.lost(ctx, d.Digest, err)
		}
	}
	content, err := s.readStored(ctx, d)
	if damaged(err) {
		content, err = s.readAgain(ctx, d)
	}
	return content, s.lost(ctx, d.Digest, err)
}

// readAgain reads what was found damaged: a read can go wrong, and a push may have mended it since. What is damaged is set aside;
// one request does so at a time, so that none takes away what another one's client has just stored.
func (s *Service) readAgain(ctx context.Context, d digest.Descriptor) ([]byte, error) {
	s.upkeep.aside.Lock()
	defer s.upkeep.aside.Unlock()
	content, err := s.readStored(ctx, d)
	if damaged(err) {
		s.setAside(ctx, d, err)
	}
	return content, err
}

// readStored reads a few bytes of the BlobStore. Errors: ErrBlobUnknown, *digest.MismatchError.
func (s *Service) readStored(ctx context.Context, d digest.Descriptor) ([]byte, error) {
	b, _, err := s.blobs.Open(ctx, d.Digest)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	return digest.ReadAll(b, d)
}

// setAside takes damaged bytes that a request came upon out of reading: as long as they lie there, a push of good ones finds
// a blob of the digest and stores nothing. Where that fails the scrub does it.
func (s *Service) setAside(ctx context.Context, d digest.Descriptor, cause error) {
	err := s.blobs.Quarantine(ctx, d.Digest)
	if err == nil {
		s.upkeep.count(func(st *Stats) { st.DamagedBlobs++ })
	}
	s.log.WarnContext(ctx, "damaged content was read and is set aside", "digest", d.Digest.String(), "cause", cause, "err", err)
}

// smallBytes reads what lies beside its row, and compares it with its digest again. The caller doesn't change the bytes.
// Errors: ErrBlobUnknown.
func (s *Service) smallBytes(ctx context.Context, d digest.Descriptor) ([]byte, error) {
	b, ok := s.bytes.get(d.Digest)
	if ok && int64(len(b)) == d.Size {
		return b, nil
	}
	err := s.meta.View(ctx, func(tx Tx) (err error) {
		b, err = tx.Small(d.Digest)
		return err
	})
	if err != nil {
		return nil, err
	}
	if b, err = digest.ReadAll(bytes.NewReader(b), d); err == nil {
		s.bytes.put(d.Digest, b, len(b))
	}
	return b, err
}

// hasContent fails when the bytes of a row are not there, or are known to be others: who hears that they are there does not
// push them again. Errors: ErrBlobUnknown.
func (s *Service) hasContent(ctx context.Context, d digest.Descriptor) error {
	size, err := int64(0), error(ErrBlobUnknown)
	if d.Size <= smallContent {
		var b StoredBlob
		b, err = cached(ctx, s, rowKey{smallRow, d.Digest.String(), ""}, func(StoredBlob) int { return 128 }, func(tx Tx) (StoredBlob, error) {
			return tx.StatSmall(d.Digest)
		})
		if size = b.Size; err == nil {
			_, err = s.smallBytes(ctx, d)
		}
		if damaged(err) {
			return unusable(d.Digest)
		}
	}
	if errors.Is(err, ErrBlobUnknown) {
		size, err = s.blobs.Stat(ctx, d.Digest)
	}
	if err == nil && size != d.Size {
		err = unusable(d.Digest)
	}
	return err
}

// unusable is ErrBlobUnknown for bytes that are damaged.
func unusable(d digest.Digest) error {
	return Errorf(BlobUnknown, "the bytes of %s are damaged; push them again", d)
}

// stored reports whether the bytes of a digest are there, whoever names them, and not known to be damaged.
func (s *Service) stored(ctx context.Context, d digest.Digest) (bool, error) {
	var b StoredBlob
	err := s.meta.View(ctx, func(tx Tx) (err error) {
		b, err = tx.StatSmall(d)
		return err
	})
	if err == nil {
		_, err = s.smallBytes(ctx, digest.Descriptor{Digest: d, Size: b.Size})
	}
	if damaged(err) {
		return false, nil
	}
	if errors.Is(err, ErrBlobUnknown) {
		_, err = s.blobs.Stat(ctx, d)
	}
	if errors.Is(err, ErrBlobUnknown) {
		return false, nil
	}
	return err == nil, err
}

// memory is a Blob that is held whole.
type memory struct{ *bytes.Reader }

func (memory) Close() error { return nil }
