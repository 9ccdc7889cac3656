package archive

import (
	"encoding/binary"
	"hash/crc32"
	"io"

	"github.com/klauspost/compress/flate"

	"github.com/gatehouse-registry/gatehouse/admission/limit"
)

const (
	// packBlock is how many bytes of the stream are decided on at a time. A stored block of deflate holds no more.
	packBlock = 32 << 10
	// storeFrom is where a stream begins to be watched, storeRatio what it is held to. Both lie below the limits
	// (limit.BombFrom, limit.BombRatio) by more than a block and what a compressor holds back.
	storeFrom  = limit.BombFrom - limit.MiB
	storeRatio = limit.BombRatio - 10
)

// Compressor writes one gzip stream that is never a bomb by the rule that readers apply: where the bytes so far would
// unpack to too many times their size, further blocks are stored as they are. That costs about a hundredth of the
// stream and makes every tree within the other limits one that can be packed, whatever it repeats. The output
// is a function of the input, not of the pieces it comes in.
type Compressor struct {
	out     counting
	deflate *flate.Writer
	block   []byte // what has not been decided on yet
	in      int64  // bytes that were
	sum     uint32
}

// gzipHeader is that of a stream without a name, a time or a system.
var gzipHeader = []byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff}

// NewCompressor begins a stream. Close ends it and leaves out open.
func NewCompressor(out io.Writer) (*Compressor, error) {
	c := &Compressor{out: counting{w: out}, block: make([]byte, 0, packBlock)}
	if _, err := c.out.Write(gzipHeader); err != nil {
		return nil, err
	}
	var err error
	c.deflate, err = flate.NewWriter(&c.out, flate.DefaultCompression)
	return c, err
}

// counting counts the bytes that pass.
type counting struct {
	w io.Writer
	n int64
}

func (c *counting) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

// Write takes bytes of the stream.
func (c *Compressor) Write(p []byte) (int, error) {
	n := len(p)
	c.sum = crc32.Update(c.sum, crc32.IEEETable, p)
	for len(p) > 0 {
		taken := copy(c.block[len(c.block):packBlock], p)
		c.block, p = c.block[:len(c.block)+taken], p[taken:]
		if len(c.block) == packBlock {
			if err := c.flush(); err != nil {
				return 0, err
			}
		}
	}
	return n, nil
}

// flush writes the block that was collected.
func (c *Compressor) flush() error {
	block := c.block
	c.block, c.in = block[:0], c.in+int64(len(block))
	if !c.over() {
		_, err := c.deflate.Write(block)
		return err
	}
	// Only after what the compressor holds back is the ratio known.
	if err := c.deflate.Flush(); err != nil {
		return err
	}
	if !c.over() {
		_, err := c.deflate.Write(block)
		return err
	}
	return c.store(block)
}

func (c *Compressor) over() bool { return c.in > storeFrom && c.in > storeRatio*c.out.n }

// store writes a block as it is. The compressor stands at a byte's end, as it does after a flush; it starts anew, since
// what it remembers no longer lies where it thinks.
func (c *Compressor) store(block []byte) error {
	head := []byte{0} // a stored block, not the last
	head = binary.LittleEndian.AppendUint16(head, uint16(len(block)))
	head = binary.LittleEndian.AppendUint16(head, ^uint16(len(block)))
	for _, b := range [][]byte{head, block} {
		if _, err := c.out.Write(b); err != nil {
			return err
		}
	}
	c.deflate.Reset(&c.out)
	return nil
}

// Close ends the stream.
func (c *Compressor) Close() error {
	if err := c.flush(); err != nil {
		return err
	}
	if err := c.deflate.Close(); err != nil {
		return err
	}
	tail := binary.LittleEndian.AppendUint32(nil, c.sum)
	_, err := c.out.Write(binary.LittleEndian.AppendUint32(tail, uint32(c.in)))
	return err
}

var _ io.WriteCloser = (*Compressor)(nil)
