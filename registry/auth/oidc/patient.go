package oidc

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// unreachableError says that an issuer did not answer.
type unreachableError struct{ err error }

func (e *unreachableError) Error() string { return e.err.Error() }
func (e *unreachableError) Unwrap() error { return e.err }

// patient asks an issuer the same thing once in answerAge, whatever documents make of it: anybody can send a document that
// names a key which is not there. It reads answers whole and no more than maxAnswer of them.
type patient struct {
	next http.RoundTripper
	now  func() time.Time

	mu      sync.Mutex
	answers map[string]remembered
}

type remembered struct {
	at     time.Time
	status int
	header http.Header
	body   []byte
	err    error
}

// maxAddresses bounds what is remembered: an issuer has its configuration, its keys, and where redirects lead.
const maxAddresses = 16

// RoundTrip implements http.RoundTripper.
func (p *patient) RoundTrip(r *http.Request) (*http.Response, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	address := r.URL.String()
	a, ok := p.answers[address]
	if age := p.now().Sub(a.at); !ok || age >= answerAge || age < 0 {
		a = p.ask(r)
		if len(p.answers) >= maxAddresses {
			clear(p.answers)
		}
		if r.Context().Err() == nil { // else the asker is gone, which says nothing about the issuer
			p.answers[address] = a
		}
	}
	if a.err != nil {
		return nil, &unreachableError{a.err}
	}
	return &http.Response{
		Status: http.StatusText(a.status), StatusCode: a.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: a.header.Clone(), Body: io.NopCloser(bytes.NewReader(a.body)), ContentLength: int64(len(a.body)), Request: r,
	}, nil
}

func (p *patient) ask(r *http.Request) remembered {
	a := remembered{at: p.now()}
	res, err := p.next.RoundTrip(r)
	if err != nil {
		a.err = err
		return a
	}
	defer res.Body.Close()
	a.status, a.header = res.StatusCode, res.Header
	if a.status >= http.StatusBadRequest {
		a.err = fmt.Errorf("%s answered %s", r.URL.Host, res.Status)
		return a
	}
	if a.body, a.err = io.ReadAll(io.LimitReader(res.Body, maxAnswer+1)); a.err == nil && len(a.body) > maxAnswer {
		a.err = fmt.Errorf("the answer of %s has more than %d bytes", r.URL.Host, maxAnswer)
	}
	return a
}
