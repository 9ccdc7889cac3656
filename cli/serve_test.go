package cli

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gatehouse-registry/gatehouse/digest"
)

// slowPush is an upload of which a half has been sent, to a server that is taking it.
func slowPush(t *testing.T, p *process) (conn net.Conn, rest string) {
	t.Helper()
	content := strings.Repeat("slow", 25_000)
	token := p.adminToken(t)
	conn, err := net.Dial("tcp", strings.TrimPrefix(p.address, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	fmt.Fprintf(conn, "POST /v2/admin/x/blobs/uploads/?digest=%s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s",
		digest.FromBytes([]byte(content)), token, len(content), content[:len(content)/2])
	until(t, "the server to take the upload", func() bool {
		r, err := http.NewRequest(http.MethodGet, p.address+"/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		return err == nil && strings.Contains(string(text), `gatehouse_http_in_flight{kind="transfer"} 1`)
	})
	return conn, content[len(content)/2:]
}

// until waits for what must come.
func until(t *testing.T, what string, come func() bool) {
	t.Helper()
	for deadline := time.Now().Add(publishSeconds * time.Second); !come(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// terminate sends the first signal and waits until the server accepts nothing more.
func terminate(t *testing.T, p *process) {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	until(t, "the server to stop accepting", func() bool {
		conn, err := net.Dial("tcp", strings.TrimPrefix(p.address, "http://"))
		if err == nil {
			conn.Close()
		}
		return err != nil
	})
}

// The first signal lets an upload finish, and the server says that all went well.
func TestFirstSignalFinishesUploads(t *testing.T) {
	p := startProcess(t, t.TempDir(), nil)
	defer p.kill()
	conn, rest := slowPush(t, p)
	terminate(t, p)
	if _, err := io.WriteString(conn, rest); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || res.StatusCode != http.StatusCreated {
		t.Errorf("the upload: %v, %v", res, err)
	}
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("the server: %v\n%s", err, p.log)
	}
}

// The second signal ends the server at once, though the upload would go on.
func TestSecondSignalEndsAtOnce(t *testing.T) {
	p := startProcess(t, t.TempDir(), nil, "--drain-timeout", "24h")
	defer p.kill()
	slowPush(t, p)
	terminate(t, p)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p.cmd.Wait()
	}()
	until(t, "the server to end", func() bool { // a signal that comes in the very moment of the first counts as that
		p.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
			return true
		default:
			return false
		}
	})
	if status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || !status.Signaled() {
		t.Errorf("the server ended with %v, want by the signal\n%s", p.cmd.ProcessState, p.log)
	}
}
