// Package gatehouse_test holds the shape of the module: which room may import which, and who alone may touch gin,
// SQL and S3 (design: section 1, "Imports point one way").
package gatehouse_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/gatehouse-registry/gatehouse"

// layers orders the rooms: a room may import what lies in a later layer, and itself. Rooms of one layer stand side by
// side and must not import each other. A name that ends in a slash is any room below that folder.
var layers = [][]string{
	{"cli/sf", "cli/demo", "scripts/bench"},
	{"cli"},
	{"cli/"},
	{"registry/server"},
	{"registry/client", "registry/oci", "registry/moving", "registry/handover"},
	{"registry/api", "web"},
	{"registry/api/wire", "registry/httperr", "registry/httpbody", "registry/blobstore", "registry/metastore", "registry/trust", "registry/auth/oidc", "registry/webhook"},
	{"registry"},
	{"registry/auth", "launchverify"},
	{"launchverify/nodecache"},
	{"admission"},
	{"admission/"},
	{"digest"},
	{"testdata", "internal/durable", "internal/pattern", "internal/testservice", "internal/walk"},
}

// only lists who alone may import a module, by prefix of the importing package.
var only = map[string][]string{
	"github.com/gin-gonic/gin":           {"registry/server", "registry/api", "web"},
	"database/sql":                       {"registry/metastore"},
	"html/template":                      {"web"},
	"github.com/minio/minio-go/v7":       {"registry/blobstore/s3", "internal/testservice"},
	"modernc.org/sqlite":                 {"registry/metastore"},
	"github.com/jackc/pgx/v5":            {"registry/metastore", "internal/testservice"},
	"github.com/fergusstrange/":          {"internal/testservice"},
	"github.com/spf13/cobra":             {"cli"},
	"oras.land/oras-go/v2":               {"registry/client", "cli"},
	"github.com/sigstore/sigstore":       {"registry/trust", "admission/receipt"},
	"github.com/pressly/goose/v3":        {"registry/metastore"},
	"github.com/vbauerster/mpb/v8":       {"cli"},
	"golang.org/x/crypto":                {"registry/auth"},
	"github.com/coreos/go-oidc/v3":       {"registry/auth/oidc"},
	"github.com/go-jose/go-jose/v4":      {"registry/auth"},
	"golang.org/x/sys":                   {"launchverify", "cli", "internal/walk"},
	"github.com/klauspost/compress":      {"admission/archive"},
	"github.com/prometheus/":             {"registry/server"},
	"go.opentelemetry.io/":               {"registry/server"},
	"golang.org/x/time":                  {"registry/server"},
	"go.yaml.in/yaml/v4":                 {"admission/pyyaml", "registry/server"},
	"github.com/gowebpki/jcs":            {"digest/canonical"},
	"github.com/hashicorp/golang-lru/v2": {"registry"},
	"github.com/opencontainers/":         {"admission/pack", "registry/client", "registry/oci", "cli"},
	// The control plane runs nothing: what could start or load code is for the client, the agent and test tools. A hand-over
	// runs what an administrator configured, and nothing of a job's.
	"os/exec": {"cli", "launchverify", "registry/internal", "registry/handover", "scripts/bench", "internal/testservice"},
	"plugin":  {},
	// Servers for tests and scripts: no part of the product may start one.
	module + "/internal/testservice":       {"internal/testservice"},
	module + "/registry/server/servertest": {},
}

// never lists what a room must not reach, not even through others.
var never = map[string][]string{
	"digest":       {"net", "net/http", "database/sql"},
	"admission":    {"net/http", "database/sql", "github.com/gin-gonic/gin"},
	"launchverify": {"database/sql", "github.com/gin-gonic/gin", module + "/registry"},
	"registry":     {"net/http", "database/sql", "github.com/gin-gonic/gin"},
}

type goPackage struct {
	ImportPath string
	Imports    []string
	Deps       []string
}

// packages lists the module's packages without their tests.
func packages(t *testing.T) []goPackage {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports,Deps", "./...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []goPackage
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p goPackage
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

// room is the package's path below the module, "" for one of another module.
func room(path string) string {
	if path == module {
		return "."
	}
	r, ok := strings.CutPrefix(path, module+"/")
	if !ok {
		return ""
	}
	return r
}

// place finds the layer of a room, and its name there, by the longest name that fits.
func place(r string) (at int, name string) {
	at = -1
	for i, names := range layers {
		for _, n := range names {
			fits := r == n || strings.HasPrefix(r, strings.TrimSuffix(n, "/")+"/")
			if strings.HasSuffix(n, "/") {
				fits = strings.HasPrefix(r, n)
			}
			if fits && len(n) > len(name) {
				at, name = i, n
			}
		}
	}
	return at, name
}

func layer(r string) int {
	at, _ := place(r)
	return at
}

func name(r string) string {
	_, n := place(r)
	return n
}

func TestImportsPointOneWay(t *testing.T) {
	for _, p := range packages(t) {
		from := room(p.ImportPath)
		if layer(from) < 0 && from != "." {
			t.Errorf("%s has no place in the layers", from)
		}
		for _, imp := range p.Imports {
			to := room(imp)
			switch {
			case to == "":
			case layer(to) < layer(from):
				t.Errorf("%s imports %s, which lies above it", from, to)
			case layer(to) == layer(from) && name(to) != name(from):
				t.Errorf("%s imports %s, which stands beside it", from, to)
			}
		}
	}
}

func TestWhoMayImportWhat(t *testing.T) {
	for _, p := range packages(t) {
		from := room(p.ImportPath)
		for _, imp := range p.Imports {
			for guarded, allowed := range only {
				if !strings.HasPrefix(imp, guarded) {
					continue
				}
				if !slices.ContainsFunc(allowed, func(a string) bool { return from == a || strings.HasPrefix(from, a+"/") }) {
					t.Errorf("%s imports %s, which only %v may", from, imp, allowed)
				}
			}
		}
	}
}

func TestWhatNoRoomReaches(t *testing.T) {
	for _, p := range packages(t) {
		from := room(p.ImportPath)
		for guarded, forbidden := range never {
			inside := from == guarded || strings.HasPrefix(from, guarded+"/")
			if guarded == "registry" {
				inside = from == "registry" // the domain alone; its adapters exist for these
			}
			if !inside {
				continue
			}
			for _, dep := range p.Deps {
				if slices.Contains(forbidden, dep) {
					t.Errorf("%s reaches %s", from, dep)
				}
			}
		}
	}
}
