// Package tree computes the two digests of a directory or archive: the platforms' content digest and
// Gatehouse's tree digest, in one pass and with one answer for both forms of a pack.
//
// The content digest is sha256 over path NUL bytes NUL of the counted files in path order (packs.md 1.1). It
// has no lengths, so two different trees can share it (packs.md 1.4). The tree digest is sha256 over the lines
// "<hex of the file's sha256>  <path>\n" of the counted files sorted bytewise by path; it is the proof where
// the content digest is the name (design.md 2).
//
// The package knows nothing of tar: it takes a directory through os.Root or (path, reader) entries in any order.
package tree

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/gatehouse-registry/gatehouse/digest"
)

// Kind says what an entry of a tree is and whether its bytes count.
type Kind uint8

// The kinds of entries.
const (
	// Counted is a regular file, or a link to one inside the tree, whose bytes enter both digests.
	Counted Kind = iota
	// Excluded is a file or a whole folder that the content digest leaves out (packs.md 1.2). What lies below
	// such a folder is not listed.
	Excluded
	// Folder is a directory. Only a directory listing has them; archives of packs hold none.
	Folder
	// FolderLink is a link to a directory: not followed, not counted.
	FolderLink
	// Dangling is a link that resolves to nothing, or to itself.
	Dangling
	// Outside is a link that leaves the tree, or that can't be followed within a fixed amount of work. A tree
	// with one has no digest of ours.
	Outside
	// Special is a FIFO, socket or device.
	Special
)

// HeadSize is how many leading bytes of a counted file an Entry keeps, enough to tell its format by.
const HeadSize = 64

// Entry is one thing below the root of a tree.
type Entry struct {
	Path       string   // relative, slash-separated
	Kind       Kind     //
	Link       string   // the link's text when the entry is a symbolic link, else ""
	Size       int64    // of a Counted entry, bytes
	Executable bool     // an x bit is set; bound by no digest
	SHA256     [32]byte // of a Counted entry
	Head       []byte   // the first HeadSize bytes of a Counted entry
}

// Listing is what hashing a tree found. Both digests are zero when an entry is Outside or the path of a Counted
// one is not UTF-8: such a tree has no digest.
type Listing struct {
	Content digest.Digest // the platforms' name of the tree
	Tree    digest.Digest // the proof of the tree
	Entries []Entry       // sorted bytewise by path
	Files   int           // number of Counted entries
	Bytes   int64         // sum of their sizes
}

// Counted calls yield for every counted file in path order.
func (l *Listing) Counted(yield func(Entry) bool) {
	for _, e := range l.Entries {
		if e.Kind == Counted && !yield(e) {
			return
		}
	}
}

// Lookup finds the entry at path.
func (l *Listing) Lookup(path string) (Entry, bool) {
	i, ok := slices.BinarySearchFunc(l.Entries, path, func(e Entry, path string) int { return strings.Compare(e.Path, path) })
	if !ok {
		return Entry{}, false
	}
	return l.Entries[i], true
}

// Tree is a hashed tree whose counted files can be read again: what a directory and a checked archive have in
// common. Open fails for anything that is not a Counted entry. The bytes it gives are those that were hashed.
type Tree interface {
	Listing() *Listing
	Open(path string) (io.ReadCloser, error)
}

// ErrTooLarge is returned by ReadFile for a file above its limit.
var ErrTooLarge = errors.New("file too large")

// ReadFile reads a counted file of at most limit bytes and verifies it against the listing.
func ReadFile(t Tree, path string, limit int64) ([]byte, error) {
	e, ok := t.Listing().Lookup(path)
	if ok && e.Size > limit {
		return nil, fmt.Errorf("%s: %w: %d bytes, at most %d allowed", path, ErrTooLarge, e.Size, limit)
	}
	f, err := t.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	// One byte above the size, so that the reader comes to its end and with it to its verdict on the bytes.
	return io.ReadAll(io.LimitReader(f, e.Size+1))
}
