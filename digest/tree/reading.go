package tree

import (
	"crypto/sha256"
	"hash"
	"io"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/gatehouse-registry/gatehouse/digest"
)

// The memory of a reading: at most maxReaders * (ringSize + 1) * pieceSize bytes.
const (
	maxReaders = 4
	ringSize   = 8
	pieceSize  = 64 << 10
)

// pieces are buffers that no reading uses: one that is used again costs no fresh pages.
var pieces = sync.Pool{New: func() any { return new([pieceSize]byte) }}

// reading reads and hashes the counted files of a directory on several cores. Reader k of n takes the files
// k, k+n, k+2n, …, hashes each by itself and hands its bytes on through a ring of its own; one goroutine takes
// from the rings in turn, which is path order, and feeds the content digest, a serial stream. A reader that is
// ahead of that stream stops when its ring is full, and the one whose turn it is never waits for another, so
// the reading can't lock up and its memory is bounded.
//
// A companion compares the bytes of another directory with what each reader reads, on goroutines of its own that wait for
// nobody but their reader.
type reading struct {
	dir       *Dir
	files     []*Entry
	companion *companion   // nil: there is none
	limit     int64        // of all bytes; 0 is none
	bytes     atomic.Int64 // read so far
	readers   []fileReader
	done      chan struct{} // closed when the reading ends, early or when nobody looks at anything any more
	wg        sync.WaitGroup
}

// piece is some bytes of a file in order; the last of a file has end set.
type piece struct {
	*buffer
	data []byte
	end  bool
	err  error
}

// buffer holds a piece until everybody who looks at it has let it go.
type buffer struct {
	bytes   *[pieceSize]byte // nil until it is first used: a tree of few files needs little
	holders atomic.Int32
}

type fileReader struct {
	h       hash.Hash
	folders folders
	out     chan piece // to the content digest
	compare chan piece // to the companion; nil: there is none
	free    chan *buffer
}

func newReading(d *Dir, files []*Entry, limit int64) *reading {
	n := min(max(runtime.GOMAXPROCS(0), 2), maxReaders, len(files))
	return &reading{dir: d, files: files, limit: limit, readers: make([]fileReader, n), done: make(chan struct{})}
}

// content reads everything and returns the content digest. Then every file has its own digest too, and the companion has
// compared every byte.
func (r *reading) content() (digest.Digest, error) {
	defer r.end()
	sum, err := r.all()
	if err == nil {
		r.wg.Wait() // the content digest may be done while others still look at the last pieces
	}
	return sum, err
}

// all starts the readers and takes everything that they read.
func (r *reading) all() (digest.Digest, error) {
	for k := range r.readers {
		r.start(k)
	}
	content := newContentHash()
	for i, e := range r.files {
		content.begin(e.Path)
		if err := r.drain(&r.readers[i%len(r.readers)], content); err != nil {
			return digest.Digest{}, err
		}
		content.end()
	}
	return content.digest(), nil
}

// end stops what still runs, waits for it and gives the buffers back.
func (r *reading) end() {
	close(r.done)
	r.wg.Wait()
	for k := range r.readers {
		for range len(r.readers[k].free) {
			if b := <-r.readers[k].free; b.bytes != nil {
				pieces.Put(b.bytes)
			}
		}
	}
}

func (r *reading) start(k int) {
	f := &r.readers[k]
	*f = fileReader{h: sha256.New(), folders: folders{root: r.dir.root}, out: make(chan piece, ringSize), free: make(chan *buffer, ringSize)}
	for range ringSize {
		f.free <- new(buffer)
	}
	if r.companion != nil {
		f.compare = make(chan piece, ringSize)
		r.wg.Go(func() { r.companion.follow(r, k) })
	}
	r.wg.Go(func() {
		defer f.folders.close()
		if f.compare != nil {
			defer close(f.compare)
		}
		for i := k; i < len(r.files); i += len(r.readers) {
			if err := r.read(f, r.files[i]); err != nil {
				r.send(f, piece{buffer: new(buffer), err: err})
				return
			}
		}
	})
}

// drain feeds one file of f to the content digest.
func (r *reading) drain(f *fileReader, content *contentHash) error {
	for p := range f.out {
		if p.err != nil {
			return p.err
		}
		content.Write(p.data)
		f.release(p.buffer)
		if p.end {
			return nil
		}
	}
	return io.ErrUnexpectedEOF
}

// read hashes the file e and hands its bytes on.
func (r *reading) read(f *fileReader, e *Entry) error {
	file, info, err := r.dir.open(&f.folders, *e)
	if err != nil {
		return err
	}
	defer file.Close()
	e.Executable = info.Mode()&0o111 != 0
	if err := r.account(e.Path, 0, info.Size()); err != nil {
		return err
	}
	f.h.Reset()
	for end := false; !end; {
		b, ok := r.buffer(f)
		if !ok {
			return nil
		}
		var n int
		if n, end, err = fill(file, b.bytes[:]); err != nil {
			return err
		}
		if err := r.account(e.Path, n, 0); err != nil {
			return err
		}
		data := b.bytes[:n]
		if e.Size == 0 {
			e.Head = slices.Clone(data[:min(n, HeadSize)])
		}
		e.Size += int64(n)
		// Others begin with the bytes before this one has hashed them, and may only read.
		if !r.send(f, piece{buffer: b, data: data, end: end}) {
			return nil
		}
		f.h.Write(data)
		f.release(b)
	}
	f.h.Sum(e.SHA256[:0])
	return nil
}

// account adds n bytes read and fails when these and the ahead bytes that are about to be read pass the limit.
func (r *reading) account(path string, n int, ahead int64) error {
	total := r.bytes.Add(int64(n)) + ahead
	if r.limit > 0 && total > r.limit {
		return &LimitError{What: "bytes", Path: path, Limit: r.limit, Found: total}
	}
	return nil
}

// buffer is one that nobody holds.
func (r *reading) buffer(f *fileReader) (*buffer, bool) {
	select {
	case b := <-f.free:
		if b.bytes == nil {
			b.bytes = pieces.Get().(*[pieceSize]byte)
		}
		return b, true
	case <-r.done:
		return nil, false
	}
}

// send gives a piece to whoever looks at it; the reader holds it too.
func (r *reading) send(f *fileReader, p piece) bool {
	holders := int32(2)
	if f.compare != nil {
		holders++
	}
	p.holders.Store(holders)
	select {
	case f.out <- p:
	case <-r.done:
		return false
	}
	if f.compare == nil {
		return true
	}
	select {
	case f.compare <- p:
		return true
	case <-r.done:
		return false
	}
}

// release lets a buffer go. Its channel has room for all there are.
func (f *fileReader) release(b *buffer) {
	if b.holders.Add(-1) == 0 {
		f.free <- b
	}
}

// fill reads until buf is full or r ends.
func fill(r io.Reader, buf []byte) (n int, end bool, err error) {
	for n < len(buf) {
		m, err := r.Read(buf[n:])
		n += m
		if err == io.EOF {
			return n, true, nil
		}
		if err != nil {
			return n, false, err
		}
	}
	return n, false, nil
}
