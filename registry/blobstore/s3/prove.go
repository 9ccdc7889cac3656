package s3

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/minio/minio-go/v7"

	"github.com/gatehouse-registry/gatehouse/registry"
)

// Prove checks, by some 25 small requests under a key of its own, that the store keeps what this package relies on, and
// says by name what it does not. It leaves nothing behind, and any number of processes may do it at once.
func (s *Store) Prove(ctx context.Context) error {
	p := &proof{bucket: s.bucket, ctx: ctx, at: s.bucket.prefix + "proof/" + rand.Text() + "/"}
	err := p.run()
	return errors.Join(err, p.cleanUp())
}

// proof is one run of Prove.
type proof struct {
	bucket *bucket
	ctx    context.Context
	at     string // the prefix of its keys
}

// step is one thing that is relied upon.
type step struct {
	name string
	try  func(p *proof) error
}

// steps are in the order in which they build on each other.
var steps = []step{
	{"writing an object", func(p *proof) error { _, err := p.write("a", "0123456789"); return err }},
	{"If-None-Match: * on a PUT (a second write must be refused)", (*proof).secondWrite},
	{"reading what was just written", func(p *proof) error { return p.holds("a", "0123456789") }},
	{"a ranged GET", (*proof).rangedRead},
	{"If-Match on a GET (a replaced object must be noticed)", (*proof).pinnedRead},
	{"a multipart upload", func(p *proof) error { return p.multipart("b", "multipart") }},
	{"If-None-Match: * on the completion of a multipart upload (a second one must be refused)", (*proof).secondMultipart},
	{"copying an object on the store's side", (*proof).copyWhole},
	{"copying a part on the store's side (UploadPartCopy)", (*proof).copyPart},
	{"listing what was just written", func(p *proof) error { return p.listed("a", "b", "c", "d") }},
	{"listing unfinished multipart uploads", (*proof).listUnfinished},
	{"deleting", (*proof).remove},
}

func (p *proof) run() error {
	for _, s := range steps {
		err := s.try(p)
		if err == nil {
			continue
		}
		if err := p.ctx.Err(); err != nil {
			return err
		}
		return &registry.Error{
			Code: registry.Unavailable, Err: err,
			Message: fmt.Sprintf("the blob store (bucket %q at %s) fails in %s: %v", p.bucket.name, p.bucket.core.EndpointURL(), s.name, err),
		}
	}
	return nil
}

func (p *proof) write(name, content string) (string, error) {
	o := p.bucket.newObject(p.ctx, p.at+name, true, int64(len(content)))
	if _, err := io.WriteString(o, content); err != nil {
		return "", err
	}
	return o.finish()
}

// refused wants the error of a condition that was not met.
func refused(err error) error {
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil
	case err == nil:
		return errors.New("it was accepted: the store does not honour the condition")
	}
	return err
}

func (p *proof) secondWrite() error {
	_, err := p.write("a", "other bytes")
	return refused(err)
}

func (p *proof) holds(name, want string) error {
	s, err := p.segment(name)
	if err != nil {
		return err
	}
	return p.reads(s, 0, want)
}

// reads checks what an object gives from a place on.
func (p *proof) reads(s segment, from int64, want string) error {
	body, err := p.bucket.get(p.ctx, s, from, int64(len(want)))
	if err != nil {
		return err
	}
	got, err := io.ReadAll(io.LimitReader(body, int64(len(want))+1))
	if err := errors.Join(err, body.Close()); err != nil {
		return err
	}
	if string(got) != want {
		return fmt.Errorf("want the bytes %q, got %q", want, got)
	}
	return nil
}

func (p *proof) segment(name string) (segment, error) {
	info, err := p.bucket.stat(p.ctx, p.at+name)
	return segment{key: p.at + name, etag: info.ETag, size: info.Size}, err
}

func (p *proof) rangedRead() error {
	s, err := p.segment("a")
	if err != nil {
		return err
	}
	return errors.Join(p.reads(s, 3, "3456"), p.reads(s, 9, "9"))
}

func (p *proof) pinnedRead() error {
	s, err := p.segment("a")
	if err != nil {
		return err
	}
	s.etag = "d41d8cd98f00b204e9800998ecf8427e"
	body, err := p.bucket.get(p.ctx, s, 0, 1)
	if err == nil {
		err = body.Close()
	}
	return refused(err)
}

func (p *proof) multipart(name, content string) error {
	mark := rand.Text()
	upload, err := p.bucket.startUpload(p.ctx, p.at+name, mark)
	if err != nil {
		return err
	}
	part, err := p.bucket.putPart(p.ctx, p.at+name, upload, 1, []byte(content))
	if err == nil {
		_, err = p.bucket.complete(p.ctx, p.at+name, upload, []minio.CompletePart{part}, true, mark)
	}
	if err != nil {
		return errors.Join(err, p.bucket.abortUpload(p.ctx, p.at+name, upload))
	}
	return p.holds(name, content)
}

func (p *proof) secondMultipart() error { return refused(p.multipart("b", "other bytes")) }

func (p *proof) copyWhole() error {
	s, err := p.segment("a")
	if err != nil {
		return err
	}
	if err := p.bucket.copyWhole(p.ctx, p.at+"c", s, rand.Text()); err != nil {
		return err
	}
	return p.holds("c", "0123456789")
}

func (p *proof) copyPart() error {
	s, err := p.segment("a")
	if err != nil {
		return err
	}
	if err := p.bucket.copyParts(p.ctx, p.at+"d", []span{{s, 2, 5}}, rand.Text()); err != nil {
		return err
	}
	return p.holds("d", "23456")
}

func (p *proof) listed(want ...string) error {
	var got []string
	for info, err := range p.bucket.list(p.ctx, p.at) {
		if err != nil {
			return err
		}
		got = append(got, strings.TrimPrefix(info.Key, p.at))
	}
	if !slices.Equal(got, want) {
		return fmt.Errorf("want the objects %q, got %q", want, got)
	}
	return nil
}

// listUnfinished asks only whether the request is answered: some stores list uploads of one key alone and remove old ones
// themselves.
func (p *proof) listUnfinished() error {
	for _, err := range p.bucket.unfinished(p.ctx, p.at) {
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *proof) remove() error {
	for _, name := range []string{"a", "b", "c", "d"} {
		if err := p.bucket.remove(p.ctx, p.at+name); err != nil {
			return err
		}
	}
	if _, err := p.segment("a"); !isAbsent(err) {
		return fmt.Errorf("a removed object answers %v, want that it is absent", err)
	}
	return p.listed()
}

// cleanUp removes what a proof that failed left.
func (p *proof) cleanUp() error {
	ctx, cancel := afterwards(p.ctx)
	defer cancel()
	var keys []string
	for info, err := range p.bucket.list(ctx, p.at) {
		if err != nil {
			return nil // the proof has said what does not work
		}
		keys = append(keys, info.Key)
	}
	var all error
	for _, key := range keys {
		all = errors.Join(all, p.bucket.remove(ctx, key))
	}
	return all
}
