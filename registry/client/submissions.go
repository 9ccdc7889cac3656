package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/api/wire"
)

// Package is a job package on its way: bytes that can be read again when a transfer breaks.
type Package struct {
	Digest digest.Digest // sha256
	Size   int64         // bytes
	Open   func() (io.ReadSeekCloser, error)
}

// Preview is a decided submission that no job was made of yet (wire.md 6.2).
type Preview struct {
	ID       string `json:"id"`
	Digest   string `json:"digest"`
	Resolved struct {
		Execution struct {
			GPUs int `json:"requested_gpus"`
		} `json:"execution"`
		Spec json.RawMessage `json:"spec"`
	} `json:"resolved"`
}

// Intent is what a preview is asked for. Meta holds Spec once more, as the real client sends it.
type Intent struct {
	Form    string          `json:"form"`
	Project string          `json:"project"`
	Spec    json.RawMessage `json:"spec"`
	Profile string          `json:"profile"`
	Source  json.RawMessage `json:"source"`
	Meta    json.RawMessage `json:"metadata"`
}

// Profiles lists the kinds of hardware that jobs may ask for.
func (c *Client) Profiles(ctx context.Context) ([]registry.Profile, error) {
	var out struct {
		Profiles []registry.Profile `json:"profiles"`
	}
	err := c.call(ctx, request{method: http.MethodGet, path: "/api/cluster/status"}, &out)
	return out.Profiles, err
}

// MetaHeader carries the metadata of a forge submission, its spec among it: one line of ASCII (wire.md 6.1).
const MetaHeader = "X-Forge-Meta"

// keyHeader makes a submission one job however often it is sent.
const keyHeader = "Idempotency-Key"

// SubmitPackage admits a forge job with its package. It is sent again when the server is busy or the connection breaks; the
// same key makes it one job. progress sees the bytes as they leave.
func (c *Client) SubmitPackage(ctx context.Context, meta []byte, pkg Package, key string, progress func(io.Reader) io.Reader) (out wire.Submitted, err error) {
	err = again(ctx, func() error {
		body, err := pkg.Open()
		if err != nil {
			return err
		}
		defer body.Close()
		return c.call(ctx, request{
			method: http.MethodPost, path: "/api/jobs", body: progress(body), length: pkg.Size, contentType: "application/gzip",
			header: map[string]string{MetaHeader: string(meta), keyHeader: key},
		}, &out)
	})
	return out, err
}

// Preview has gate 2 decide on a submission and keeps it for a Commit.
func (c *Client) Preview(ctx context.Context, in Intent) (Preview, error) {
	var out Preview
	body, err := json.Marshal(in)
	if err != nil {
		return out, err
	}
	err = again(ctx, func() error {
		return c.call(ctx, request{
			method: http.MethodPost, path: "/api/submissions/previews", body: bytes.NewReader(body), length: int64(len(body)), contentType: "application/json",
		}, &out)
	})
	return out, err
}

// Commit makes the job of a preview. The same preview again gives the same job, so it is sent again when no answer came.
func (c *Client) Commit(ctx context.Context, preview, sum string) (wire.Submitted, error) {
	var out wire.Submitted
	in := map[string]string{"preview_id": preview, "digest": sum, "key": "preview:" + preview}
	err := again(ctx, func() error { return c.callJSON(ctx, http.MethodPost, "/api/submissions/commits", in, &out) })
	return out, err
}

// attempts is how often a request that may be repeated is sent, and firstWait how long the first pause is; it doubles.
const (
	attempts  = 4
	firstWait = 500 * time.Millisecond
	maxWait   = 30 * time.Second
)

// again makes a request that may be repeated until it is answered: a busy server or a lost connection is tried once more,
// after as long as the server asked for.
func again(ctx context.Context, send func() error) error {
	wait := firstWait
	for n := 1; ; n++ {
		err := send()
		if err == nil || n == attempts || !passes(err) || ctx.Err() != nil {
			return err
		}
		pause := wait
		if e, ok := errors.AsType[*registry.Error](err); ok && e.RetryAfter > 0 {
			pause = min(e.RetryAfter, maxWait)
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return err
		}
		wait *= 2
	}
}

// passes reports whether an error may pass by itself: the server is busy or restarts, or the connection broke.
func passes(err error) bool {
	if e, ok := errors.AsType[*registry.Error](err); ok {
		return e.Code == registry.Unavailable || e.Code == registry.TooManyRequests
	}
	return errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF)
}

// lease is the right to upload one package.
type lease struct {
	ID    string `json:"id"`
	Token string `json:"token"`
}

// The headers of an upload that is made piece by piece.
const (
	uploadToken  = "X-Upload-Token"
	uploadOffset = "Upload-Offset"
)

// Upload stores a package and gives what a preview names it by. When the connection breaks it goes on from where the server
// has come to.
func (c *Client) Upload(ctx context.Context, pkg Package, progress func(io.Reader) io.Reader) (json.RawMessage, error) {
	var l lease
	in := map[string]any{"digest": pkg.Digest.Hex(), "size": pkg.Size}
	err := again(ctx, func() error { return c.callJSON(ctx, http.MethodPost, "/api/submissions/uploads", in, &l) })
	if err != nil {
		return nil, err
	}
	body, err := pkg.Open()
	if err != nil {
		return nil, err
	}
	defer body.Close()
	var source json.RawMessage
	first := true
	err = again(ctx, func() error {
		var at int64
		if !first {
			if at, err = c.uploaded(ctx, l); err != nil {
				return err
			}
		}
		first = false
		source, err = c.appendUpload(ctx, l, body, at, pkg.Size, progress)
		return err
	})
	return source, err
}

// uploaded is how many bytes of a package the server holds.
func (c *Client) uploaded(ctx context.Context, l lease) (int64, error) {
	res, err := c.send(ctx, request{method: http.MethodHead, path: "/api/submissions/uploads/" + l.ID, header: map[string]string{uploadToken: l.Token}})
	if err != nil {
		return 0, err
	}
	res.Body.Close()
	at, err := strconv.ParseInt(res.Header.Get(uploadOffset), 10, 64)
	if err != nil || at < 0 {
		return 0, fmt.Errorf("the server says %.40q of how much of the upload it holds", res.Header.Get(uploadOffset))
	}
	return at, nil
}

// appendUpload sends the bytes of a package from an offset on. At its end it asks once more, with no bytes, for what the
// server says of a whole package.
func (c *Client) appendUpload(ctx context.Context, l lease, body io.ReadSeeker, at, size int64, progress func(io.Reader) io.Reader) (json.RawMessage, error) {
	if at > size {
		return nil, fmt.Errorf("the server holds %d bytes of a package of %d", at, size)
	}
	if _, err := body.Seek(at, io.SeekStart); err != nil {
		return nil, err
	}
	r := request{
		method: http.MethodPatch, path: "/api/submissions/uploads/" + l.ID, contentType: "application/gzip",
		header: map[string]string{uploadToken: l.Token, uploadOffset: strconv.FormatInt(at, 10)},
	}
	if at < size {
		r.body, r.length = progress(body), size-at
	}
	var source json.RawMessage
	if err := c.call(ctx, r, &source); err != nil {
		return nil, err
	}
	if len(source) == 0 {
		return nil, fmt.Errorf("the server took the package and did not say that it is whole")
	}
	return source, nil
}

// Jobs lists the caller's last jobs, the newest first.
func (c *Client) Jobs(ctx context.Context, limit int) ([]wire.Job, error) {
	var out wire.JobList
	err := c.call(ctx, request{method: http.MethodGet, path: "/api/jobs/mine", query: url.Values{"limit": {strconv.Itoa(limit)}}}, &out)
	return out.Jobs, err
}

// StopJob ends a job's hold on its GPUs and gives its status.
func (c *Client) StopJob(ctx context.Context, id string) (string, error) {
	var out struct {
		Status string `json:"status"`
	}
	err := c.call(ctx, request{method: http.MethodPost, path: "/api/job/stop", query: url.Values{"id": {id}}}, &out)
	return out.Status, err
}
