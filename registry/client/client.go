// Package client speaks to a Gatehouse server: its API over JSON, and the OCI protocol through oras-go. An error of
// the server comes back as the *registry.Error that it was there, with the gate's Decision as Detail when one refused.
package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/registry"
)

// Options say which server, and as whom.
type Options struct {
	Server    string // base address, http or https
	Account   string // the account's name: the user of Basic on /v2
	Token     string
	Bearer    bool // Token is sent as it is on /v2 too, as that of a node's grant is
	UserAgent string
	CAs       *x509.CertPool // the authorities that its certificate may be of; nil: the system's
	Client    string         // base path of a dialect, "sf" or "tp" with an optional "@release"; "" is the server's default
	// RetryFor is for how long after New a request that only reads is tried again when the server was too busy for it or
	// the connection broke; 0 is never.
	RetryFor time.Duration
	// Transport carries the requests; nil is the network.
	Transport http.RoundTripper
}

// Client is safe for concurrent use.
type Client struct {
	opt  Options
	base *url.URL
	http *http.Client

	retry *retrying
}

// maxAnswer bounds what is read of a JSON answer.
const maxAnswer = 256 * limit.MiB

// New checks the address. No request is made.
func New(opt Options) (*Client, error) {
	u, err := url.Parse(strings.TrimRight(opt.Server, "/"))
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, registry.Errorf(registry.Invalid, "server: %.200q is no http(s) address", opt.Server)
	}
	next := opt.Transport
	if next == nil {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.ResponseHeaderTimeout = 2 * time.Minute
		if opt.CAs != nil {
			transport.TLSClientConfig = &tls.Config{RootCAs: opt.CAs, MinVersion: tls.VersionTLS12}
		}
		next = transport
	}
	retry := &retrying{next: next, until: time.Now().Add(opt.RetryFor)}
	hc := &http.Client{Transport: retry, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse // a token never follows a redirect to another host
	}}
	return &Client{opt: opt, base: u, http: hc, retry: retry}, nil
}

// As is the client with another account's name, which only the OCI verbs use.
func (c *Client) As(account string) *Client {
	other := *c
	other.opt.Account = account
	return &other
}

// WithGrant is the client that sends the token of a node's grant, everywhere.
func (c *Client) WithGrant(token string) *Client {
	other := *c
	other.opt.Account, other.opt.Token, other.opt.Bearer = "", token, true
	return &other
}

// Host is HOST[:PORT], which references in the OCI API begin with.
func (c *Client) Host() string { return c.base.Host }

// Server is the address in use.
func (c *Client) Server() string { return c.base.String() }

// request is one call of the API.
type request struct {
	method, path string
	query        url.Values
	body         io.Reader
	length       int64 // of body; 0 with a body means unknown
	contentType  string
	header       map[string]string
}

// call makes a request and decodes its JSON answer into out, unless out is nil.
func (c *Client) call(ctx context.Context, r request, out any) error {
	res, err := c.send(ctx, r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("%s %s: %w", r.method, r.path, err)
	}
	if out == nil || len(body) == 0 {
		return nil
	}
	if err := json.Unmarshal(body, out); err != nil {
		return fmt.Errorf("%s %s: the answer is not what this client expects: %w", r.method, r.path, err)
	}
	return nil
}

// callJSON is call with a JSON body.
func (c *Client) callJSON(ctx context.Context, method, path string, in, out any) error {
	r := request{method: method, path: path}
	if in != nil {
		body, err := json.Marshal(in)
		if err != nil {
			return err
		}
		r.body, r.length, r.contentType = bytes.NewReader(body), int64(len(body)), "application/json"
	}
	return c.call(ctx, r, out)
}

// send makes a request; an answer that is no 2xx is an error. The caller closes the body.
func (c *Client) send(ctx context.Context, r request) (*http.Response, error) {
	return c.sendFor(ctx, r, 0)
}

// sendFor is send, to which an answer with the status is no error either.
func (c *Client) sendFor(ctx context.Context, r request, status int) (*http.Response, error) {
	u := *c.base
	u.Path = strings.TrimRight(u.Path, "/")
	if c.opt.Client != "" {
		u.Path += "/" + c.opt.Client
	}
	u.Path += r.path
	u.RawQuery = r.query.Encode()
	req, err := http.NewRequestWithContext(ctx, r.method, u.String(), r.body)
	if err != nil {
		return nil, err
	}
	if r.length > 0 {
		req.ContentLength = r.length
	}
	if r.contentType != "" {
		req.Header.Set("Content-Type", r.contentType)
	}
	for k, v := range r.header {
		req.Header.Set(k, v)
	}
	if c.opt.Token != "" {
		req.Header.Set("Authorization", "Bearer "+c.opt.Token)
	}
	req.Header.Set("User-Agent", c.opt.UserAgent)
	res, err := c.http.Do(req)
	if err != nil {
		return nil, unreachable(err)
	}
	if res.StatusCode/100 != 2 && res.StatusCode != status {
		defer res.Body.Close()
		return nil, AnswerError(res)
	}
	return res, nil
}
