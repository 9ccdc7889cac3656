package nodecache

import (
	"bytes"
	"fmt"
	"os"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A hold file is one process's: a heartbeat, where the process is, and a line for each entry that it uses.
//
//	00000000000000000017\n
//	<host> <process id>\n
//	+trees/sha256-…\n        held
//	-trees/sha256-…\n        not any more

const (
	// holdBeat is how often a hold's heartbeat changes.
	holdBeat = 30 * time.Second
	// holdSilence is how long a heartbeat of another node must not have changed until its owner is taken for dead.
	holdSilence = 10 * time.Minute
	beatLength  = 20
)

// holding is this process's hold file.
type holding struct {
	c    *Cache
	name string
	stop chan struct{}
	done chan struct{}
	once sync.Once

	mu   sync.Mutex
	size int64            // of the file
	at   map[string]int64 // where the line of an entry is
	uses map[string]int   // how often an entry is held
	made time.Time        // when the file was made, by the file server's clock; zero when that failed
}

func beatText(n uint64) string { return fmt.Sprintf("%0*d", beatLength, n) }

// holding makes the hold file with the first use. A cache that can't be written to has none, and nothing evicts from it.
func (c *Cache) holding() *holding {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held != nil {
		return c.held
	}
	h := &holding{
		c: c, name: path.Join("holds", c.me.String()), stop: make(chan struct{}), done: make(chan struct{}),
		at: map[string]int64{}, uses: map[string]int{},
	}
	host, _ := os.Hostname()
	head := beatText(1) + "\n" + printable(host, 100) + " " + strconv.Itoa(c.me.pid) + "\n"
	if f, err := c.root.OpenFile(h.name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644); err == nil {
		n, err := f.WriteString(head)
		if info, statErr := f.Stat(); err == nil && statErr == nil {
			h.made = info.ModTime()
		}
		h.size = int64(n)
		f.Close()
	}
	go h.beat()
	c.held = h
	return h
}

// printable is at most max characters of a text, without what would break a line.
func printable(s string, max int) string {
	s = strings.Map(func(r rune) rune {
		if r <= ' ' || r == 0x7f || r >= 0x80 {
			return '-'
		}
		return r
	}, s)
	return s[:min(len(s), max)]
}

// put writes at a place of the file. Each write is a whole opening, so that other nodes see it. A failure costs no more
// than the entry's protection from eviction.
func (h *holding) put(text string, at int64) bool {
	f, err := h.c.root.OpenFile(h.name, os.O_WRONLY, 0)
	if err != nil {
		return false
	}
	_, err = f.WriteAt([]byte(text), at)
	return f.Close() == nil && err == nil
}

func (h *holding) beat() {
	defer close(h.done)
	tick := time.NewTicker(holdBeat)
	defer tick.Stop()
	for n := uint64(2); ; n++ {
		select {
		case <-h.stop:
			return
		case <-tick.C:
			h.put(beatText(n), 0)
		}
	}
}

// take holds an entry.
func (h *holding) take(key string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.uses[key]++
	if h.uses[key] > 1 || h.made.IsZero() {
		return
	}
	if at, known := h.at[key]; known {
		h.put("+", at)
		return
	}
	line := "+" + key + "\n"
	if h.put(line, h.size) {
		h.at[key] = h.size
		h.size += int64(len(line))
	}
}

// release ends one take.
func (h *holding) release(key string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.uses[key] == 0 {
		return // by releaseAll
	}
	h.uses[key]--
	if at, known := h.at[key]; known && h.uses[key] == 0 {
		h.put("-", at)
	}
}

// releaseAll ends every take.
func (h *holding) releaseAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for key, n := range h.uses {
		if at, known := h.at[key]; known && n > 0 {
			h.put("-", at)
		}
	}
	clear(h.uses)
}

// end removes the file.
func (h *holding) end() {
	h.once.Do(func() { close(h.stop) })
	<-h.done
	_ = h.c.root.Remove(h.name) // the next use of the node removes what is left
}

// hold is what a hold file of whoever it may be says.
type hold struct {
	beat  string
	where string
	keys  []string
}

func parseHold(b []byte) hold {
	var h hold
	lines := bytes.Split(b, []byte("\n"))
	for i, line := range lines[:len(lines)-1] {
		switch {
		case i == 0:
			h.beat = printable(string(line), beatLength)
		case i == 1:
			h.where = strings.ReplaceAll(printable(strings.ReplaceAll(string(line), " ", ":"), 120), "--", "-")
		case len(line) > 1 && line[0] == '+':
			h.keys = append(h.keys, string(line[1:]))
		}
	}
	return h
}

// holders says for each entry who holds it, dead processes left out.
func (c *Cache) holders(seen *sightings) map[string][]string {
	all := map[string][]string{}
	left := maxNames // whoever writes more holds than that gets none of those honoured
	for _, name := range c.names("holds", maxHolds) {
		o, _, ok := parseOwner(name)
		if !ok {
			continue
		}
		h, living := c.living(o, seen)
		if !living {
			continue
		}
		if left -= len(h.keys); left < 0 {
			break
		}
		for _, key := range h.keys {
			all[key] = append(all[key], h.where)
		}
	}
	return all
}

// living reports whether an owner may still be at work, and what it holds.
func (c *Cache) living(o owner, seen *sightings) (hold, bool) {
	b, err := c.readFile(path.Join("holds", o.String()), maxSmall)
	if gone(err) {
		return hold{}, false
	}
	h := parseHold(b) // one that can't be read has no heartbeat that changes
	if o.node == c.me.node {
		return h, !o.dead()
	}
	return h, !seen.silent(o, h.beat)
}
