package tree

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/gatehouse-registry/gatehouse/digest"
)

// The memory of a Hasher is chunks * chunkSize bytes and the entries.
const (
	chunks    = 16
	chunkSize = 64 << 10
)

// Hasher hashes files that come one after another in any order, as from an archive. While they come in path
// order the content digest is computed on the way; otherwise Finish asks for the bytes once more, in path order.
// Both hashes run on goroutines of their own beside whoever reads the files; Close ends them. A Hasher is used
// by one goroutine.
type Hasher struct {
	entries []*Entry
	targets map[string]string // of a link, the path whose bytes it has
	ordered bool              // every path so far came after the one before

	current  *chunk // being filled
	free     chan *chunk
	files    chan *chunk
	content  chan *chunk
	sum      digest.Digest // of the content, when ordered
	wg       sync.WaitGroup
	finished bool
}

// chunk is a buffer that several goroutines read; the last one to release it makes it free. It holds parts of
// files, many small ones or some of a large one, so that handing it on costs little for each.
type chunk struct {
	buf   []byte
	used  int
	parts []part
	refs  atomic.Int32
}

// part is some bytes of a file in order.
type part struct {
	entry       *Entry
	data        []byte
	first, last bool
}

// ErrTwice is wrapped by the error of a path that was added twice.
var ErrTwice = errors.New("path added twice")

// NewHasher starts a Hasher.
func NewHasher() *Hasher {
	h := &Hasher{
		ordered: true, targets: make(map[string]string),
		free: make(chan *chunk, chunks), files: make(chan *chunk, chunks), content: make(chan *chunk, chunks),
	}
	for range chunks {
		h.free <- new(chunk)
	}
	h.wg.Go(h.hashFiles)
	h.wg.Go(h.hashContent)
	return h
}

// Add hashes r, read to its end, as the file at path. After an error the Hasher is of no more use.
func (h *Hasher) Add(path string, executable bool, r io.Reader) error {
	e := &Entry{Path: path, Kind: Counted, Executable: executable}
	if n := len(h.entries); n > 0 && h.entries[n-1].Path >= path {
		h.ordered = false
	}
	h.entries = append(h.entries, e)
	for first, end := true, false; !end; first = false {
		c := h.chunk(first)
		n, ended, err := fill(r, c.buf[c.used:])
		if err != nil {
			return err
		}
		end = ended
		data := c.buf[c.used : c.used+n]
		c.used += n
		c.parts = append(c.parts, part{entry: e, data: data, first: first, last: end})
		if first {
			e.Head = slices.Clone(data[:min(n, HeadSize)])
		}
		e.Size += int64(n)
	}
	return nil
}

// chunk is one with room, for the head of a file where it begins there.
func (h *Hasher) chunk(first bool) *chunk {
	if c := h.current; c != nil && (c.used == chunkSize || first && chunkSize-c.used < HeadSize) {
		h.flush()
	}
	if h.current == nil {
		h.current = <-h.free
		if h.current.buf == nil {
			h.current.buf = make([]byte, chunkSize)
		}
	}
	return h.current
}

// flush gives the current chunk to the goroutines that hash.
func (h *Hasher) flush() {
	c := h.current
	if h.current = nil; c == nil {
		return
	}
	if !h.ordered {
		c.refs.Store(1)
		h.files <- c
		return
	}
	c.refs.Store(2)
	h.files <- c
	h.content <- c
}

// Link says that path has the bytes of the file added at target, before or after. text is the text of a symbolic
// link, "" for a hard link.
func (h *Hasher) Link(path, target, text string) {
	h.entries = append(h.entries, &Entry{Path: path, Kind: Counted, Link: text})
	h.targets[path] = target
	h.ordered = false
}

// InOrder reports whether every file so far came in path order and none was a link: then Finish opens nothing.
func (h *Hasher) InOrder() bool { return h.ordered }

// Finish returns the listing of all files. Where they were not InOrder it opens every one of them, in path order,
// to compute the content digest; a link is opened by the path of its target. It closes the Hasher.
func (h *Hasher) Finish(open func(path string) (io.ReadCloser, error)) (*Listing, error) {
	h.Close()
	if err := h.resolve(); err != nil {
		return nil, err
	}
	slices.SortFunc(h.entries, func(a, b *Entry) int { return strings.Compare(a.Path, b.Path) })
	entries := make([]Entry, 0, len(h.entries))
	for i, e := range h.entries {
		if i > 0 && h.entries[i-1].Path == e.Path {
			return nil, fmt.Errorf("%.200q: %w", e.Path, ErrTwice)
		}
		entries = append(entries, *e)
	}
	if h.ordered {
		return newListing(entries, h.sum), nil
	}
	content, err := h.reread(entries, open)
	if err != nil {
		return nil, err
	}
	return newListing(entries, content), nil
}

// resolve copies to every link what is known of its target.
func (h *Hasher) resolve() error {
	if len(h.targets) == 0 {
		return nil
	}
	byPath := make(map[string]*Entry, len(h.entries))
	for _, e := range h.entries {
		byPath[e.Path] = e
	}
	for _, e := range h.entries {
		path, ok := h.targets[e.Path]
		if !ok {
			continue
		}
		target, ok := byPath[path]
		if _, link := h.targets[path]; link || !ok {
			return fmt.Errorf("%.200q links to %.200q, which is no file of the tree", e.Path, path)
		}
		e.Size, e.Executable, e.SHA256, e.Head = target.Size, target.Executable, target.SHA256, target.Head
	}
	return nil
}

// reread computes the content digest from the files' bytes in path order, verifying each.
func (h *Hasher) reread(entries []Entry, open func(path string) (io.ReadCloser, error)) (digest.Digest, error) {
	content := newContentHash()
	buf := make([]byte, chunkSize)
	for _, e := range entries {
		path := e.Path
		if target, ok := h.targets[path]; ok {
			path = target
		}
		f, err := open(path)
		if err != nil {
			return digest.Digest{}, err
		}
		v := Verify(e, f)
		content.begin(e.Path)
		_, err = io.CopyBuffer(content, v, buf)
		content.end()
		v.Close()
		if err != nil {
			return digest.Digest{}, fmt.Errorf("%.200q: %w", e.Path, err)
		}
	}
	return content.digest(), nil
}

// Close ends the Hasher's goroutines. It may be called again, and after Finish.
func (h *Hasher) Close() {
	if h.finished {
		return
	}
	h.finished = true
	h.flush()
	close(h.files)
	close(h.content)
	h.wg.Wait()
}

func (h *Hasher) hashFiles() {
	sum := sha256.New()
	for c := range h.files {
		for _, p := range c.parts {
			if p.first {
				sum.Reset()
			}
			sum.Write(p.data)
			if p.last {
				sum.Sum(p.entry.SHA256[:0])
			}
		}
		h.release(c)
	}
}

func (h *Hasher) hashContent() {
	content := newContentHash()
	for c := range h.content {
		for _, p := range c.parts {
			if p.first {
				content.begin(p.entry.Path)
			}
			content.Write(p.data)
			if p.last {
				content.end()
			}
		}
		h.release(c)
	}
	h.sum = content.digest()
}

func (h *Hasher) release(c *chunk) {
	if c.refs.Add(-1) == 0 {
		c.used, c.parts = 0, c.parts[:0]
		h.free <- c
	}
}
