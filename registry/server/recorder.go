package server

import (
	"io"
	"math"
	"net/http"
	"time"
)

// sendPiece is how many bytes are sent under one deadline: at the default idle time a client must take 17 KiB/s.
const sendPiece = 1 << 20

// statusRecorder notes what was answered, and drops a client that takes nothing for the idle time. It keeps ReadFrom, so
// that files are still sent without copying.
type statusRecorder struct {
	http.ResponseWriter
	code  int
	bytes int64

	idle     time.Duration // 0: no deadline
	deadline deadliner
	armed    time.Time // when the deadline was set last
}

// deadliner is a connection, or a stream of one, that knows deadlines.
type deadliner interface{ SetWriteDeadline(time.Time) error }

func newRecorder(w http.ResponseWriter, idle time.Duration) *statusRecorder {
	d, _ := w.(deadliner)
	return &statusRecorder{ResponseWriter: w, deadline: d, idle: idle}
}

// arm gives the client the idle time for what is written next.
func (r *statusRecorder) arm() {
	if r.deadline == nil || r.idle <= 0 {
		return
	}
	if now := time.Now(); now.Sub(r.armed) > r.idle/4 {
		r.armed = now
		r.deadline.SetWriteDeadline(now.Add(r.idle)) // a connection that can't is one of a test
	}
}

// finish prepares what the server itself sends once the handler has returned.
func (r *statusRecorder) finish() {
	r.armed = time.Time{} // the handler may have set a deadline of its own
	r.arm()
}

func (r *statusRecorder) WriteHeader(code int) {
	if r.code == 0 && code >= http.StatusOK {
		r.code = code
	}
	r.ResponseWriter.WriteHeader(code)
}

func (r *statusRecorder) Write(p []byte) (int, error) {
	r.arm()
	n, err := r.ResponseWriter.Write(p)
	r.bytes += int64(n)
	return n, err
}

// ReadFrom sends src in pieces, each under a deadline of its own. A piece is one io.LimitedReader around what src reads
// from: the system sends a file by itself only then.
func (r *statusRecorder) ReadFrom(src io.Reader) (total int64, err error) {
	left := int64(math.MaxInt64)
	limited, ok := src.(*io.LimitedReader)
	if ok {
		src, left = limited.R, limited.N
	}
	for left > 0 && err == nil {
		var n int64
		ask := min(sendPiece, left)
		r.arm()
		n, err = io.Copy(r.ResponseWriter, &io.LimitedReader{R: src, N: ask})
		total, left = total+n, left-n
		if n < ask {
			break
		}
	}
	if ok {
		limited.N = left
	}
	r.bytes += total
	return total, err
}

// Unwrap lets http.ResponseController reach the connection.
func (r *statusRecorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// Flush sends what is buffered.
func (r *statusRecorder) Flush() {
	if f, ok := r.ResponseWriter.(http.Flusher); ok {
		r.arm()
		f.Flush()
	}
}

func (r *statusRecorder) status() int {
	if r.code == 0 {
		return http.StatusOK
	}
	return r.code
}
