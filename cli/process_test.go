package cli

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/client"
	"github.com/gatehouse-registry/gatehouse/registry/server"
)

// publishSeconds bounds the wait for a server that starts, or for one publish.
const publishSeconds = 30

// process is `sf serve` in a process of its own.
type process struct {
	cmd     *exec.Cmd
	log     *bytes.Buffer
	data    string
	address string
}

// startProcess starts a server on what lies in the folder and waits until it answers. env is added to the environment.
func startProcess(t *testing.T, data string, env []string, args ...string) *process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	address := filepath.Join(data, server.AddressFile)
	if err := os.Remove(address); err != nil && !errors.Is(err, os.ErrNotExist) { // a killed server leaves it
		t.Fatal(err)
	}
	p := &process{log: new(bytes.Buffer), data: data}
	p.cmd = exec.Command(self, append([]string{"serve", "--data", data, "--listen", "127.0.0.1:0"}, args...)...)
	p.cmd.Env, p.cmd.Stderr = append(append(os.Environ(), asCommand+"=1"), env...), p.log
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(publishSeconds * time.Second); ; time.Sleep(2 * time.Millisecond) {
		if text, err := os.ReadFile(address); err == nil {
			p.address = strings.TrimSpace(string(text))
			return p
		}
		if time.Now().After(deadline) {
			p.kill()
			t.Fatalf("the server does not start:\n%s", p.log.String())
		}
	}
}

// kill ends the server as a power cut would, as far as a process can tell.
func (p *process) kill() {
	p.cmd.Process.Kill() // it may have ended by itself, which the next start shows
	p.cmd.Wait()
}

// adminToken is the token that the first start of a registry left in the server's folder.
func (p *process) adminToken(t *testing.T) string {
	t.Helper()
	token, err := os.ReadFile(filepath.Join(p.data, server.AdminTokenFile))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(token))
}

// connect gives a client of the server.
func (p *process) connect(t *testing.T, token string) *client.Client {
	t.Helper()
	c, err := client.New(client.Options{Server: p.address, Account: registry.AdminAccount, Token: token, UserAgent: "process-test"})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// countFrom is the number in an environment variable, else the usual one.
func countFrom(t *testing.T, variable string, usual int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s=%q is no number of 1 or more", variable, text)
	}
	return n
}
