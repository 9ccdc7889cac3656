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

	free     chan *chunk
	files    chan step
	content  chan step
	sum      digest.Digest // of the content, when ordered
	wg       sync.WaitGroup
	finished bool
}

// chunk is a buffer that several goroutines read; the last one to release it makes it free.
type chunk struct {
	buf  []byte
	refs atomic.Int32
}

// step is some bytes of a file in order.
type step struct {
	entry       *Entry
	chunk       *chunk
	data        []byte
	first, last bool
}

// ErrTwice is wrapped by the error of a path that was added twice.
var ErrTwice = errors.New("path added twice")

// NewHasher starts a Hasher.
func NewHasher() *Hasher {
	h := &Hasher{
		ordered: true, targets: make(map[string]string),
		free: make(chan *chunk, chunks), files: make(chan step, chunks), content: make(chan step, chunks),
	}
	for range chunks {
		h.free <- &chunk{}
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
		c := <-h.free
		if c.buf == nil {
			c.buf = make([]byte, chunkSize)
		}
		n, ended, err := fill(r, c.buf)
		if err != nil {
			h.free <- c
			return err
		}
		end = ended
		if first {
			e.Head = slices.Clone(c.buf[:min(n, HeadSize)])
		}
		e.Size += int64(n)
		h.hand(step{entry: e, chunk: c, data: c.buf[:n], first: first, last: end})
	}
	return nil
}

// hand gives a step to the goroutines that hash.
func (h *Hasher) hand(s step) {
	if !h.ordered {
		s.chunk.refs.Store(1)
		h.files <- s
		return
	}
	s.chunk.refs.Store(2)
	h.files <- s
	h.content <- s
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
	close(h.files)
	close(h.content)
	h.wg.Wait()
}

func (h *Hasher) hashFiles() {
	sum := sha256.New()
	for s := range h.files {
		if s.first {
			sum.Reset()
		}
		sum.Write(s.data)
		if s.last {
			sum.Sum(s.entry.SHA256[:0])
		}
		h.release(s.chunk)
	}
}

func (h *Hasher) hashContent() {
	content := newContentHash()
	for s := range h.content {
		if s.first {
			content.begin(s.entry.Path)
		}
		content.Write(s.data)
		if s.last {
			content.end()
		}
		h.release(s.chunk)
	}
	h.sum = content.digest()
}

func (h *Hasher) release(c *chunk) {
	if c.refs.Add(-1) == 0 {
		h.free <- c
	}
}
