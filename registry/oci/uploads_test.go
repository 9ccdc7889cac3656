package oci_test

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/oci"
)

// start opens an upload session and gives its path.
func (s *server) start(repository string) string {
	s.tb.Helper()
	a := s.must(202, request{method: "POST", path: "/v2/" + repository + "/blobs/uploads/"})
	location := a.header.Get("Location")
	if !strings.HasPrefix(location, "/v2/"+repository+"/blobs/uploads/") || !strings.HasSuffix(location, a.header.Get("Docker-Upload-Uuid")) || a.header.Get("Range") != "0-0" {
		s.tb.Fatalf("headers of a new upload: %v", a.header)
	}
	return location
}

func (s *server) checkBlob(t *testing.T, repository, content string) {
	t.Helper()
	a := s.do(request{method: "GET", path: "/v2/" + repository + "/blobs/" + sha(content)})
	if a.code != 200 || a.body != content {
		t.Errorf("blob of %d bytes: status %d, %d bytes", len(content), a.code, len(a.body))
	}
}

func TestUploadWays(t *testing.T) {
	s := newServer(t)
	chunked := map[string]string{"Content-Range": "0-4"}
	ways := map[string]func(content, d string) answer{
		"post": func(content, d string) answer {
			return s.do(request{method: "POST", path: "/v2/alice/x/blobs/uploads/?digest=" + d, body: content})
		},
		"post of unknown length": func(content, d string) answer {
			return s.do(request{method: "POST", path: "/v2/alice/x/blobs/uploads/?digest=" + d, reader: io.MultiReader(strings.NewReader(content))})
		},
		"post and put": func(content, d string) answer {
			return s.do(request{method: "PUT", path: s.start("alice/x") + "?digest=" + d, body: content})
		},
		"post and put of unknown length": func(content, d string) answer {
			return s.do(request{method: "PUT", path: s.start("alice/x") + "?digest=" + d, reader: io.MultiReader(strings.NewReader(content))})
		},
		"stream": func(content, d string) answer {
			at := s.start("alice/x")
			a := s.must(202, request{method: "PATCH", path: at, reader: io.MultiReader(strings.NewReader(content))})
			checkHeader(t, a, map[string]string{"Location": at, "Range": fmt.Sprintf("0-%d", len(content)-1)})
			return s.do(request{method: "PUT", path: at + "?digest=" + d})
		},
		"chunks": func(content, d string) answer {
			at := s.start("alice/x")
			s.must(202, request{method: "PATCH", path: at, body: content[:5], header: chunked})
			a := s.must(202, request{method: "PATCH", path: at, body: content[5:9], header: map[string]string{"Content-Range": "5-8"}})
			checkHeader(t, a, map[string]string{"Location": at, "Range": "0-8"})
			s.must(202, request{method: "PATCH", path: at, body: content[9:]})
			return s.do(request{method: "PUT", path: at + "?digest=" + d})
		},
		"last chunk in put": func(content, d string) answer {
			at := s.start("alice/x")
			s.must(202, request{method: "PATCH", path: at, body: content[:5], header: chunked})
			return s.do(request{method: "PUT", path: at + "?digest=" + d, body: content[5:], header: map[string]string{"Content-Range": fmt.Sprintf("5-%d", len(content)-1)}})
		},
		"chunk of unknown length": func(content, d string) answer {
			at := s.start("alice/x")
			s.must(202, request{method: "PATCH", path: at, reader: io.MultiReader(strings.NewReader(content[:5])), header: chunked})
			return s.do(request{method: "PUT", path: at + "?digest=" + d, body: content[5:]})
		},
	}
	for name, push := range ways {
		t.Run(name, func(t *testing.T) {
			for algorithm, digestOf := range map[string]func(string) string{"sha256": sha, "sha512": sha512Of} {
				content := name + " by " + algorithm
				d := digestOf(content)
				a := push(content, d)
				if a.code != http.StatusCreated {
					t.Fatalf("%s: status %d: %s", algorithm, a.code, a.body)
				}
				checkHeader(t, a, map[string]string{"Location": "/v2/alice/x/blobs/" + d, "Docker-Content-Digest": d})
				if got := s.do(request{method: "GET", path: a.header.Get("Location")}); got.code != 200 || got.body != content {
					t.Errorf("%s: status %d, body %q", algorithm, got.code, got.body)
				}

				bad := push(content, digestOf("other content"))
				if bad.code != http.StatusBadRequest || !strings.Contains(bad.body, "DIGEST_INVALID") || !strings.Contains(bad.body, d) {
					t.Errorf("%s: wrong digest: status %d: %s; want the digest found", algorithm, bad.code, bad.body)
				}
			}
			s.must(404, request{method: "GET", path: "/v2/alice/x/blobs/" + sha("other content")})
		})
	}
	if left := s.files("tmp"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestEmptyBlob(t *testing.T) {
	s := newServer(t)
	s.must(201, request{method: "PUT", path: s.start("alice/x") + "?digest=" + sha("")})
	s.must(201, request{method: "POST", path: "/v2/alice/x/blobs/uploads/?digest=" + sha512Of("")})
	a := s.must(200, request{method: "GET", path: "/v2/alice/x/blobs/" + sha("")})
	checkHeader(t, a, map[string]string{"Content-Length": "0"})
	s.must(416, request{method: "GET", path: "/v2/alice/x/blobs/" + sha(""), header: map[string]string{"Range": "bytes=0-"}})
}

func TestChunksOutOfOrder(t *testing.T) {
	s := newServer(t)
	at := s.start("alice/x")
	s.must(202, request{method: "PATCH", path: at, body: "01234", header: map[string]string{"Content-Range": "0-4"}})
	put := at + "?digest=" + sha("0123456789")
	for _, q := range []request{
		{method: "PATCH", path: at, body: "789", header: map[string]string{"Content-Range": "7-9"}},
		{method: "PATCH", path: at, body: "01234", header: map[string]string{"Content-Range": "0-4"}},
		{method: "PUT", path: put, body: "789", header: map[string]string{"Content-Range": "7-9"}},
		{method: "PUT", path: put, body: "0123456789", header: map[string]string{"Content-Range": "0-9"}},
	} {
		a := s.must(416, q)
		checkHeader(t, a, map[string]string{"Range": "0-4", "Location": at})
		if !strings.Contains(a.body, "RANGE_INVALID") {
			t.Errorf("%s: body %s", q.header, a.body)
		}
	}
	for _, method := range []string{"GET", "HEAD"} {
		a := s.must(204, request{method: method, path: at})
		checkHeader(t, a, map[string]string{"Range": "0-4", "Location": at})
	}
	s.must(201, request{method: "PUT", path: put, body: "56789", header: map[string]string{"Content-Range": "5-9"}})
	s.checkBlob(t, "alice/x", "0123456789")
}

func TestLyingChunks(t *testing.T) {
	s := newServer(t)
	at := s.start("alice/x")
	for _, q := range []request{
		{body: "01234", header: map[string]string{"Content-Range": "0-3"}},
		{body: "01234", header: map[string]string{"Content-Range": "0-5"}},
		{body: "01234", header: map[string]string{"Content-Range": "bytes 0-4/5"}},
		{body: "01234", header: map[string]string{"Content-Range": "4-0"}},
		{reader: io.MultiReader(strings.NewReader("01234")), header: map[string]string{"Content-Range": "0-3"}},
	} {
		q.method, q.path = "PATCH", at
		s.must(400, q)
	}
	s.must(400, request{method: "PATCH", path: at, reader: io.MultiReader(strings.NewReader("56")), header: map[string]string{"Content-Range": "4-9"}})
}

func TestUploadTooLarge(t *testing.T) {
	s := newServer(t, func(_ *oci.Options, set *registry.Settings) { set.MaxBlob = 1000 })
	fits, over := strings.Repeat("a", 1000), strings.Repeat("a", 1001)
	for _, unknown := range []bool{false, true} {
		body := func(q request, content string) request {
			if q.body = content; unknown {
				q.body, q.reader = "", io.MultiReader(strings.NewReader(content))
			}
			return q
		}
		a := s.must(413, body(request{method: "POST", path: "/v2/alice/x/blobs/uploads/?digest=" + sha(over)}, over))
		if !strings.Contains(a.body, "TOO_LARGE") || !strings.Contains(a.body, "1000") {
			t.Errorf("body %s", a.body)
		}
		s.must(413, body(request{method: "PUT", path: s.start("alice/x") + "?digest=" + sha(over)}, over))
		at := s.start("alice/x")
		s.must(413, body(request{method: "PATCH", path: at}, over))
		s.must(202, body(request{method: "PATCH", path: at}, fits))
		s.must(413, body(request{method: "PATCH", path: at}, "a"))
		s.must(201, request{method: "PUT", path: at + "?digest=" + sha(fits)})
	}
	s.must(404, request{method: "HEAD", path: "/v2/alice/x/blobs/" + sha(over)})
	if left := s.files("tmp"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestUploadSessions(t *testing.T) {
	s := newServer(t)
	gone := func(why, at string) {
		t.Helper()
		for _, q := range []request{{method: "GET"}, {method: "PATCH", body: "x"}, {method: "PUT", body: "x"}, {method: "DELETE"}} {
			if q.path = at; q.method == "PUT" {
				q.path += "?digest=" + sha("x")
			}
			if a := s.do(q); a.code != 404 || !strings.Contains(a.body, "BLOB_UPLOAD_UNKNOWN") {
				t.Errorf("%s: %s: status %d: %s", why, q.method, a.code, a.body)
			}
		}
	}
	gone("never started", "/v2/alice/x/blobs/uploads/"+strings.Repeat("0", 32))

	at := s.start("alice/x")
	gone("of another repository", strings.Replace(at, "alice/x", "alice/y", 1))
	if a := s.do(request{user: "admin", method: "PATCH", path: at, body: "x"}); a.code != 404 {
		t.Errorf("another account goes on with the upload: status %d", a.code)
	}
	s.must(204, request{method: "DELETE", path: at})
	gone("cancelled", at)

	at = s.start("alice/x")
	s.must(201, request{method: "PUT", path: at + "?digest=" + sha("x"), body: "x"})
	gone("finished", at)

	at = s.start("alice/x")
	s.must(202, request{method: "PATCH", path: at, body: "x"})
	s.ahead.Store(int64(registry.DefaultSettings().UploadTTL + time.Second))
	gone("expired", at)
	if n, err := s.service.Expire(t.Context()); n != 1 || err != nil {
		t.Errorf("%d uploads expired, %v", n, err)
	}
	if left := s.files("uploads"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestMount(t *testing.T) {
	s := newServer(t)
	d := s.pushBlob("bob/y", "shared")
	for to, from := range map[string]string{"alice/a": "&from=bob/y", "alice/b": ""} {
		a := s.must(201, request{method: "POST", path: "/v2/" + to + "/blobs/uploads/?mount=" + d + from})
		checkHeader(t, a, map[string]string{"Location": "/v2/" + to + "/blobs/" + d, "Docker-Content-Digest": d})
		s.checkBlob(t, to, "shared")
	}
	for why, query := range map[string]string{"nowhere": "mount=" + sha("nowhere"), "not there": "mount=" + sha("nowhere") + "&from=bob/y",
		"no such repository": "mount=" + d + "&from=bob/none", "no name": "mount=" + d + "&from=../bob"} {
		a := s.must(202, request{method: "POST", path: "/v2/alice/c/blobs/uploads/?" + query})
		content := "nowhere"
		if why == "no such repository" || why == "no name" {
			content = "shared"
		}
		s.must(201, request{method: "PUT", path: a.header.Get("Location") + "?digest=" + sha(content), body: content})
		s.checkBlob(t, "alice/c", content)
		s.must(202, request{method: "DELETE", path: "/v2/alice/c/blobs/" + sha(content)})
	}
	s.must(202, request{user: "bob", method: "DELETE", path: "/v2/bob/y/blobs/" + d})
	s.checkBlob(t, "alice/a", "shared")
}

func TestSameBlobFrom64Clients(t *testing.T) {
	s := newServer(t)
	content := strings.Repeat("same ", 20_000)
	var wg sync.WaitGroup
	codes := make([]int, 64)
	for i := range codes {
		wg.Go(func() {
			q := request{method: "POST", path: fmt.Sprintf("/v2/alice/r%d/blobs/uploads/?digest=%s", i%4, sha(content)), body: content}
			if i%2 == 1 {
				q = request{method: "PUT", path: s.start(fmt.Sprintf("alice/r%d", i%4)) + "?digest=" + sha(content), reader: io.MultiReader(strings.NewReader(content))}
			}
			codes[i] = s.do(q).code
		})
	}
	wg.Wait()
	for i, code := range codes {
		if code != 201 {
			t.Errorf("client %d: status %d", i, code)
		}
	}
	for i := range 4 {
		s.checkBlob(t, fmt.Sprintf("alice/r%d", i), content)
	}
	if n := len(s.files("blobs")); n != 1 {
		t.Errorf("%d blobs are stored, want 1", n)
	}
	if left := append(s.files("tmp"), s.files("uploads")...); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// brokenRequest sends the head of a request and a part of its body, and gives the connection.
func (s *server) brokenRequest(method, path string, length int, part string) net.Conn {
	s.tb.Helper()
	c, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		s.tb.Fatal(err)
	}
	_, err = fmt.Fprintf(c, "%s %s HTTP/1.1\r\nHost: x\r\nAuthorization: Basic YWxpY2U6c2VjcmV0\r\nContent-Length: %d\r\n\r\n%s", method, path, length, part)
	if err != nil {
		s.tb.Fatal(err)
	}
	return c
}

// eventually waits until done says so; the test's own time limit is the only one.
func eventually(t *testing.T, done func() bool) {
	t.Helper()
	for !done() {
		select {
		case <-t.Context().Done():
			t.Fatal("it never came about")
		case <-time.After(time.Millisecond):
		}
	}
}

func TestInterruptedUploadGoesOn(t *testing.T) {
	s := newServer(t)
	at, content := s.start("alice/x"), strings.Repeat("0123456789", 1000)
	s.brokenRequest("PATCH", at, len(content), content[:4000]).Close()
	eventually(t, func() bool {
		return s.must(204, request{method: "GET", path: at}).header.Get("Range") == "0-3999"
	})
	var a answer
	eventually(t, func() bool { // the broken request may still hold the session
		a = s.do(request{method: "PATCH", path: at, body: content[4000:], header: map[string]string{"Content-Range": "4000-9999"}})
		return a.code != http.StatusConflict
	})
	if a.code != 202 || a.header.Get("Range") != "0-9999" {
		t.Fatalf("status %d, Range %q: %s", a.code, a.header.Get("Range"), a.body)
	}
	s.must(201, request{method: "PUT", path: at + "?digest=" + sha(content)})
	s.checkBlob(t, "alice/x", content)
}

// TestInterruptedPutIsSentAgain: clients that retry send the same PUT, whole, to the same session.
func TestInterruptedPutIsSentAgain(t *testing.T) {
	s := newServer(t)
	at, content := s.start("alice/x"), strings.Repeat("0123456789", 1000)
	put := at + "?digest=" + sha(content)
	s.brokenRequest("PUT", put, len(content), content[:4000]).Close()
	s.must(201, request{method: "PUT", path: put, body: content})
	s.checkBlob(t, "alice/x", content)
	eventually(t, func() bool { return len(s.files("tmp")) == 0 })
}

func TestInterruptedPostLeavesNothing(t *testing.T) {
	s := newServer(t)
	s.brokenRequest("POST", "/v2/alice/x/blobs/uploads/?digest="+sha("x"), 1000, "x").Close()
	s.must(404, request{method: "GET", path: "/v2/alice/x/blobs/" + sha("x")})
	eventually(t, func() bool { return len(s.files("tmp")) == 0 })
	if n := len(s.files("blobs")); n != 0 {
		t.Errorf("%d blobs", n)
	}
}

func TestBodyThatStandsStill(t *testing.T) {
	s := newServer(t, func(o *oci.Options, _ *registry.Settings) { o.IdleTimeout = 50 * time.Millisecond })
	at := s.start("alice/x")
	for _, path := range []string{at, "/v2/alice/x/manifests/v1"} {
		method := map[bool]string{true: "PATCH", false: "PUT"}[path == at]
		c := s.brokenRequest(method, path, 1000, "some")
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatalf("%s: the server does not answer: %v", method, err)
		}
		body, _ := io.ReadAll(resp.Body)
		if resp.StatusCode != 400 || !strings.Contains(string(body), "no byte came for 50ms") {
			t.Errorf("%s: status %d: %s", method, resp.StatusCode, body)
		}
		c.Close()
	}
	if got := s.must(204, request{method: "GET", path: at}).header.Get("Range"); got != "0-3" {
		t.Errorf("the upload holds %q, want the bytes that came", got)
	}
}

// TestClientThatDoesNotRead: a client that takes nothing holds its connection no longer than the idle time.
func TestClientThatDoesNotRead(t *testing.T) {
	ended := make(chan string, 1)
	log := slog.New(slog.NewTextHandler(writerFunc(func(p []byte) (int, error) {
		select {
		case ended <- string(p):
		default:
		}
		return len(p), nil
	}), nil))
	s := newServer(t, func(o *oci.Options, _ *registry.Settings) { o.IdleTimeout, o.Log = 50*time.Millisecond, log })
	large := strings.Repeat("0123456789abcdef", 2<<20) // more than the buffers of both ends hold
	d := s.pushBlob("alice/x", large)
	c := s.brokenRequest("GET", "/v2/alice/x/blobs/"+d, 0, "")
	defer c.Close()
	select {
	case line := <-ended:
		if !strings.Contains(line, "transfer ended early") || !strings.Contains(line, d) {
			t.Errorf("logged %q", line)
		}
	case <-t.Context().Done():
		t.Error("the transfer goes on")
	}
}

// writerFunc is an io.Writer.
type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// TestBodyLongerThanTheIdleTime: the limit is on a pause, not on the whole, and does not outlast the body.
func TestBodyLongerThanTheIdleTime(t *testing.T) {
	s := newServer(t, func(o *oci.Options, _ *registry.Settings) { o.IdleTimeout = 200 * time.Millisecond })
	r, w := io.Pipe()
	content := strings.Repeat("x", 12)
	go func() {
		for i := range content {
			time.Sleep(40 * time.Millisecond)
			io.WriteString(w, content[i:i+1])
		}
		w.Close()
	}()
	s.must(201, request{method: "POST", path: "/v2/alice/x/blobs/uploads/?digest=" + sha(content), reader: r})
	s.checkBlob(t, "alice/x", content)
}
