package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
)

// A client that mounts has a token for the repository that it pushes to, often for no other. It mounts from what every
// account may read; from a private repository only with a token for that one too; a robot never from beyond its scopes.
func TestMountWithBearer(t *testing.T) {
	g := startGatehouse(t)
	blobs := map[string]string{}
	for _, repository := range []string{"bob/public", "alice/private", "bob/private"} {
		content := []byte("a blob of " + repository)
		owner, _, _ := strings.Cut(repository, "/")
		g.image(owner, repository, "v1")
		g.pushBlob(owner, repository, content)
		blobs[repository] = digest.FromBytes(content).String()
	}
	g.private("alice", "alice/private")
	g.private("bob", "bob/private")
	robot := g.robot("alice", "ci", scope("alice/**", auth.Pull, auth.Push))

	push := "repository:alice/x:pull,push"
	tests := []struct {
		name, as string
		scopes   []string
		source   string
		named    bool // the request names the source
		want     int
	}{
		{"from a public one", "alice", []string{push}, "bob/public", true, http.StatusCreated},
		{"from anywhere", "alice", []string{push}, "bob/public", false, http.StatusCreated},
		{"from an own private one without its scope", "alice", []string{push}, "alice/private", true, http.StatusAccepted},
		{"the same from anywhere", "alice", []string{push}, "alice/private", false, http.StatusAccepted},
		{"from an own private one with its scope", "alice", []string{push, "repository:alice/private:pull"}, "alice/private", true, http.StatusCreated},
		{"from another's private one", "alice", []string{push, "repository:bob/private:pull"}, "bob/private", true, http.StatusAccepted},
		{"the same from anywhere", "alice", []string{push, "repository:bob/private:pull"}, "bob/private", false, http.StatusAccepted},
		{"a robot beyond its scopes", robot, []string{push, "repository:bob/public:pull"}, "bob/public", true, http.StatusAccepted},
		{"a robot from anywhere", robot, []string{push}, "bob/public", false, http.StatusAccepted},
		{"from one that is not there", "alice", []string{push}, "bob/none", true, http.StatusAccepted},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := g.in(t)
			d := blobs[tt.source]
			if d == "" {
				d = blobs["bob/public"]
			}
			token := g.bearerFor(tt.as, tt.scopes...).Token
			path := "/v2/alice/x/blobs/uploads/?mount=" + d
			if tt.named {
				path += "&from=" + tt.source
			}
			if r := g.with(token, http.MethodPost, path); r.status != tt.want {
				t.Errorf("status %d, want %d: %s", r.status, tt.want, r.body)
			}
			there := g.with(token, http.MethodGet, "/v2/alice/x/blobs/"+d)
			if (there.status == http.StatusOK) != (tt.want == http.StatusCreated) {
				t.Errorf("the blob answers %d afterwards", there.status)
			}
			if tt.want == http.StatusCreated { // for the next
				g.do(call{as: "alice", method: http.MethodDelete, path: "/v2/alice/x/blobs/" + d}).want(t, http.StatusAccepted)
			}
		})
	}
}

// A robot that asks by HEAD for what is beyond its scopes hears that there is nothing, and by GET why it may not read: only
// the latter has a body to say so, and clients that push look by HEAD first and show what the push then answers.
func TestHeadBeyondTheScopes(t *testing.T) {
	g := startGatehouse(t)
	d := g.image("alice", "alice/base", "v1")
	robot := g.robot("alice", "ci", scope("alice/ci/*", auth.Pull, auth.Push))
	for _, path := range []string{"/v2/alice/base/manifests/v1", "/v2/alice/base/manifests/" + d, "/v2/alice/base/blobs/" + digest.FromBytes([]byte("{}")).String()} {
		g.do(call{as: robot, method: http.MethodHead, path: path}).want(t, http.StatusNotFound)
		g.do(call{as: robot, method: http.MethodGet, path: path}).want(t, http.StatusForbidden)
		g.do(call{as: "alice", method: http.MethodHead, path: path}).want(t, http.StatusOK)
	}
	g.do(call{as: robot, method: http.MethodPost, path: "/v2/alice/base/blobs/uploads/"}).want(t, http.StatusForbidden)
}

// A blob that only others hold costs a stranger's mount what one that nobody holds does: no transaction that waits for its turn
// among the writers, which would tell the two apart.
func TestMountTellsNothingByItsTime(t *testing.T) {
	g := startGatehouse(t)
	g.pushBlob("bob", "bob/private", []byte("secret"))
	g.private("bob", "bob/private")
	updates := func() string {
		for line := range strings.Lines(string(g.get("admin", "/metrics").want(t, http.StatusOK).body)) {
			if strings.HasPrefix(line, `gatehouse_database_seconds_count{operation="update"}`) {
				return line
			}
		}
		t.Fatal("no count of transactions")
		return ""
	}
	mount := func(content, from string) {
		t.Helper()
		before := updates()
		path := "/v2/alice/x/blobs/uploads/?mount=" + digest.FromBytes([]byte(content)).String() + from
		g.do(call{as: "alice", method: http.MethodPost, path: path}).want(t, http.StatusAccepted)
		if after := updates(); after != before {
			t.Errorf("mount of %q%s wrote: %s became %s", content, from, before, after)
		}
	}
	for _, from := range []string{"", "&from=bob/private"} {
		mount("secret", from)
		mount("held by nobody", from)
	}
}
