package server_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-registry/gatehouse/registry/api/wire"
)

// shop is a forge environment.
var shop = map[string]string{
	"manifest.json": `{"schema": "forge/environment/v1", "protocol": "openenv", "verifier": {"kind": "plugin", "ref": "alice/judge"}, "zzz": 1}`,
	"tasks.jsonl":   "{\"id\": \"t1\", \"prompt\": \"p\"}\n{\"id\": \"t2\", \"prompt\": \"q\", \"split\": \"eval\"}\n",
	"lib/help.py":   "def help(): pass\n",
	"empty":         "",
}

// tasks is a taskset of one task.
func tasks() map[string]string {
	files := map[string]string{"one/task.toml": "name = 'one'\n", "one/instruction.md": "do\n"}
	rows := []string{}
	for _, name := range []string{"instruction.md", "task.toml"} {
		rows = append(rows, fmt.Sprintf(`{"name":%q,"sha256":%q,"size":%d}`, name, hexSum(files["one/"+name]), len(files["one/"+name])))
	}
	files["taskset.json"] = fmt.Sprintf(`{"schema":"tuneplane/taskset/v1","format":"harbor","tasks":[{"id":"one","path":"one","split":"eval","sha256":%q}]}`, hexSum("["+strings.Join(rows, ",")+"]"))
	return files
}

func hexSum(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// with is a copy of files with one more, or another one.
func withFile(files map[string]string, name, text string) map[string]string {
	files = maps.Clone(files)
	files[name] = text
	return files
}

func indexOf(files map[string]string) []byte {
	var rows []wire.SuiteFile
	for _, name := range slices.Sorted(maps.Keys(files)) {
		rows = append(rows, wire.SuiteFile{Name: name, Size: int64(len(files[name])), SHA256: hexSum(files[name])})
	}
	b, err := json.Marshal(map[string]any{"files": rows})
	if err != nil {
		panic(err) // texts and numbers only
	}
	return b
}

// pushing is a push as the real clients make it.
type pushing struct {
	g             *gatehouse
	as            string
	kind          string // environment or taskset
	name, version string
	public        bool
}

// address asks for the address of one upload.
func (p pushing) address(file string) reply {
	p.g.tb.Helper()
	in := map[string]string{p.kind: p.name, "version": p.version, "filename": file}
	if p.public {
		in["visibility"] = "public"
	}
	return p.g.send(p.as, http.MethodPost, "/api/"+p.kind+"s/upload-url", in)
}

// put uploads a file by an address, as nobody.
func (p pushing) put(address reply, text string) reply {
	p.g.tb.Helper()
	var a wire.UploadAddress
	address.want(p.g.tb, http.StatusOK).into(p.g.tb, &a)
	u, err := url.Parse(a.URL)
	if err != nil || !strings.HasPrefix(a.URL, p.g.url+"/") {
		p.g.tb.Fatalf("upload_url %q is not below %q", a.URL, p.g.url)
	}
	return p.g.do(call{method: http.MethodPut, path: u.RequestURI(), body: []byte(text), header: a.Headers})
}

// file uploads one file.
func (p pushing) file(name, text string) reply {
	p.g.tb.Helper()
	return p.put(p.address(name), text)
}

// files uploads all files but the index.
func (p pushing) files(files map[string]string) {
	p.g.tb.Helper()
	for name, text := range files {
		p.file(name, text).want(p.g.tb, http.StatusOK)
	}
}

// all pushes whole.
func (p pushing) all(files map[string]string) {
	p.g.tb.Helper()
	p.files(files)
	p.file("index.json", string(indexOf(files))).want(p.g.tb, http.StatusOK)
}

// environmentIDs are what an account sees listed.
func (g *gatehouse) environmentIDs(as string) []string {
	g.tb.Helper()
	var list wire.EnvironmentList
	g.get(as, "/api/environments").want(g.tb, http.StatusOK).into(g.tb, &list)
	ids := []string{}
	for _, row := range list.Environments {
		ids = append(ids, fmt.Sprintf("%s %s %v", row.ID, row.Visibility, row.Versions))
	}
	return ids
}

func TestEnvironmentPush(t *testing.T) {
	t.Parallel()
	g := startGatehouse(t)
	p := pushing{g: g, as: "alice", kind: "environment", name: "Web-Shop", version: "v1"}
	p.files(shop)
	if got := g.environmentIDs("alice"); len(got) != 0 {
		t.Errorf("before the seal alice sees %v", got)
	}
	g.get("alice", "/api/environments/alice/Web-Shop/manifest").want(t, http.StatusNotFound)
	p.file("index.json", string(indexOf(shop))).want(t, http.StatusOK)

	if diff := cmp.Diff([]string{"alice/Web-Shop private [v1]"}, g.environmentIDs("alice")); diff != "" {
		t.Errorf("what alice sees (-want +got):\n%s", diff)
	}
	for _, as := range []string{"bob", "vera"} {
		if got := g.environmentIDs(as); len(got) != 0 {
			t.Errorf("%s sees %v", as, got)
		}
		absent := g.get(as, "/api/environments/alice/Web-Xhop/manifest").want(t, http.StatusNotFound)
		private := g.get(as, "/api/environments/alice/Web-Shop/manifest").want(t, http.StatusNotFound)
		if got, want := detailOf(t, private), strings.ReplaceAll(detailOf(t, absent), "Web-Xhop", "Web-Shop"); got != want {
			t.Errorf("%s is told %q, of what is absent %q", as, got, want)
		}
	}
	if got := g.environmentIDs("admin"); len(got) != 1 {
		t.Errorf("an administrator sees %v", got)
	}

	var manifest map[string]any
	g.get("alice", "/api/environments/alice/Web-Shop/manifest?version=v1").want(t, http.StatusOK).into(t, &manifest)
	want := map[string]any{"schema": "forge/environment/v1", "protocol": "openenv", "verifier": map[string]any{"kind": "plugin", "ref": "alice/judge"},
		"tools": []any{}, "sandbox": map[string]any{"required": false}}
	if diff := cmp.Diff(want, manifest); diff != "" {
		t.Errorf("manifest (-want +got):\n%s", diff)
	}
	g.get("alice", "/api/environments/alice/Web-Shop/manifest?version=v2").want(t, http.StatusNotFound)
	g.get("alice", "/api/environments/alice/web-shop/manifest").want(t, http.StatusNotFound) // another name

	var info wire.Suite
	g.get("alice", "/api/environments/alice/Web-Shop").want(t, http.StatusOK).into(t, &info)
	oci := g.get("alice", "/v2/alice/environments/web-shop/manifests/v1").want(t, http.StatusOK)
	var image struct {
		ArtifactType string `json:"artifactType"`
		Layers       []struct {
			Digest      string            `json:"digest"`
			Annotations map[string]string `json:"annotations"`
		} `json:"layers"`
	}
	oci.into(t, &image)
	if image.ArtifactType != "application/vnd.gatehouse.environment.v1" || len(image.Layers) != len(shop) || info.Reference != "alice/environments/web-shop:v1" {
		t.Errorf("the artifact is %s with %d layers, reference %s", image.ArtifactType, len(image.Layers), info.Reference)
	}
	for _, l := range image.Layers {
		name := l.Annotations["org.opencontainers.image.title"]
		r := g.get("alice", "/v2/alice/environments/web-shop/blobs/"+l.Digest).want(t, http.StatusOK)
		if string(r.body) != shop[name] {
			t.Errorf("layer %q is %q, want %q", name, r.body, shop[name])
		}
	}
	g.get("bob", "/v2/alice/environments/web-shop/manifests/v1").want(t, http.StatusNotFound)
}

// detailOf is the text of a refusal.
func detailOf(t *testing.T, r reply) string {
	t.Helper()
	var body struct{ Detail string }
	r.into(t, &body)
	return body.Detail
}

// TestUnsealedFileStays: what was uploaded for a version that is not sealed yet is no blob that its owner deletes, or the seal would
// promise files that nobody can pull.
func TestUnsealedFileStays(t *testing.T) {
	t.Parallel()
	g := startGatehouse(t)
	files := withFile(shop, "large.bin", strings.Repeat("large", 50_000))
	p := pushing{g: g, as: "alice", kind: "environment", name: "shop", version: "v1"}
	p.files(files)
	blob := func(method, name string) reply {
		return g.do(call{as: "alice", method: method, path: "/v2/alice/environments/shop/blobs/sha256:" + hexSum(files[name])})
	}
	for name := range files {
		blob(http.MethodDelete, name).want(t, http.StatusMethodNotAllowed)
	}
	p.file("index.json", string(indexOf(files))).want(t, http.StatusOK)
	for name, text := range files {
		if got := blob(http.MethodGet, name).want(t, http.StatusOK); string(got.body) != text {
			t.Errorf("%s: %d bytes", name, len(got.body))
		}
		blob(http.MethodDelete, name).want(t, http.StatusMethodNotAllowed)
	}
}

func TestSealedVersionStays(t *testing.T) {
	t.Parallel()
	g := startGatehouse(t)
	p := pushing{g: g, as: "alice", kind: "environment", name: "alice/shop", version: "1.0", public: true}
	late := p.address("late.txt")
	again := p.address("manifest.json")
	p.files(shop)
	seal := p.address("index.json")
	p.put(seal, string(indexOf(shop))).want(t, http.StatusOK)
	p.put(seal, string(indexOf(shop))).want(t, http.StatusOK) // a client that lost the answer
	p.put(seal, `{"files": []}`).want(t, http.StatusConflict)
	p.put(late, "late").want(t, http.StatusConflict)
	p.put(again, "{}").want(t, http.StatusConflict)
	for _, version := range []string{"1.0", "1.0.0", "v1.0"} {
		other := p
		other.version = version
		for _, file := range []string{"manifest.json", "index.json"} {
			if got := detailOf(t, other.address(file).want(t, http.StatusConflict)); !strings.Contains(got, "1.0") {
				t.Errorf("%s of %s: %q does not name the sealed version", file, version, got)
			}
		}
	}
	if diff := cmp.Diff([]string{"alice/shop public [1.0]"}, g.environmentIDs("bob")); diff != "" {
		t.Errorf("what bob sees (-want +got):\n%s", diff)
	}
	path := "/v2/alice/environments/shop/manifests/"
	text := g.get("alice", path+"1.0").want(t, http.StatusOK)
	g.do(call{as: "alice", method: http.MethodPut, path: path + "1.0", body: text.body, header: map[string]string{"Content-Type": imageManifest}}).want(t, http.StatusCreated)
	image := corpusFile(t, "m01-empty-layers.json")
	g.pushBlob("alice", "alice/environments/shop", []byte("{}"))
	g.putManifest("alice", "alice/environments/shop", "1.0", imageManifest, image).want(t, http.StatusConflict)
	g.putManifest("alice", "alice/environments/shop", "mine", imageManifest, image).want(t, http.StatusForbidden)
	g.do(call{as: "admin", method: http.MethodDelete, path: path + "1.0"}).want(t, http.StatusMethodNotAllowed)
	g.do(call{as: "admin", method: http.MethodDelete, path: path + text.header.Get("Docker-Content-Digest")}).want(t, http.StatusMethodNotAllowed)
	p.version = "2.0"
	p.public = false
	p.all(shop)
	if diff := cmp.Diff([]string{"alice/shop public [2.0 1.0]"}, g.environmentIDs("bob")); diff != "" {
		t.Errorf("what bob sees of two versions (-want +got):\n%s", diff)
	}
	other := pushing{g: g, as: "alice", kind: "environment", name: "Shop", version: "3"}
	other.address("manifest.json").want(t, http.StatusConflict)
	var plugins wire.PluginList
	g.get("alice", "/api/plugins").want(t, http.StatusOK).into(t, &plugins)
	if len(plugins.Plugins) != 0 {
		t.Errorf("the list of plugins has %v", plugins.Plugins)
	}
	g.published("alice", algorithm("shop", "1.0.0")) // a pack of the same name
}

func TestUploadRefusals(t *testing.T) {
	t.Parallel()
	g := startGatehouse(t)
	p := pushing{g: g, as: "alice", kind: "environment", name: "shop", version: "v1"}
	for _, test := range []struct {
		what   string
		change func(*pushing)
		file   string
		status int
	}{
		{"another's namespace", func(p *pushing) { p.name = "bob/shop" }, "a", http.StatusForbidden},
		{"a viewer", func(p *pushing) { p.as = "vera" }, "a", http.StatusForbidden},
		{"no name", func(p *pushing) { p.name = "a/b/c" }, "a", http.StatusUnprocessableEntity},
		{"an empty name", func(p *pushing) { p.name = "" }, "a", http.StatusUnprocessableEntity},
		{"a name that is none", func(p *pushing) { p.name = "a..b" }, "a", http.StatusBadRequest},
		{"a way up", func(p *pushing) { p.name = ".." }, "a", http.StatusUnprocessableEntity},
		{"a reserved owner", func(p *pushing) { p.as, p.name = "admin", "tuneplane/x" }, "a", http.StatusUnprocessableEntity},
		{"no version", func(p *pushing) { p.version = "" }, "a", http.StatusUnprocessableEntity},
		{"latest", func(p *pushing) { p.version = "latest" }, "a", http.StatusUnprocessableEntity},
		{"a version with a slash", func(p *pushing) { p.version = "a/b" }, "a", http.StatusUnprocessableEntity},
		{"no file", nil, "", http.StatusUnprocessableEntity},
		{"a file outside", nil, "../x", http.StatusUnprocessableEntity},
		{"a file in the middle outside", nil, "a/../../x", http.StatusUnprocessableEntity},
		{"an absolute file", nil, "/etc/passwd", http.StatusUnprocessableEntity},
		{"a backslash", nil, `a\b`, http.StatusUnprocessableEntity},
		{"a line break", nil, "a\nb", http.StatusUnprocessableEntity},
		{"a long name", nil, strings.Repeat("a/", 600) + "x", http.StatusRequestEntityTooLarge},
		{"a long element", nil, strings.Repeat("a", 300), http.StatusRequestEntityTooLarge},
		{"an index of nothing", nil, "index.json", http.StatusUnprocessableEntity},
	} {
		q := p
		if test.change != nil {
			test.change(&q)
		}
		if r := q.address(test.file); r.status != test.status {
			t.Errorf("%s: status %d, want %d: %s", test.what, r.status, test.status, r.body)
		}
	}
	var a wire.UploadAddress
	p.address("a").want(t, http.StatusOK).into(t, &a)
	put := func(address string) int {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		return g.do(call{method: http.MethodPut, path: u.RequestURI(), body: []byte("x")}).status
	}
	for at := strings.Index(a.URL, "=") + 1; at < len(a.URL); at++ {
		other := byte('A')
		if a.URL[at] == other {
			other = 'B'
		}
		if got := put(a.URL[:at] + string(other) + a.URL[at+1:]); got != http.StatusForbidden {
			t.Errorf("an address whose byte %d is another: status %d", at, got)
		}
	}
	g.ahead.Add(int64(16 * 60 * 1e9))
	if got := put(a.URL); got != http.StatusForbidden {
		t.Errorf("an address that has expired: status %d", got)
	}
	g.ahead.Add(-int64(16 * 60 * 1e9))
	g.do(call{as: "admin", method: http.MethodPatch, path: "/api/admin/users/alice/disabled?disabled=true"}).want(t, http.StatusOK)
	if got := put(a.URL); got != http.StatusForbidden {
		t.Errorf("an address of an account that is disabled: status %d", got)
	}
}

func TestSealRefusals(t *testing.T) {
	t.Parallel()
	g := startGatehouse(t)
	p := pushing{g: g, as: "alice", kind: "environment", name: "shop", version: "v1"}
	p.files(shop)
	for what, files := range map[string]map[string]string{
		"a file that was not uploaded": withFile(shop, "more.txt", "more"),
		"another content":              withFile(shop, "lib/help.py", "def help(): evil\n"),
	} {
		if got := detailOf(t, p.file("index.json", string(indexOf(files))).want(t, http.StatusUnprocessableEntity)); !strings.Contains(got, "more.txt") && !strings.Contains(got, "lib/help.py") {
			t.Errorf("%s: %q does not name the file", what, got)
		}
	}
	lie := strings.Replace(string(indexOf(shop)), `"size":17`, `"size":18`, 1)
	p.file("index.json", lie).want(t, http.StatusUnprocessableEntity)
	for what, index := range map[string]string{
		"no JSON": "x", "no object": "[]", "no files": "{}", "a lone name": `{"files": ["a"]}`, "a way up": `{"files": [{"name": "../a", "size": 0, "sha256": "` + hexSum("") + `"}]}`,
		"a name twice": strings.Replace(string(indexOf(shop)), `[{`, `[{"name":"empty","size":0,"sha256":"`+hexSum("")+`"},{`, 1),
		"deep":         strings.Repeat("[", 5000), "a negative size": strings.Replace(string(indexOf(shop)), `"size":0`, `"size":-1`, 1),
		"no manifest": string(indexOf(map[string]string{"tasks.jsonl": shop["tasks.jsonl"]})), "no tasks": string(indexOf(map[string]string{"manifest.json": shop["manifest.json"]})),
	} {
		if r := p.file("index.json", index); r.status/100 != 4 {
			t.Errorf("%s: status %d: %s", what, r.status, r.body)
		}
	}
	var many strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&many, `,{"name":"f%d","size":0,"sha256":"%s"}`, i, hexSum(""))
	}
	p.put(p.address("index.json"), `{"files":[`+many.String()[1:]+`]}`).want(t, http.StatusRequestEntityTooLarge)

	bad := pushing{g: g, as: "alice", kind: "environment", name: "bad", version: "v1"}
	bad.files(withFile(withFile(shop, "manifest.json", `{"schema": "forge/environment/v1", "protocol": "gym"}`), "tasks.jsonl", "{\"id\": \"t1\"}\n\nx\n"))
	r := bad.address("index.json").want(t, http.StatusBadRequest) // where the client still shows what is wrong
	for _, text := range []string{"manifest.json:1:", "environment.protocol", "environment.verifier", "tasks.jsonl:1:", "tasks.row", "tasks.jsonl:3:"} {
		if got := detailOf(t, r); !strings.Contains(got, text) {
			t.Errorf("the refusal lacks %q: %s", text, got)
		}
	}
	if got := g.environmentIDs("admin"); len(got) != 0 {
		t.Errorf("what was refused is listed: %v", got)
	}
	var names struct{ Repositories []string }
	g.get("admin", "/v2/_catalog").want(t, http.StatusOK).into(t, &names)
	if len(names.Repositories) != 0 {
		t.Errorf("what was refused is in the catalogue: %v", names.Repositories)
	}
	p.file("index.json", string(indexOf(shop))).want(t, http.StatusOK) // and the push goes on where it was
}

// TestUploadsAtOnce pushes as the real clients do, 32 files at a time, while others ask for the same version.
func TestUploadsAtOnce(t *testing.T) {
	t.Parallel()
	g := startGatehouse(t)
	files := maps.Clone(shop)
	for i := range 200 {
		files[fmt.Sprintf("d%d/f%d", i%7, i)] = strings.Repeat(fmt.Sprint(i), 1+i*37)
	}
	p := pushing{g: g, as: "alice", kind: "environment", name: "many", version: "v1"}
	var pushes sync.WaitGroup
	slots := make(chan struct{}, 32)
	for name, text := range files {
		pushes.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			if r := p.file(name, text); r.status != http.StatusOK {
				t.Errorf("%s: status %d: %s", name, r.status, r.body)
			}
		})
	}
	pushes.Wait()
	p.file("index.json", string(indexOf(files))).want(t, http.StatusOK)
	var info wire.Suite
	g.get("alice", "/api/environments/alice/many").want(t, http.StatusOK).into(t, &info)
	if len(info.Files) != len(files) {
		t.Errorf("the version has %d files, want %d", len(info.Files), len(files))
	}
}

func TestTasksetPush(t *testing.T) {
	t.Parallel()
	g := startGatehouse(t)
	p := pushing{g: g, as: "alice", kind: "taskset", name: "set", version: "v1"}
	p.all(tasks())
	var list wire.TasksetList
	g.get("alice", "/api/tasksets").want(t, http.StatusOK).into(t, &list)
	if len(list.Tasksets) != 1 || list.Tasksets[0].ID != "alice/set" || !slices.Equal(list.Tasksets[0].Versions, []string{"v1"}) {
		t.Errorf("tasksets: %+v", list.Tasksets)
	}
	var info wire.Suite
	g.get("alice", "/api/tasksets/alice/set?version=v1").want(t, http.StatusOK).into(t, &info)
	var summary struct{ Total int }
	if err := json.Unmarshal(info.Document, &summary); err != nil || summary.Total != 1 {
		t.Errorf("summary %s: %v", info.Document, err)
	}
	p.version = "v2"
	changed := withFile(tasks(), "one/instruction.md", "do not\n")
	p.files(changed)
	if got := detailOf(t, p.file("index.json", string(indexOf(changed))).want(t, http.StatusBadRequest)); !strings.Contains(got, "taskset.digest") {
		t.Errorf("a changed task: %q", got)
	}
}
