package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"time"
)

// Defaults of a Target, and what an answer may ask for at most.
const (
	DefaultTimeout   = 10 * time.Second
	DefaultMaxAnswer = 1 << 20
	maxRetryAfter    = time.Hour
)

// Target is where requests go.
type Target struct {
	URL          string        // https, or http to this machine
	InsecureHTTP bool          // http to any machine
	Secret       string        // see Key
	CAFile       string        // PEM of the authorities that are trusted in place of the system's; "": the system's
	Timeout      time.Duration // of a whole exchange; 0 is DefaultTimeout
	MaxAnswer    int64         // bytes of an answer's body; 0 is DefaultMaxAnswer
	StatusOnly   bool          // an answer is its status: of a body that is longer, late or broken off counts what came
}

// Check says what is wrong with a target, without opening its files.
func (t Target) Check() error {
	u, err := url.Parse(t.URL)
	switch {
	case err != nil:
		return errors.New("url: this is no address") // the parser's text would repeat a password
	case u.Scheme != "https" && u.Scheme != "http", u.Host == "", u.Opaque != "":
		return errors.New("url: expected https://HOST[:PORT]/PATH")
	case u.User != nil:
		return errors.New("url: holds a password; requests are signed with the secret instead")
	case u.Fragment != "":
		return errors.New("url: holds a fragment, which is never sent")
	case u.Scheme == "http" && !t.InsecureHTTP && !loopback(u.Hostname()):
		return errors.New("url: plain http to another machine lets anybody on the way read and answer; use https, or set insecure_http")
	case t.Timeout < 0 || t.MaxAnswer < 0:
		return errors.New("a limit is negative")
	}
	if _, err := Key(t.Secret); err != nil {
		return fmt.Errorf("secret: %w", err)
	}
	return nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Client sends signed requests to one target. It is safe for concurrent use.
type Client struct {
	target Target
	key    []byte
	http   *http.Client
	now    func() time.Time
}

// New makes the client of a target.
func New(t Target) (*Client, error) {
	if err := t.Check(); err != nil {
		return nil, err
	}
	if t.Timeout == 0 {
		t.Timeout = DefaultTimeout
	}
	if t.MaxAnswer == 0 {
		t.MaxAnswer = DefaultMaxAnswer
	}
	key, err := Key(t.Secret)
	if err != nil {
		return nil, err
	}
	transport, err := transportOf(t)
	if err != nil {
		return nil, err
	}
	return &Client{target: t, key: key, now: time.Now, http: &http.Client{
		Transport: transport, Timeout: t.Timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

func transportOf(t Target) (*http.Transport, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if t.CAFile != "" {
		pem, err := os.ReadFile(t.CAFile)
		if err != nil {
			return nil, fmt.Errorf("ca_file: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("ca_file: %s holds no certificate in PEM", t.CAFile)
		}
	}
	return &http.Transport{
		TLSClientConfig: config, TLSHandshakeTimeout: t.Timeout, ForceAttemptHTTP2: true, DisableCompression: true,
		MaxResponseHeaderBytes: 64 << 10, MaxIdleConnsPerHost: 16, IdleConnTimeout: time.Minute,
	}, nil
}

// Host is the host and port that requests go to: what a message may say of the target.
func (c *Client) Host() string {
	u, err := url.Parse(c.target.URL)
	if err != nil {
		return ""
	}
	return u.Host
}

// Answer is what a target said.
type Answer struct {
	Status     int
	Body       []byte
	RetryAfter time.Duration // at most an hour; 0: it named none
}

// OK reports whether the status is one of success.
func (a Answer) OK() bool { return a.Status >= 200 && a.Status < 300 }

// Post sends a body under an id, which is the same whenever the same thing is sent again. It fails when there is no whole
// answer in time, or no status where Target.StatusOnly asks for no more; any status, a redirect's too, is an answer. The error names neither the address's path nor the secret.
func (c *Client) Post(ctx context.Context, id, contentType string, body []byte) (Answer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.target.URL, bytes.NewReader(body))
	if err != nil {
		return Answer{}, errors.New("the address is malformed")
	}
	at := c.now()
	req.Header.Set("Content-Type", contentType)
	req.Header.Set("User-Agent", "gatehouse-webhook")
	req.Header.Set(HeaderID, id)
	req.Header.Set("Idempotency-Key", id) // the same, under the name that gateways know
	req.Header.Set(HeaderTimestamp, strconv.FormatInt(at.Unix(), 10))
	req.Header.Set(HeaderSignature, Sign(c.key, id, at, body))
	res, err := c.http.Do(req)
	if err != nil {
		return Answer{}, c.failed(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, c.target.MaxAnswer+1))
	switch tooLong := int64(len(text)) > c.target.MaxAnswer; {
	case c.target.StatusOnly && tooLong:
		text = text[:c.target.MaxAnswer]
	case c.target.StatusOnly:
	case err != nil:
		return Answer{}, c.failed(err)
	case tooLong:
		return Answer{}, fmt.Errorf("%s answered more than %d bytes", c.Host(), c.target.MaxAnswer)
	}
	return Answer{Status: res.StatusCode, Body: text, RetryAfter: c.retryAfter(res.Header.Get("Retry-After"))}, nil
}

// failed words an error of the HTTP client without the address, whose path or query may be confidential.
func (c *Client) failed(err error) error {
	if late, ok := errors.AsType[net.Error](err); ok && late.Timeout() {
		return fmt.Errorf("%s did not answer within %s: %w", c.Host(), c.target.Timeout, context.DeadlineExceeded)
	}
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err
	}
	return fmt.Errorf("%s: %w", c.Host(), err)
}

// retryAfter reads the header in both of its forms.
func (c *Client) retryAfter(value string) time.Duration {
	if value == "" {
		return 0
	}
	var d time.Duration
	if seconds, err := strconv.ParseInt(value, 10, 32); err == nil {
		d = time.Duration(seconds) * time.Second
	} else if at, err := http.ParseTime(value); err == nil {
		d = at.Sub(c.now())
	}
	return min(max(d, 0), maxRetryAfter)
}
