package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/gatehouse-registry/gatehouse/admission/limit"
)

const (
	// retries is how often one request is tried again at most.
	retries = 12
	// retryWindow is over how long the first tries after a refusal spread; each further refusal doubles it.
	retryWindow = 4 * time.Second
	// maxWindow bounds that, and maxRetryAfter what a server may ask to wait.
	maxWindow     = time.Minute
	maxRetryAfter = 5 * time.Minute
	// idle is how long a body may bring nothing until its connection counts as broken.
	idle = time.Minute
)

// retrying tries a request that only reads, or may be repeated, again when the server was too busy for it (429, 502, 503, 504), or when the
// connection broke or brought nothing. It waits for what Retry-After asks, and in addition anything between nothing and a
// window that doubles with every refusal and shrinks with every answer, so that many clients that were refused at one
// time come back at different ones. A connection that is refused outright, and a host that does not exist, are answers.
type retrying struct {
	next  http.RoundTripper
	until time.Time // after which nothing is tried again

	mu    sync.Mutex
	level int // how many refusals more than answers there were
}

// repeatable marks, in a context, a request that may be sent twice although it does not only read.
type repeatable struct{}

// RoundTrip implements http.RoundTripper.
func (r *retrying) RoundTrip(req *http.Request) (*http.Response, error) {
	again := req.Method == http.MethodGet || req.Method == http.MethodHead || req.Context().Value(repeatable{}) != nil && req.GetBody != nil
	for try := 0; ; try++ {
		if try > 0 && req.GetBody != nil {
			body, err := req.GetBody()
			if err != nil {
				return nil, err
			}
			req = req.Clone(req.Context())
			req.Body = body
		}
		res, err := r.next.RoundTrip(req)
		if !again || !busy(res, err) {
			r.answered()
			return res, err
		}
		var after time.Duration
		if res != nil {
			after = min(RetryAfter(res.Header, time.Now()), maxRetryAfter)
		}
		wait, left := r.refused(after)
		if !left || try >= retries || req.Context().Err() != nil {
			return res, err
		}
		if res != nil {
			_, _ = io.CopyN(io.Discard, res.Body, limit.Document) // so that the connection can be used again
			res.Body.Close()
		}
		if err := pause(req.Context(), wait); err != nil {
			return nil, err
		}
	}
}

// refused counts a refusal and says how long to wait until the next try; false when there is no time for one.
func (r *retrying) refused(after time.Duration) (time.Duration, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.level++
	window := min(retryWindow<<min(r.level-1, 10), maxWindow)
	wait := after + rand.N(window)
	return wait, time.Now().Add(wait).Before(r.until)
}

func (r *retrying) answered() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.level = max(0, r.level-1)
}

// pause waits, or fails when ctx ends.
func pause(ctx context.Context, wait time.Duration) error {
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// busy reports whether a request may go better later.
func busy(res *http.Response, err error) bool {
	if err != nil {
		return broken(err)
	}
	switch res.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// broken reports whether an error is one of a connection that broke, or on which nothing came.
func broken(err error) bool {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		return true
	}
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, io.EOF) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, errIdle)
}

// errIdle says that a body brought nothing for as long as idle.
var errIdle = fmt.Errorf("nothing came for %v: %w", idle, os.ErrDeadlineExceeded)

// resuming reads a body, and goes on with another request when a connection broke or brought nothing.
type resuming struct {
	ctx  context.Context
	by   *retrying
	open func(ctx context.Context, at int64) (io.ReadCloser, error)

	at    int64 // how many bytes came
	tries int
	body  io.ReadCloser
	conn  context.Context // of the body
	end   context.CancelCauseFunc
	timer *time.Timer
}

// begin opens the body at the place that was reached.
func (r *resuming) begin() (err error) {
	r.conn, r.end = context.WithCancelCause(r.ctx)
	if r.body, err = r.open(r.conn, r.at); err != nil { // for how long that takes is the transport's to bound
		r.body = nil
		r.end(nil)
		return err
	}
	end := r.end
	r.timer = time.AfterFunc(idle, func() { end(errIdle) })
	return nil
}

// Close ends the request.
func (r *resuming) Close() error {
	r.timer.Stop()
	defer r.end(nil)
	if r.body == nil { // it could not be opened again
		return nil
	}
	return r.body.Close()
}

func (r *resuming) Read(p []byte) (int, error) {
	for {
		n, err := r.body.Read(p)
		r.at += int64(n)
		if n > 0 || err == nil || err == io.EOF {
			r.timer.Reset(idle)
			if n > 0 && err != io.EOF {
				err = nil // it comes again
			}
			return n, err
		}
		if cause := context.Cause(r.conn); cause != nil {
			err = cause
		}
		if err := r.again(err); err != nil {
			return 0, err
		}
	}
}

// again opens the body anew after a pause, or gives up with the error that broke it.
func (r *resuming) again(broke error) error {
	if !broken(broke) || r.tries >= retries {
		return broke
	}
	r.tries++
	wait, ok := r.by.refused(0)
	if !ok {
		return broke
	}
	if err := r.Close(); err != nil && !broken(err) && !errors.Is(err, context.Canceled) {
		return broke
	}
	if err := pause(r.ctx, wait); err != nil {
		return err
	}
	return r.begin()
}
