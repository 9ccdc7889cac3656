package mirror

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/client"
)

// maxPatience is the longest wait that a server is granted when it says when to try again; maxRedirects is how often a
// download may lead elsewhere.
const (
	maxPatience  = 5 * time.Minute
	maxRedirects = 10
)

// remote is a place that speaks the distribution protocol.
type remote struct {
	base    *url.URL
	auth    *auth.Client
	opt     Options
	actions []string // what is done in a repository, for its token
}

func newRemote(p Place, opt Options, write bool) *remote {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 4 * opt.Jobs
	if p.CAs != nil {
		transport.TLSClientConfig = &tls.Config{RootCAs: p.CAs, MinVersion: tls.VersionTLS12}
	}
	r := &remote{base: p.Base, opt: opt, actions: []string{auth.ActionPull}, auth: &auth.Client{
		Client: &http.Client{Transport: transport, CheckRedirect: checkRedirect},
		Header: http.Header{"User-Agent": {p.UserAgent}}, Credential: p.Credential, Cache: auth.NewCache(),
	}}
	if write {
		r.actions = append(r.actions, auth.ActionPush)
	}
	return r
}

// checkRedirect lets downloads be redirected, never from https to http. What writes is not sent elsewhere. oras-go takes
// the credentials away when a redirect leaves the registry's address.
func checkRedirect(req *http.Request, via []*http.Request) error {
	first := via[0]
	switch {
	case first.Method != http.MethodGet && first.Method != http.MethodHead:
		return http.ErrUseLastResponse
	case len(via) >= maxRedirects:
		return fmt.Errorf("more than %d redirects", maxRedirects)
	case first.URL.Scheme == "https" && req.URL.Scheme != "https":
		return errors.New("a redirect from https to http")
	}
	return nil
}

// Close implements place.
func (r *remote) Close() error {
	r.auth.Client.CloseIdleConnections()
	return nil
}

// call is a request of the protocol.
type call struct {
	method, path string
	at           *url.URL // instead of path and query
	query        url.Values
	header       http.Header
	body         io.Reader
	length       int64
	scopes       []string
}

// in is a call in a repository.
func (r *remote) in(repository, method, path string) call {
	return call{method: method, path: "/v2/" + repository + path, header: http.Header{}, scopes: []string{auth.ScopeRepository(repository, r.actions...)}}
}

// errBodyGone says that a body was sent in vain, as when the token was too old: a second try has a new token.
var errBodyGone = errors.New("the body was sent already")

// answer is a response whose body ends when its sender gives nothing for Options.Stall.
type answer struct {
	*http.Response
	watch *watch
}

func (a *answer) Close() error {
	defer a.watch.stop()
	return a.Body.Close()
}

func (a *answer) Read(p []byte) (int, error) {
	n, err := a.Body.Read(p)
	if n > 0 {
		a.watch.touch()
	}
	if err != nil && err != io.EOF {
		err = a.watch.cause(err)
	}
	return n, err
}

// do makes a call without a body, again while that may help. The answer has one of the statuses wanted; any other is an
// error.
func (r *remote) do(ctx context.Context, c call, want ...int) (out *answer, err error) {
	err = r.opt.retry(ctx, func() (err error) {
		out, err = r.try(ctx, c, want)
		return err
	})
	return out, err
}

// try makes a call once.
func (r *remote) try(ctx context.Context, c call, want []int) (*answer, error) {
	watch, ctx := watchOver(auth.AppendScopesForHost(ctx, r.base.Host, c.scopes...), r.opt.Stall)
	u := c.at
	if u == nil {
		u = &url.URL{Scheme: r.base.Scheme, Host: r.base.Host, Path: c.path, RawQuery: c.query.Encode()}
	}
	var body io.Reader
	if c.body != nil {
		body = &touching{c.body, watch}
	}
	req, err := http.NewRequestWithContext(ctx, c.method, u.String(), body)
	if err != nil {
		watch.stop()
		return nil, err
	}
	if req.ContentLength = c.length; c.body != nil {
		req.GetBody = func() (io.ReadCloser, error) { return nil, errBodyGone }
	}
	for k, v := range c.header {
		req.Header[k] = v
	}
	res, err := r.send(req)
	if err != nil {
		defer watch.stop()
		return nil, fmt.Errorf("%s %s: %w", c.method, u.Path, client.ProtocolError(watch.cause(err)))
	}
	a := &answer{res, watch}
	if slices.Contains(want, res.StatusCode) {
		return a, nil
	}
	defer a.Close()
	return nil, fmt.Errorf("%s %s: %w", c.method, u.Path, client.AnswerError(res))
}

// send signs in only at the registry itself: an upload's address may be of another host.
func (r *remote) send(req *http.Request) (*http.Response, error) {
	if req.URL.Host == r.base.Host && req.URL.Scheme == r.base.Scheme {
		return r.auth.Do(req)
	}
	req.Header.Set("User-Agent", r.auth.Header.Get("User-Agent"))
	return r.auth.Client.Do(req)
}

// retry runs op until it succeeds, fails for good, or was tried often enough.
func (o Options) retry(ctx context.Context, op func() error) error {
	for attempt := 1; ; attempt++ {
		err := op()
		if err == nil || attempt >= o.Attempts || !mayPass(err) || ctx.Err() != nil {
			return err
		}
		pause := o.Pause << min(attempt-1, 6)
		if e, ok := errors.AsType[*registry.Error](err); ok && e.RetryAfter > 0 {
			pause = e.RetryAfter
		}
		if pause > maxPatience {
			return fmt.Errorf("%w (it asks to wait %v; at most %v are granted)", err, pause, maxPatience)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// mayPass reports whether trying again may help: the server is busy or away, or the connection broke.
func mayPass(err error) bool {
	if _, wrong := errors.AsType[*digest.MismatchError](err); wrong {
		return false
	}
	if e, ok := errors.AsType[*registry.Error](err); ok {
		return e.Code == registry.Unavailable || e.Code == registry.TooManyRequests || e.Code == registry.BlobUploadUnknown
	}
	return errors.Is(err, errStalled) || errors.Is(err, errBodyGone) || errors.Is(err, io.ErrUnexpectedEOF) || isNetwork(err)
}

// accepted are the manifests that are asked for by name; registries that know others give them for */*.
var accepted = strings.Join([]string{
	ocispec.MediaTypeImageIndex, ocispec.MediaTypeImageManifest,
	"application/vnd.docker.distribution.manifest.list.v2+json", "application/vnd.docker.distribution.manifest.v2+json",
	"application/vnd.oci.artifact.manifest.v1+json", "*/*",
}, ", ")

// digestHeader is what a registry says a manifest's digest is.
const digestHeader = "Docker-Content-Digest"

// Resolve implements place.
func (r *remote) Resolve(ctx context.Context, repository, reference string) (digest.Digest, error) {
	c := r.in(repository, http.MethodHead, "/manifests/"+reference)
	c.header.Set("Accept", accepted)
	res, err := r.do(ctx, c, http.StatusOK)
	if err != nil {
		return digest.Digest{}, err
	}
	defer res.Close()
	if d, err := digest.Parse(res.Header.Get(digestHeader)); err == nil {
		return d, nil
	}
	m, err := r.Manifest(ctx, repository, reference)
	return m.Digest, err
}

// Manifest implements place.
func (r *remote) Manifest(ctx context.Context, repository, reference string) (manifest, error) {
	c := r.in(repository, http.MethodGet, "/manifests/"+reference)
	c.header.Set("Accept", accepted)
	var m manifest
	err := r.opt.retry(ctx, func() error {
		res, err := r.try(ctx, c, []int{http.StatusOK})
		if err != nil {
			return err
		}
		defer res.Close()
		content, err := readAtMost(res, limit.Manifest)
		if err != nil {
			return fmt.Errorf("manifest %s of %s: %w", reference, repository, err)
		}
		want, err := digest.Parse(reference)
		if err != nil { // a tag
			want, _ = digest.Parse(res.Header.Get(digestHeader))
		}
		m, err = newManifest(res.Header.Get("Content-Type"), content, want)
		return err
	})
	return m, err
}

// readAtMost reads all of r. Errors: TooLarge.
func readAtMost(r io.Reader, most int64) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(r, most+1))
	if err == nil && int64(len(content)) > most {
		err = registry.Errorf(registry.TooLarge, "more than %d bytes, the most that is read", most)
	}
	return content, err
}

// Roots implements place: a registry shows no manifest without a tag.
func (r *remote) Roots(context.Context, string) ([]descriptor, error) { return nil, nil }
