package cli

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/server/servertest"
)

// person runs sf with a home folder of its own.
type person struct {
	t    *testing.T
	self string
	env  []string
	home string
}

func newPerson(t *testing.T, env ...string) person {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	return person{t, self, append([]string{asCommand + "=1", "GATEHOUSE_HOME=" + home, "PATH=" + os.Getenv("PATH"), "USER=tester"}, env...), home}
}

func (p person) command(args ...string) *exec.Cmd {
	cmd := exec.Command(p.self, args...)
	cmd.Env = p.env
	return cmd
}

// sf runs a command and gives what it wrote, and its exit code.
func (p person) sf(stdin string, args ...string) (out string, code int) {
	p.t.Helper()
	cmd := p.command(args...)
	cmd.Stdin = strings.NewReader(stdin)
	text, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		p.t.Fatal(err)
	}
	return string(text), cmd.ProcessState.ExitCode()
}

// must is sf that succeeds.
func (p person) must(args ...string) string {
	p.t.Helper()
	out, code := p.sf("", args...)
	if code != 0 {
		p.t.Fatalf("sf %v: exit %d: %s", args, code, out)
	}
	return out
}

var shownCode = regexp.MustCompile(`Code\s+(\S+)`)

// loginByDevice signs in with a code that an administrator approves.
func (p person) loginByDevice(admin person, server, account string) string {
	p.t.Helper()
	cmd := p.command("login", server, "--device")
	var out strings.Builder
	cmd.Stdout = &out
	messages, err := cmd.StderrPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	for s := bufio.NewScanner(messages); s.Scan(); {
		if m := shownCode.FindStringSubmatch(s.Text()); m != nil {
			if said := admin.must("admin", "device", "approve", strings.ToLower(m[1]), "--as", account); !strings.Contains(said, "tester@") {
				p.t.Errorf("the approval says %q", said)
			}
			break
		}
	}
	rest, err := io.ReadAll(messages)
	if err := errors.Join(err, cmd.Wait()); err != nil {
		p.t.Fatalf("sf login --device: %v: %s", err, rest)
	}
	return out.String()
}

// TestLoginByDevice signs in with a code, renews the session in many commands at once, and ends it.
func TestLoginByDevice(t *testing.T) {
	s := servertest.Start(t)
	admin, ann := newPerson(t, "GATEHOUSE_SERVER="+s.URL, "GATEHOUSE_TOKEN="+s.Token), newPerson(t)
	admin.must("admin", "account", "create", "ann")
	if out := ann.loginByDevice(admin, s.URL, "ann"); !strings.Contains(out, "as ann (operator)") {
		t.Errorf("signed in: %q", out)
	}
	path := filepath.Join(ann.home, sessionFile)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("credentials: %v, %v", info, err)
	}
	stored := func() (s sessions) {
		t.Helper()
		text, err := os.ReadFile(path)
		if err == nil {
			err = json.Unmarshal(text, &s)
		}
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	kept := stored()
	before := kept.Servers[s.URL]
	stale := before
	stale.ExpiresAt = time.Now().Add(-time.Minute)
	kept.Servers[s.URL] = stale
	if err := saveSessions(ann.home, kept); err != nil {
		t.Fatal(err)
	}
	var together sync.WaitGroup
	for range 6 {
		together.Go(func() {
			if out, code := ann.sf("", "whoami"); code != 0 || !strings.HasPrefix(out, "ann ") {
				t.Errorf("whoami with a token that is over: exit %d: %s", code, out)
			}
		})
	}
	together.Wait()
	after := stored().Servers[s.URL]
	if after.Token == before.Token || !after.ExpiresAt.After(time.Now()) || after.Account != "ann" {
		t.Errorf("after a renewal: %+v", after)
	}
	list := ann.must("session", "ls")
	id := regexp.MustCompile(`(?m)^[0-9a-f]{16}`).FindString(list)
	if id == "" || !strings.Contains(list, "this one") || !strings.Contains(list, "gatehouse-cli") {
		t.Errorf("sessions: %s", list)
	}
	if _, code := ann.sf("", "session", "revoke", "0000000000000000"); code != exitNotFound {
		t.Errorf("an unknown session: exit %d", code)
	}
	if out := ann.must("logout"); !strings.Contains(out, "signed out") {
		t.Errorf("logout: %s", out)
	}
	if out := admin.must("session", "ls", "--all"); strings.Contains(out, id) {
		t.Errorf("the session lives on at the server: %s", out)
	}
	ann.loginByDevice(admin, s.URL, "ann")
	admin.must("admin", "account", "disable", "ann")
	if _, code := ann.sf("", "whoami"); code != exitForbidden {
		t.Errorf("whoami of a disabled account: exit %d", code)
	}
	if _, code := admin.sf("", "admin", "device", "approve", "BCDF-GHJK", "--as", "ann"); code != exitNotFound {
		t.Errorf("an unknown code: exit %d", code)
	}
	if _, code := admin.sf("", "admin", "device", "approve", "BCDF-GHJK"); code != exitUsage {
		t.Errorf("no account: exit %d", code)
	}
}

// TestPasswd sets the first password, changes it, and has an administrator change it.
func TestPasswd(t *testing.T) {
	s := servertest.Start(t)
	admin := newPerson(t, "GATEHOUSE_SERVER="+s.URL, "GATEHOUSE_TOKEN="+s.Token)
	admin.must("admin", "account", "create", "ann")
	ann := newPerson(t, "GATEHOUSE_SERVER="+s.URL, "GATEHOUSE_TOKEN="+strings.TrimSpace(admin.must("admin", "token", "create", "ann")))
	for _, step := range []struct {
		who   person
		stdin string
		args  []string
		code  int
	}{
		{ann, "", nil, exitUsage},
		{ann, "short\n", nil, exitUsage},
		{ann, "correct horse\n", nil, 0},
		{ann, "battery staple\n", nil, exitUsage}, // the present one is needed now, and the new one is missing
		{ann, "wrong horse\nbattery staple\n", nil, exitForbidden},
		{ann, "correct horse\nbattery staple\n", nil, 0},
		{ann, "x\n", []string{"--account", "admin"}, exitForbidden},
		{admin, "a third one\n", []string{"--account", "ann"}, 0},
		{admin, "a third one\n", []string{"--account", "nobody"}, exitNotFound},
	} {
		if out, code := step.who.sf(step.stdin, append([]string{"passwd"}, step.args...)...); code != step.code {
			t.Errorf("sf passwd %v with %q: exit %d, want %d: %s", step.args, step.stdin, code, step.code, out)
		}
	}
}

// TestCallback takes what a browser brings once, and only for the sign-in that was begun here.
func TestCallback(t *testing.T) {
	brought := make(chan arrival, 1)
	s := httptest.NewServer(callback("the-state", "https://registry.example.test/cli/success", brought))
	defer s.Close()
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	get := func(query string) *http.Response {
		t.Helper()
		res, err := client.Get(s.URL + "/callback?" + query)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		return res
	}
	for _, bad := range []string{"", "code=c", "code=c&state=", "code=c&state=the-stat", "error=x&state=other"} {
		if res := get(bad); res.StatusCode != http.StatusBadRequest || len(brought) != 0 {
			t.Errorf("%q: status %d", bad, res.StatusCode)
		}
	}
	if res := get("code=c&state=the-state"); res.StatusCode != http.StatusFound || res.Header.Get("Location") != "https://registry.example.test/cli/success" {
		t.Errorf("a code: %d to %s", res.StatusCode, res.Header.Get("Location"))
	}
	get("code=d&state=the-state")
	if got := <-brought; got.code != "c" || got.err != nil {
		t.Errorf("brought %+v", got)
	}
	get("error=access_denied&state=the-state")
	if got := <-brought; registry.CodeOf(got.err) != registry.Denied {
		t.Errorf("brought %+v", got)
	}
}

func TestHasDisplay(t *testing.T) {
	for what, tt := range map[string]struct {
		vars map[string]string
		want bool
	}{
		"a desktop":         {map[string]string{"DISPLAY": ":0"}, true},
		"wayland":           {map[string]string{"WAYLAND_DISPLAY": "wayland-0"}, true},
		"over ssh":          {map[string]string{"DISPLAY": ":0", "SSH_CONNECTION": "x"}, false},
		"a terminal of ssh": {map[string]string{"WAYLAND_DISPLAY": "x", "SSH_TTY": "/dev/pts/1"}, false},
	} {
		if got := (&Env{Vars: tt.vars}).hasDisplay(); got != tt.want {
			t.Errorf("%s: %v, want %v", what, got, tt.want)
		}
	}
}
