package server

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-registry/gatehouse/registry"
)

var update = flag.Bool("update", false, "write the documents that are made of the code")

// writeConfig writes a configuration file into a new data directory.
func writeConfig(t *testing.T, src string) (data, path string) {
	t.Helper()
	data = t.TempDir()
	path = filepath.Join(data, ConfigFile)
	if err := os.WriteFile(path, []byte(src), 0o600); err != nil {
		t.Fatal(err)
	}
	return data, path
}

// loadConfig loads a file's text alone.
func loadConfig(t *testing.T, src string) (Config, string, error) {
	t.Helper()
	data, path := writeConfig(t, src)
	c, err := LoadConfig(Input{Flags: map[string]string{"data": data}})
	return c, path, err
}

func TestLoadConfig(t *testing.T) {
	c, _, err := loadConfig(t, `listen: 127.0.0.1:0
profiles:
  - name: a100
    gpus_per_node: 4
image_hosts: [registry.example.org]
warn_rules: [yaml.tag]
limits:
  upload_ttl: 2h
`)
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

// Every key can be set by file, environment and flag, with the same text, and each wins over the one before.
func TestConfigPrecedence(t *testing.T) {
	samples := map[string][3]string{
		"db": {"postgres://a@h/x", "postgres://b@h/x", "postgres://c@h/x"}, "blobs": {"s3://h/a", "s3://h/b", "s3://h/c"},
		"public_url": {"https://a.example", "https://b.example", "https://c.example"}, "trusted_proxies": {"10.0.0.0/8", "10.1.0.0/16", "10.2.0.1"},
		"log_format": {"json", "text", "json"}, "log_level": {"debug", "warn", "error"}, "insecure_http": {"true", "false", "true"},
		"listen": {"127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"}, "metrics_listen": {"127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"},
		"profiles":   {"[{name: a}]", "[{name: b}]", "[{name: c}]"},
		"warn_rules": {"yaml.tag", "yaml.alias", "yaml.tag,yaml.alias"},
		"audit_mode": {"job.quota.gpus", "job.name.length", "job.quota.gpus,job.name.length"},
	}
	for _, k := range Keys() {
		t.Run(k.Name, func(t *testing.T) {
			values, ok := samples[k.Name]
			if !ok {
				var preset Config
				f := k.field(&preset)
				values = [3]string{"11", "12", "13"}
				if f.Kind() == reflect.Bool {
					values = [3]string{"true", "false", "true"}
				}
				if f.Type() == reflect.TypeFor[time.Duration]() {
					values = [3]string{"1h", "2h", "3h"}
				}
				if f.Kind() == reflect.Slice && f.Type().Elem().Kind() == reflect.Struct {
					values = [3]string{"[{}]", "[{}, {}]", "[{}, {}, {}]"}
				}
			}
			file := filepath.Join(t.TempDir(), "f.yaml")
			group, name, nested := strings.Cut(k.Name, ".")
			src := fmt.Sprintf("%s: %s\n", group, values[0])
			if nested {
				src = fmt.Sprintf("%s:\n  %s: %s\n", group, name, values[0])
			}
			if err := os.WriteFile(file, []byte(src), 0o600); err != nil {
				t.Fatal(err)
			}
			in := Input{Flags: map[string]string{"config": file}, Env: map[string]string{}}
			for level, where := range []string{file + ":1", k.Env(), "--" + k.Flag()} {
				in.Prefix = "--"
				switch {
				case nested && level == 0:
					where = file + ":2"
				case level == 1:
					in.Env[k.Env()] = values[1]
				case level == 2:
					in.Flags[k.Name] = values[2]
				}
				c, _ := LoadConfig(in) // other keys may be missing
				var want Config
				if err := k.set(&want, values[level]); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(k.field(&want).Interface(), k.field(&c).Interface()); diff != "" {
					t.Errorf("level %d (-want +got):\n%s", level, diff)
				}
				if c.sources[k.Name] != where {
					t.Errorf("level %d comes from %q, want %q", level, c.sources[k.Name], where)
				}
			}
		})
	}
}

func TestConfigRefusals(t *testing.T) {
	for name, tc := range map[string]struct {
		src  string
		want []string // of the message; FILE is the file's path
	}{
		"unknown key":        {"listne: x\n", []string{"FILE:1: listne: unknown key (did you mean listen?)"}},
		"all at once":        {"listne: x\nlimits:\n  conections: 3\n  idle_timeout: soon\nlog_level: loud\n", []string{"FILE:1: listne", "FILE:3: limits.conections", "did you mean limits.connections", "FILE:4: limits.idle_timeout: \"soon\"", "FILE:5: log_level"}},
		"negative limit":     {"limits: {lease_ttl: -1h}\n", []string{"FILE:1: limits.lease_ttl: -1h is negative"}},
		"endless limit":      {"limits: {request_rate: Inf}\n", []string{"FILE:1: limits.request_rate: it can't be infinite"}},
		"no such port":       {"listen: 127.0.0.1:99999\nmetrics_listen: 127.0.0.1:-1\n", []string{"FILE:1: listen: ", "FILE:2: metrics_listen: ", "HOST:PORT"}},
		"zero":               {"limits: {connections: 0}\n", []string{"FILE:1: limits.connections: it can't be 0"}},
		"no profile":         {"profiles: []\n", []string{"FILE:1: profiles: at least one"}},
		"fixed rule":         {"warn_rules: [archive.path.parent]\n", []string{"archive.path.parent"}},
		"unknown rule":       {"warn_rules: [no.such.rule]\n", []string{"no.such.rule"}},
		"rule not auditable": {"audit_mode: [job.plugins.record.digest]\n", []string{"FILE:1: audit_mode", "job.plugins.record.digest"}},
		"audited twice":      {"warn_rules: [yaml.tag]\naudit_mode: [yaml.tag]\n", []string{"FILE:2: audit_mode", "only warns already"}},
		"nameless profile":   {"profiles: [{label: x}]\n", []string{"profiles: [0].name"}},
		"unknown in profile": {"profiles: [{name: x, nodes: 3}]\n", []string{"FILE:1: profiles", "nodes"}},
		"address":            {"listen: nowhere\n", []string{"FILE:1: listen"}},
		"public url":         {"public_url: ftp://x\n", []string{"FILE:1: public_url"}},
		"twice":              {"listen: 127.0.0.1:1\nlog_level: info\nlisten: 127.0.0.1:2\n", []string{"listen"}},
		"alias":              {"image_hosts: &a [x]\nwarn_rules: *a\n", []string{"FILE:2: warn_rules: aliases"}},
		"not a mapping":      {"- listen\n", []string{"FILE:1: expected keys"}},
		"list for a value":   {"listen: [a]\n", []string{"FILE:1: listen: expected one value"}},
		"broken":             {"listen: [\n", []string{"FILE: "}},
		"open to all":        {"listen: 0.0.0.0:80\n", []string{"FILE:1: listen", "tls_cert", "insecure_http", "trusted_proxies"}},
		"half of tls":        {"tls_key: x\n", []string{"tls_cert"}},
		"postgres alone":     {"db: postgres://u@h/d\n", []string{"blobs: required with PostgreSQL"}},
		"another database":   {"db: mysql://h/d\n", []string{"FILE:1: db"}},
		"another store":      {"blobs: gs://h/d\n", []string{"FILE:1: blobs"}},
		"proxy":              {"trusted_proxies: 10.0.0.0/40\n", []string{"FILE:1: trusted_proxies"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, path, err := loadConfig(t, tc.src)
			for _, want := range tc.want {
				if want = strings.ReplaceAll(want, "FILE", path); err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("error\n%v\nwant one with %q", err, want)
				}
			}
		})
	}
	if _, err := LoadConfig(Input{Flags: map[string]string{"data": t.TempDir(), "config": filepath.Join(t.TempDir(), "absent")}}); err == nil {
		t.Error("a named file that is absent was accepted")
	}
	if _, err := LoadConfig(Input{Flags: map[string]string{"data": t.TempDir()}}); err != nil {
		t.Errorf("an optional file that is absent: %v", err)
	}
	if _, err := LoadConfig(Input{}); err == nil || !strings.Contains(err.Error(), "data: required") {
		t.Errorf("no data directory: %v", err)
	}
}

// Plain HTTP is for this machine, for who says so, and for who stands behind a proxy that ends TLS.
func TestConfigTransport(t *testing.T) {
	for name, tc := range map[string]struct {
		src string
		ok  bool
	}{
		"loopback":       {"listen: 127.0.0.1:80\n", true},
		"loopback 6":     {"listen: '[::1]:80'\n", true},
		"localhost":      {"listen: localhost:80\n", true},
		"every address":  {"listen: ':80'\n", false},
		"a host's name":  {"listen: registry.example:80\n", false},
		"told so":        {"listen: ':80'\ninsecure_http: true\n", true},
		"tls":            {"listen: ':443'\ntls_cert: c\ntls_key: k\n", true},
		"behind a proxy": {"listen: ':80'\npublic_url: https://r.example\ntrusted_proxies: 10.0.0.0/8\n", true},
		"only a name":    {"listen: ':80'\npublic_url: https://r.example\n", false},
		"a plain proxy":  {"listen: ':80'\npublic_url: http://r.example\ntrusted_proxies: 10.0.0.0/8\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, err := loadConfig(t, tc.src); (err == nil) != tc.ok {
				t.Errorf("error %v, want ok = %v", err, tc.ok)
			}
		})
	}
}

// A file that is none, or that has no end, stops the start at once.
func TestConfigFileThatIsNone(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	large := filepath.Join(t.TempDir(), "large")
	if err := os.WriteFile(large, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(large, 1<<40); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{pipe, large, "/dev/zero", t.TempDir()} {
		if _, err := LoadConfig(Input{Flags: map[string]string{"data": t.TempDir(), "config": path}}); err == nil {
			t.Errorf("%s was accepted", path)
		}
	}
}

// What Show writes is a configuration that means the same, but for passwords, which it does not write.
func TestConfigShow(t *testing.T) {
	c, _, err := loadConfig(t, `db: postgres://sf:hunter2@db.example/sf?sslpassword=hunter3
blobs: s3://bucket/registry?endpoint=https://store.example
profiles: [{name: a100, label: "a: b"}]
image_hosts: ["*.example.org", b]
drain_timeout: 90s
handover: [{name: hook, webhook: "https://platform.example/jobs?token=hunter4&zone=a", secret_file: /etc/hook}]
`)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := c.Show(&text); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(text.String(), "hunter") {
		t.Errorf("a password is shown:\n%s", text.String())
	}
	if !strings.Contains(text.String(), "give_up: 72h0m0s") || !strings.Contains(text.String(), "zone=a") {
		t.Errorf("the target is not shown as it is in force:\n%s", text.String())
	}
	again := filepath.Join(t.TempDir(), "again.yaml")
	if err := os.WriteFile(again, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := LoadConfig(Input{Flags: map[string]string{"config": again}})
	if err != nil {
		t.Fatalf("%v\n%s", err, text.String())
	}
	want, got := c.complete(), d.complete()
	for _, k := range Keys() {
		if diff := cmp.Diff(k.shown(&want), k.shown(&got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", k.Name, diff)
		}
	}
}

// TestConfigDocument holds the table of docs/config.md, which is made of the keys (go test -update writes it).
func TestConfigDocument(t *testing.T) {
	const path, begin, end = "../../docs/config.md", "<!-- keys -->\n", "<!-- end of keys -->\n"
	src, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(src), begin)
	_, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("%s has no marks around its table", path)
	}
	var table strings.Builder
	table.WriteString("| key | default | meaning |\n| --- | --- | --- |\n")
	for _, k := range Keys() {
		preset := "unset"
		if k.Default != "" {
			preset = "`" + k.Default + "`"
		}
		doc := strings.ReplaceAll(k.Doc, "|", "\\|")
		if doc == "" {
			t.Errorf("%s has no doc", k.Name)
		}
		fmt.Fprintf(&table, "| `%s` | %s | %s |\n", k.Name, preset, doc)
	}
	want := before + begin + table.String() + end + after
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if diff := cmp.Diff(want, string(src)); diff != "" {
		t.Errorf("%s differs from the keys (go test ./registry/server -run ConfigDocument -update):\n%s", path, diff)
	}
}
