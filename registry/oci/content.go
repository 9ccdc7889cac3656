package oci

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
)

// piece is how many bytes of content are sent under one deadline: at the default idle time a client must take 17 KiB/s.
const piece = 1 << 20

// serveContent answers with content, or a range of it, or the news that the client has it. content may be nil for a
// HEAD. An *os.File reaches the connection by sendfile where the system has that. Errors: RangeInvalid.
func (h *handler) serveContent(x *exchange, d digest.Descriptor, content io.ReadSeeker) error {
	header, etag := x.w.Header(), etagOf(d.Digest)
	part := byteRange{length: d.Size}
	status := http.StatusOK
	if spec := x.r.Header.Get("Range"); spec != "" && x.r.Method == http.MethodGet && !x.hasIt(etag) && x.rangeApplies(etag) {
		var partial bool
		var err error
		if part, partial, err = parseRange(spec, d.Size); err != nil {
			header.Set("Content-Range", "bytes */"+itoa(d.Size))
			return err
		}
		if partial {
			header.Set("Content-Range", part.contentRange(d.Size))
			status = http.StatusPartialContent
		}
	}
	header.Set("Docker-Content-Digest", d.Digest.String())
	header.Set("Etag", etag)
	header.Set("Accept-Ranges", "bytes")
	if x.hasIt(etag) {
		x.w.WriteHeader(http.StatusNotModified)
		return nil
	}
	header.Set("Content-Type", d.MediaType)
	header.Set("Content-Length", itoa(part.length))
	if content == nil {
		x.w.WriteHeader(status)
		return nil
	}
	if _, err := content.Seek(part.start, io.SeekStart); err != nil {
		return fmt.Errorf("seek in %s: %w", d.Digest, err)
	}
	if _, file := content.(*os.File); !file && part.length <= together {
		return h.sendTogether(x, d.Digest, status, content, part.length)
	}
	x.w.WriteHeader(status)
	h.send(x, d.Digest, content, part.length)
	return nil
}

// together is how many bytes of content are read before the answer begins, so that headers and content leave in one write.
const together = 64 << 10

// sendTogether answers with little content, which can still fail.
func (h *handler) sendTogether(x *exchange, d digest.Digest, status int, content io.Reader, n int64) error {
	buf := make([]byte, n)
	if _, err := io.ReadFull(content, buf); err != nil {
		return fmt.Errorf("read %s: %w", d, err)
	}
	control := http.NewResponseController(x.w)
	control.SetWriteDeadline(time.Now().Add(h.idle))
	x.w.WriteHeader(status)
	if _, err := x.w.Write(buf); err != nil {
		h.log.WarnContext(x.ctx, "transfer ended early", "repository", x.Repository, "digest", d.String(), "err", err)
	}
	control.SetWriteDeadline(time.Time{})
	return nil
}

// send moves n bytes to the client. The status is out, so an error can only end the connection and be logged.
func (h *handler) send(x *exchange, d digest.Digest, content io.Reader, n int64) {
	control, out := http.NewResponseController(x.w), direct(x.w)
	for n > 0 {
		control.SetWriteDeadline(time.Now().Add(h.idle))
		sent, err := io.CopyN(out, content, min(n, piece))
		n -= sent
		if err != nil {
			h.log.WarnContext(x.ctx, "transfer ended early", "repository", x.Repository, "digest", d.String(), "missing", n, "err", err)
			return
		}
	}
	control.SetWriteDeadline(time.Time{})
}

// direct is where the bytes of a file go. Middleware that wraps the writer hides the connection's ReadFrom, and with it
// sendfile; writing nothing makes every writer on the way send its status, and then the one below all of them is as good.
func direct(w http.ResponseWriter) io.Writer {
	for inner := w; ; {
		if _, ok := inner.(io.ReaderFrom); ok {
			if inner != w {
				w.Write(nil)
			}
			return inner
		}
		wrapper, ok := inner.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return w
		}
		inner = wrapper.Unwrap()
	}
}

// etagOf is the entity tag of content: it never changes.
func etagOf(d digest.Digest) string { return `"` + d.String() + `"` }

// hasIt reports whether If-None-Match names the content: then there is nothing to send.
func (x *exchange) hasIt(etag string) bool {
	for _, field := range x.r.Header.Values("If-None-Match") {
		for tag := range strings.SplitSeq(field, ",") {
			tag = strings.TrimPrefix(strings.TrimSpace(tag), "W/")
			if tag == etag || tag == "*" {
				return true
			}
		}
	}
	return false
}

// rangeApplies reports whether If-Range, if there is one, allows a part (RFC 9110 13.1.5).
func (x *exchange) rangeApplies(etag string) bool {
	condition := x.r.Header.Get("If-Range")
	return condition == "" || condition == etag
}

// byteRange is a part of some content.
type byteRange struct{ start, length int64 }

func (b byteRange) contentRange(size int64) string {
	return fmt.Sprintf("bytes %d-%d/%d", b.start, b.start+b.length-1, size)
}

// parseRange reads a Range header. A unit that is not bytes, and a request for several ranges, may be answered with
// the whole (RFC 9110 14.2); so partial is false for these. Errors: RangeInvalid.
func parseRange(spec string, size int64) (part byteRange, partial bool, err error) {
	unit, spec, _ := strings.Cut(spec, "=")
	if !strings.EqualFold(strings.TrimSpace(unit), "bytes") || strings.Contains(spec, ",") {
		return byteRange{length: size}, false, nil
	}
	first, last, ok := strings.Cut(strings.TrimSpace(spec), "-")
	switch {
	case !ok:
	case first == "" && isDigits(last):
		length := min(parseOffset(last), size)
		if length > 0 {
			return byteRange{start: size - length, length: length}, true, nil
		}
	case isDigits(first) && (last == "" || isDigits(last)):
		start, end := parseOffset(first), size-1
		if last != "" {
			end = min(parseOffset(last), end)
		}
		if start <= end {
			return byteRange{start: start, length: end - start + 1}, true, nil
		}
	}
	return part, false, registry.Errorf(registry.RangeInvalid, "Range: %.100q is no part of %d bytes", spec, size)
}

// parseOffset reads digits; what no int64 holds lies behind the end of anything.
func parseOffset(digits string) int64 {
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return 1<<63 - 1
	}
	return n
}

// writeJSON answers with v.
func (x *exchange) writeJSON(mediaType string, v any) error { return writeJSON(x.w, mediaType, v) }

func writeJSON(w http.ResponseWriter, mediaType string, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", mediaType)
	w.Header().Set("Content-Length", itoa(int64(len(body))))
	w.Write(body)
	return nil
}
