package nodecache

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/digest"
)

// Info is what the cache knows of an entry. Nothing of it is proven.
type Info struct {
	Kind    string        `json:"kind"` // "tree" or "blob"
	Digest  digest.Digest `json:"digest"`
	ID      string        `json:"id,omitempty"` // of a tree
	Version string        `json:"version,omitempty"`
	Bytes   int64         `json:"bytes"`             // on disk
	Used    time.Time     `json:"used"`              // last use by the file server's clock, to a minute
	Holders []string      `json:"holders,omitempty"` // host:process of those that use it

	key string
}

// List lists the entries, those first that were not used for the longest.
func (c *Cache) List() []Info {
	seen := c.sightings()
	all := c.list(c.holders(seen))
	c.keep(seen)
	return all
}

func (c *Cache) list(holders map[string][]string) []Info {
	all := []Info{}
	for _, kind := range []string{trees, blobs} {
		for _, name := range c.names(kind, maxNames) {
			d, ok := parseName(name)
			key := path.Join(kind, name)
			if !ok {
				continue
			}
			info, err := c.root.Lstat(key)
			if err != nil {
				continue // another process removed it
			}
			e := Info{Kind: strings.TrimSuffix(kind, "s"), Digest: d, Used: info.ModTime(), Holders: holders[key], key: key}
			switch {
			case kind == blobs:
				e.Bytes = (info.Size() + 4095) / 4096 * 4096
			case info.IsDir():
				rec, err := c.record(key)
				if e.Bytes = rec.Bytes; err != nil || rec.Bytes <= 0 || rec.Bytes > 2*limit.Unpacked {
					e.Bytes = c.measure(key)
				}
				e.ID, e.Version = printable(rec.ID, 300), printable(rec.Version, 200)
			}
			all = append(all, e)
		}
	}
	slices.SortFunc(all, func(a, b Info) int {
		if d := a.Used.Compare(b.Used); d != 0 {
			return d
		}
		return strings.Compare(a.key, b.key)
	})
	return all
}

// measure is how many bytes a folder takes, as far as it has no more files than a pack.
func (c *Cache) measure(key string) int64 {
	root, err := c.root.OpenRoot(key)
	if err != nil {
		return 0
	}
	defer root.Close()
	var n int64
	left := 2 * limit.Files
	_ = fs.WalkDir(root.FS(), ".", func(_ string, d fs.DirEntry, err error) error {
		if left--; left < 0 {
			return fs.SkipAll
		}
		if err != nil {
			return nil // what can't be read counts for nothing
		}
		if info, err := d.Info(); err == nil {
			n += (min(info.Size(), limit.Unpacked) + 4095) / 4096 * 4096
		}
		return nil
	})
	return n
}

// evict removes entries that nobody holds, those first that were not used for the longest, for as long as more says that
// it should: it is told how many bytes the entries take and how many have been freed.
func (c *Cache) evict(more func(used, freed int64) bool) (freed int64, err error) {
	seen := c.sightings()
	holders := c.holders(seen)
	var used int64
	all := c.list(holders)
	for _, e := range all {
		used += e.Bytes
	}
	for _, e := range all {
		if !more(used, freed) {
			break
		}
		if len(e.Holders) > 0 {
			continue
		}
		away, oneErr := c.evictOne(e.key, seen)
		if oneErr != nil {
			err = errors.Join(err, oneErr)
		} else if away {
			used, freed = used-e.Bytes, freed+e.Bytes
		}
	}
	c.keep(seen)
	return freed, err
}

// evictOne removes an entry, unless somebody began to hold it before it was taken away: then it is put back. A tree's record goes
// first: once the tree is away another process may make both anew.
func (c *Cache) evictOne(key string, seen *sightings) (away bool, err error) {
	tmp, err := c.temporary("tmp")
	if err != nil {
		return false, err
	}
	aside, record := path.Join(tmp, "entry"), ""
	if strings.HasPrefix(key, trees) {
		record = path.Join(tmp, "record")
		_ = c.root.Rename(recordOf(key), record) // one that stays has no tree, and is a stray
	}
	err = c.root.Rename(key, aside)
	switch {
	case err == nil && len(c.holders(seen)[key]) == 0:
		away = true
	case err == nil:
		_ = c.root.Rename(aside, key) // one that was made in its place is as good
		fallthrough
	case !gone(err) && record != "":
		_ = c.root.Rename(record, recordOf(key))
	}
	if gone(err) {
		away, err = true, nil
	}
	return away, errors.Join(err, c.remove(tmp))
}

// Collected is what Collect did.
type Collected struct {
	Evicted []Info `json:"evicted"`
	Freed   int64  `json:"freed"` // bytes of entries
	Kept    int64  `json:"kept"`  // bytes of entries
	Strays  int    `json:"strays"`
}

// Collect brings the cache down to maxBytes (below 0: no limit) and removes what no entry is: what dead processes left,
// of other nodes too, and what somebody else put there. With dryRun it only says what it would do.
func (c *Cache) Collect(maxBytes int64, dryRun bool) (Collected, error) {
	out := Collected{Evicted: []Info{}}
	if c.root == nil {
		return out, c.shut
	}
	seen := c.sightings()
	var errs []error
	strays := c.strays(seen)
	out.Strays = len(strays)
	all := c.list(c.holders(seen))
	for _, e := range all {
		out.Kept += e.Bytes
	}
	if !dryRun {
		for _, name := range strays {
			errs = append(errs, c.remove(name))
		}
	}
	for _, e := range all {
		if maxBytes < 0 || out.Kept <= maxBytes {
			break
		}
		if len(e.Holders) > 0 {
			continue
		}
		away := dryRun
		if !dryRun {
			var err error
			away, err = c.evictOne(e.key, seen)
			errs = append(errs, err)
		}
		if away {
			out.Evicted = append(out.Evicted, e)
			out.Freed, out.Kept = out.Freed+e.Bytes, out.Kept-e.Bytes
		}
	}
	if !dryRun {
		c.keep(seen)
	}
	return out, errors.Join(errs...)
}
