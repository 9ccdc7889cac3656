package tree

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/gatehouse-registry/gatehouse/digest"
)

// contentHash is the running content digest. Files must come in path order, each as begin, writes, end.
type contentHash struct {
	h       hash.Hash
	scratch []byte
}

func newContentHash() *contentHash { return &contentHash{h: sha256.New()} }

func (c *contentHash) begin(path string) {
	c.scratch = append(append(c.scratch[:0], path...), 0)
	c.h.Write(c.scratch)
}

func (c *contentHash) Write(p []byte) (int, error) { return c.h.Write(p) }

func (c *contentHash) end() { c.h.Write([]byte{0}) }

func (c *contentHash) digest() digest.Digest { return digest.FromHash(digest.SHA256, c.h) }

// treeDigest is the tree digest of entries, which are sorted by path.
func treeDigest(entries []Entry) digest.Digest {
	h := sha256.New()
	var line []byte
	for _, e := range entries {
		if e.Kind != Counted {
			continue
		}
		line = hex.AppendEncode(line[:0], e.SHA256[:])
		line = append(append(append(line, "  "...), e.Path...), '\n')
		h.Write(line)
	}
	return digest.FromHash(digest.SHA256, h)
}

// newListing completes a listing of entries, sorted by path, whose content digest is content.
func newListing(entries []Entry, content digest.Digest) *Listing {
	l := &Listing{Entries: entries}
	whole := true
	for _, e := range entries {
		switch e.Kind {
		case Counted:
			l.Files++
			l.Bytes += e.Size
			whole = whole && utf8.ValidString(e.Path)
		case Outside:
			whole = false
		}
	}
	if whole {
		l.Content, l.Tree = content, treeDigest(entries)
	}
	return l
}

func sortEntries(entries []Entry) {
	slices.SortFunc(entries, func(a, b Entry) int { return strings.Compare(a.Path, b.Path) })
}

// Walker is a Tree that can hand out all its counted files in path order at the cost of reading itself once.
type Walker interface {
	Tree
	// Each calls visit for every counted file in path order. What visit leaves unread is read and verified
	// all the same; the first error ends the walk.
	Each(visit func(e Entry, r io.Reader) error) error
}

// Each calls visit for every counted file of t in path order, as Walker.Each does.
func Each(t Tree, visit func(e Entry, r io.Reader) error) error {
	if w, ok := t.(Walker); ok {
		return w.Each(visit)
	}
	for e := range t.Listing().Counted {
		if err := each(t, e, visit); err != nil {
			return err
		}
	}
	return nil
}

func each(t Tree, e Entry, visit func(e Entry, r io.Reader) error) error {
	f, err := t.Open(e.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := visit(e, f); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, f); err != nil {
		return fmt.Errorf("%q: %w", e.Path, err)
	}
	return nil
}

// ContentBelow is the content digest of the folder dir of t, as the clients compute it of a folder alone: the
// template digest of a recipe, for one (packs.md 5.1). "" and "." are the whole tree. A folder that holds no
// counted file, or does not exist, has the digest of nothing.
func ContentBelow(t Tree, dir string) (digest.Digest, error) {
	prefix := ""
	if dir = path.Clean(dir); dir != "." {
		prefix = dir + "/"
	}
	if prefix == "" && !t.Listing().Content.IsZero() {
		return t.Listing().Content, nil
	}
	content := newContentHash()
	for e := range t.Listing().Counted {
		below, ok := strings.CutPrefix(e.Path, prefix)
		if !ok {
			continue
		}
		content.begin(below)
		err := each(t, e, func(_ Entry, r io.Reader) error {
			_, err := io.Copy(content, r)
			return err
		})
		if err != nil {
			return digest.Digest{}, err
		}
		content.end()
	}
	return content.digest(), nil
}

// Verify makes f give exactly the bytes that were hashed as e, or an error at its end.
func Verify(e Entry, f io.ReadCloser) io.ReadCloser {
	want := digest.Descriptor{Digest: digest.FromSum(e.SHA256), Size: e.Size}
	return &verified{digest.NewReader(f, want), f}
}

type verified struct {
	io.Reader
	io.Closer
}
