package oci

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/httpbody"
)

// body is the body of a request, guarded; its errors have the code. ServeHTTP has bound it.
func (h *handler) body(x *exchange, code registry.Code) io.Reader {
	return httpbody.New(x.w, x.r, code, h.idle)
}

// wholeBody is a body that brings a whole blob.
func (h *handler) wholeBody(x *exchange) registry.Chunk {
	return registry.Chunk{Offset: 0, Size: x.r.ContentLength, Body: h.body(x, registry.BlobUploadInvalid)}
}

// chunk is a body that brings a piece of an upload; where it belongs stands in Content-Range, if anywhere.
// Errors: BlobUploadInvalid, SizeInvalid.
func (h *handler) chunk(x *exchange) (registry.Chunk, error) {
	c := registry.Chunk{Offset: -1, Size: x.r.ContentLength, Body: h.body(x, registry.BlobUploadInvalid)}
	header := x.r.Header.Get("Content-Range")
	if header == "" {
		return c, nil
	}
	first, last, err := parseContentRange(header)
	if err != nil {
		return c, err
	}
	want := last - first + 1
	if c.Size >= 0 && c.Size != want {
		return c, registry.Errorf(registry.SizeInvalid, "Content-Range %s is of %d bytes, Content-Length says %d", header, want, c.Size)
	}
	return registry.Chunk{Offset: first, Size: want, Body: &exactly{r: c.Body, left: want}}, nil
}

// parseContentRange reads the form of the specification, "<first>-<last>", both inclusive.
func parseContentRange(s string) (first, last int64, err error) {
	from, to, ok := strings.Cut(s, "-")
	if ok && isDigits(from) && isDigits(to) {
		first, err = strconv.ParseInt(from, 10, 64)
		if err == nil {
			last, err = strconv.ParseInt(to, 10, 64)
		}
		ok = err == nil && first <= last && last-first < 1<<62
	} else {
		ok = false
	}
	if !ok {
		return 0, 0, registry.Errorf(registry.BlobUploadInvalid, "Content-Range: %.100q is not of the form <first>-<last>, such as 0-1023", s)
	}
	return first, last, nil
}

func isDigits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// exactly passes a body through and fails when it has more or fewer bytes than left.
type exactly struct {
	r    io.Reader
	left int64
}

func (e *exactly) Read(p []byte) (int, error) {
	n, err := e.r.Read(p)
	if int64(n) > e.left {
		n, err = int(e.left), registry.Errorf(registry.SizeInvalid, "request body: more bytes came than Content-Range says")
	}
	e.left -= int64(n)
	if errors.Is(err, io.EOF) && e.left > 0 {
		err = registry.Errorf(registry.SizeInvalid, "request body: it ended %d bytes before the end of Content-Range", e.left)
	}
	return n, err
}

// maxDrain is how much of a manifest that is too large is read and thrown away, so that a client that writes before it
// reads sees the refusal and not a broken connection.
const maxDrain = 4 * limit.Manifest

// readManifest reads the body of a manifest. What is too large is not kept. Errors: TooLarge, ManifestInvalid.
func (h *handler) readManifest(x *exchange) ([]byte, error) {
	in := h.body(x, registry.ManifestInvalid)
	size := x.r.ContentLength
	if size <= limit.Manifest {
		var buf bytes.Buffer
		buf.Grow(int(min(max(size, 0)+bytes.MinRead, 64*limit.KiB)))
		n, err := buf.ReadFrom(io.LimitReader(in, limit.Manifest+1))
		if err != nil {
			return nil, err
		}
		if n <= limit.Manifest {
			return buf.Bytes(), nil
		}
	}
	if x.r.Header.Get("Expect") == "" {
		io.CopyN(io.Discard, in, maxDrain)
	}
	if size < 0 {
		return nil, registry.Errorf(registry.TooLarge, "the manifest has more than %d bytes, the most that is allowed", limit.Manifest)
	}
	return nil, registry.Errorf(registry.TooLarge, "the manifest has %d bytes, at most %d are allowed", size, limit.Manifest)
}
