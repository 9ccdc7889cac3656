package server_test

import (
	"net/http"
	"strings"
	"testing"
)

// TestBodiesOfAnotherType: a body that is JSON and holds another type than is read there is refused in words of JSON, with the
// member named.
func TestBodiesOfAnotherType(t *testing.T) {
	t.Parallel()
	g := startGatehouse(t)
	for _, c := range []struct{ path, body, want string }{
		{"/api/submissions/commits", `{"preview_id":1}`, "request body: preview_id: found number, expected a text"},
		{"/api/submissions/uploads", `{"digest":"","size":"1"}`, "request body: size: found string, expected a whole number"},
		{"/api/submissions/uploads", `[]`, "request body: found array, expected an object"},
		{"/api/submissions/previews", `{"form":"source","spec":{},"metadata":"x"}`, "metadata: found string, expected an object"},
		{"/api/submissions/previews", `{"form":"source","spec":{},"metadata":{"exp":[]}}`, "metadata: exp: found array, expected a text"},
	} {
		got := g.do(call{as: "alice", method: http.MethodPost, path: c.path, body: []byte(c.body)}).refused(t, c.path, http.StatusUnprocessableEntity)
		if !strings.Contains(got.Detail, c.want) {
			t.Errorf("%s %s: said %q, want %q", c.path, c.body, got.Detail, c.want)
		}
	}
}
