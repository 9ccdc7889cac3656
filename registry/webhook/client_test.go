package webhook

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const testSecret = "a secret of twenty-two"

func newClient(t *testing.T, target Target) *Client {
	t.Helper()
	if target.Secret == "" {
		target.Secret = testSecret
	}
	c, err := New(target)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The example of the Standard Webhooks specification, so that receivers can use its libraries.
func TestSignIsTheStandards(t *testing.T) {
	key, err := Key("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err != nil {
		t.Fatal(err)
	}
	at, body := time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`)
	if got, want := Sign(key, "msg_p5jXN8AQM9LWM0D4loKWxJek", at, body), "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestVerify(t *testing.T) {
	key, now, body := []byte(testSecret), time.Unix(1_800_000_000, 0), []byte("body")
	sig := Sign(key, "id", now, body)
	for _, c := range []struct {
		name, id, timestamp, signatures, body string
		ok                                    bool
	}{
		{"as sent", "id", "1800000000", sig, "body", true},
		{"one of several", "id", "1800000000", "v1,AAAA v2,x " + sig, "body", true},
		{"another id", "ie", "1800000000", sig, "body", false},
		{"another time", "id", "1800000001", sig, "body", false},
		{"another body", "id", "1800000000", sig, "bodz", false},
		{"too old", "id", "1799999000", Sign(key, "id", time.Unix(1799999000, 0), body), "body", false},
		{"from the future", "id", "1800001000", Sign(key, "id", time.Unix(1800001000, 0), body), "body", false},
		{"no time", "id", "", sig, "body", false},
		{"no signature", "id", "1800000000", "", "body", false},
	} {
		err := Verify(key, c.id, c.timestamp, c.signatures, []byte(c.body), now, 5*time.Minute)
		if (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if err := Verify([]byte("another secret of the same"), "id", "1800000000", sig, body, now, time.Minute); err == nil {
		t.Error("another key verified")
	}
}

func TestTargetsAreChecked(t *testing.T) {
	for _, c := range []struct {
		target Target
		want   string // "" is no fault
	}{
		{Target{URL: "https://platform.example/hook", Secret: testSecret}, ""},
		{Target{URL: "http://127.0.0.1:9/hook", Secret: testSecret}, ""},
		{Target{URL: "http://[::1]:9/hook", Secret: testSecret}, ""},
		{Target{URL: "http://platform.internal/", Secret: testSecret, InsecureHTTP: true}, ""},
		{Target{URL: "http://platform.internal/", Secret: testSecret}, "plain http"},
		{Target{URL: "http://127.0.0.1.example/", Secret: testSecret}, "plain http"},
		{Target{URL: "https://u:p@platform.example/", Secret: testSecret}, "password"},
		{Target{URL: "https://u:hunter2@platform.example/%zz", Secret: testSecret}, "no address"},
		{Target{URL: "file:///etc/passwd", Secret: testSecret}, "expected https"},
		{Target{URL: "", Secret: testSecret}, "expected https"},
		{Target{URL: "https:platform", Secret: testSecret}, "expected https"},
		{Target{URL: "https://platform.example/#x", Secret: testSecret}, "fragment"},
		{Target{URL: "https://platform.example/", Secret: "short"}, "at least 16"},
		{Target{URL: "https://platform.example/"}, "at least 16"},
		{Target{URL: "https://platform.example/", Secret: "whsec_%%"}, "base64"},
		{Target{URL: "https://platform.example/", Secret: testSecret, Timeout: -1}, "negative"},
	} {
		err := c.target.Check()
		switch {
		case c.want == "" && err != nil, c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%+v: %v, want %q", c.target, err, c.want)
		case err != nil && strings.Contains(err.Error(), "hunter2"):
			t.Errorf("the message holds the password: %v", err)
		}
	}
	if _, err := New(Target{URL: "https://platform.example/", Secret: testSecret, CAFile: "/dev/null"}); err == nil {
		t.Error("a file without certificates was taken for authorities")
	}
}

// TestPostIsSigned sends to a real server that checks what it got.
func TestPostIsSigned(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		err := Verify([]byte(testSecret), r.Header.Get(HeaderID), r.Header.Get(HeaderTimestamp), r.Header.Get(HeaderSignature), body, time.Now(), time.Minute)
		if err != nil || r.Header.Get(HeaderID) != "job-1" || r.Header.Get("Content-Type") != "text/plain" || string(body) != "hello" {
			http.Error(w, "not what was sent", http.StatusTeapot)
			return
		}
		w.Header().Set("Retry-After", "7")
		io.WriteString(w, "taken")
	}))
	defer srv.Close()
	a, err := newClient(t, Target{URL: srv.URL}).Post(t.Context(), "job-1", "text/plain", []byte("hello"))
	if err != nil || !a.OK() || string(a.Body) != "taken" || a.RetryAfter != 7*time.Second {
		t.Errorf("%+v, %v", a, err)
	}
}

// TestFaultsOfTheOtherSide goes through what a target may do wrong.
func TestFaultsOfTheOtherSide(t *testing.T) {
	var elsewhere bool
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere = true }))
	defer other.Close()
	ended := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/redirect":
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		case "/silent":
			<-ended
		case "/drips":
			w.WriteHeader(http.StatusOK)
			http.NewResponseController(w).Flush()
			<-ended
		case "/huge":
			w.Write(bytes.Repeat([]byte("x"), 4097))
		case "/cut":
			w.Header().Set("Content-Length", "100")
			io.WriteString(w, "short")
		case "/later":
			w.Header().Set("Retry-After", time.Now().Add(2*time.Hour).UTC().Format(http.TimeFormat))
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer srv.Close()
	defer close(ended)
	post := func(path string) (Answer, error) {
		return newClient(t, Target{URL: srv.URL + path, Timeout: 100 * time.Millisecond, MaxAnswer: 4096}).Post(context.Background(), "x", "text/plain", nil)
	}
	if a, err := post("/redirect"); err != nil || a.Status != http.StatusTemporaryRedirect || a.OK() || elsewhere {
		t.Errorf("redirect: %+v, %v, followed: %v", a, err, elsewhere)
	}
	for _, path := range []string{"/silent", "/drips"} {
		if _, err := post(path); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", path, err)
		}
	}
	for path, want := range map[string]string{"/huge": "more than 4096 bytes", "/cut": "EOF"} {
		if _, err := post(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if a, err := post("/later"); err != nil || a.Status != http.StatusServiceUnavailable || a.RetryAfter != maxRetryAfter {
		t.Errorf("later: %+v, %v", a, err)
	}
	statusOf := func(path string) (Answer, error) {
		return newClient(t, Target{URL: srv.URL + path, Timeout: 100 * time.Millisecond, MaxAnswer: 4096, StatusOnly: true}).Post(context.Background(), "x", "text/plain", nil)
	}
	for path, bytes := range map[string]int{"/drips": 0, "/huge": 4096, "/cut": len("short")} {
		if a, err := statusOf(path); err != nil || !a.OK() || len(a.Body) != bytes {
			t.Errorf("the status of %s: %d with %d bytes, %v", path, a.Status, len(a.Body), err)
		}
	}
	if _, err := statusOf("/silent"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("no status at all: %v", err)
	}
	gone := newClient(t, Target{URL: "http://127.0.0.1:1/secret-path?token=hunter2"})
	if _, err := gone.Post(context.Background(), "x", "text/plain", nil); err == nil || strings.Contains(err.Error(), "secret-path") || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("nobody listens: %v", err)
	}
}

// TestOnlyTheNamedAuthorities speaks TLS with a server whose authority is named, and with one whose is not.
func TestOnlyTheNamedAuthorities(t *testing.T) {
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok") }))
	defer srv.Close()
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	if a, err := newClient(t, Target{URL: srv.URL, CAFile: file}).Post(t.Context(), "x", "text/plain", nil); err != nil || string(a.Body) != "ok" {
		t.Errorf("%+v, %v", a, err)
	}
	if a, err := newClient(t, Target{URL: srv.URL}).Post(t.Context(), "x", "text/plain", nil); err == nil {
		t.Errorf("an unknown authority was believed: %+v", a)
	}
}
