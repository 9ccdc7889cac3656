package client

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/gatehouse-registry/gatehouse/admission/suite"
	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/api/wire"
)

// Suites lists every suite of the kind that the account may read.
func (c *Client) Suites(ctx context.Context, kind suite.Kind) ([]wire.SuiteRow, error) {
	var out struct {
		wire.EnvironmentList
		wire.TasksetList
		wire.RubricList
	}
	err := c.call(ctx, request{method: http.MethodGet, path: "/api/" + kind.Plural()}, &out)
	return append(append(out.Environments, out.Tasksets...), out.Rubrics...), err
}

// Suite finds one version of a suite with its files, the newest when version is "".
func (c *Client) Suite(ctx context.Context, kind suite.Kind, id, version string) (wire.Suite, error) {
	var out wire.Suite
	r := request{method: http.MethodGet, path: "/api/" + kind.Plural() + "/" + id}
	if version != "" {
		r.query = url.Values{"version": {version}}
	}
	err := c.call(ctx, r, &out)
	return out, err
}

// PutRubric makes a version of a rubric.
func (c *Client) PutRubric(ctx context.Context, id, version string, public bool, text []byte) (wire.Suite, error) {
	var out wire.Suite
	query := url.Values{"version": {version}}
	if public {
		query.Set("visibility", "public")
	}
	err := c.call(ctx, request{method: http.MethodPut, path: "/api/rubrics/" + id, query: query, body: bytes.NewReader(text), length: int64(len(text)), contentType: "text/plain; charset=utf-8"}, &out)
	return out, err
}

// SuiteUpload is one version of a suite that is being pushed.
type SuiteUpload struct {
	Kind    suite.Kind
	Name    string // <owner>/<name>, or a name of the account's own
	Version string
	Public  bool // for a suite that does not exist yet
}

// putAttempts is how often a file is sent: an address may expire, and a connection break.
const putAttempts = 3

// PutSuiteFile uploads one file and gives the full id of the suite. open gives the bytes, anew for each try. index.json, which
// comes last, seals the version.
func (c *Client) PutSuiteFile(ctx context.Context, u SuiteUpload, name string, size int64, open func() (io.ReadCloser, error)) (id string, err error) {
	for attempt := 1; ; attempt++ {
		id, err = c.tryPutSuiteFile(ctx, u, name, size, open)
		code := registry.CodeOf(err)
		again := code == registry.Unavailable || code == registry.Internal || code == registry.TooManyRequests
		if err == nil || !again || attempt == putAttempts || ctx.Err() != nil {
			return id, err
		}
	}
}

func (c *Client) tryPutSuiteFile(ctx context.Context, u SuiteUpload, name string, size int64, open func() (io.ReadCloser, error)) (string, error) {
	in := wire.UploadRequest{Version: u.Version, Filename: name}
	if u.Kind == suite.Taskset {
		in.Taskset = u.Name
	} else {
		in.Environment = u.Name
	}
	if u.Public {
		in.Visibility = "public"
	}
	var to wire.UploadAddress
	if err := c.callJSON(ctx, http.MethodPost, "/api/"+u.Kind.Plural()+"/upload-url", in, &to); err != nil {
		return "", err
	}
	body, err := open()
	if err != nil {
		return "", err
	}
	defer body.Close()
	return to.Environment + to.Taskset, c.putTo(ctx, to, size, body)
}

// putTo sends bytes to an address that carries its own right: the token does not go along.
func (c *Client) putTo(ctx context.Context, to wire.UploadAddress, size int64, body io.Reader) error {
	if size == 0 {
		body = http.NoBody
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, to.URL, body)
	if err != nil {
		return fmt.Errorf("the address of the upload: %w", err)
	}
	req.ContentLength = size
	for k, v := range to.Headers {
		req.Header.Set(k, v)
	}
	req.Header.Set("User-Agent", c.opt.UserAgent)
	res, err := c.http.Do(req)
	if err != nil {
		return unreachable(err)
	}
	defer res.Body.Close()
	if res.StatusCode/100 != 2 {
		return AnswerError(res)
	}
	_, err = io.Copy(io.Discard, io.LimitReader(res.Body, maxAnswer))
	return err
}

// Runners lists the machines that serve an environment.
func (c *Client) Runners(ctx context.Context, id string) ([]wire.Runner, error) {
	var out wire.RunnerList
	err := c.call(ctx, request{method: http.MethodGet, path: "/api/environments/" + id + "/runners"}, &out)
	return out.Runners, err
}

// DeleteRunner removes one.
func (c *Client) DeleteRunner(ctx context.Context, id string) error {
	return c.call(ctx, request{method: http.MethodDelete, path: "/api/env-runners/" + url.PathEscape(id)}, nil)
}
