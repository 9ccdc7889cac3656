package cli

import (
	"bytes"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A server that lies about a receipt, or sends rubbish without end, starts nothing: one line and a code of its own.
func TestReceiptOfLyingServer(t *testing.T) {
	dir := t.TempDir()
	spec := filepath.Join(dir, "job", ".starforge", "jobspec.json")
	if err := errors.Join(os.MkdirAll(filepath.Dir(spec), 0o755), os.WriteFile(spec, []byte("{}"), 0o644)); err != nil {
		t.Fatal(err)
	}
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { http.Error(w, "no\nnot this one\n", code) }
	}
	text := func(s string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, s) }
	}
	endless := func(w http.ResponseWriter, r *http.Request) {
		for page := bytes.Repeat([]byte("x"), 64<<10); ; {
			if _, err := w.Write(page); err != nil {
				return
			}
		}
	}
	for name, c := range map[string]struct {
		receipt, trust http.HandlerFunc
		code           int
		says           string
	}{
		"no such job":         {status(404), text("{}"), 7, "launch.receipt.missing"},
		"not signed in":       {status(401), text("{}"), 4, ""},
		"not allowed":         {status(403), text("{}"), 4, ""},
		"broken":              {status(500), text("{}"), 1, ""},
		"elsewhere":           {http.RedirectHandler("http://127.0.0.1:1/", http.StatusFound).ServeHTTP, text("{}"), 1, ""},
		"a page":              {text("<html>\nhello"), text("{}"), 1, "keys"},
		"keys that are none":  {text("{}"), text(`{"audience":"r","keys":[]}`), 1, "keys"},
		"endless keys":        {text("{}"), endless, 1, "keys"},
		"an endless receipt":  {endless, status(500), 1, ""},
		"nothing of all that": {text(""), text(""), 1, "keys"},
	} {
		mux := http.NewServeMux()
		mux.HandleFunc("/api/jobs/run-1/receipt", c.receipt)
		mux.HandleFunc("/api/trust", c.trust)
		s := httptest.NewTLSServer(mux)
		ca := filepath.Join(dir, "ca.pem")
		if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o644); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(os.Args[0], "launch", "--jobspec", spec, "--receipt-from-server", "--job", "run-1", "--cache", filepath.Join(dir, "cache"),
			"--no-report", "--allow", "private-copy", "--", "echo", "started")
		cmd.Env = append(os.Environ(), asCommand+"=1", "SSL_CERT_FILE="+ca, "GATEHOUSE_SERVER="+s.URL, "GATEHOUSE_TOKEN=t", "GATEHOUSE_ACCOUNT=a", "GATEHOUSE_HOME="+filepath.Join(dir, "home"), "GATEHOUSE_TRUST=")
		var out, problems bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &problems
		err := cmd.Run()
		s.CloseClientConnections()
		s.Close()
		if _, ended := errors.AsType[*exec.ExitError](err); err != nil && !ended {
			t.Fatal(err)
		}
		if code := cmd.ProcessState.ExitCode(); code != c.code || out.Len() > 0 || !strings.Contains(problems.String(), c.says) {
			t.Errorf("%s: exit code %d, %q, %q; expected %d and %q", name, code, out.String(), problems.String(), c.code, c.says)
		}
		if strings.Count(problems.String(), "\n") != 1 {
			t.Errorf("%s: not one line: %q", name, problems.String())
		}
	}
}
