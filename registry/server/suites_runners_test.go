package server_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/gatehouse-registry/gatehouse/registry/api/wire"
)

func TestRubrics(t *testing.T) {
	t.Parallel()
	g := startGatehouse(t)
	put := func(as, path, text string) reply {
		return g.do(call{as: as, method: http.MethodPut, path: "/api/rubrics/" + path, body: []byte(text), header: map[string]string{"Content-Type": "text/plain"}})
	}
	put("alice", "alice/quality?version=1&visibility=public", "Be kind.\nBe brief.\n").want(t, http.StatusCreated)
	put("alice", "alice/quality?version=2", "Be kind.\n").want(t, http.StatusCreated)
	for text, want := range map[string]string{"Be kind.\n": "the same text", "Be rude.\n": "another text"} {
		if got := detailOf(t, put("alice", "alice/quality?version=2", text).want(t, http.StatusConflict)); !strings.Contains(got, want) {
			t.Errorf("the version again: %q does not say %q", got, want)
		}
	}
	for _, test := range []struct {
		as, path, text string
		status         int
	}{
		{"alice", "bob/quality?version=1", "x", http.StatusForbidden},
		{"vera", "vera/quality?version=1", "x", http.StatusForbidden},
		{"alice", "alice/quality", "x", http.StatusUnprocessableEntity},
		{"alice", "alice/quality?version=latest", "x", http.StatusUnprocessableEntity},
		{"alice", "alice/quality?version=3", "", http.StatusBadRequest},
		{"alice", "alice/quality?version=3", " \n", http.StatusBadRequest},
		{"alice", "alice/quality?version=3", "\xff", http.StatusBadRequest},
		{"alice", "alice/quality?version=3", "a\x00b", http.StatusBadRequest},
		{"alice", "alice/quality?version=3", strings.Repeat("x", 64<<10+1), http.StatusRequestEntityTooLarge},
		{"alice", "alice/quality?version=3", strings.Repeat("x", 64<<10), http.StatusCreated},
		{"alice", "alice/Quality?version=4", "x", http.StatusConflict},
	} {
		if r := put(test.as, test.path, test.text); r.status != test.status {
			t.Errorf("%s puts %s: status %d, want %d: %s", test.as, test.path, r.status, test.status, r.body)
		}
	}
	var got wire.Suite
	g.get("bob", "/api/rubrics/alice/quality?version=1").want(t, http.StatusOK).into(t, &got)
	if got.Text != "Be kind.\nBe brief.\n" || got.Version != "1" || !slices.Equal(got.Versions, []string{"3", "2", "1"}) {
		t.Errorf("rubric: %+v", got)
	}
	g.get("bob", "/api/rubrics/alice/quality?version=9").want(t, http.StatusNotFound)
	var list wire.RubricList
	g.get("bob", "/api/rubrics").want(t, http.StatusOK).into(t, &list)
	if len(list.Rubrics) != 1 || list.Rubrics[0].ID != "alice/quality" {
		t.Errorf("rubrics: %+v", list.Rubrics)
	}
	text := g.get("bob", "/v2/alice/rubrics/quality/manifests/1").want(t, http.StatusOK)
	if !strings.Contains(string(text.body), "application/vnd.gatehouse.rubric.v1") {
		t.Errorf("the rubric's artifact: %s", text.body)
	}
}

func TestRunners(t *testing.T) {
	t.Parallel()
	g := startGatehouse(t)
	pushing{g: g, as: "alice", kind: "environment", name: "shop", version: "v1"}.all(shop)
	const path = "/api/environments/alice/shop/runners"
	in := wire.NewRunner{Address: "http://box.example.test:8080", RunnerVersion: "0.4.0"}
	var r wire.RegisteredRunner
	g.send("alice", http.MethodPost, path, in).want(t, http.StatusCreated).into(t, &r)
	list := func() []wire.Runner {
		var out wire.RunnerList
		g.get("alice", path).want(t, http.StatusOK).into(t, &out)
		return out.Runners
	}
	if l := list(); len(l) != 1 || l[0].ID != r.ID || !l[0].Fresh || l[0].State != "ready" || l[0].Address != in.Address {
		t.Errorf("runners: %+v", l)
	}
	beat := func(id, credential string) reply {
		return g.do(call{token: credential, method: http.MethodPost, path: "/api/env-runners/" + id + "/heartbeat", body: []byte(`{"address":"https://other:1","runner_version":"0.5.0"}`)})
	}
	beat(r.ID, r.Credential).want(t, http.StatusOK)
	beat(r.ID, g.tokens["alice"]).want(t, http.StatusUnauthorized)
	beat(r.ID, "").want(t, http.StatusUnauthorized)
	beat("er-0", r.Credential).want(t, http.StatusUnauthorized)
	if l := list(); l[0].Address != "https://other:1" {
		t.Errorf("after a beat: %+v", l)
	}
	disable := func(word string) {
		g.do(call{as: "admin", method: http.MethodPatch, path: "/api/admin/users/alice/disabled?disabled=" + word}).want(t, http.StatusOK)
	}
	disable("true")
	beat(r.ID, r.Credential).want(t, http.StatusUnauthorized)
	disable("false")
	beat(r.ID, r.Credential).want(t, http.StatusOK)
	for _, address := range []string{"", "box:80", "ftp://box", "http://", "http://u:p@box", "http://0.0.0.0:80", "http://169.254.1.1", "http://box/\n", "http://box?x", "http://2852039166", "http://0", "http://0x7f.1",
		"http://10.0.0", "http://box:0", "http://box:99999", "http://\u202ebox", "http://bôx", "http://box..x", strings.Repeat("http://a", 100)} {
		in.Address = address
		g.send("alice", http.MethodPost, path, in).want(t, http.StatusUnprocessableEntity)
	}
	for _, address := range []string{"http://10.0.0.1:8000/base", "https://[2001:db8::1]:8000", "http://env_1.lab.example.test", "http://1box"} {
		in.Address = address
		g.send("alice", http.MethodPost, path, in).want(t, http.StatusCreated)
	}
	in = wire.NewRunner{Address: "http://box", Version: "v9"}
	g.send("alice", http.MethodPost, path, in).want(t, http.StatusNotFound)
	g.send("bob", http.MethodPost, path, in).want(t, http.StatusForbidden)
	g.send("alice", http.MethodPost, "/api/environments/alice/none/runners", wire.NewRunner{Address: "http://box"}).want(t, http.StatusNotFound)
	g.get("bob", path).want(t, http.StatusNotFound)
	remove := func(as string) reply {
		return g.do(call{as: as, method: http.MethodDelete, path: "/api/env-runners/" + r.ID})
	}
	remove("bob").want(t, http.StatusNotFound)
	remove("alice").want(t, http.StatusOK)
	remove("alice").want(t, http.StatusNotFound)
	beat(r.ID, r.Credential).want(t, http.StatusUnauthorized)
}

// suites makes an environment, a taskset and a rubric of the names of the matrix's public and private repositories.
func (m *matrix) suites() {
	for _, kind := range []string{"public", "private"} {
		name := repositories[kind]
		pushing{g: m.gatehouse, as: "alice", kind: "environment", name: name, version: "v1", public: kind == "public"}.all(shop)
		pushing{g: m.gatehouse, as: "alice", kind: "taskset", name: name, version: "v1", public: kind == "public"}.all(tasks())
		path := "/api/rubrics/" + name + "?version=v1&visibility=" + kind
		m.do(call{as: "alice", method: http.MethodPut, path: path, body: []byte("Be kind.")}).want(m.tb, http.StatusCreated)
		if kind == "private" {
			for _, plural := range []string{"environments", "tasksets", "rubrics"} {
				m.private("alice", strings.Replace(name, "/", "/"+plural+"/", 1), "rita")
			}
		}
	}
}

// suiteRecord makes an address for an upload of alice's, or a runner of an environment, and gives what names it.
func (m *matrix) suiteRecord(name, n, repository string) string {
	if name == "ticket" {
		var a wire.UploadAddress
		pushing{g: m.gatehouse, as: "alice", kind: "environment", name: "up" + n, version: "v1"}.address("file").want(m.tb, http.StatusOK).into(m.tb, &a)
		_, ticket, _ := strings.Cut(a.URL, "ticket=")
		return ticket
	}
	var r wire.RegisteredRunner
	m.send("alice", http.MethodPost, "/api/environments/"+repository+"/runners", wire.NewRunner{Address: "http://box" + n}).want(m.tb, http.StatusCreated).into(m.tb, &r)
	return r.ID
}
