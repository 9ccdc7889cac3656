package oci_test

import (
	"crypto/sha512"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
	"github.com/gatehouse-registry/gatehouse/registry/blobstore/fs"
	"github.com/gatehouse-registry/gatehouse/registry/metastore"
	"github.com/gatehouse-registry/gatehouse/registry/oci"
)

// password is every account's.
const password = "secret"

// accounts are who may sign in to a test's server.
var accounts = map[string]auth.Role{"admin": auth.Admin, "alice": auth.Operator, "bob": auth.Operator, "vera": auth.Viewer}

// server is a registry over the real stores.
type server struct {
	*httptest.Server
	tb      testing.TB
	service *registry.Service
	handler http.Handler
	data    string       // the blob store's folder
	ahead   atomic.Int64 // how far the registry's clock is ahead, in nanoseconds
}

func newServer(tb testing.TB, change ...func(*oci.Options, *registry.Settings)) *server {
	tb.Helper()
	s := &server{tb: tb, data: tb.TempDir()}
	blobs, err := fs.Open(s.data)
	if err != nil {
		tb.Fatal(err)
	}
	meta, err := metastore.OpenSQLite(tb.Context(), filepath.Join(tb.TempDir(), "meta.db"))
	if err != nil {
		tb.Fatal(err)
	}
	ledger, err := metastore.OpenLedger(filepath.Join(tb.TempDir(), "ledger.jsonl"))
	if err != nil {
		tb.Fatal(err)
	}
	options, settings := oci.Options{Principal: signIn}, registry.DefaultSettings()
	for _, c := range change {
		c(&options, &settings)
	}
	now := func() time.Time { return time.Now().Add(time.Duration(s.ahead.Load())) }
	s.service, err = registry.New(tb.Context(), registry.Deps{Blobs: blobs, Meta: meta, Ledger: ledger, Now: now}, settings)
	if err != nil {
		tb.Fatal(err)
	}
	options.Service = s.service
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	s.handler = oci.New(options)
	s.Server = httptest.NewServer(s.handler)
	tb.Cleanup(func() {
		s.Close()
		for _, c := range []io.Closer{blobs, meta, ledger} {
			if err := c.Close(); err != nil {
				tb.Error(err)
			}
		}
	})
	return s
}

func signIn(r *http.Request) (auth.Principal, error) {
	user, pass, ok := r.BasicAuth()
	if !ok {
		return auth.Principal{}, nil
	}
	role, known := accounts[user]
	if !known || pass != password {
		return auth.Principal{}, registry.Errorf(registry.Unauthorized, "wrong account or password")
	}
	return auth.Principal{Account: user, Role: role}, nil
}

// answer is what the server said.
type answer struct {
	code   int
	header http.Header
	body   string
}

// request is one request; the zero values of its fields mean alice and no body.
type request struct {
	user         string // "-" sends no credentials
	method, path string
	header       map[string]string
	body         string
	reader       io.Reader // instead of body; its length is not said
}

func (s *server) do(q request) answer {
	s.tb.Helper()
	body := q.reader
	if body == nil {
		body = strings.NewReader(q.body)
	}
	r, err := http.NewRequestWithContext(s.tb.Context(), q.method, s.URL+q.path, body)
	if err != nil {
		s.tb.Fatal(err)
	}
	if q.user == "" {
		q.user = "alice"
	}
	if q.user != "-" {
		r.SetBasicAuth(q.user, password)
	}
	for name, value := range q.header {
		r.Header.Set(name, value)
	}
	resp, err := s.Client().Transport.RoundTrip(r)
	if err != nil {
		s.tb.Fatalf("%s %s: %v", q.method, q.path, err)
	}
	defer resp.Body.Close()
	content, err := io.ReadAll(resp.Body)
	if err != nil {
		s.tb.Fatalf("%s %s: %v", q.method, q.path, err)
	}
	return answer{resp.StatusCode, resp.Header, string(content)}
}

// must does a request that has to be answered with code.
func (s *server) must(code int, q request) answer {
	s.tb.Helper()
	a := s.do(q)
	if a.code != code {
		s.tb.Fatalf("%s %s: status %d, want %d; body %.500s", q.method, q.path, a.code, code, a.body)
	}
	return a
}

func sha(content string) string { return digest.FromBytes([]byte(content)).String() }

func sha512Of(content string) string { return fmt.Sprintf("sha512:%x", sha512.Sum512([]byte(content))) }

// pushBlob pushes by one POST and gives the digest.
func (s *server) pushBlob(repository, content string) string {
	s.tb.Helper()
	d := sha(content)
	s.must(201, request{user: "admin", method: "POST", path: "/v2/" + repository + "/blobs/uploads/?digest=" + d, body: content})
	return d
}

const (
	mediaTypeImage = "application/vnd.oci.image.manifest.v1+json"
	mediaTypeIndex = "application/vnd.oci.image.index.v1+json"
)

func descriptorJSON(mediaType, content string) string {
	return fmt.Sprintf(`{"mediaType":%q,"digest":%q,"size":%d}`, mediaType, sha(content), len(content))
}

// image is a manifest over a config "{}" and a layer; more is put among its members and ends in a comma.
func image(layer, more string) string {
	return fmt.Sprintf(`{"schemaVersion":2,"mediaType":%q,%s"config":%s,"layers":[%s]}`, mediaTypeImage, more,
		descriptorJSON("application/vnd.oci.empty.v1+json", "{}"), descriptorJSON("application/octet-stream", layer))
}

// pushImage pushes the blobs of image(layer, more) and the manifest under a reference, and gives the manifest.
func (s *server) pushImage(repository, reference, layer, more string) string {
	s.tb.Helper()
	s.pushBlob(repository, "{}")
	s.pushBlob(repository, layer)
	manifest := image(layer, more)
	if reference == "" {
		reference = sha(manifest)
	}
	s.must(201, request{user: "admin", method: "PUT", path: "/v2/" + repository + "/manifests/" + reference, body: manifest,
		header: map[string]string{"Content-Type": mediaTypeImage}})
	return manifest
}

// checkHeader compares headers; the value "-" wants a header to be absent.
func checkHeader(t *testing.T, a answer, want map[string]string) {
	t.Helper()
	for name, value := range want {
		got := a.header.Get(name)
		if value == "-" {
			value = ""
		}
		if got != value {
			t.Errorf("header %s: %q, want %q", name, got, value)
		}
	}
}

// files lists what lies below the data folder's sub-folder.
func (s *server) files(sub string) []string {
	s.tb.Helper()
	var names []string
	err := filepath.WalkDir(filepath.Join(s.data, sub), func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, path)
		}
		return err
	})
	if err != nil {
		s.tb.Fatal(err)
	}
	return names
}

// nothing is a reader of size zero bytes that remembers how far it was read.
type nothing struct{ size, read int64 }

func (n *nothing) Read(p []byte) (int, error) {
	if n.read >= n.size {
		return 0, io.EOF
	}
	m := min(int64(len(p)), n.size-n.read)
	clear(p[:m])
	n.read += m
	return int(m), nil
}
