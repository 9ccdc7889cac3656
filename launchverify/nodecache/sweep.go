package nodecache

import (
	"path"
	"strings"
)

// sweep removes what processes of this node left behind when they were killed. It looks at so many names at most that a
// folder full of strays costs a launch nothing to speak of; Collect looks at all.
func (c *Cache) sweep() {
	for _, sub := range []string{"tmp", "roots", "holds", "claims"} {
		for _, name := range c.names(sub, maxSwept) {
			o, ok := c.ownerOf(sub, name)
			if ok && o.node == c.me.node && o.dead() {
				_ = c.remove(path.Join(sub, name)) // the next use tries again
			}
		}
	}
}

// ownerOf is whose something below tmp, roots, holds or claims is.
func (c *Cache) ownerOf(sub, name string) (owner, bool) {
	if sub == "claims" && !strings.HasPrefix(name, ".") {
		text, err := c.readFile(path.Join(sub, name), maxSmall)
		if err != nil {
			return owner{}, false
		}
		return claimant(text)
	}
	o, _, ok := parseOwner(strings.TrimPrefix(name, "."))
	return o, ok
}

// strays lists what should not be there: of dead owners, of nobody, without an entry.
func (c *Cache) strays(seen *sightings) []string {
	var all []string
	for _, sub := range []string{"tmp", "roots", "claims", "holds"} {
		for _, name := range c.names(sub, maxNames) {
			o, ok := c.ownerOf(sub, name)
			if ok {
				_, ok = c.living(o, seen)
			}
			if !ok {
				all = append(all, path.Join(sub, name))
			}
		}
	}
	for _, kind := range []string{trees, blobs} {
		for _, name := range c.names(kind, maxNames) {
			if _, ok := parseName(name); !ok {
				all = append(all, path.Join(kind, name))
			}
		}
	}
	for _, name := range c.names("records", maxNames) {
		entry, ok := strings.CutPrefix(name, trees+"-")
		if ok {
			_, err := c.root.Lstat(path.Join(trees, entry))
			_, making := c.root.Lstat(path.Join("claims", name))
			ok = !gone(err) || !gone(making)
		}
		if !ok {
			all = append(all, path.Join("records", name))
		}
	}
	return all
}
