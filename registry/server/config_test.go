package server

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-registry/gatehouse/registry"
)

func TestLoadConfig(t *testing.T) {
	path := filepath.Join(t.TempDir(), ConfigFile)
	src := `listen: 127.0.0.1:0
profiles:
  - name: a100
    gpus_per_node: 4
image_hosts: [registry.example.org]
warn_rules: [yaml.tag]
limits:
  upload_ttl: 2h
`
	if err := os.WriteFile(path, []byte(src), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := LoadConfig(path, false)
	if err != nil {
		t.Fatal(err)
	}
	set, err := c.settings()
	if err != nil {
		t.Fatal(err)
	}
	want := registry.Profile{Name: "a100", Series: "a100", Nodes: 1, GPUsPerNode: 4}
	if len(set.Profiles) != 1 || set.Profiles[0] != want {
		t.Errorf("profiles = %+v, want %+v", set.Profiles, want)
	}
	if set.UploadTTL != 2*time.Hour || set.LeaseTTL != registry.DefaultSettings().LeaseTTL {
		t.Errorf("upload_ttl = %s, lease_ttl = %s; want the file's and the default", set.UploadTTL, set.LeaseTTL)
	}
	if !set.Policy.Softened("yaml.tag") || set.Policy.Softened("yaml.alias") {
		t.Error("warn_rules did not soften exactly yaml.tag")
	}
}

func TestConfigRefusals(t *testing.T) {
	for name, tc := range map[string]struct{ src, want string }{
		"unknown key":      {"listne: x\n", "listne"},
		"negative limit":   {"limits: {lease_ttl: -1h}\n", "limits.lease_ttl"},
		"fixed rule":       {"warn_rules: [archive.path.parent]\n", "archive.path.parent"},
		"unknown rule":     {"warn_rules: [no.such.rule]\n", "no.such.rule"},
		"nameless profile": {"profiles: [{label: x}]\n", "profiles[0].name"},
		"address":          {"listen: nowhere\n", "listen"},
		"public url":       {"public_url: ftp://x\n", "public_url"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), ConfigFile)
			if err := os.WriteFile(path, []byte(tc.src), 0o600); err != nil {
				t.Fatal(err)
			}
			c, err := LoadConfig(path, false)
			if err == nil {
				_, err = c.settings()
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one that names %q", err, tc.want)
			}
		})
	}
	if _, err := LoadConfig(filepath.Join(t.TempDir(), "absent"), false); err == nil {
		t.Error("a named file that is absent was accepted")
	}
	if _, err := LoadConfig(filepath.Join(t.TempDir(), "absent"), true); err != nil {
		t.Errorf("an optional file that is absent: %v", err)
	}
}

// TestConfigDocument holds that docs/config.md names every key.
func TestConfigDocument(t *testing.T) {
	doc, err := os.ReadFile("../../docs/config.md")
	if err != nil {
		t.Fatal(err)
	}
	var walk func(typ reflect.Type, prefix string)
	walk = func(typ reflect.Type, prefix string) {
		for i := range typ.NumField() {
			f := typ.Field(i)
			key := f.Tag.Get("yaml")
			if key == "-" {
				continue
			}
			if f.Type.Kind() == reflect.Struct {
				walk(f.Type, prefix+key+".")
				continue
			}
			if !strings.Contains(string(doc), "`"+prefix+key+"`") {
				t.Errorf("docs/config.md does not name %s%s", prefix, key)
			}
		}
	}
	walk(reflect.TypeFor[Config](), "")
}
