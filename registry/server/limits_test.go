package server_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry/api/wire"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
)

// slowUpload is a request whose body the test sends piece by piece.
type slowUpload struct {
	body *io.PipeWriter
	done chan reply // one answer, or closed when none came
}

// startSlow begins an upload of a blob and sends a first piece, so that the request is being served.
func (g *gatehouse) startSlow(as, path string, first []byte) *slowUpload {
	g.tb.Helper()
	r, w := io.Pipe()
	u := &slowUpload{w, make(chan reply, 1)}
	g.tb.Cleanup(func() { w.CloseWithError(io.ErrUnexpectedEOF) }) // a test that failed must not wait for the idle time
	go func() {
		defer close(u.done)
		if got, err := g.try(call{as: as, method: http.MethodPost, path: path, reader: r}); err == nil {
			u.done <- got
		}
	}()
	if _, err := w.Write(first); err != nil {
		g.tb.Fatal(err)
	}
	return u
}

// blobOf is content that no small blob holds, its address and its first half.
func blobOf(repository, text string) (content, first []byte, path string) {
	content = []byte(strings.Repeat(text, 100_000/len(text)))
	return content, content[:len(content)/2], "/v2/" + repository + "/blobs/uploads/?digest=" + digest.FromBytes(content).String()
}

// serving waits until the metric of requests in flight shows n of a kind.
func (g *gatehouse) serving(kind string, n int) {
	g.tb.Helper()
	want := fmt.Sprintf("gatehouse_http_in_flight{kind=%q} %d\n", kind, n)
	eventually(g.tb, func() error {
		if got := string(g.get("admin", "/metrics").want(g.tb, http.StatusOK).body); !strings.Contains(got, want) {
			return fmt.Errorf("no line %q", want)
		}
		return nil
	})
}

// eventually asks again until ask gives no error. It gives up after a time that no machine needs.
func eventually(tb testing.TB, ask func() error) {
	tb.Helper()
	var err error
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if err = ask(); err == nil {
			return
		}
	}
	tb.Fatal(err)
}

// A caller that has its share of transfers is told to come again; its small requests and the transfers of others go on.
func TestTransfersOfOneCaller(t *testing.T) {
	g := startGatehouse(t, func(s *setup) { s.config.Limits.Transfers = 2 })
	var running []*slowUpload
	for i := range 2 {
		_, first, path := blobOf("alice/x", fmt.Sprint("slow", i))
		running = append(running, g.startSlow("alice", path, first))
	}
	content, _, path := blobOf("alice/x", "third")
	eventually(t, func() error { // only those that were let in reach the store
		if sessions, err := os.ReadDir(filepath.Join(g.data, "uploads")); err != nil || len(sessions) != 2 {
			return fmt.Errorf("%d upload sessions, %v", len(sessions), err)
		}
		return nil
	})
	refused := g.do(call{as: "alice", method: http.MethodPost, path: path, body: content})
	if got := refused.refused(t, path, http.StatusTooManyRequests); got.Code != "TOOMANYREQUESTS" || !strings.Contains(got.Detail, "transfers") {
		t.Errorf("refusal %+v", got)
	}
	if refused.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	g.get("alice", "/v2/_catalog").want(t, http.StatusOK)
	content, _, path = blobOf("bob/x", "other")
	g.do(call{as: "bob", method: http.MethodPost, path: path, body: content}).want(t, http.StatusCreated)
	for i, u := range running {
		content, first, _ := blobOf("alice/x", fmt.Sprint("slow", i))
		if _, err := u.body.Write(content[len(first):]); err != nil {
			t.Fatal(err)
		}
		u.body.Close()
		if got, ok := <-u.done; !ok || got.status != http.StatusCreated {
			t.Errorf("slow upload %d: %+v", i, got)
		}
	}
	content, _, path = blobOf("alice/x", "third")
	g.do(call{as: "alice", method: http.MethodPost, path: path, body: content}).want(t, http.StatusCreated)
}

// The rate of one caller bounds nobody else, in the form of the route.
func TestRateOfOneCaller(t *testing.T) {
	g := startGatehouse(t, func(s *setup) { s.config.Limits.RequestRate = .0001 })
	g.get("alice", "/api/whoami").want(t, http.StatusOK)
	refused := g.get("alice", "/api/whoami")
	if got := refused.refused(t, "/api/whoami", http.StatusTooManyRequests); got.Code != "TOOMANYREQUESTS" {
		t.Errorf("refusal %+v", got)
	}
	if refused.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	g.get("bob", "/api/whoami").want(t, http.StatusOK)
	for range 3 {
		g.get("", "/healthz").want(t, http.StatusOK)
	}
}

// The robots of an account share what it has: more robots are not more requests.
func TestRobotsShareTheirOwnersLimits(t *testing.T) {
	g := startGatehouse(t, func(s *setup) { s.config.Limits.RequestRate = .0001 }) // one, and no more for hours
	var robot wire.Robot
	g.send("admin", http.MethodPost, "/api/robots", wire.NewRobot{Owner: "alice", Name: "ci", ExpiresIn: 3600,
		Scopes: []auth.Scope{scope("alice/**", auth.Pull)}}).want(t, http.StatusCreated).into(t, &robot)
	g.with(robot.Secret, http.MethodGet, "/v2/").want(t, http.StatusOK)
	g.get("alice", "/v2/").want(t, http.StatusTooManyRequests)
	g.get("bob", "/v2/").want(t, http.StatusOK)
}

// When every connection is taken, a health check is answered still, and others are told why they are not.
func TestConnectionsAtTheLimit(t *testing.T) {
	g := startGatehouse(t, func(s *setup) { s.config.Limits.Connections = 2 })
	dial := func(path string) (int, net.Conn) {
		conn, err := net.Dial("tcp", strings.TrimPrefix(g.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path)
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, res.Body)
		if res.StatusCode == http.StatusTooManyRequests && (!res.Close || res.Header.Get("Retry-After") == "") {
			t.Errorf("refused with headers %v", res.Header)
		}
		return res.StatusCode, conn
	}
	var open []net.Conn
	for range 2 {
		status, conn := dial("/api/version")
		if status != http.StatusOK {
			t.Fatalf("status %d below the limit", status)
		}
		open = append(open, conn)
	}
	status, third := dial("/healthz")
	if status != http.StatusOK {
		t.Errorf("health check: status %d", status)
	}
	if status, _ := dial("/api/version"); status != http.StatusTooManyRequests {
		t.Errorf("beyond the limit: status %d", status)
	}
	for _, conn := range append(open, third) {
		conn.Close()
	}
	eventually(t, func() error {
		status, conn := dial("/api/version")
		defer conn.Close()
		if status != http.StatusOK {
			return fmt.Errorf("after the connections closed: status %d", status)
		}
		return nil
	})
}

// Clients that send a pack's archive slowly hold nothing that another publish needs.
func TestSlowPublishersHoldNoInspection(t *testing.T) {
	g := startGatehouse(t)
	var slow []*slowUpload
	for range 8 {
		slow = append(slow, g.startSlow("alice", "/api/plugins/publish", []byte{0x1f, 0x8b}))
	}
	g.serving("transfer", 8)
	g.published("bob", algorithm("quick", "1.0.0"))
	for _, u := range slow {
		u.body.CloseWithError(io.ErrClosedPipe)
		<-u.done
	}
}
