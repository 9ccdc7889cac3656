package gatehouse_test

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/gatehouse-registry/gatehouse/registry/server"
)

// composeFile is what these tests read of a compose file.
type composeFile struct {
	Services map[string]struct {
		Image       string
		Build       map[string]string
		Environment map[string]string
		Volumes     []string
		Networks    []string
		DependsOn   any `yaml:"depends_on"`
	}
	Networks map[string]any
	Volumes  map[string]any
}

// The compose files parse, name only what they define, and configure Gatehouse with keys and values that it takes.
func TestComposeFiles(t *testing.T) {
	for _, name := range []string{"compose.yaml", "compose.scaled.yaml"} {
		t.Run(name, func(t *testing.T) {
			var f composeFile
			if err := yaml.Unmarshal(readDeploy(t, name), &f); err != nil {
				t.Fatal(err)
			}
			for service, s := range f.Services {
				for _, n := range s.Networks {
					if _, ok := f.Networks[n]; !ok {
						t.Errorf("%s: network %q is not defined", service, n)
					}
				}
				for _, v := range s.Volumes {
					source, _, mounted := strings.Cut(v, ":")
					_, defined := f.Volumes[source]
					if file, ok := strings.CutPrefix(source, "./"); ok {
						readDeploy(t, file)
					} else if mounted && !defined {
						t.Errorf("%s: volume %q is not defined", service, source)
					}
				}
				for _, d := range dependencies(t, s.DependsOn) {
					if _, ok := f.Services[d]; !ok {
						t.Errorf("%s: it depends on %q, which is no service", service, d)
					}
				}
			}
			gatehouse, ok := f.Services["gatehouse"]
			if !ok || gatehouse.Build["dockerfile"] != "deploy/Dockerfile" {
				t.Fatalf("service gatehouse: %+v", gatehouse)
			}
			takes(t, filled(gatehouse.Environment), image(t))
		})
	}
}

func dependencies(t *testing.T, v any) []string {
	var names []string
	switch v := v.(type) {
	case nil:
	case []any:
		for _, n := range v {
			names = append(names, n.(string))
		}
	case map[string]any:
		names = slices.Collect(maps.Keys(v))
	default:
		t.Errorf("depends_on: %T", v)
	}
	return names
}

// reference is ${NAME}, with a default or a demand.
var reference = regexp.MustCompile(`\$\{\w+(:-([^}]*)|:\?)?\}`)

// filled puts a value where a compose file refers to the environment.
func filled(env map[string]string) map[string]string {
	out := map[string]string{}
	for k, v := range env {
		out[k] = reference.ReplaceAllStringFunc(v, func(r string) string {
			if m := reference.FindStringSubmatch(r); strings.HasPrefix(m[1], ":-") {
				return m[2]
			}
			return "secret"
		})
	}
	return out
}

// image is the environment that the Dockerfile sets.
func image(t *testing.T) map[string]string {
	t.Helper()
	env := map[string]string{}
	for line := range strings.Lines(string(readDeploy(t, "Dockerfile"))) {
		if rest, ok := strings.CutPrefix(line, "ENV "); ok {
			for _, f := range strings.Fields(rest) {
				k, v, _ := strings.Cut(f, "=")
				env[k] = v
			}
		}
	}
	if env["GATEHOUSE_DATA"] == "" {
		t.Error("the Dockerfile names no data directory")
	}
	return env
}

// takes checks that `sf serve` would take an environment: every GATEHOUSE_ variable is a key's, every value is one that it
// may have.
func takes(t *testing.T, envs ...map[string]string) {
	t.Helper()
	known := map[string]bool{}
	for _, k := range server.Keys() {
		known[k.Env()] = true
	}
	all := map[string]string{}
	for _, env := range envs {
		for k, v := range env {
			if strings.HasPrefix(k, server.EnvPrefix) && !known[k] {
				t.Errorf("%s is the variable of no key", k)
			}
			if _, set := all[k]; !set {
				all[k] = v
			}
		}
	}
	if _, err := server.LoadConfig(server.Input{Env: all}); err != nil {
		t.Errorf("sf serve would not start: %v", err)
	}
}

// unit is a systemd unit: section to directives in order.
type unit map[string][]string

func readUnit(t *testing.T, name string) unit {
	t.Helper()
	u, section := unit{}, ""
	for line := range strings.Lines(string(readDeploy(t, name))) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || line[0] == '#':
		case line[0] == '[':
			section = strings.Trim(line, "[]")
		case section != "" && strings.Contains(line, "="):
			u[section] = append(u[section], line)
		default:
			t.Errorf("%s: %q is no line of a unit", name, line)
		}
	}
	return u
}

func (u unit) values(key string) []string {
	var list []string
	for _, line := range u["Service"] {
		if v, ok := strings.CutPrefix(line, key+"="); ok {
			list = append(list, v)
		}
	}
	return list
}

// hardening is what a unit must not lose.
var hardening = []string{
	"DynamicUser=yes", "NoNewPrivileges=yes", "ProtectSystem=strict", "ProtectHome=yes", "PrivateTmp=yes", "PrivateDevices=yes",
	"ProtectKernelTunables=yes", "ProtectKernelModules=yes", "ProtectControlGroups=yes", "MemoryDenyWriteExecute=yes",
	"RestrictNamespaces=yes", "RestrictSUIDSGID=yes", "LockPersonality=yes", "SystemCallArchitectures=native",
	"SystemCallFilter=@system-service", "UMask=0077",
}

// The units parse, are hardened, start `sf serve`, and configure it with keys and values that it takes.
func TestSystemdUnits(t *testing.T) {
	for name, env := range map[string]string{"gatehouse.service": "gatehouse.env", "gatehouse-replica@.service": "replica.env"} {
		t.Run(name, func(t *testing.T) {
			u := readUnit(t, "systemd/"+name)
			for _, want := range hardening {
				if !slices.Contains(u["Service"], want) {
					t.Errorf("%s is missing", want)
				}
			}
			if got := u.values("ExecStart"); !slices.Equal(got, []string{"/usr/local/bin/sf serve"}) {
				t.Errorf("ExecStart %q", got)
			}
			if got := u.values("EnvironmentFile"); !slices.Equal(got, []string{"/etc/gatehouse/" + env}) {
				t.Errorf("EnvironmentFile %q", got)
			}
			own := map[string]string{}
			for _, line := range u.values("Environment") {
				for _, f := range strings.Fields(strings.ReplaceAll(line, "%i", "8081")) {
					k, v, _ := strings.Cut(f, "=")
					own[k] = v
				}
			}
			takes(t, own, readEnv(t, "systemd/"+env))
			verify(t, name)
		})
	}
}

func readEnv(t *testing.T, name string) map[string]string {
	t.Helper()
	env := map[string]string{}
	for line := range strings.Lines(string(readDeploy(t, name))) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		k, v, ok := strings.Cut(line, "=")
		if !ok {
			t.Errorf("%s: %q is no variable", name, line)
		}
		env[k] = v
	}
	return env
}

// verify lets systemd read a unit, on machines that have it.
func verify(t *testing.T, name string) {
	t.Helper()
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		return
	}
	dir := t.TempDir()
	self, err := os.Executable() // systemd looks whether the program is there
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(readDeploy(t, "systemd/"+name)), "/usr/local/bin/sf", self)
	file := filepath.Join(dir, strings.Replace(name, "@.", "@8081.", 1))
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(analyze, "verify", "--man=no", "--recursive-errors=no", file).CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
}

// The load balancers ask for readiness and reach the services and ports that the other files define.
func TestLoadBalancers(t *testing.T) {
	caddy, haproxy := string(readDeploy(t, "Caddyfile")), string(readDeploy(t, "systemd/haproxy.cfg"))
	for text, wants := range map[string][]string{
		caddy:   {"dynamic a gatehouse 8080", "health_uri /readyz", "flush_interval -1", "{$GATEHOUSE_HOST:localhost}"},
		haproxy: {"GET /readyz", "127.0.0.1:8081", "127.0.0.1:8082", "option forwardfor"},
	} {
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("a load balancer's file lacks %q", want)
			}
		}
	}
	if open, shut := strings.Count(caddy, "{"), strings.Count(caddy, "}"); open != shut {
		t.Errorf("Caddyfile: %d braces open, %d close", open, shut)
	}
}

// Every file of deploy/ is one that a test reads.
func TestDeployFiles(t *testing.T) {
	known := []string{"Caddyfile", "Dockerfile", "compose.scaled.yaml", "compose.yaml", "scaled.env.example",
		"systemd/gatehouse-replica@.service", "systemd/gatehouse.env", "systemd/gatehouse.service", "systemd/haproxy.cfg", "systemd/replica.env"}
	var found []string
	err := fs.WalkDir(os.DirFS("deploy"), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			found = append(found, path)
		}
		return err
	})
	if err != nil || !slices.Equal(found, known) {
		t.Errorf("deploy holds %q (%v), want %q", found, err, known)
	}
	var wanted []string
	for _, m := range regexp.MustCompile(`\$\{(\w+):\?\}`).FindAllStringSubmatch(string(readDeploy(t, "compose.scaled.yaml")), -1) {
		wanted = append(wanted, m[1])
	}
	example := readEnv(t, "scaled.env.example")
	for _, k := range wanted {
		if example[k] == "" {
			t.Errorf("scaled.env.example lacks %s", k)
		}
	}
	if len(wanted) == 0 {
		t.Error("compose.scaled.yaml demands no secret")
	}
}

func readDeploy(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("deploy", filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	if len(b) == 0 {
		t.Fatal(fmt.Errorf("deploy/%s is empty", name))
	}
	return b
}
