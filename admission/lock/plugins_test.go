package lock

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/testdata"
)

type vector struct {
	ID    string `json:"id"`
	Input struct {
		Dialect string  `json:"dialect"`
		Op      string  `json:"op"`
		Lock    *string `json:"lock"`
		Base64  string  `json:"lock_base64"`
		ID      string  `json:"id"`
		Entry   struct{ ID, Version, Digest string }
	} `json:"input"`
	Expect struct {
		Plugins   []map[string]any `json:"plugins"`
		LockAfter json.RawMessage  `json:"lock_after"`
		Removed   bool             `json:"removed"`
		Error     *struct{ Text string }
		Crash     string `json:"crash"`
	} `json:"expect"`
}

func (v vector) refused() bool { return v.Expect.Error != nil || v.Expect.Crash != "" }

// source is the lock file of a vector; false when there is none.
func (v vector) source(t *testing.T) ([]byte, bool) {
	t.Helper()
	if v.Input.Base64 != "" {
		src, err := base64.StdEncoding.DecodeString(v.Input.Base64)
		if err != nil {
			t.Fatal(err)
		}
		return src, true
	}
	if v.Input.Lock == nil {
		return nil, false
	}
	return []byte(*v.Input.Lock), true
}

func readVectors(t *testing.T) []vector {
	t.Helper()
	src, err := testdata.FS.ReadFile("vectors/plugins-lock-vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Vectors []vector }
	if err := json.Unmarshal(src, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Vectors) == 0 {
		t.Fatal("no vectors")
	}
	return file.Vectors
}

func TestPluginsLockVectors(t *testing.T) {
	for _, v := range readVectors(t) {
		t.Run(v.ID, func(t *testing.T) {
			d := dialect.TunePlane
			if v.Input.Dialect == "starforge" {
				d = dialect.Forge
			}
			p := Plugins{Dialect: d}
			if src, ok := v.source(t); ok {
				var err error
				if p, err = ParsePlugins(src, d); err != nil {
					if !v.refused() {
						t.Fatalf("refused: %v", err)
					}
					return
				}
			}
			if v.refused() {
				t.Fatalf("accepted; the client answers %v%s", v.Expect.Error, v.Expect.Crash)
			}
			check(t, v, p)
		})
	}
}

// check applies the vector's operation and compares.
func check(t *testing.T, v vector, p Plugins) {
	switch v.Input.Op {
	case "upsert":
		p.Upsert(NewPlugin(v.Input.Entry.ID, v.Input.Entry.Version, v.Input.Entry.Digest))
	case "remove":
		if got := p.Remove(v.Input.ID); got != v.Expect.Removed {
			t.Errorf("removed %v, want %v", got, v.Expect.Removed)
		}
	}
	text, err := p.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if v.Expect.Plugins != nil {
		var file struct{ Plugins []map[string]any }
		if err := json.Unmarshal(text, &file); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(v.Expect.Plugins, file.Plugins); diff != "" {
			t.Errorf("plugins (-want +got)\n%s", diff)
		}
	}
	if v.Expect.LockAfter == nil {
		return
	}
	var want *string
	if err := json.Unmarshal(v.Expect.LockAfter, &want); err != nil {
		t.Fatal(err)
	}
	switch {
	case want == nil && len(p.Entries) > 0:
		t.Errorf("entries are left: %s", text)
	case want != nil:
		if diff := cmp.Diff(*want, string(text)); diff != "" {
			t.Errorf("file (-want +got)\n%s", diff)
		}
	}
}

// Whatever a client would trip over is an error here, and its message says where.
func TestRefusals(t *testing.T) {
	head := `{"apiVersion": "forge/plugins-lock/v1", "plugins": `
	for name, test := range map[string]struct{ src, want string }{
		"nothing":         {"", "line 1, column 1"},
		"byte-order mark": {"\ufeff" + head + `[]}`, "byte-order mark"},
		"text after":      {head + `[]} x`, "line 1"},
		"number as root":  {"1", "object"},
		"no version":      {head + `[{"id": "a/b", "digest": "sha256:1"}]}`, "plugins[0]: missing or empty: version"},
		"all missing":     {head + `[{"id": "a/b", "version": "1", "digest": "d"}, {}]}`, "plugins[1]: missing or empty: id, version, digest"},
		"entry is null":   {head + `[null]}`, "plugins[0]: must be an object"},
		"number as list":  {head + `7}`, "plugins: must be a list, found int"},
		"other dialect":   {`{"apiVersion": "tuneplane/plugins-lock/v1"}`, `apiVersion: found "tuneplane/plugins-lock/v1", expected "forge`},
		"version as list": {`{"apiVersion": ["forge/plugins-lock/v1"]}`, "apiVersion: found list"},
		"deep":            {head + strings.Repeat("[", 20_000), "deep"},
	} {
		_, err := ParsePlugins([]byte(test.src), dialect.Forge)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

// What the clients' reader tolerates is read as they read it.
func TestLeniency(t *testing.T) {
	src := `{"apiVersion": "forge/plugins-lock/v1", "x": NaN, "plugins": [1], "plugins": [{"id": "a/b", "version": 2, "digest": "d", "digest": "e"}]}`
	p, err := ParsePlugins([]byte(src), dialect.Forge)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Entries) != 1 || p.Entries[0].Version() != "2" || p.Entries[0].Digest() != "e" || p.Entries[0].ID() != "a/b" {
		t.Errorf("read %+v", p.Entries)
	}
}

func FuzzPluginsLock(f *testing.F) {
	f.Add(`{"apiVersion": "forge/plugins-lock/v1", "plugins": [{"id": "a/b", "version": "1", "digest": "sha256:00"}]}`)
	f.Add(`{"apiVersion": "forge/plugins-lock/v1", "plugins": [{"id": "b/c", "version": 1.50, "digest": "\ud800"}, {"id": "a/ü", "version": [1], "digest": "x"}]}`)
	f.Fuzz(func(t *testing.T, src string) {
		p, err := ParsePlugins([]byte(src), dialect.Forge)
		if err != nil {
			return
		}
		text, err := p.Encode()
		if err != nil {
			return // a lone surrogate
		}
		again, err := ParsePlugins(text, dialect.Forge)
		if err != nil {
			t.Fatalf("does not read back: %v\n%s", err, text)
		}
		twice, err := again.Encode()
		if err != nil || string(twice) != string(text) {
			t.Fatalf("writing is not stable: %v\n%s\n%s", err, text, twice)
		}
		if len(again.Entries) != len(p.Entries) {
			t.Fatalf("%d entries became %d", len(p.Entries), len(again.Entries))
		}
	})
}
