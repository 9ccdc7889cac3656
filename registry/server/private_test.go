package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/api/wire"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
)

// catalogue is the whole list of repositories as an account sees it, in pages of n, each of which but the last is full.
func (g *gatehouse) catalogue(as string, n int) (names []string) {
	g.tb.Helper()
	for path := fmt.Sprintf("/v2/_catalog?n=%d", n); path != ""; {
		var page struct{ Repositories []string }
		r := g.get(as, path).want(g.tb, http.StatusOK)
		r.into(g.tb, &page)
		names = append(names, page.Repositories...)
		link := r.header.Get("Link")
		if path = ""; link != "" {
			path = strings.TrimPrefix(strings.Split(link, ">")[0], "<")
			if len(page.Repositories) != n {
				g.tb.Errorf("a page of %d in the middle, want %d", len(page.Repositories), n)
			}
		}
	}
	return names
}

// TestPrivateCatalogue pages through a list of which most is hidden.
func TestPrivateCatalogue(t *testing.T) {
	g := startGatehouse(t)
	g.addAccount("rita", auth.Viewer)
	robot := g.robot("alice", "some", scope("alice/r03", auth.Pull), scope("alice/r08", auth.Pull))
	var all, open []string
	for i := range 12 {
		name := fmt.Sprintf("alice/r%02d", i)
		g.image("alice", name, "v1")
		if i%4 != 0 {
			g.private("alice", name)
		} else {
			open = append(open, name)
		}
		all = append(all, name)
	}
	g.private("alice", "alice/r01", "rita")
	for as, want := range map[string][]string{
		"alice": all, "admin": all, "audrey": all, "bob": open, "vera": open, "rita": slices.Insert(slices.Clone(open), 1, "alice/r01"),
		robot: {"alice/r03", "alice/r08"},
	} {
		for _, n := range []int{1, 2, 3, 100} {
			if diff := cmp.Diff(want, g.catalogue(as, n)); diff != "" {
				t.Errorf("%s in pages of %d (-want +got):\n%s", as, n, diff)
			}
		}
	}
}

// TestPrivateBlobsAreNotMounted tries to take a blob out of a private repository.
func TestPrivateBlobsAreNotMounted(t *testing.T) {
	g := startGatehouse(t)
	g.pushBlob("alice", "alice/hidden", []byte("secret"))
	g.private("alice", "alice/hidden", "bob")
	d := digest.FromBytes([]byte("secret")).String()
	mount := func(as, query string) int {
		return g.do(call{as: as, method: http.MethodPost, path: "/v2/" + as + "/x/blobs/uploads/?mount=" + d + query}).status
	}
	g.addAccount("carol", auth.Operator)
	for _, query := range []string{"", "&from=alice/hidden"} {
		if got := mount("carol", query); got != http.StatusAccepted {
			t.Errorf("carol, %q: status %d, want an upload", query, got)
		}
		if got := mount("bob", query); got != http.StatusCreated {
			t.Errorf("bob, a reader, %q: status %d", query, got)
		}
	}
	g.pushBlob("bob", "bob/open", []byte("secret"))
	if got := mount("carol", ""); got != http.StatusCreated {
		t.Errorf("carol, once another repository has it: status %d", got)
	}
	// A bearer token must be made for the source too.
	token := g.bearerFor("alice", "repository:alice/y:pull,push").Token
	if r := g.with(token, http.MethodPost, "/v2/alice/y/blobs/uploads/?mount="+d+"&from=alice/hidden"); r.status != http.StatusAccepted {
		t.Errorf("mount from outside the token's scope: status %d", r.status)
	}
}

// TestPrivatePacks hides a pack from lists, jobs and the gate's warnings.
func TestPrivatePacks(t *testing.T) {
	g := startGatehouse(t)
	v := g.published("alice", algorithm("hidden", "1.0.0"))
	g.published("alice", algorithm("shown", "1.0.0"))
	g.private("alice", "alice/hidden", "audrey")
	list := func(as string) (ids []string) {
		var answer wire.PluginList
		g.get(as, "/api/plugins").want(t, http.StatusOK).into(t, &answer)
		for _, row := range answer.Plugins {
			ids = append(ids, row.ID)
		}
		return ids
	}
	for as, want := range map[string][]string{"bob": {"alice/shown"}, "alice": {"alice/hidden", "alice/shown"}, "audrey": {"alice/hidden", "alice/shown"}} {
		if diff := cmp.Diff(want, list(as)); diff != "" {
			t.Errorf("plugins of %s (-want +got):\n%s", as, diff)
		}
	}
	refusal := func(as, id string) string {
		r := g.do(call{as: as, method: http.MethodPost, path: "/api/jobs", body: []byte(jobSpec(t, dialect.Forge, "a", plugin(id, "1.0.0", v.Digest)))})
		return fmt.Sprint(r.status) + digestText.ReplaceAllString(strings.ReplaceAll(string(withoutID(r.body)), id, "ID"), "DIGEST")
	}
	if got, want := refusal("bob", "alice/hidden"), refusal("bob", "alice/absent"); got != want {
		t.Errorf("a job with a private pack answers\n%s\none with an absent pack\n%s", got, want)
	}
	if got := refusal("alice", "alice/hidden"); !strings.HasPrefix(got, "200") {
		t.Errorf("the owner's job: %s", got)
	}
}

// TestDeclarativePacksStayReadable refuses a private repository for what every client syncs, whichever comes first.
func TestDeclarativePacksStayReadable(t *testing.T) {
	g := startGatehouse(t)
	g.published("admin", policyPack("playbook", "first"))
	yes := true
	r := g.send("admin", http.MethodPatch, "/api/repositories/admin/first", wire.RepositoryAccess{Private: &yes}).want(t, http.StatusConflict)
	if !strings.Contains(string(r.body), "playbook") {
		t.Errorf("the refusal names no reason: %s", r.body)
	}
	g.private("admin", "admin/later")
	g.publish("admin", archiveOf(t, policyPack("playbook", "later"))).want(t, http.StatusConflict)
	g.publish("admin", archiveOf(t, policyPack("playbook", "other"))).want(t, http.StatusOK)
}

// TestAccessIsDecidedByTheOwner changes who may read, and asks at once.
func TestAccessIsDecidedByTheOwner(t *testing.T) {
	g := startGatehouse(t)
	g.image("alice", "alice/x", "v1")
	read := func(as string) int { return g.get(as, "/v2/alice/x/manifests/v1").status }
	for range 3 {
		if got := read("bob"); got != http.StatusOK {
			t.Fatalf("public: status %d", got)
		}
		g.private("alice", "alice/x")
		if got := read("bob"); got != http.StatusNotFound {
			t.Fatalf("private: status %d", got)
		}
		g.private("alice", "alice/x", "bob")
		if got := read("bob"); got != http.StatusOK {
			t.Fatalf("as a reader: status %d", got)
		}
		no := false
		g.send("alice", http.MethodPatch, "/api/repositories/alice/x", wire.RepositoryAccess{Private: &no}).want(t, http.StatusOK)
	}
	for _, readers := range [][]string{{"nobody-there"}, slices.Repeat([]string{"bob"}, 257)} {
		r := g.send("alice", http.MethodPatch, "/api/repositories/alice/x", wire.RepositoryAccess{Readers: &readers})
		if r.status != http.StatusNotFound && r.status != http.StatusUnprocessableEntity {
			t.Errorf("%d readers: status %d", len(readers), r.status)
		}
	}
}

// TestRobots holds a robot to its scopes, its owner's rights and its time.
func TestRobots(t *testing.T) {
	g := startGatehouse(t)
	g.image("alice", "alice/app", "v1")
	g.image("alice", "alice/other", "v1")
	g.image("bob", "bob/app", "v1")
	robot := g.robot("alice", "ci", scope("alice/app", auth.Pull, auth.Push), scope("bob/**", auth.Pull, auth.Push))
	status := func(method, path string) int { return g.do(call{as: robot, method: method, path: path}).status }
	for request, want := range map[[2]string]int{
		{"GET", "/v2/alice/app/manifests/v1"}: 200, {"GET", "/v2/alice/other/manifests/v1"}: 403, {"GET", "/v2/bob/app/manifests/v1"}: 200,
		{"GET", "/v2/alice/nothing/manifests/v1"}: 403, {"POST", "/v2/alice/app/blobs/uploads/"}: 202, {"POST", "/v2/alice/other/blobs/uploads/"}: 403,
		{"POST", "/v2/bob/app/blobs/uploads/"}: 403, {"DELETE", "/v2/alice/app/manifests/v1"}: 403,
	} {
		if got := status(request[0], request[1]); got != want {
			t.Errorf("%v: status %d, want %d", request, got, want)
		}
	}
	a := g.bearerFor(robot, "repository:alice/app:pull,push,delete", "repository:alice/other:pull", "repository:bob/app:push")
	if a.Scope != "repository:alice/app:pull,push" {
		t.Errorf("granted %q", a.Scope)
	}
	g.send("admin", http.MethodPatch, "/api/admin/users/alice/role?role=viewer", nil).want(t, http.StatusOK)
	if got := status("POST", "/v2/alice/app/blobs/uploads/"); got != http.StatusForbidden {
		t.Errorf("a robot of a viewer pushes: status %d", got)
	}
	g.send("admin", http.MethodPatch, "/api/admin/users/alice/role?role=operator", nil).want(t, http.StatusOK)
	g.ahead.Add(int64(time.Hour + time.Second))
	if got := status("GET", "/v2/alice/app/manifests/v1"); got != http.StatusUnauthorized {
		t.Errorf("an expired robot: status %d", got)
	}
	short := g.robot("alice", "short", scope("**", auth.Pull))
	g.do(call{as: short, method: http.MethodGet, path: "/v2/bob/app/manifests/v1"}).want(t, http.StatusOK)
	g.do(call{as: "alice", method: http.MethodDelete, path: "/api/robots/" + short}).want(t, http.StatusNoContent)
	g.do(call{as: short, method: http.MethodGet, path: "/v2/bob/app/manifests/v1"}).want(t, http.StatusUnauthorized)
}

// TestRobotPublishes stamps what a robot publishes with its owner and its own name, within its scopes.
func TestRobotPublishes(t *testing.T) {
	g := startGatehouse(t)
	robot := g.robot("alice", "ci", scope("alice/good", auth.Pull, auth.Push))
	g.publish(robot, archiveOf(t, algorithm("good", "1.0.0"))).want(t, http.StatusOK)
	var v wire.Plugin
	g.get("bob", "/api/plugins/alice/good").want(t, http.StatusOK).into(t, &v)
	if v.ID != "alice/good" || v.CreatedBy != robot {
		t.Errorf("id %s, created by %s", v.ID, v.CreatedBy)
	}
	g.publish(robot, archiveOf(t, algorithm("bad", "1.0.0"))).want(t, http.StatusForbidden)
}

func TestRobotsThatAreNone(t *testing.T) {
	g := startGatehouse(t)
	one := []auth.Scope{scope("alice/**", auth.Pull)}
	for what, in := range map[string]wire.NewRobot{
		"no scopes": {Name: "x", ExpiresIn: 60}, "no expiry": {Name: "x", Scopes: one}, "too long": {Name: "x", Scopes: one, ExpiresIn: 401 * 24 * 3600},
		"no name": {Scopes: one, ExpiresIn: 60}, "a plus": {Name: "x+y", Scopes: one, ExpiresIn: 60}, "capitals": {Name: "X", Scopes: one, ExpiresIn: 60},
		"no verbs": {Name: "x", Scopes: []auth.Scope{scope("alice/**")}, ExpiresIn: 60}, "unknown verb": {Name: "x", Scopes: []auth.Scope{scope("a", "admin")}, ExpiresIn: 60},
		"a star inside": {Name: "x", Scopes: []auth.Scope{scope("a/*/b", auth.Pull)}, ExpiresIn: 60}, "many": {Name: "x", Scopes: slices.Repeat(one, 65), ExpiresIn: 60},
	} {
		if r := g.send("alice", http.MethodPost, "/api/robots", in); r.status != http.StatusUnprocessableEntity {
			t.Errorf("%s: status %d: %s", what, r.status, r.body)
		}
	}
	g.robot("alice", "x", one...)
	g.send("alice", http.MethodPost, "/api/robots", wire.NewRobot{Name: "x", Scopes: one, ExpiresIn: 60}).want(t, http.StatusConflict)
	g.send("admin", http.MethodPatch, "/api/admin/users/alice+x/role?role=admin", nil).want(t, http.StatusUnprocessableEntity)
	var users wire.UserList
	g.get("admin", "/api/admin/users").want(t, http.StatusOK).into(t, &users)
	for _, u := range users.Users {
		if strings.Contains(u.Username, "+") {
			t.Errorf("robot %s is listed among the users", u.Username)
		}
	}
}

// TestTokensDoNotOutliveTheirMaker mints from a token that expires.
func TestTokensDoNotOutliveTheirMaker(t *testing.T) {
	g := startGatehouse(t)
	var short wire.Token
	g.send("alice", http.MethodPost, "/api/tokens", wire.NewToken{ExpiresIn: 600}).want(t, http.StatusCreated).into(t, &short)
	mint := func(seconds int64) int {
		body, _ := json.Marshal(wire.NewToken{ExpiresIn: seconds})
		return g.do(call{as: "alice", token: short.Secret, method: http.MethodPost, path: "/api/tokens", body: body}).status
	}
	for seconds, want := range map[int64]int{0: 403, 601: 403, 300: 201} {
		if got := mint(seconds); got != want {
			t.Errorf("a token for %d s: status %d, want %d", seconds, got, want)
		}
	}
}

// TestNamespaces gives names to owners.
func TestNamespaces(t *testing.T) {
	g := startGatehouse(t)
	push := func(as, repository string) int {
		return g.do(call{as: as, method: http.MethodPost, path: "/v2/" + repository + "/blobs/uploads/?digest=" + digest.FromBytes([]byte("{}")).String(), body: []byte("{}")}).status
	}
	set := func(n wire.Namespace) int { return g.send("admin", http.MethodPut, "/api/admin/namespaces", n).status }
	for _, repository := range []string{"alpine", "team/a/b", "bob/shared"} {
		if got := push("alice", repository); got != http.StatusForbidden {
			t.Errorf("%s before it is alice's: status %d", repository, got)
		}
	}
	for n, want := range map[wire.Namespace]int{
		{Pattern: "alpine", Owner: "alice"}: 200, {Pattern: "team/**", Owner: "alice"}: 200, {Pattern: "bob/shared", Owner: "alice"}: 409, {Pattern: "**", Owner: "alice"}: 409,
		{Pattern: "bob/shared", Owner: "alice", TakeFromAccount: true}: 200, {Pattern: "x*", Owner: "alice"}: 422, {Pattern: "y", Owner: "nobody"}: 404,
	} {
		if got := set(n); got != want {
			t.Errorf("%+v: status %d, want %d", n, got, want)
		}
	}
	for repository, want := range map[string]int{"alpine": 201, "team/a/b": 201, "bob/shared": 201, "bob/own": 403, "alpine/x": 403, "team": 403} {
		if got := push("alice", repository); got != want {
			t.Errorf("alice to %s: status %d, want %d", repository, got, want)
		}
	}
	if got := push("bob", "bob/shared"); got != http.StatusForbidden {
		t.Errorf("bob to what was taken from him: status %d", got)
	}
	g.do(call{as: "admin", method: http.MethodDelete, path: "/api/admin/namespaces?pattern=" + url.QueryEscape("team/**")}).want(t, http.StatusNoContent)
	if got := push("alice", "team/a/b"); got != http.StatusCreated {
		t.Errorf("a repository that exists keeps its owner: status %d", got)
	}
	if got := push("alice", "team/a/c"); got != http.StatusForbidden {
		t.Errorf("a new one does not: status %d", got)
	}
	if got := push("alice", "alice"); got != http.StatusCreated {
		t.Errorf("a name of one component is its account's: status %d", got)
	}
}

// TestEveryWriteIsRecorded does each kind of write and looks for its row.
func TestEveryWriteIsRecorded(t *testing.T) {
	g := startGatehouse(t)
	g.image("alice", "alice/x", "v1")
	blob := digest.FromBytes([]byte("{}")).String()
	g.do(call{as: "alice", method: http.MethodPost, path: "/v2/alice/y/blobs/uploads/?from=alice/x&mount=" + blob}).want(t, http.StatusCreated)
	g.do(call{as: "alice", method: http.MethodDelete, path: "/v2/alice/y/blobs/" + blob}).want(t, http.StatusAccepted)
	u := g.do(call{as: "alice", method: http.MethodPost, path: "/v2/alice/y/blobs/uploads/"}).want(t, http.StatusAccepted).header.Get("Location")
	g.do(call{as: "alice", method: http.MethodDelete, path: u}).want(t, http.StatusNoContent)
	g.do(call{as: "alice", method: http.MethodDelete, path: "/v2/alice/x/manifests/v1"}).want(t, http.StatusAccepted)
	g.published("alice", algorithm("p", "1.0.0"))
	g.private("alice", "alice/x")
	robot := g.robot("alice", "r", scope("alice/x", auth.Pull))
	g.do(call{as: "alice", method: http.MethodDelete, path: "/api/robots/" + robot}).want(t, http.StatusNoContent)
	g.send("admin", http.MethodPut, "/api/admin/namespaces", wire.Namespace{Pattern: "q", Owner: "alice"}).want(t, http.StatusOK)
	g.do(call{as: "admin", method: http.MethodDelete, path: "/api/admin/namespaces?pattern=q"}).want(t, http.StatusNoContent)
	g.do(call{as: "admin", method: http.MethodPatch, path: "/api/admin/users/bob/disabled?disabled=true"}).want(t, http.StatusOK)
	rows, err := g.server.Service().Audit(t.Context(), auth.Principal{Account: "admin", Role: auth.Admin}, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, action := range []string{
		"account.create", "token.create", "blob.push", "manifest.push", "blob.mount", "blob.delete", "upload.cancel", "manifest.delete", "pack.publish",
		"repository.access", "robot.create", "robot.delete", "namespace.set", "namespace.delete", "account.disable",
	} {
		i := slices.IndexFunc(rows, func(r registry.AuditRow) bool { return r.Action == action && r.Outcome == "ok" })
		if i < 0 {
			t.Errorf("no row of %s", action)
		} else if r := rows[i]; !strings.HasPrefix(action, "account.create") && action != "token.create" && (r.Remote != "127.0.0.1" || r.Request == "" || r.Account == "") {
			t.Errorf("row %+v does not say who asked", r)
		}
	}
}
