package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-registry/gatehouse/testdata/interop/serving"
)

// stepSeconds bounds one run of a client.
const stepSeconds = 120

// count is what came out.
type count struct{ passed, failed int }

// round is one client at work: its own home folder, so that it signs in by itself, and what it may push.
type round struct {
	ctx    context.Context
	client string
	reg    *serving.Registry
	host   string
	people people
	sf     string

	dir  string // the working folder of every command; the client's home lies in it
	env  []string
	sum  *count
	tell bool

	stdin string // of the next command
}

func newRound(ctx context.Context, o options, name, dir string, reg *serving.Registry, p people, sum *count) (*round, error) {
	r := &round{ctx: ctx, client: name, reg: reg, host: reg.Host, people: p, sf: o.sf, dir: filepath.Join(dir, name), sum: sum, tell: o.verbose}
	home := filepath.Join(r.dir, "home")
	if err := os.MkdirAll(filepath.Join(home, "run"), 0o700); err != nil {
		return nil, err
	}
	own := slices.DeleteFunc(os.Environ(), func(e string) bool {
		return strings.HasPrefix(e, "REGISTRY_AUTH_FILE=") || strings.HasPrefix(e, "DOCKER_CONFIG=")
	})
	r.env = append(own, "HOME="+home, "XDG_CONFIG_HOME="+home+"/.config", "XDG_RUNTIME_DIR="+home+"/run", "XDG_DATA_HOME="+home+"/share",
		"XDG_CACHE_HOME="+home+"/cache",
		"PATH="+o.bin+string(os.PathListSeparator)+os.Getenv("PATH"), "COSIGN_PASSWORD=acceptance", "TUF_ROOT="+home+"/tuf")
	if reg.CAFile != "" {
		r.env = append(r.env, "SSL_CERT_FILE="+reg.CAFile)
	}
	if err := r.makeFixtures(); err != nil {
		return nil, fmt.Errorf("fixtures of %s: %w", name, err)
	}
	return r, nil
}

// repo is a repository of the account that signs in: alice/<client>/<name>.
func (r *round) repo(name string) string { return r.host + "/alice/" + r.client + "/" + name }

// foreign is a repository of somebody else.
func (r *round) foreign(name string) string { return r.host + "/bob/" + name }

// file is a path below the working folder.
func (r *round) file(name string) string { return filepath.Join(r.dir, name) }

// read gives a file that a client has written; what can't be read differs from everything.
func (r *round) read(name string) string {
	b, err := os.ReadFile(r.file(name))
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// with gives the next command its standard input.
func (r *round) with(stdin string) *round {
	r.stdin = stdin
	return r
}

// ok runs a command that must succeed, and gives what it printed to stdout.
func (r *round) ok(what string, command ...string) string {
	out, all, err := r.command(command)
	r.settle(what, command, all, err)
	return out
}

// shows runs a command that must succeed and print every text, to stdout or stderr.
func (r *round) shows(what string, texts []string, command ...string) string {
	out, all, err := r.command(command)
	if err == nil {
		err = holds(all, texts)
	}
	r.settle(what, command, all, err)
	return out
}

// refused runs a command that must fail with every text on the screen.
func (r *round) refused(what string, texts []string, command ...string) {
	_, all, err := r.command(command)
	if _, exited := err.(*exec.ExitError); exited {
		err = holds(all, texts)
	} else if err == nil {
		err = fmt.Errorf("it succeeded")
	}
	r.settle(what, command, all, err)
}

// same compares what came back with what went in.
func (r *round) same(what, got, want string) {
	var err error
	if got != want {
		err = fmt.Errorf("got %.200q, want %.200q", got, want)
	}
	r.settle(what, nil, "", err)
}

func holds(screen string, texts []string) error {
	flat := strings.NewReplacer(`\\\"`, `"`, `\"`, `"`).Replace(screen) // clients quote what a server said, some twice
	for _, text := range texts {
		if !strings.Contains(flat, text) {
			return fmt.Errorf("the screen lacks %q", text)
		}
	}
	return nil
}

func (r *round) command(command []string) (stdout, all string, err error) {
	ctx, cancel := context.WithTimeout(r.ctx, stepSeconds*time.Second)
	defer cancel()
	path, err := lookPath(command[0], r.env)
	if err != nil {
		return "", "", err
	}
	cmd := exec.CommandContext(ctx, path, command[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdin = r.dir, r.env, strings.NewReader(r.stdin)
	r.stdin = ""
	var out, both bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &both
	err = cmd.Run()
	return out.String(), out.String() + both.String(), err
}

// lookPath finds a client in the PATH that it will have itself, so that the folder of clients comes first.
func lookPath(name string, env []string) (string, error) {
	if filepath.IsAbs(name) {
		return name, nil
	}
	for _, e := range env {
		if list, ok := strings.CutPrefix(e, "PATH="); ok {
			for _, dir := range filepath.SplitList(list) {
				path := filepath.Join(dir, name)
				if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
					return path, nil
				}
			}
		}
	}
	return "", fmt.Errorf("%s is not installed", name)
}

// settle counts a step and says what became of it.
func (r *round) settle(what string, command []string, screen string, err error) {
	scheme, _, _ := strings.Cut(r.reg.URL, ":")
	if r.reg.Basic {
		scheme += " with Basic"
	}
	name := fmt.Sprintf("%s over %s: %s", r.client, scheme, what)
	if err == nil {
		r.sum.passed++
		fmt.Printf("ok    %s\n", name)
	} else {
		r.sum.failed++
		fmt.Printf("FAIL  %s: %v\n", name, err)
	}
	if err != nil || r.tell {
		if command != nil {
			fmt.Printf("      $ %s\n", strings.Join(command, " "))
		}
		for line := range strings.Lines(screen) {
			fmt.Printf("      %s\n", strings.TrimRight(line, "\n"))
		}
	}
}
