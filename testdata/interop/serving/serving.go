// Package serving runs `sf serve` for acceptance tools: a fresh registry in a folder of its own, over plain HTTP or over TLS
// with a certificate of an authority that nobody else knows, embedded or on the stores that extra arguments name.
package serving

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// startSeconds bounds the wait for a server that starts, endSeconds that for one that ends.
const (
	startSeconds = 60
	endSeconds   = 30
)

// Options say what to run.
type Options struct {
	SF   string   // path of the binary
	Dir  string   // an empty folder that everything goes into
	TLS  bool     // serve HTTPS
	Args []string // more arguments of `sf serve`
	Env  []string // added to the environment
}

// Registry is a server that runs.
type Registry struct {
	URL       string
	Host      string // HOST:PORT
	TokenFile string // holds the token of account admin
	CAFile    string // the authority of its certificate, "" over plain HTTP
	Basic     bool   // it offers Basic alone

	cmd *exec.Cmd
	log *os.File
}

// Start starts a server and waits until it answers. The caller stops it.
func Start(ctx context.Context, o Options) (*Registry, error) {
	data := filepath.Join(o.Dir, "data")
	args := append([]string{"serve", "--data", data, "--listen", "127.0.0.1:0"}, o.Args...)
	r := &Registry{TokenFile: filepath.Join(data, "admin-token")}
	if o.TLS {
		pair, err := writeCertificates(o.Dir)
		if err != nil {
			return nil, err
		}
		r.CAFile = pair.authority
		args = append(args, "--tls-cert", pair.certificate, "--tls-key", pair.key)
	}
	log, err := os.Create(filepath.Join(o.Dir, "server.log"))
	if err != nil {
		return nil, err
	}
	r.log = log
	r.cmd = exec.CommandContext(ctx, o.SF, args...)
	r.cmd.Env = append(os.Environ(), o.Env...)
	r.cmd.Stdout, r.cmd.Stderr = log, log
	if err := r.cmd.Start(); err != nil {
		return nil, errors.Join(err, log.Close())
	}
	if err := r.wait(filepath.Join(data, "address")); err != nil {
		return nil, errors.Join(err, r.Stop(), fmt.Errorf("its log ends with:\n%s", r.LogTail()))
	}
	return r, nil
}

// wait waits for the file that a server writes when it answers.
func (r *Registry) wait(address string) error {
	for deadline := time.Now().Add(startSeconds * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if text, err := os.ReadFile(address); err == nil && len(bytes.TrimSpace(text)) > 0 {
			r.URL = strings.TrimSpace(string(text))
			u, err := url.Parse(r.URL)
			if err != nil {
				return err
			}
			r.Host = u.Host
			return nil
		}
		if syscall.Kill(r.cmd.Process.Pid, 0) != nil {
			break
		}
	}
	return errors.New("the server does not start")
}

// AdminToken is the token of account admin.
func (r *Registry) AdminToken() (string, error) {
	b, err := os.ReadFile(r.TokenFile)
	return strings.TrimSpace(string(b)), err
}

// Stop ends the server as an administrator does and waits until it has gone.
func (r *Registry) Stop() error {
	defer r.log.Close()
	if err := r.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	timer := time.AfterFunc(endSeconds*time.Second, func() { r.cmd.Process.Kill() })
	defer timer.Stop()
	return r.cmd.Wait()
}

// LogTail is the end of what the server logged.
func (r *Registry) LogTail() string {
	const most = 4096
	b, err := os.ReadFile(r.log.Name())
	if err != nil {
		return err.Error()
	}
	return string(b[max(0, len(b)-most):])
}
