// Package testservice starts the real servers that tests and scripts run against. A server is started once per process,
// when it is first asked for, listens on 127.0.0.1 and a free port only, and ends with the process that started it, however
// that ends, together with its folder. Processes that run side by side have servers of their own. A server that can't be
// started fails the test: none is ever skipped.
//
// Only tests, acceptance tools and the command in run import this package.
package testservice

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// patience is how long a server may take to start or to stop.
const patience = 60 * time.Second

// folderPrefix begins the name of every server's folder in the folder for temporary files.
const folderPrefix = "gatehouse-testservice-"

// folder is where a server keeps what it has. The lock on its file "lock" lasts as long as the process that made it.
type folder struct {
	path  string
	lock  *os.File
	owner *syscall.Credential // whom the server runs as; nil for the process's own user
}

// newFolder makes a folder and removes those whose processes have ended without doing so.
func newFolder(kind string, owner *syscall.Credential) (*folder, error) {
	sweep()
	path, err := os.MkdirTemp("", folderPrefix+kind+"-")
	if err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(filepath.Join(path, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, err
	}
	if owner != nil {
		if err := os.Chown(path, int(owner.Uid), int(owner.Gid)); err != nil {
			return nil, err
		}
	}
	return &folder{path: path, lock: lock, owner: owner}, nil
}

// sweep removes the folders of processes that are gone. One that is being made has no lock yet, so young ones stay.
func sweep() {
	old, _ := filepath.Glob(filepath.Join(os.TempDir(), folderPrefix+"*"))
	for _, path := range old {
		if info, err := os.Stat(path); err != nil || time.Since(info.ModTime()) < patience {
			continue
		}
		lock, err := os.Open(filepath.Join(path, "lock"))
		if err != nil {
			continue
		}
		if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			os.RemoveAll(path)
		}
		lock.Close()
	}
}

// server is a running program whose life hangs on a pipe that this process holds.
type server struct {
	keeper *exec.Cmd
	pipe   *os.File
	log    string
}

// keep is the script between this process and a server: it runs the program, waits for a line or for the end of the pipe,
// stops the program with the signal, and removes the folder unless the line says to keep it.
const keep = `signal=$1; folder=$2; shift 2
trap '' INT TERM HUP
"$@" </dev/null & child=$!
read -r word
kill -s "$signal" "$child" 2>/dev/null
wait "$child"
[ "$word" = keep ] || rm -rf "$folder"`

// start runs a program inside the folder. stopBy names the signal that stops it.
func (f *folder) start(stopBy, name string, args []string, env ...string) (*server, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer read.Close()
	log, err := os.OpenFile(filepath.Join(f.path, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, errors.Join(err, write.Close())
	}
	defer log.Close()
	cmd := exec.Command("/bin/sh", append([]string{"-c", keep, "keep", stopBy, f.path, name}, args...)...)
	cmd.Dir, cmd.Env = f.path, append(os.Environ(), env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = read, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: f.owner, Setpgid: true} // a Ctrl-C is for the tests, not for it
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, write.Close())
	}
	return &server{keeper: cmd, pipe: write, log: log.Name()}, nil
}

// stop stops the program, and waits until it has. What it kept in its folder stays.
func (s *server) stop() error {
	if _, err := s.pipe.WriteString("keep\n"); err != nil {
		return err
	}
	if err := s.keeper.Wait(); err != nil {
		return fmt.Errorf("stop the server: %w", err)
	}
	return s.pipe.Close()
}

// ready waits until ask succeeds.
func (s *server) ready(ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		err := ask(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			said, _ := os.ReadFile(s.log)
			return fmt.Errorf("the server does not answer: %w; its log ends with:\n%s", err, said[max(0, len(said)-4000):])
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// unprivileged is the user that servers run as which refuse to run as root; nil when this process is not root.
func unprivileged() (*syscall.Credential, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"nobody", "postgres"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, errUID := strconv.ParseUint(u.Uid, 10, 32)
		gid, errGID := strconv.ParseUint(u.Gid, 10, 32)
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, errors.Join(errUID, errGID)
	}
	return nil, errors.New("this process is root, PostgreSQL refuses to be, and there is no user nobody or postgres to run it as")
}

// freePort gives a port of 127.0.0.1 that nobody listens on at the moment.
func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, errors.Join(err, l.Close())
}

// output runs a program to its end, as the folder's owner, and gives what it says when it fails.
func (f *folder) output(name string, args ...string) error {
	cmd := exec.Command(name, args...)
	cmd.Dir = f.path
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: f.owner}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", filepath.Base(name), err, strings.TrimSpace(string(out)))
	}
	return nil
}
