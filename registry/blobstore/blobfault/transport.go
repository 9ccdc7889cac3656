package blobfault

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"syscall"
)

// Transport gives a transport whose requests fail as the plan says. A client may send a request again: Stuck decides
// whether that fails too.
func (p *Plan) Transport(real http.RoundTripper) http.RoundTripper {
	return &transport{real: real, plan: p}
}

// Stuck is Transport, but a request that fails goes on to fail however often it is sent, until Disarm.
func (p *Plan) Stuck(real http.RoundTripper) http.RoundTripper {
	return &transport{real: real, plan: p, stuck: true}
}

type transport struct {
	real  http.RoundTripper
	plan  *Plan
	stuck bool
}

// errReset is what a client sees of a connection that was cut.
var errReset = fmt.Errorf("injected: %w", syscall.ECONNRESET)

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	name := r.Method + " " + r.URL.Path
	if q := r.URL.Query(); len(q) > 0 {
		q.Del("uploadId") // random
		name += "?" + q.Encode()
	}
	kind := t.plan.next(name)
	if kind == None && t.stuck {
		kind = t.plan.again(name)
	}
	switch kind {
	case None:
		return t.real.RoundTrip(r)
	case LostAnswer:
		answer, err := t.real.RoundTrip(r)
		if err == nil {
			err = errors.Join(errReset, answer.Body.Close())
		}
		return nil, err
	case CutBody, ShortBody:
		return t.cut(r, kind)
	case ErrorIn200:
		return refusal(r, http.StatusOK, "InternalError")
	case SlowDown:
		return refusal(r, http.StatusServiceUnavailable, "SlowDown")
	case Full:
		return refusal(r, http.StatusInsufficientStorage, "InsufficientStorage")
	case Denied:
		return refusal(r, http.StatusForbidden, "AccessDenied")
	}
	return nil, errReset
}

// again is how a call fails that is the one that failed already.
func (p *Plan) again(name string) Kind {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fired == name {
		return p.kind
	}
	return None
}

// refusal answers in the store's place.
func refusal(r *http.Request, status int, code string) (*http.Response, error) {
	if r.Body != nil {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return nil, err
		}
	}
	body := "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>" + code + "</Code><Message>injected</Message></Error>"
	if r.Method == http.MethodHead {
		body = ""
	}
	return &http.Response{
		Status: strconv.Itoa(status) + " injected", StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/xml"}}, ContentLength: int64(len(body)),
		Body: io.NopCloser(strings.NewReader(body)), Request: r,
	}, nil
}

// cut lets the answer end in the middle of its body.
func (t *transport) cut(r *http.Request, kind Kind) (*http.Response, error) {
	answer, err := t.real.RoundTrip(r)
	if err != nil || r.Method == http.MethodHead {
		return answer, err
	}
	body, err := io.ReadAll(answer.Body)
	if err := errors.Join(err, answer.Body.Close()); err != nil {
		return nil, err
	}
	half := body[:len(body)/2]
	if kind == ShortBody {
		answer.ContentLength = int64(len(half))
		answer.Header.Set("Content-Length", strconv.Itoa(len(half)))
		answer.Body = io.NopCloser(bytes.NewReader(half))
		return answer, nil
	}
	answer.Body = io.NopCloser(io.MultiReader(bytes.NewReader(half), cutReader{}))
	return answer, nil
}

// cutReader is where a connection was cut.
type cutReader struct{}

func (cutReader) Read([]byte) (int, error) { return 0, errReset }
