package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/api/wire"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
	"github.com/gatehouse-registry/gatehouse/registry/server"
)

// gatehouse is a server that runs over the real stores and is reached over HTTP.
type gatehouse struct {
	tb testing.TB // what a failure ends
	*running
}

type running struct {
	server *server.Server
	url    string
	data   string
	http   *http.Client
	ahead  atomic.Int64      // how far the registry's clock is ahead, in nanoseconds
	tokens map[string]string // by account
	faults faultLog
}

// in is the server for a test within the test that started it.
func (g *gatehouse) in(tb testing.TB) *gatehouse { return &gatehouse{tb, g.running} }

// setup is what a test may change before the server opens.
type setup struct {
	config   server.Config
	change   func(*registry.Deps)
	accounts map[string]auth.Role
	log      slog.Handler // instead of the harness's own, which keeps errors
}

// everyRole has an account of each role, and a second operator.
var everyRole = map[string]auth.Role{"alice": auth.Operator, "bob": auth.Operator, "audrey": auth.Auditor, "vera": auth.Viewer}

// startGatehouse runs a server until the test ends. It has the account admin and those of everyRole. A test that does
// not expect the server to log an error fails when it does.
func startGatehouse(tb testing.TB, with ...func(*setup)) *gatehouse {
	tb.Helper()
	g := openGatehouse(tb, with...)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- g.server.Run(ctx) }()
	tb.Cleanup(func() {
		g.http.CloseIdleConnections()
		stop()
		if err := errors.Join(<-ended, g.server.Close()); err != nil && !errors.Is(err, http.ErrServerClosed) {
			tb.Errorf("stop: %v", err)
		}
		for _, line := range g.faults.take() {
			tb.Errorf("the server logged an error: %s", line)
		}
	})
	return g
}

// openGatehouse opens a server without running it.
func openGatehouse(tb testing.TB, with ...func(*setup)) *gatehouse {
	tb.Helper()
	g := &gatehouse{tb, &running{data: tb.TempDir(), tokens: map[string]string{}, http: &http.Client{
		Transport: &http.Transport{DisableCompression: true}, CheckRedirect: noRedirect,
	}}}
	s := setup{config: server.Config{Data: g.data, Listen: "127.0.0.1:0"}, change: func(*registry.Deps) {}, accounts: everyRole}
	for _, w := range with {
		w(&s)
	}
	if s.log == nil {
		s.log = &g.faults
	}
	var err error
	g.server, err = server.OpenWith(tb.Context(), s.config, slog.New(s.log), func(d *registry.Deps) {
		d.Now = func() time.Time { return time.Now().Add(time.Duration(g.ahead.Load())) }
		s.change(d)
	})
	if err != nil {
		tb.Fatal(err)
	}
	g.url = g.server.URL()
	secret, err := os.ReadFile(filepath.Join(g.data, server.AdminTokenFile))
	if err != nil {
		tb.Fatal(err)
	}
	g.tokens[registry.AdminAccount] = strings.TrimSpace(string(secret))
	for name, role := range s.accounts {
		g.addAccount(name, role)
	}
	return g
}

// openGatehouseIn opens the data directory of a server that was closed.
func openGatehouseIn(tb testing.TB, g *gatehouse) *server.Server {
	tb.Helper()
	s, err := server.OpenWith(tb.Context(), server.Config{Data: g.data, Listen: "127.0.0.1:0"}, slog.New(&g.faults), func(*registry.Deps) {})
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// addAccount makes an account with a token, as sf admin does on the machine itself.
func (g *gatehouse) addAccount(name string, role auth.Role) {
	g.tb.Helper()
	admin := auth.Principal{Account: registry.AdminAccount, Role: auth.Admin}
	ctx := context.Background()
	if _, err := g.server.Service().CreateAccount(ctx, admin, registry.NewAccount{Name: name, Role: role}); err != nil {
		g.tb.Fatal(err)
	}
	secret, _, err := g.server.Service().CreateToken(ctx, admin, name, "", 0)
	if err != nil {
		g.tb.Fatal(err)
	}
	g.tokens[name] = secret
}

func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// faultLog keeps what a server logs as an error.
type faultLog struct {
	mu    sync.Mutex
	lines []string
}

func (f *faultLog) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelError }
func (f *faultLog) WithAttrs([]slog.Attr) slog.Handler           { return f }
func (f *faultLog) WithGroup(string) slog.Handler                { return f }

func (f *faultLog) Handle(_ context.Context, r slog.Record) error {
	line := r.Message
	r.Attrs(func(a slog.Attr) bool {
		line += " " + a.String()
		return true
	})
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lines = append(f.lines, line)
	return nil
}

// take gives what was logged and forgets it.
func (f *faultLog) take() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	lines := f.lines
	f.lines = nil
	return lines
}

// call is one request.
type call struct {
	as           string // an account of gatehouse.tokens; "" sends no credentials
	token        string // instead of the account's
	method, path string
	header       map[string]string
	body         []byte
	reader       io.Reader // instead of body; sent in chunks
}

// reply is what came back.
type reply struct {
	status int
	header http.Header
	body   []byte
}

// do sends a request and gives the answer. The transport's own errors end the test.
func (g *gatehouse) do(c call) reply {
	g.tb.Helper()
	r, err := g.try(c)
	if err != nil {
		g.tb.Fatalf("%s %s: %v", c.method, c.path, err)
	}
	return r
}

func (g *gatehouse) try(c call) (reply, error) {
	var body io.Reader = http.NoBody
	switch {
	case c.reader != nil:
		body = c.reader
	case c.body != nil:
		body = bytes.NewReader(c.body)
	}
	r, err := http.NewRequest(c.method, g.url+c.path, body)
	if err != nil {
		return reply{}, err
	}
	if c.as != "" && c.token == "" {
		if c.token = g.tokens[c.as]; c.token == "" {
			return reply{}, fmt.Errorf("no account %q", c.as)
		}
	}
	switch {
	case c.token == "":
	case strings.HasPrefix(c.path, "/v2"):
		r.SetBasicAuth(c.as, c.token)
	default:
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	r.Header.Set("Accept", rule.MediaTypeDecision)
	for k, v := range c.header {
		r.Header.Set(k, v)
	}
	res, err := g.http.Do(r)
	if err != nil {
		return reply{}, err
	}
	defer res.Body.Close()
	content, err := io.ReadAll(res.Body)
	return reply{res.StatusCode, res.Header, content}, err
}

// get and post are the common calls. v is the body in JSON.
func (g *gatehouse) get(as, path string) reply {
	g.tb.Helper()
	return g.do(call{as: as, method: http.MethodGet, path: path})
}

func (g *gatehouse) send(as, method, path string, v any) reply {
	g.tb.Helper()
	body, err := json.Marshal(v)
	if err != nil {
		g.tb.Fatal(err)
	}
	return g.do(call{as: as, method: method, path: path, body: body, header: map[string]string{"Content-Type": "application/json"}})
}

// want fails unless the answer has the status.
func (r reply) want(tb testing.TB, status int) reply {
	tb.Helper()
	if r.status != status {
		tb.Fatalf("status %d, want %d: %.600s", r.status, status, r.body)
	}
	return r
}

// into reads a JSON answer.
func (r reply) into(tb testing.TB, v any) {
	tb.Helper()
	if err := json.Unmarshal(r.body, v); err != nil {
		tb.Fatalf("answer %.200q: %v", r.body, err)
	}
}

// refusal is an answer's error in the two forms together.
type refusal struct {
	Code     string
	Detail   string // the text that a client shows
	Decision *decision
}

type decision struct {
	Allowed    bool        `json:"allowed"`
	Violations []violation `json:"violations"`
	Warnings   []violation `json:"warnings"`
	Value      *struct {
		Spec       json.RawMessage `json:"spec"`
		SpecDigest string          `json:"specDigest"`
		SpecBytes  string          `json:"specBytes"`
	} `json:"value"`
}

type violation struct {
	Rule    string `json:"rule"`
	Field   string `json:"field"`
	File    string `json:"file"`
	Message string `json:"message"`
	Hint    string `json:"hint"`
}

// refusalOf reads an error in the form of the route. An error in another form is an error of the test's.
func refusalOf(path string, r reply) (refusal, error) {
	if isPage(path) {
		return pageRefusal(r)
	}
	if got := r.header.Get("Content-Type"); got != "application/json" {
		return refusal{}, fmt.Errorf("an error of type %q: %.200q", got, r.body)
	}
	dec := json.NewDecoder(bytes.NewReader(r.body))
	dec.DisallowUnknownFields()
	if isOCI(path) {
		var body struct {
			Errors []struct {
				Code    string          `json:"code"`
				Message string          `json:"message"`
				Detail  json.RawMessage `json:"detail"`
			} `json:"errors"`
			RequestID string `json:"requestId"`
		}
		if err := dec.Decode(&body); err != nil || body.RequestID == "" || body.RequestID != r.header.Get("X-Request-Id") || len(body.Errors) == 0 || body.Errors[0].Code == "" {
			return refusal{}, fmt.Errorf("no OCI error (%v): %.300q", err, r.body)
		}
		out := refusal{Code: body.Errors[0].Code, Detail: body.Errors[0].Message}
		if body.Errors[0].Detail != nil {
			out.Decision = new(decision)
			if err := json.Unmarshal(body.Errors[0].Detail, out.Decision); err != nil {
				return out, err
			}
		}
		return out, nil
	}
	var body struct {
		Detail   string          `json:"detail"`
		Code     string          `json:"code"`
		Decision json.RawMessage `json:"decision"`

		RequestID string `json:"requestId"`
	}
	if err := dec.Decode(&body); err != nil || body.RequestID == "" || body.RequestID != r.header.Get("X-Request-Id") || body.Detail == "" {
		return refusal{}, fmt.Errorf("no error that the clients can show (%v): %.300q", err, r.body)
	}
	out := refusal{Code: body.Code, Detail: body.Detail}
	if body.Decision != nil {
		out.Decision = new(decision)
		if err := json.Unmarshal(body.Decision, out.Decision); err != nil {
			return out, err
		}
	}
	return out, nil
}

// isOCI reports whether a path's errors are in the form of the distribution protocol.
func isOCI(path string) bool { return path == "/v2" || strings.HasPrefix(path, "/v2/") }

// refused reads an error that must be one, of a client's making.
func (r reply) refused(tb testing.TB, path string, status int) refusal {
	tb.Helper()
	out, err := refusalOf(path, r.want(tb, status))
	if err != nil {
		tb.Fatal(err)
	}
	return out
}

// rules are the ids of a decision's violations, sorted.
func (d *decision) rules() []string {
	if d == nil {
		return nil
	}
	ids := make([]string, len(d.Violations))
	for i, v := range d.Violations {
		ids[i] = v.Rule
	}
	slices.Sort(ids)
	return ids
}

// plugins lists what GET /api/plugins shows, as id@version.
func (g *gatehouse) plugins() []string {
	g.tb.Helper()
	var list wire.PluginList
	g.get("admin", "/api/plugins").want(g.tb, http.StatusOK).into(g.tb, &list)
	ids := []string{}
	for _, p := range list.Plugins {
		ids = append(ids, p.ID+"@"+p.LatestVersion)
	}
	return ids
}

// repositories lists what GET /v2/_catalog shows.
func (g *gatehouse) repositories() []string {
	g.tb.Helper()
	var list struct{ Repositories []string }
	g.get("admin", "/v2/_catalog").want(g.tb, http.StatusOK).into(g.tb, &list)
	return list.Repositories
}

// staging lists the files of uploads in progress and of blobs that are being written.
func (g *gatehouse) staging() []string {
	g.tb.Helper()
	var names []string
	for _, folder := range []string{"uploads", "tmp"} {
		entries, err := os.ReadDir(filepath.Join(g.data, folder))
		if err != nil {
			g.tb.Fatal(err)
		}
		for _, e := range entries {
			names = append(names, folder+"/"+e.Name())
		}
	}
	return names
}
