package digest

import (
	"hash"
	"io"
	"sync"
)

// Copying works on pieces: while one is read and written, those before it are hashed. A copy that ends within the first
// piece needs no second goroutine.
const (
	pieceSize   = 256 << 10
	pieceCount  = 4 // a copy holds so many at most
	pieceEnough = pieceSize / 2
)

var pieces = sync.Pool{New: func() any { return new([pieceSize]byte) }}

// Copy is io.Copy through a hash: h has seen exactly the bytes that were written when it returns without an error of dst.
// Hashing runs beside reading and writing, so a copy takes as long as the slower of the two. It holds a MiB at most.
func Copy(dst io.Writer, src io.Reader, h hash.Hash) (n int64, err error) {
	var c copier
	defer c.finish()
	for {
		p := c.next()
		size, err := fill(src, p[:])
		if size > 0 {
			c.hash(h, p, size, err != nil)
			written, failed := dst.Write(p[:size])
			n += int64(written)
			if failed == nil && written < size {
				failed = io.ErrShortWrite
			}
			if failed != nil {
				return n, failed
			}
		}
		if err == io.EOF {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}

// fill reads until half of p is full, so that a connection that gives little at a time costs no write for each.
func fill(src io.Reader, p []byte) (n int, err error) {
	for n < pieceEnough && err == nil {
		var more int
		more, err = src.Read(p[n:])
		n += more
	}
	return n, err
}

// copier is a copy on its way.
type copier struct {
	owned int                   // pieces taken from the pool
	free  chan *[pieceSize]byte // those that were hashed
	full  chan piece            // those to hash; nil while nothing runs beside
	idle  chan struct{}         // closed when the hashing has ended
}

type piece struct {
	p    *[pieceSize]byte
	size int
}

// next is a piece that nobody uses.
func (c *copier) next() *[pieceSize]byte {
	if c.full != nil && c.owned == pieceCount {
		return <-c.free
	}
	select {
	case p := <-c.free:
		return p
	default:
		c.owned++
		return pieces.Get().(*[pieceSize]byte)
	}
}

// hash gives a piece to the hash: at once when it is the first and last, else beside what follows.
func (c *copier) hash(h hash.Hash, p *[pieceSize]byte, size int, last bool) {
	if c.full == nil && last {
		h.Write(p[:size])
		return // the writer still needs p, so the collector takes it
	}
	if c.full == nil {
		c.free, c.full, c.idle = make(chan *[pieceSize]byte, pieceCount), make(chan piece, pieceCount), make(chan struct{})
		go func() {
			defer close(c.idle)
			for f := range c.full {
				h.Write(f.p[:f.size])
				c.free <- f.p
			}
		}()
	}
	c.full <- piece{p, size}
}

// finish waits for the hash and gives the pieces back.
func (c *copier) finish() {
	if c.full == nil {
		return
	}
	close(c.full)
	<-c.idle
	close(c.free)
	for p := range c.free {
		pieces.Put(p)
	}
}
