package server_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/api/wire"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
	"github.com/gatehouse-registry/gatehouse/registry/handover"
	"github.com/gatehouse-registry/gatehouse/registry/oci"
	"github.com/gatehouse-registry/gatehouse/registry/server"
)

// accessFile is the authorization matrix. Its head says how it reads.
const accessFile = "testdata/access.txt"

// callers are the columns of the matrix.
var callers = [...]string{"", "vera", "audrey", "rita", "bob", "alice", "alice+pull", "alice+push", "admin", aNode, aLaunch}

// The node of the matrix, and what it asks with after it showed the receipt of a job that uses the pack of kind "pack".
const aNode, aLaunch = "node/box", "its grant"

// access is a line of the matrix. In path and body {name} is what the line's request is about.
type access struct {
	method, path, kind, body string
	want                     [len(callers)]int
	at                       int // the line in the file
}

func (a access) String() string {
	return fmt.Sprintf("%s:%d: %s %s %s", accessFile, a.at, a.method, a.path, a.kind)
}

// repositories are the kinds of repository of the matrix; {n} is a number that no other request has.
var repositories = map[string]string{
	"public": "alice/public", "open": "alice/o/image", "private": "alice/private", "closed": "alice/o/private", "absent": "alice/absent{n}",
	"unmade": "alice/o/absent{n}", "pack": "alice/pack", "secret": "alice/secret", "prompt": "admin/prompt", "-": "",
}

// asAbsent are pairs of kinds of repository that nobody can tell apart who may not read the first.
var asAbsent = map[string]string{"private": "absent", "closed": "unmade", "secret": "absent"}

// readAccess reads the matrix.
func readAccess(tb testing.TB) (table []access, lines []string) {
	tb.Helper()
	src, err := os.ReadFile(accessFile)
	if err != nil {
		tb.Fatal(err)
	}
	lines = strings.Split(string(src), "\n")
	for i, line := range lines {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		head, rest, ok := strings.Cut(line, " :")
		fields := strings.Fields(head)
		if _, known := repositories[fields[len(fields)-1]]; !ok || len(fields) != 3 || !known {
			tb.Fatalf("%s:%d: %s", accessFile, i+1, line)
		}
		a := access{method: fields[0], path: fields[1], kind: fields[2], at: i + 1}
		statuses, body, _ := strings.Cut(rest, "|")
		a.body = strings.TrimSpace(body)
		numbers := strings.Fields(statuses)
		if len(numbers) != len(callers) && !*server.Update {
			tb.Fatalf("%v: %d statuses, want %d", a, len(numbers), len(callers))
		}
		for j, n := range numbers {
			if a.want[j], err = strconv.Atoi(n); err != nil {
				tb.Fatalf("%v: %v", a, err)
			}
		}
		table = append(table, a)
	}
	return table, lines
}

// matrix is a registry with everything that the matrix asks about.
type matrix struct {
	*gatehouse
	manifests  map[string]string // of the packs, by repository
	layers     map[string]string
	pack       wire.Plugin
	n          int
	forge, tun string
	launched   string // the job of the grant
}

func startMatrix(t *testing.T) *matrix {
	nowhere := handover.Directory{Path: filepath.Join(t.TempDir(), "nothing")} // so that there is always something to retry
	g := startGatehouse(t, func(s *setup) {
		s.config.AnonymousRead = []string{"alice/o/**"}
		s.change = func(d *registry.Deps) {
			d.Handover = []registry.HandoverTarget{{Name: "platform", To: nowhere, Timeout: time.Minute, GiveUp: time.Hour}}
		}
	})
	m := &matrix{gatehouse: g, manifests: map[string]string{}, layers: map[string]string{}, forge: jobSpec(t, dialect.Forge, "a"), tun: jobSpec(t, dialect.TunePlane, "a")}
	g.addAccount("rita", auth.Viewer)
	g.robot("alice", "pull", scope("alice/**", auth.Pull))
	g.robot("alice", "push", scope("alice/**", auth.Pull, auth.Push, auth.Delete))
	for _, kind := range []string{"public", "open", "private", "closed"} {
		g.image("alice", repositories[kind], "v1")
		g.pushBlob("alice", repositories[kind], []byte("blob"))
	}
	for as, names := range map[string][]string{"alice": {"pack", "secret"}, "admin": {"prompt"}} {
		for _, name := range names {
			files := algorithm(name, "1.0.0")
			if name == "prompt" {
				files = policyPack("prompt", "prompt")
			}
			v := g.published(as, files)
			r := g.do(call{as: "admin", method: http.MethodGet, path: "/v2/" + as + "/" + name + "/manifests/" + v.ManifestDigest}).want(t, http.StatusOK)
			var manifest struct{ Layers []struct{ Digest string } }
			r.into(t, &manifest)
			if name == "pack" {
				m.pack = v
			}
			m.manifests[as+"/"+name], m.layers[as+"/"+name] = v.ManifestDigest, manifest.Layers[0].Digest
		}
	}
	for _, kind := range []string{"private", "closed", "secret"} {
		g.private("alice", repositories[kind], "rita")
	}
	m.suites()
	m.launched = g.submitted("alice", jobSpec(t, dialect.Forge, "a", pinned(m.pack)))
	g.node("box")
	g.tokens[aLaunch] = g.granted(aNode, m.launched)
	return m
}

// policyPack is a playbook or a prompt.
func policyPack(kind, name string) map[string]string {
	return map[string]string{"plugin.yaml": "schema: forge/plugin/v1\nname: " + name + "\nversion: \"1\"\nkind: " + kind + "\n", "README.md": "text\n"}
}

// request makes the request of a line for one caller.
func (m *matrix) request(a access, as string) (c call, repository string) {
	m.n++
	n := strconv.Itoa(m.n)
	repository = strings.ReplaceAll(repositories[a.kind], "{n}", n)
	fill := func(text string) string {
		return placeholder.ReplaceAllStringFunc(text, func(name string) string { return m.value(strings.Trim(name, "{}"), n, repository, as, a) })
	}
	c = call{as: as, method: a.method, path: fill(a.path), header: map[string]string{}}
	switch a.body {
	case "@code":
		c.body = archiveOf(m.tb, algorithm("p"+n, "1.0.0"))
	case "@playbook", "@prompt":
		c.body = archiveOf(m.tb, policyPack(a.body[1:], a.body[1:]+n))
	case "@image":
		c.header["Content-Type"] = imageManifest
		c.body = corpusFile(m.tb, "m01-empty-layers.json")
		if m.server.Service().MayPush(m.tb.Context(), auth.Principal{Account: as, Role: auth.Operator}, repository) == nil || as == "admin" || as == "alice+push" {
			m.pushBlob("alice", repository, []byte("{}"))
		}
	case "@snapshot", "@forge", "@preview", "@commit", "@statement", "@receipt":
		c.body = []byte(m.value(a.body[1:], n, repository, as, a))
	default:
		c.body = []byte(fill(a.body))
	}
	if as == aLaunch {
		c.header["Authorization"] = "Bearer " + m.tokens[as]
	}
	return c, repository
}

var placeholder = regexp.MustCompile(`\{\w+\}`)

// value is what a placeholder stands for. What a DELETE removes is made for it.
func (m *matrix) value(name, n, repository, as string, a access) string {
	_, isPack := m.manifests[repository]
	fresh := a.method == http.MethodDelete && !isPack && !strings.Contains(a.kind, "absent") && a.kind != "unmade"
	switch name {
	case "n":
		return n
	case "repo":
		return repository
	case "empty":
		return digest.FromBytes([]byte("{}")).String()
	case "blob":
		switch {
		case isPack:
			return m.layers[repository]
		case fresh:
			m.pushBlob("alice", repository, []byte("blob "+n))
			return digest.FromBytes([]byte("blob " + n)).String()
		}
		return digest.FromBytes([]byte("blob")).String()
	case "tag", "manifest":
		return m.manifest(name, n, repository, isPack, fresh)
	case "upload":
		path := "/v2/" + repository + "/blobs/uploads/"
		r := m.do(call{as: as, method: http.MethodPost, path: path})
		if r.status != http.StatusAccepted {
			r = m.do(call{as: "alice", method: http.MethodPost, path: path}).want(m.tb, http.StatusAccepted)
		}
		return r.header.Get("Docker-Upload-Uuid")
	}
	if name == "ticket" || name == "runner" {
		return m.suiteRecord(name, n, repository)
	}
	return m.record(name, n)
}

func (m *matrix) manifest(name, n, repository string, isPack, fresh bool) string {
	image := corpusFile(m.tb, "m01-empty-layers.json")
	tag, d := "v1", digest.FromBytes(image).String()
	switch {
	case isPack:
		tag, d = "1.0.0", m.manifests[repository]
	case fresh:
		image = []byte(strings.Replace(string(image), "schemaVersion", `annotations": {"n": "`+n+`"}, "schemaVersion`, 1))
		tag, d = "v"+n, digest.FromBytes(image).String()
		m.putManifest("alice", repository, tag, imageManifest, image).want(m.tb, http.StatusCreated)
	}
	if name == "tag" {
		return tag
	}
	return d
}

// record makes something of alice's that a request is about, and gives its name.
func (m *matrix) record(name, n string) string {
	switch name {
	case "job":
		return m.submitted("alice", m.forge)
	case "launched":
		return m.launched
	case "node":
		m.send("admin", http.MethodPost, "/api/nodes", wire.NewNode{Name: "gone" + n}).want(m.tb, http.StatusCreated)
		return "gone" + n
	case "key":
		return strings.ReplaceAll(newKey(m.tb), "\n", `\n`)
	case "version":
		return m.published("admin", algorithm("revoked"+n, "1.0.0")).ID
	case "run":
		return m.recorded("alice", m.launched)
	case "statement":
		return string(m.statement("alice", m.launched))
	case "receipt":
		return string(m.get("alice", "/api/jobs/"+m.launched+"/receipt").want(m.tb, http.StatusOK).body)
	case "packed":
		_, r := m.sendAs("alice", dialect.Forge, m.forge)
		var job wire.Submitted
		r.want(m.tb, http.StatusOK).into(m.tb, &job)
		return job.RunID
	case "token":
		return tokenOfAlice(m.gatehouse, n)
	case "session":
		return m.session("alice").Session
	case "package":
		return packageUpload(m.gatehouse, n)
	case "robot":
		return m.robot("alice", "gone"+n, scope("alice/x", auth.Pull))
	case "namespace":
		m.send("admin", http.MethodPut, "/api/admin/namespaces", wire.Namespace{Pattern: "gone" + n, Owner: "alice"}).want(m.tb, http.StatusOK)
		return "gone" + n
	case "snapshot":
		return snapshot(m.gatehouse, n)
	case "forge":
		return m.forge
	case "preview":
		return previewBody(m.tun)
	case "commit":
		p := m.previewed("alice", m.tun)
		return fmt.Sprintf(`{"preview_id":%q,"digest":%q,"key":%q}`, p.ID, p.Digest, n)
	}
	m.tb.Fatalf("%s: nobody knows {%s}", accessFile, name)
	return ""
}

// snapshot is the default release of sf as an administrator imports it.
func snapshot(g *gatehouse, _ string) string {
	var answer struct{ Recipes json.RawMessage }
	g.get("admin", "/sf/api/recipes").want(g.tb, http.StatusOK).into(g.tb, &answer)
	return `{"recipes":` + string(answer.Recipes) + `,"bundled_plugins":[]}`
}

func tokenOfAlice(g *gatehouse, _ string) string {
	var t wire.Token
	g.send("alice", http.MethodPost, "/api/tokens", map[string]string{}).want(g.tb, http.StatusCreated).into(g.tb, &t)
	return t.ID
}

func packageUpload(g *gatehouse, _ string) string {
	var u struct{ ID string }
	g.send("alice", http.MethodPost, "/api/submissions/uploads", map[string]any{"digest": digest.FromBytes([]byte("package")).Hex(), "size": 7}).want(g.tb, http.StatusCreated).into(g.tb, &u)
	return u.ID
}

// TestAccess walks the matrix whole (invariant 9). A private repository answers who may not read it, to the byte, as one that
// is absent.
func TestAccess(t *testing.T) {
	m := startMatrix(t)
	table, lines := readAccess(t)
	covered(t, table)
	answers := map[string]string{} // by line without its kind, kind and caller
	for _, a := range table {
		var got [len(callers)]int
		for i, as := range callers {
			c, repository := m.request(a, as)
			r := m.do(c)
			got[i] = r.status
			if r.status != a.want[i] && !*server.Update {
				t.Errorf("%v as %q: status %d, want %d: %.300s", a, as, r.status, a.want[i], r.body)
			}
			checkRefusal(t, c, r)
			answers[a.key(a.kind, as)] = seen(r, repository)
		}
		if *server.Update {
			lines[a.at-1] = a.line(got)
		}
	}
	for _, a := range table {
		twin, ok := asAbsent[a.kind]
		if !ok {
			continue
		}
		for _, as := range []string{"", "vera", "bob"} {
			if want, ok := answers[a.key(twin, as)]; ok && answers[a.key(a.kind, as)] != want {
				t.Errorf("%v as %q: answers\n%s\nan absent repository\n%s", a, as, answers[a.key(a.kind, as)], want)
			}
		}
	}
	t.Logf("%d requests of %d lines", m.n, len(table))
	if *server.Update {
		if err := os.WriteFile(accessFile, []byte(strings.Join(lines, "\n")), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func (a access) key(kind, as string) string {
	return strings.Join([]string{a.method, a.path, a.body, kind, as}, "\x00")
}

// line is how a line of the file is written.
func (a access) line(statuses [len(callers)]int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-6s %s %s :", a.method, a.path, a.kind)
	for _, s := range statuses {
		fmt.Fprintf(&b, " %d", s)
	}
	if a.body != "" {
		b.WriteString(" | " + a.body)
	}
	return b.String()
}

// seen is all that a client sees of an answer, with what differs between two requests of one kind taken out.
func seen(r reply, repository string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d\n", r.status)
	for _, name := range slices.Sorted(maps.Keys(r.header)) {
		if name != "Date" && name != "X-Request-Id" && name != "Content-Length" && name != "Docker-Upload-Uuid" && name != "Location" {
			fmt.Fprintf(&b, "%s: %s\n", name, r.header[name])
		}
	}
	b.Write(withoutID(r.body))
	text := b.String()
	if repository != "" {
		owner, name, _ := strings.Cut(repository, "/")
		text = strings.ReplaceAll(text, repository, "REPOSITORY")
		text = strings.ReplaceAll(text, owner+"%2F"+name, "REPOSITORY")
		for _, plural := range []string{"environments", "tasksets", "rubrics"} {
			text = strings.ReplaceAll(text, owner+"/"+plural+"/"+name, "REPOSITORY")
		}
	}
	return digestText.ReplaceAllString(text, "DIGEST")
}

var digestText = regexp.MustCompile(`sha256:[0-9a-f]{64}|"(v[0-9]+|1\.0\.0)"|\\"(v[0-9]+|1\.0\.0)\\"`)

func checkRefusal(t *testing.T, c call, r reply) {
	t.Helper()
	if r.status >= 400 && c.method != http.MethodHead {
		if _, err := refusalOf(c.path, r); err != nil {
			t.Errorf("%s %s as %q: %v", c.method, c.path, c.as, err)
		}
	}
	if r.status == http.StatusUnauthorized && r.header.Get("WWW-Authenticate") == "" {
		t.Errorf("%s %s: 401 without a challenge", c.method, c.path)
	}
}

// covered requires that the matrix has every route of the list and every kind of request of the protocol.
func covered(t *testing.T, table []access) {
	t.Helper()
	asked := map[oci.Kind]bool{}
	for _, a := range table {
		path := strings.NewReplacer("{repo}", "a/b", "{upload}", "00", "{tag}", "t", "{n}", "1").Replace(a.path)
		path = placeholder.ReplaceAllString(path, digest.FromBytes(nil).String())
		if u, err := url.Parse(path); err == nil {
			if q, err := oci.Parse(a.method, u); err == nil {
				asked[q.Kind] = true
			}
		}
	}
	for k := range oci.Kinds {
		if !asked[k] {
			t.Errorf("no line of %s is a request of kind %d of package oci", accessFile, k)
		}
	}
	parameter := regexp.MustCompile(`[:*]\w+`)
	for _, r := range server.Routes() {
		pattern := regexp.MustCompile("^" + parameter.ReplaceAllString(r.Path, ".+") + "$")
		if !slices.ContainsFunc(table, func(a access) bool {
			path, _, _ := strings.Cut(a.path, "?")
			return a.method == r.Method && pattern.MatchString(strings.ReplaceAll(path, "{repo}", "a/b"))
		}) {
			t.Errorf("%s %s is not in %s", r.Method, r.Path, accessFile)
		}
	}
}
