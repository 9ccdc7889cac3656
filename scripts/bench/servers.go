package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// server is a running program under measurement.
type server struct {
	name         string
	address      string // host:port
	user, secret string
	process      *exec.Cmd
	ready        time.Duration // from its start to its first answer
}

// distributionVersion is the registry that ratios are taken against.
const distributionVersion = "v3.1.2"

// distribution builds the registry of that name once and gives its program.
func distribution(ctx context.Context) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	bin := filepath.Join(cache, "gatehouse-bench", "distribution-"+distributionVersion)
	program := filepath.Join(bin, "registry")
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	cmd := exec.CommandContext(ctx, "go", "install", "github.com/distribution/distribution/v3/cmd/registry@"+distributionVersion)
	cmd.Env, cmd.Stderr = append(os.Environ(), "GOBIN="+bin, "CGO_ENABLED=0"), os.Stderr
	cmd.Dir = os.TempDir() // outside this module
	return program, cmd.Run()
}

// freeAddress is a port of this host that nobody listens at now.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// launch starts a program and waits for its first answer at path.
func launch(name, address, path string, cmd *exec.Cmd) (*server, error) {
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	s := &server{name: name, address: address, process: cmd}
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	for time.Since(start) < patience {
		res, err := client.Get("http://" + address + path)
		if err == nil {
			res.Body.Close()
			s.ready = time.Since(start)
			return s, nil
		}
		time.Sleep(500 * time.Microsecond)
	}
	return nil, errors.Join(fmt.Errorf("%s gives no answer: %.2000s", name, log.String()), s.stop())
}

// stop ends the program.
func (s *server) stop() error {
	s.process.Process.Signal(syscall.SIGTERM)
	timer := time.AfterFunc(30*time.Second, func() { s.process.Process.Kill() })
	defer timer.Stop()
	err := s.process.Wait()
	if _, ended := errors.AsType[*exec.ExitError](err); ended {
		return nil // by our signal
	}
	return err
}

// resident is the server's memory in MiB.
func (s *server) resident() (float64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.process.Process.Pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return 0, errors.New("/proc has no VmRSS")
	}
	kib, err := strconv.ParseFloat(fields[0], 64)
	return kib / 1024, err
}

// ticks is how many units of processor time the system counts a second (USER_HZ).
const ticks = 100

// processor is how many seconds of processor time the server has taken.
func (s *server) processor() (float64, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.process.Process.Pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(stat), ") ") // the program's name may hold blanks
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0, errors.New("/proc has no times")
	}
	user, err := strconv.ParseFloat(fields[11], 64)
	system, err2 := strconv.ParseFloat(fields[12], 64)
	return (user + system) / ticks, errors.Join(err, err2)
}

// startGatehouse runs sf over a data directory.
func startGatehouse(sf, data string) (*server, error) { return startServe(sf, data, "") }

// startServe runs sf with more flags. secret is the administrator's token; "" reads the one that the first start writes.
func startServe(sf, data, secret string, more ...string) (*server, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	args := append([]string{"serve", "--data", data, "--listen", address}, more...)
	s, err := launch("gatehouse", address, "/v2/", exec.Command(sf, args...))
	if err != nil {
		return nil, err
	}
	if secret == "" {
		written, err := os.ReadFile(filepath.Join(data, "admin-token"))
		if err != nil {
			return nil, errors.Join(err, s.stop())
		}
		secret = strings.TrimSpace(string(written))
	}
	s.user, s.secret = "admin", secret
	return s, nil
}

// startDistribution runs the other registry over a folder, as its documentation sets it up, without its access log.
func startDistribution(program, data string) (*server, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(data, 0o700); err != nil {
		return nil, err
	}
	config := fmt.Sprintf(`version: 0.1
log: {level: error, accesslog: {disabled: true}}
storage: {filesystem: {rootdirectory: %q}, delete: {enabled: true}}
http: {addr: %q, relativeurls: true}
`, data, address)
	file := filepath.Join(data, "config.yml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return nil, err
	}
	cmd := exec.Command(program, "serve", file)
	cmd.Env = append(os.Environ(), "OTEL_TRACES_EXPORTER=none")
	return launch("distribution", address, "/v2/", cmd)
}

// startCeiling runs this program as a bare server.
func startCeiling(data string) (*server, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(data, 0o700); err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return launch("ceiling", address, "/", exec.Command(self, "ceiling", address, data))
}

// ceiling is the least that a server in Go must do for the same bytes: a file by sendfile, a body hashed and written to a file
// that is synced, a small answer from memory.
func ceiling(address, data string) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /blob", func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, filepath.Join(data, "blob")) })
	mux.HandleFunc("PUT /blob", func(w http.ResponseWriter, r *http.Request) {
		if err := receive(filepath.Join(data, "blob"), r.URL.Query().Get("digest"), r.Body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.WriteHeader(http.StatusCreated)
	})
	small := bytes.Repeat([]byte("x"), 700)
	mux.HandleFunc("GET /small", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", manifestType)
		w.Write(small)
	})
	return http.ListenAndServe(address, mux)
}

// receive stores a body whose digest is known.
func receive(path, want string, body io.Reader) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	h := sha256.New()
	if _, err := io.Copy(io.MultiWriter(file, h), body); err != nil {
		return errors.Join(err, file.Close())
	}
	if err := errors.Join(file.Sync(), file.Close()); err != nil {
		return err
	}
	if got := "sha256:" + hex.EncodeToString(h.Sum(nil)); got != want {
		return fmt.Errorf("digest %s, want %s", got, want)
	}
	return nil
}
