package cli

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry/server/servertest"
)

// A server, or somebody in between, that names other digests than those of the bytes is found out: exit 7, and nothing is
// left behind. Each digest counts: a twin shares the content digest and not the tree digest.
func TestLyingServer(t *testing.T) {
	s := servertest.Start(t)
	other := digest.FromBytes([]byte("other")).String()
	lie := &liar{}
	front := httptest.NewServer(lie.inFrontOf(t, s.URL))
	t.Cleanup(front.Close)
	home := t.TempDir()
	sf := func(dir string, args ...string) (exit int, output string) {
		t.Helper()
		t.Chdir(dir)
		var out bytes.Buffer
		environ := []string{"GATEHOUSE_HOME=" + home, "GATEHOUSE_SERVER=" + front.URL, "GATEHOUSE_TOKEN=" + s.Token}
		exit = Main(args, environ, strings.NewReader(""), &out, &out)
		return exit, out.String()
	}
	packs, err := filepath.Abs("../testdata/packs")
	if err != nil {
		t.Fatal(err)
	}
	if exit, output := sf(t.TempDir(), "plugin", "publish", filepath.Join(packs, "grad-clip")); exit != exitOK {
		t.Fatal(output)
	}
	for _, test := range []struct {
		name string
		lie  map[string]string
		exit int
	}{
		{"the truth", nil, exitOK},
		{"content digest", map[string]string{"digest": other}, exitVerification},
		{"tree digest", map[string]string{"tree_digest": other}, exitVerification},
		{"manifest digest", map[string]string{"manifest_digest": other}, exitNotFound},
		{"another pack", map[string]string{"id": "../../evil"}, exitError},
		{"another version", map[string]string{"version": "../9"}, exitError},
		{"no digest", map[string]string{"tree_digest": ""}, exitError},
	} {
		lie.fields = test.lie
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "starforge.yaml"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"plugin", "pull", "admin/grad-clip", "pulled"}, {"plugin", "install", "admin/grad-clip"}} {
			exit, output := sf(dir, args...)
			if exit != test.exit {
				t.Errorf("%s: %s: exit %d, want %d: %s", test.name, args[1], exit, test.exit, output)
			}
		}
		for _, made := range []string{"pulled", "forge_plugins/grad-clip"} {
			if _, err := os.Stat(filepath.Join(dir, made)); (err == nil) != (test.exit == exitOK) {
				t.Errorf("%s: %s: %v", test.name, made, err)
			}
		}
		for _, parent := range []string{".", "forge_plugins"} {
			if left, _ := filepath.Glob(filepath.Join(dir, parent, ".*.*")); len(left) > 0 {
				t.Errorf("%s: left behind: %q", test.name, left)
			}
		}
	}
}

// liar stands between client and server and changes fields of what the API says about a plugin.
type liar struct{ fields map[string]string }

func (l *liar) inFrontOf(t *testing.T, address string) http.Handler {
	t.Helper()
	target, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.ModifyResponse = func(res *http.Response) error {
		if !strings.HasPrefix(res.Request.URL.Path, "/api/plugins/") || res.StatusCode != http.StatusOK {
			return nil
		}
		var doc map[string]any
		if err := json.NewDecoder(res.Body).Decode(&doc); err != nil {
			return err
		}
		for field, value := range l.fields {
			doc[field] = value
		}
		body, err := json.Marshal(doc)
		if err != nil {
			return err
		}
		res.Body = io.NopCloser(bytes.NewReader(body))
		res.Header.Set("Content-Length", strconv.Itoa(len(body)))
		return nil
	}
	return proxy
}
