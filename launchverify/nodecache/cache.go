// Package nodecache keeps what launches need on a node's disk, or on a file system that nodes share: unpacked packs by
// the digest of their OCI manifest, archives and job packages by their own digest, small signed documents by name.
//
//	trees/<algorithm>-<hex>     the files of the pack whose OCI manifest has that digest
//	blobs/<algorithm>-<hex>     bytes by their own digest: manifests, archives, job packages
//	records/<kind>-<entry>      what an entry is called and how large it is: for people and for accounts, no proof
//	documents/<name>            small signed documents
//	holds/<owner>               which entries a process uses, and its heartbeat
//	claims/<kind>-<entry>       who is making the entry just now, and its heartbeat
//	tmp/<owner>.<n>/            entries being made, or on their way out
//	roots/<owner>.<n>/          private copies of running jobs
//	seen/<node>                 which heartbeats a node saw, and when
//
// An owner is a process: node, process id, start time, and something random. Its name is never used twice.
//
// What holds on every file system, NFS, Lustre and GPFS too:
//   - No locks are used and no clocks of two machines are compared. An entry is made below tmp under a name of its own,
//     verified, synced, renamed: it is there whole or not at all, whoever makes or removes the same one. A process that is
//     killed leaves only what carries its name; the next use on its node removes that, and Collect what other nodes left.
//   - What lies in the cache is trusted by nobody. The gate hashes a job's own copy of a tree at every launch; Entry.Open
//     hashes a blob while it is read; documents are signed. Whatever is found damaged is Dropped, and made again from the
//     archive beside it or fetched. Nothing in the folder, whatever was put there, can make a use hang, take
//     unbounded memory, or read what lies outside the folder.
//   - Claims spare fetches and nothing else hangs on them. Of the processes of a node that want one entry, one fetches it and
//     the others wait for it; a claim whose owner is dead is taken over at once on its node, elsewhere when its heartbeat was
//     silent for 20 seconds of the waiting process's own clock.
//   - What a living process holds is not evicted. A process of this node lives when its id and start time say so. One of
//     another node is taken for dead when this node saw the same heartbeat twice, at least 10 minutes apart.
//   - A cache that can't be written to is used as it is, and what it lacks is kept in a private temporary folder until
//     Close. On a full disk what nobody holds is evicted once; then the error says how much is needed.
package nodecache

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sync"
	"time"

	"github.com/gatehouse-registry/gatehouse/admission/rule"
)

// ErrNotFound is wrapped by a Source's error for a manifest that the registry does not have.
var ErrNotFound = errors.New("not found in the registry")

// DefaultMaxBytes is how large a cache may grow that nobody gave a limit: 50 GB.
const DefaultMaxBytes int64 = 50e9

// Options say how a cache is used.
type Options struct {
	Policy   rule.Policy // under which archives are checked
	MaxBytes int64       // of all entries together; 0 is DefaultMaxBytes, below 0 there is no limit
}

// Cache is a node's cache as one process uses it. It is safe for concurrent use.
type Cache struct {
	dir  string
	root *os.Root // nil when the folder is not there and can't be made
	shut error    // why root is nil
	opt  Options
	me   owner

	mu    sync.Mutex
	held  *holding
	seq   int
	spare *Cache // what this cache, which can't be written to, lacks
	ends  string // a private temporary folder that goes with Close
	over  bool   // entries that are held keep it above its limit

	spoiled map[string]bool // damaged entries that can't be removed

	uptime  func() time.Duration
	silence time.Duration // claimSilence, but in tests
}

// folders of a cache.
var folders = []string{"trees", "blobs", "records", "documents", "holds", "claims", "tmp", "roots", "seen"}

// Open opens the cache in dir, which is made when it is not there, and removes what killed processes of this node left
// behind. A folder that can be neither read nor made is no error: then everything is kept in a private temporary one.
func Open(dir string, o Options) (*Cache, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	me, err := self()
	if err != nil {
		return nil, err
	}
	return openAs(abs, o, me), nil
}

// openAs is Open for a given owner.
func openAs(dir string, o Options, me owner) *Cache {
	if o.MaxBytes == 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	c := &Cache{dir: dir, opt: o, me: me, spoiled: map[string]bool{}, uptime: uptime, silence: claimSilence}
	_ = os.MkdirAll(dir, 0o755) // a folder that is not there afterwards shows at once
	root, err := os.OpenRoot(dir)
	if err != nil {
		c.shut = fmt.Errorf("the cache can't be opened: %w", err)
		return c
	}
	c.root = root
	for _, sub := range folders {
		info, err := root.Lstat(sub)
		if err == nil && !info.IsDir() {
			err = root.Remove(sub) // somebody put something else there
		}
		if err != nil || !info.IsDir() {
			_ = root.Mkdir(sub, 0o755) // where that fails the cache can't be written to
		}
	}
	c.sweep()
	return c
}

// Usable fails when the cache's folder can be neither read nor made. Launches do without one.
func (c *Cache) Usable() error { return c.shut }

// Dir is the cache's folder.
func (c *Cache) Dir() string { return c.dir }

// Close ends all holds and removes what was only kept for this process.
func (c *Cache) Close() error {
	c.mu.Lock()
	held, spare, over := c.held, c.spare, c.over
	c.spare, c.over = nil, false
	c.mu.Unlock()
	var errs []error
	if held != nil {
		if held.releaseAll(); over {
			_, err := c.evict(func(used, _ int64) bool { return used > c.opt.MaxBytes })
			errs = append(errs, err)
		}
		held.end()
	}
	if spare != nil {
		errs = append(errs, spare.Close())
	}
	if c.root != nil {
		errs = append(errs, c.root.Close())
	}
	if c.ends != "" {
		errs = append(errs, removeReserve(c.ends))
	}
	return errors.Join(errs...)
}

// PrivateFolder makes the folder of a job's private copy. Nobody but the agent's user can list where it lies; with
// searched, others can reach it by its path. No other account can rename a part of that path: where the cache's folder is
// others' too, it lies in a private temporary one.
func (c *Cache) PrivateFolder(searched bool) (string, error) {
	at, err := c.ours("roots")
	if err != nil && c.ends != "" {
		return "", err
	}
	var name string
	if err == nil {
		name, err = c.temporary("roots")
	}
	if c.unwritable(err) {
		spare, err := c.reserve()
		if err != nil {
			return "", err
		}
		return spare.PrivateFolder(searched)
	}
	if err != nil {
		return "", err
	}
	folder := filepath.Join(at, filepath.Base(name))
	if searched {
		if err = os.Chmod(folder, 0o755); err == nil && c.ends != "" {
			err = os.Chmod(c.ends, 0o711)
		}
	}
	return folder, err
}

// ours is the path, without links, of one of the cache's folders. It fails when another account may rename or replace a part
// of it.
func (c *Cache) ours(sub string) (string, error) {
	if c.root == nil {
		return "", fs.ErrNotExist
	}
	path, err := filepath.EvalSymlinks(c.path(sub))
	if err != nil {
		return "", err
	}
	for at := path; ; at = filepath.Dir(at) {
		info, err := os.Lstat(at)
		if err != nil {
			return "", err
		}
		if !info.IsDir() || !keepsOthersOut(info) {
			return "", fmt.Errorf("there is no place for a private copy below %s: other accounts may change %s", path, at)
		}
		if at == filepath.Dir(at) {
			return path, nil
		}
	}
}

// temporary makes a folder that carries this process's name, below sub; its path is relative to the cache. The process
// has a heartbeat before the folder is there.
func (c *Cache) temporary(sub string) (string, error) {
	if c.root == nil {
		return "", fs.ErrNotExist
	}
	c.holding()
	name := path.Join(sub, c.ownName())
	return name, c.root.Mkdir(name, 0o700)
}

// ownName is a name that carries this process's, and that it never used before.
func (c *Cache) ownName() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seq++
	return fmt.Sprintf("%s.%d", c.me, c.seq)
}

// unwritable reports whether an error says that nothing can be put into this cache, whatever is evicted.
func (c *Cache) unwritable(err error) bool {
	return err != nil && c.ends == "" && !full(err)
}

// reserve is the cache that holds what this one can't.
func (c *Cache) reserve() (*Cache, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.spare != nil {
		return c.spare, nil
	}
	sweepReserves(c.me)
	dir := filepath.Join(os.TempDir(), reservePrefix+c.me.String())
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, fmt.Errorf("the cache %s can't be written to, and a temporary one can't be made: %w", c.dir, err)
	}
	spare := openAs(dir, c.opt, c.me)
	spare.ends = dir
	if spare.root == nil {
		return nil, errors.Join(fmt.Errorf("the cache %s can't be written to, and the temporary one %s can't be opened", c.dir, dir), removeReserve(dir))
	}
	c.spare = spare
	return spare, nil
}

// gone reports whether an error says that something is not there, or not any more: another node removed it.
func gone(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, errStale) }
