// Package nodecache keeps what launches need on a node's disk, or on a file system that nodes share.
//
//	trees/<algorithm>-<hex>/   the files of the pack whose OCI manifest has that digest
//	blobs/<algorithm>-<hex>    bytes by their own digest: archives, job packages
//	documents/                 small signed documents, by name
//	tmp/                       entries being made; each has a name of its own
//	roots/                     private copies of running jobs
//
// An entry is made below tmp, verified, synced and renamed; it is there whole or not at all, whoever else makes the
// same one. No locks are used. What lies in the cache is trusted by nobody: the job's copy of a tree is hashed anew at
// every launch, and a blob while it is read.
package nodecache

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/digest"
)

// ErrNotFound is wrapped by a Source's error for a manifest that the registry does not have.
var ErrNotFound = errors.New("not found in the registry")

// Options say how a cache is used.
type Options struct {
	Policy   rule.Policy // under which archives are checked
	MaxBytes int64       // of all entries together; 0 is DefaultMaxBytes
}

// DefaultMaxBytes is how large a cache may grow that nobody gave a limit: 50 GB.
const DefaultMaxBytes = 50e9

// Cache is a node's cache as one process uses it.
type Cache struct {
	dir string
	opt Options
}

// Entry is something in the cache that its user holds: until Release it is not evicted.
type Entry struct {
	path string
}

// Path is where it lies: a folder for a tree, a file for a blob.
func (e *Entry) Path() string { return e.path }

// Release ends the hold.
func (e *Entry) Release() {}

// Open opens the cache in dir, which is made when it is not there, and removes what killed processes of this node left
// behind.
func Open(dir string, o Options) (*Cache, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	for _, sub := range []string{"trees", "blobs", "documents", "tmp", "roots"} {
		if err := os.MkdirAll(filepath.Join(abs, sub), 0o755); err != nil {
			return nil, err
		}
	}
	c := &Cache{abs, o}
	return c, c.sweep()
}

// Close ends all holds.
func (c *Cache) Close() error { return nil }

// place is where an entry lies.
func (c *Cache) place(sub string, d digest.Digest) string {
	return filepath.Join(c.dir, sub, strings.Replace(d.String(), ":", "-", 1))
}

// Drop removes a damaged entry, so that it is fetched anew.
func (c *Cache) Drop(e *Entry) error {
	// By way of tmp, so that nobody sees half an entry.
	away, err := c.temporary("tmp")
	if err == nil {
		err = os.Rename(e.path, filepath.Join(away, "entry"))
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, os.RemoveAll(away))
}

// PrivateFolder makes the folder of a job's private copy. Nobody but the agent's user can list where it lies; with
// searched, others can reach it by its path.
func (c *Cache) PrivateFolder(searched bool) (string, error) {
	outer, err := c.temporary("roots")
	if err != nil || !searched {
		return outer, err
	}
	return outer, os.Chmod(outer, 0o755)
}

// temporary makes a folder whose name says which process of which node made it.
func (c *Cache) temporary(sub string) (string, error) {
	node, err := nodeName()
	if err != nil {
		return "", err
	}
	return os.MkdirTemp(filepath.Join(c.dir, sub), fmt.Sprintf("%s.%d.*", node, os.Getpid()))
}

// nodeName tells apart the places in which a process id means one process.
func nodeName() (string, error) {
	host, err := os.Hostname()
	return strings.Map(func(r rune) rune {
		if r == '/' || r == '.' || r == '*' {
			return '-'
		}
		return r
	}, host) + "-" + processSpace(), err
}

// sweep removes what processes of this node left behind when they were killed.
func (c *Cache) sweep() error {
	node, err := nodeName()
	if err != nil {
		return err
	}
	for _, sub := range []string{"tmp", "roots"} {
		entries, err := os.ReadDir(filepath.Join(c.dir, sub))
		if err != nil {
			return err
		}
		for _, e := range entries {
			rest, mine := strings.CutPrefix(e.Name(), node+".")
			pid, _, _ := strings.Cut(rest, ".")
			if mine && !alive(pid) {
				if err := removeTree(filepath.Join(c.dir, sub, e.Name())); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
