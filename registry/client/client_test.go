package client_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/api/wire"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
	"github.com/gatehouse-registry/gatehouse/registry/client"
	"github.com/gatehouse-registry/gatehouse/registry/server/servertest"
)

// serve answers every request with a handler and gives a client of it.
func serve(t *testing.T, handler http.HandlerFunc) *client.Client {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return connect(t, s.URL, "alice", "secret")
}

func connect(t *testing.T, server, account, token string) *client.Client {
	t.Helper()
	c, err := client.New(client.Options{Server: server, Account: account, Token: token, UserAgent: "test"})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// answer is a handler that always says the same.
func answer(status int, header map[string]string, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for k, v := range header {
			w.Header().Set(k, v)
		}
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

// What a server, or a proxy before it, answers comes back as the error that the server had, in whatever form.
func TestErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		status  int
		header  map[string]string
		body    string
		code    registry.Code
		message string
		retry   time.Duration
		rule    rule.ID
	}{
		"the form of /api":                 {status: 409, body: `{"code":"VERSION_IMMUTABLE","detail":"taken"}`, code: registry.VersionImmutable, message: "taken"},
		"/api without a code":              {status: 404, body: `{"detail":"no such job"}`, code: registry.NotFound, message: "no such job"},
		"/api with a decision":             {status: 422, body: `{"code":"ADMISSION_DENIED","detail":"no","decision":{"gate":"submission","violations":[{"rule":"x.y","message":"m"}]}}`, code: registry.AdmissionDenied, message: "no", rule: "x.y"},
		"the form of the OCI protocol":     {status: 403, body: `{"errors":[{"code":"DENIED","message":"not yours"}]}`, code: registry.Denied, message: "not yours"},
		"an OCI code that we do not know":  {status: 429, body: `{"errors":[{"code":"SLOW_DOWN","message":"slow"}]}`, code: registry.TooManyRequests, message: "slow"},
		"an OCI error with a decision":     {status: 400, body: `{"errors":[{"code":"MANIFEST_INVALID","message":"bad","detail":{"gate":"publish","violations":[{"rule":"a.b","message":"m"}]}}]}`, code: registry.ManifestInvalid, message: "bad", rule: "a.b"},
		"a proxy's page":                   {status: 502, body: "<html>bad gateway</html>", code: registry.Unavailable, message: "<html>bad gateway</html>"},
		"nothing at all":                   {status: 500, code: registry.Internal, message: "500 Internal Server Error"},
		"seconds to wait":                  {status: 503, header: map[string]string{"Retry-After": "7"}, body: `{"detail":"busy"}`, code: registry.Unavailable, message: "busy", retry: 7 * time.Second},
		"a wait that is no number":         {status: 429, header: map[string]string{"Retry-After": "soon"}, code: registry.TooManyRequests},
		"a wait before now":                {status: 429, header: map[string]string{"Retry-After": "-5"}, code: registry.TooManyRequests},
		"JSON of another kind":             {status: 401, body: `[1,2]`, code: registry.Unauthorized, message: "[1,2]"},
		"a message that would never end":   {status: 413, body: strings.Repeat("x", 3<<20), code: registry.TooLarge, message: "xxx"},
		"a form that says nothing of note": {status: 405, body: `{"errors":[]}`, code: registry.Unsupported},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := serve(t, answer(tc.status, tc.header, tc.body)).Whoami(t.Context())
			e, ok := errors.AsType[*registry.Error](err)
			if !ok {
				t.Fatalf("%T %v, want a *registry.Error", err, err)
			}
			if e.Code != tc.code || !strings.Contains(e.Message, tc.message) || e.RetryAfter != tc.retry {
				t.Errorf("%s %q, wait %v; want %s %q, wait %v", e.Code, e.Message, e.RetryAfter, tc.code, tc.message, tc.retry)
			}
			if len(e.Message) > 1000 {
				t.Errorf("a message of %d bytes", len(e.Message))
			}
			d, refused := e.Detail.(rule.Decision)
			if tc.rule != "" && (!refused || len(d.Violations) != 1 || d.Violations[0].Rule != tc.rule) {
				t.Errorf("detail %+v, want a violation of %s", e.Detail, tc.rule)
			}
		})
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"": 0, "0": 0, "30": 30 * time.Second, " 5 ": 5 * time.Second, "-1": 0, "99999999999999999999": 0, "x": 0,
		"Fri, 02 Jan 2026 03:05:05 GMT": time.Minute, "Fri, 02 Jan 2026 03:00:00 GMT": 0,
	} {
		if got := client.RetryAfter(http.Header{"Retry-After": {text}}, now); got != want {
			t.Errorf("Retry-After %q: %v, want %v", text, got, want)
		}
	}
}

// A server that is not there is unavailable; a caller that gave up is not.
func TestNoServer(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	s.Close()
	c := connect(t, s.URL, "alice", "secret")
	if _, err := c.Whoami(t.Context()); registry.CodeOf(err) != registry.Unavailable {
		t.Errorf("no server: %v, want Unavailable", err)
	}
	if _, err := c.FetchManifest(t.Context(), "a/b", digest.FromBytes(nil)); registry.CodeOf(err) != registry.Unavailable {
		t.Errorf("no server, over OCI: %v, want Unavailable", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Whoami(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller that gave up: %v, want context.Canceled", err)
	}
	for _, bad := range []string{"", "localhost:80", "ftp://x", "http://", "http://[::1"} {
		if _, err := client.New(client.Options{Server: bad}); registry.CodeOf(err) != registry.Invalid {
			t.Errorf("New(%q): %v, want Invalid", bad, err)
		}
	}
}

// A token goes to the server alone: a redirect is an error, on either protocol.
func TestRedirects(t *testing.T) {
	var leaked, reached atomic.Int64
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reached.Add(1)
		if r.Header.Get("Authorization") != "" {
			leaked.Add(1)
		}
	}))
	defer elsewhere.Close()
	for _, status := range []int{http.StatusMovedPermanently, http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
		c := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") == "" {
				w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			http.Redirect(w, r, elsewhere.URL, status)
		})
		if _, err := c.Whoami(t.Context()); err == nil {
			t.Errorf("%d on /api: no error", status)
		}
		if _, err := c.FetchManifest(t.Context(), "a/b", digest.FromBytes(nil)); err == nil {
			t.Errorf("%d on /v2: no error", status)
		}
	}
	if reached.Load() != 0 || leaked.Load() != 0 {
		t.Errorf("%d requests went elsewhere, %d of them with a token", reached.Load(), leaked.Load())
	}
}

// What is read has an end, whatever the server sends.
func TestBounds(t *testing.T) {
	endless := func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead {
			return
		}
		line := bytes.Repeat([]byte(" "), 1<<20)
		for {
			if _, err := w.Write(line); err != nil {
				return
			}
		}
	}
	c := serve(t, endless)
	if _, err := c.FetchManifest(t.Context(), "a/b", digest.FromBytes(nil)); err == nil {
		t.Error("a manifest without end: no error")
	}
	if text, err := c.Trust(t.Context()); err != nil || len(text) > 4<<20 {
		t.Errorf("a document without end: %d bytes, %v", len(text), err)
	}
	wrong := serve(t, answer(200, map[string]string{"Content-Type": "application/octet-stream"}, "other bytes"))
	content := []byte("right bytes")
	body, err := wrong.Blob(t.Context(), "a/b", digest.Descriptor{Digest: digest.FromBytes(content), Size: int64(len(content))})
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	if _, err := io.ReadAll(body); err == nil {
		t.Error("bytes of another digest: no error")
	}
	if _, err := serve(t, answer(200, nil, "<html>")).Whoami(t.Context()); err == nil {
		t.Error("a page in place of JSON: no error")
	}
}

// A robot signs in with its name and secret, over /api and over the OCI protocol, and may do what its scopes say.
func TestRobot(t *testing.T) {
	s := servertest.Start(t)
	robot, err := connect(t, s.URL, "admin", s.Token).CreateRobot(t.Context(), wire.NewRobot{
		Name: "reader", ExpiresIn: 3600, Scopes: []auth.Scope{{Repository: "admin/app", Actions: []auth.Verb{auth.Pull}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	user, err := connect(t, s.URL, "", robot.Secret).Whoami(t.Context())
	if err != nil || user.Username != robot.Name {
		t.Fatalf("whoami of a robot: %+v, %v; want %s", user, err, robot.Name)
	}
	c := connect(t, s.URL, robot.Name, robot.Secret)
	absent := digest.FromBytes([]byte("absent"))
	if _, err := c.FetchManifest(t.Context(), "admin/app", absent); registry.CodeOf(err).Meaning().Status != 404 {
		t.Errorf("a manifest that is not there, where it may read: %v, want not found", err)
	}
	artifact := client.Artifact{Manifest: []byte("{}"), Config: []byte("{}"), Layer: digest.Descriptor{Digest: absent, Size: 6},
		Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("absent")), nil }}
	if _, err := c.Push(t.Context(), "admin/app", "1.0.0", artifact, nil); registry.CodeOf(err).Meaning().Exit != 4 {
		t.Errorf("a push where it may only read: %v, want a refusal", err)
	}
	if _, err := connect(t, s.URL, robot.Name, "wrong").FetchManifest(t.Context(), "admin/app", absent); registry.CodeOf(err) != registry.Unauthorized {
		t.Errorf("a wrong secret: %v, want Unauthorized", err)
	}
}
