// Package archive judges what a package archive may contain, and reads, makes and unpacks archives that pass.
//
// A package archive is one gzip stream that holds one POSIX or GNU tar file: regular files, and links to them, by
// their plain relative paths, and nothing else. The rules are in the rule table under "archive."; they are those
// of the clients (packs.md 1.6) and everything that keeps two readers of one archive from seeing two trees.
// Nothing is skipped or cleaned into place: what breaks a rule refuses the archive.
//
// Check, OpenDir, Pack and Unpack share the rules, so that whoever packs and whoever accepts can't disagree. What
// Check accepts is a tree.Tree like a directory, with the same digests. Reading is block by block, in memory of a
// few MiB and in time that the limits of package limit bound, whatever the input.
package archive

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/digest/tree"
)

// Options changes how an archive is checked. The zero Options is the server's.
type Options struct {
	Policy   rule.Policy // rules that an administrator turned into warnings
	Plain    bool        // accept a tar file that is not compressed, too
	Sum      bool        // compute the digest of the archive's own bytes
	SpoolDir string      // where an unlinked spool file may lie; "" is the system's folder for temporary files
}

// Archive is an archive that passed Check. It is a tree.Walker; the bytes it gives are verified against those that
// were hashed. Close frees what it holds on disk. Its methods may be called at the same time.
type Archive struct {
	src      Source
	opt      Options
	sum      digest.Digest
	listing  *tree.Listing
	captured map[string][]byte // small files
	targets  map[string]string // of a link, the member that has the bytes
	inOrder  bool              // members are in path order and none is a link

	mu    sync.Mutex
	spool *spool
}

// Size is the number of bytes of the archive itself.
func (a *Archive) Size() int64 { return a.src.Size }

// Digest is the digest of the archive's own bytes; zero unless Options.Sum was set.
func (a *Archive) Digest() digest.Digest { return a.sum }

// Links is the number of symbolic and hard links among the members.
func (a *Archive) Links() int { return len(a.targets) }

// Listing is what hashing the archive found. All its entries count.
func (a *Archive) Listing() *tree.Listing { return a.listing }

// Open opens a counted file. Small files come from memory; the first other one has the archive read again, into an
// unlinked file on disk.
func (a *Archive) Open(path string) (io.ReadCloser, error) {
	e, ok := a.listing.Lookup(path)
	if !ok {
		return nil, fmt.Errorf("%q is not in the archive: %w", path, os.ErrNotExist)
	}
	if target, ok := a.targets[path]; ok {
		path = target
	}
	f, err := a.open(path)
	if err != nil {
		return nil, err
	}
	return tree.Verify(e, f), nil
}

// open opens the bytes of a regular member, not verified.
func (a *Archive) open(path string) (io.ReadCloser, error) {
	if content, ok := a.captured[path]; ok {
		return io.NopCloser(bytes.NewReader(content)), nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.spool == nil {
		s, err := newSpool(a.opt.SpoolDir)
		if err != nil {
			return nil, err
		}
		if err := a.fill(s); err != nil {
			s.Close()
			return nil, err
		}
		a.spool = s
	}
	return a.spool.open(path)
}

// fill spools every member that is not in memory.
func (a *Archive) fill(s *spool) error {
	return scan(a.src, a.opt.Plain, func(m *member) error {
		if _, ok := a.captured[m.path]; ok || m.kind != regular {
			return nil
		}
		return s.add(m.path, m.body)
	})
}

// Each calls visit for every file in path order, as tree.Walker says. The archive is read once more where its
// members are in that order, spooled where they are not.
func (a *Archive) Each(visit func(e tree.Entry, r io.Reader) error) error {
	if !a.inOrder {
		return a.eachOpened(visit)
	}
	n := 0
	err := scan(a.src, a.opt.Plain, func(m *member) error {
		e, ok := a.listing.Lookup(m.path)
		if !ok {
			return errChanged
		}
		n++
		return pass(e, tree.Verify(e, io.NopCloser(m.body)), visit)
	})
	if err == nil && n != a.listing.Files {
		return errChanged
	}
	return err
}

func (a *Archive) eachOpened(visit func(e tree.Entry, r io.Reader) error) error {
	for e := range a.listing.Counted {
		f, err := a.Open(e.Path)
		if err != nil {
			return err
		}
		err = pass(e, f, visit)
		f.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// pass shows a file to visit and reads what that leaves, so that every file is verified.
func pass(e tree.Entry, r io.Reader, visit func(e tree.Entry, r io.Reader) error) error {
	if err := visit(e, r); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, r); err != nil {
		return fmt.Errorf("%q: %w", e.Path, err)
	}
	return nil
}

// Close frees the spool file, if there is one.
func (a *Archive) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.spool == nil {
		return nil
	}
	s := a.spool
	a.spool = nil
	return s.Close()
}
