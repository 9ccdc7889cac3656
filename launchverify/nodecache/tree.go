package nodecache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"

	"github.com/gatehouse-registry/gatehouse/admission/archive"
	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/admission/receipt"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/digest/tree"
)

// Source brings packs from a registry. It need not be safe for concurrent use.
type Source interface {
	// Fetch opens the archive, a tar+gzip stream, of the pack whose OCI manifest has the digest pin.Manifest. The
	// bytes must have been, or must be while they are read, verified against that manifest's layer. A reader that has
	// a method Size() int64 says with it how many bytes will come; one with Manifest() []byte hands over the manifest's
	// bytes, which are kept and prove the entry later.
	Fetch(ctx context.Context, pin receipt.Pin) (io.ReadCloser, error)
}

// Tree gives the unpacked pack's folder, and makes it when it is not there: from the archive in the cache, else of the
// source. With a warm cache the source is not asked. When it was made both its digests are those of the pin; who uses the
// files later verifies them, and Drops an entry that was damaged and asks again.
func (c *Cache) Tree(ctx context.Context, pin receipt.Pin, from Source) (*Entry, error) {
	if pin.Manifest.IsZero() {
		return nil, errors.New("the registry names no manifest")
	}
	return c.make(ctx, keyOf(trees, pin.Manifest), true, func(into *Cache, m *making) error {
		job := unpacking{ctx: ctx, c: into, m: m, pin: pin}
		if err := job.fromArchive(); err == nil || full(err) {
			return err
		}
		// What the archive left behind would be in the way.
		if err := into.remove(path.Join(m.tmp, "tree")); err != nil {
			return err
		}
		*m = making{tmp: m.tmp}
		return job.fromSource(from)
	})
}

// unpacking is one making of a tree.
type unpacking struct {
	ctx context.Context
	c   *Cache
	m   *making
	pin receipt.Pin
}

// fromArchive unpacks the archive that lies in the cache.
func (u *unpacking) fromArchive() error {
	from, err := u.c.described(u.pin.Manifest)
	if err != nil {
		return err
	}
	if from.archive.IsZero() {
		return ErrNotFound
	}
	key := keyOf(blobs, from.archive)
	e, ok := u.c.present(key, false)
	if !ok {
		return ErrNotFound
	}
	defer e.Release()
	src, err := archive.FromRoot(u.c.root, key)
	if err != nil {
		return err
	}
	if err = u.unpack(src, from.archive); err != nil && !full(err) {
		err = errors.Join(err, u.c.Drop(e))
	}
	return err
}

// fromSource fetches the archive, and unpacks it.
func (u *unpacking) fromSource(from Source) error {
	in, err := from.Fetch(u.ctx, u.pin)
	if err != nil {
		return fmt.Errorf("fetch: %w", err)
	}
	defer in.Close()
	if sized, ok := in.(interface{ Size() int64 }); ok {
		u.m.bytes = max(0, min(sized.Size(), limit.Compressed))
	}
	name := path.Join(u.m.tmp, "archive")
	sum, n, err := u.c.download(name, digest.SHA256, limit.Compressed, in)
	u.m.bytes = max(u.m.bytes, n)
	if err != nil {
		return err
	}
	src, err := archive.FromRoot(u.c.root, name)
	if err != nil {
		return err
	}
	u.m.bytes = n
	if err := u.unpack(src, sum); err != nil {
		return err
	}
	u.m.files = append(u.m.files, file{name, keyOf(blobs, sum)})
	if described, ok := in.(interface{ Manifest() []byte }); ok && u.pin.Manifest.Algorithm().FromBytes(described.Manifest()) == u.pin.Manifest {
		name := path.Join(u.m.tmp, "manifest")
		u.m.files = append(u.m.files, file{name, keyOf(blobs, u.pin.Manifest)})
		return u.c.create(name, described.Manifest())
	}
	return nil
}

// unpack checks an archive and writes its files below tmp. Both digests must be those of the pin.
func (u *unpacking) unpack(src archive.Source, sum digest.Digest) error {
	checked, report, err := archive.Check(src, archive.Options{Policy: u.c.opt.Policy, Sum: true, SpoolDir: u.c.path(u.m.tmp)})
	if err != nil {
		return err
	}
	subject := rule.Subject{Name: u.pin.ID, Version: u.pin.Version}
	if checked == nil {
		return report.Decide(rule.Launch, subject, nil).Err()
	}
	defer checked.Close()
	if checked.Digest() != sum {
		return &digest.MismatchError{Want: sum, Got: checked.Digest(), WantSize: checked.Size(), GotSize: checked.Size()}
	}
	found := checked.Listing()
	if found.Content != u.pin.Content || found.Tree != u.pin.Tree {
		var wrong rule.Report
		wrong.Add(rule.Violation{Rule: "launch.digest.copy", Message: fmt.Sprintf(
			"%s: the registry's archive has content %s and tree %s, expected %s and %s", u.pin, found.Content, found.Tree, u.pin.Content, u.pin.Tree)})
		return wrong.Decide(rule.Launch, subject, nil).Err()
	}
	size := onDisk(found)
	u.m.bytes, u.m.known = u.m.bytes+size, true
	dir := path.Join(u.m.tmp, "tree")
	if err := u.c.root.Mkdir(dir, 0o755); err != nil {
		return err
	}
	root, err := u.c.root.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := archive.Unpack(checked, root, archive.UnpackOptions{ReadOnly: true, Sync: true}); err != nil {
		return err
	}
	key := keyOf(trees, u.pin.Manifest)
	rec := record{ID: u.pin.ID, Version: u.pin.Version, Bytes: size, Content: found.Content, Tree: found.Tree, Archive: sum}
	from := path.Join(u.m.tmp, "record")
	if err := u.c.create(from, rec.encode()); err != nil {
		return err
	}
	u.m.made, u.m.files = dir, []file{{from, recordOf(key)}}
	return nil
}

// onDisk is how many bytes the files of a tree take, in whole pages, with one for each folder.
func onDisk(l *tree.Listing) int64 {
	const page = 4096
	folders := map[string]bool{".": true}
	n := int64(page)
	for e := range l.Counted {
		n += (e.Size + page - 1) / page * page
		for dir := path.Dir(e.Path); !folders[dir]; dir = path.Dir(dir) {
			folders[dir] = true
			n += page
		}
	}
	return n
}

// download writes what comes into a new file of the cache, at most max bytes, and gives their digest.
func (c *Cache) download(name string, by digest.Algorithm, max int64, in io.Reader) (digest.Digest, int64, error) {
	out, err := c.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return digest.Digest{}, 0, err
	}
	sum := by.New()
	n, err := digest.Copy(out, io.LimitReader(in, max+1), sum)
	if err == nil && n > max {
		err = fmt.Errorf("more than %d bytes came", max)
	}
	if err = errors.Join(err, out.Chmod(0o444), out.Sync(), out.Close()); err != nil {
		return digest.Digest{}, n, fmt.Errorf("fetch: %w", err)
	}
	return digest.FromHash(by, sum), n, nil
}
