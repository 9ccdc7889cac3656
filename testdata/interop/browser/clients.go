package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// client is a command-line client that signs in.
type client struct {
	name    string
	program string
	device  []string // arguments of a sign-in with a code
	browser []string // and of one that opens a browser
}

// clients are the unmodified ones of both platforms and ours. {server} is the address.
func clients(venv, sf string) []client {
	platform := func(name string) client {
		login := []string{"login", "--server", "{server}"}
		return client{name, filepath.Join(venv, "bin", name), append(login, "--device-flow"), login}
	}
	ours := client{"gatehouse", sf, []string{"login", "{server}", "--device"}, []string{"login", "{server}", "--browser"}}
	return []client{platform("sf"), platform("tp"), ours}
}

// login is a client that is signing in.
type login struct {
	cmd   *exec.Cmd
	lines chan string // what it writes
	all   []string
	url   string // the file that the address ends up in which it opens a browser with
}

// start starts a sign-in with a home of its own.
func (c client) start(ctx context.Context, dir, server string, args []string) (*login, error) {
	home, err := os.MkdirTemp(dir, "home-")
	if err != nil {
		return nil, err
	}
	l := &login{url: filepath.Join(home, "address"), lines: make(chan string, 1000)}
	opener := filepath.Join(home, "open")
	script := "#!/bin/sh\nprintf %s \"$1\" > '" + l.url + ".new' && mv '" + l.url + ".new' '" + l.url + "'\n"
	if err := os.WriteFile(opener, []byte(script), 0o700); err != nil {
		return nil, err
	}
	full := make([]string, len(args))
	for i, a := range args {
		full[i] = strings.ReplaceAll(a, "{server}", server)
	}
	l.cmd = exec.CommandContext(ctx, c.program, full...)
	l.cmd.Dir = home
	l.cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "COLUMNS=300", "TERM=dumb", "NO_PROXY=*", "no_proxy=*", "USER=tester",
		"DISPLAY=:0", "BROWSER=" + opener}
	out, err := l.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	l.cmd.Stderr = l.cmd.Stdout
	if err := l.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(l.lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			l.lines <- s.Text()
		}
	}()
	return l, nil
}

var codeLine = regexp.MustCompile(`^\s*Code\s+(\S+)`)
var openLine = regexp.MustCompile(`^\s*Open\s+(\S+)`)

// code waits for the code that the client shows, and the address beside it.
func (l *login) code() (code, address string, err error) {
	for line := range l.lines {
		l.all = append(l.all, line)
		if m := openLine.FindStringSubmatch(line); m != nil {
			address = m[1]
		}
		if m := codeLine.FindStringSubmatch(line); m != nil {
			return m[1], address, nil
		}
	}
	return "", "", fmt.Errorf("the client shows no code: %q", l.all)
}

// address waits for the address that the client opens a browser with.
func (l *login) address() (string, error) {
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if text, err := os.ReadFile(l.url); err == nil {
			return string(text), nil
		}
	}
	return "", fmt.Errorf("the client opens no browser")
}

// end waits for the client and gives what it wrote.
func (l *login) end() (string, error) {
	for line := range l.lines {
		l.all = append(l.all, line)
	}
	err := l.cmd.Wait()
	return strings.Join(l.all, "\n"), err
}

// addAccount makes an account with a password.
func addAccount(server, token, name, password string) error {
	body, err := json.Marshal(map[string]string{"username": name, "password": password, "role": "operator"})
	if err != nil {
		return err
	}
	r, err := http.NewRequest(http.MethodPost, server+"/api/admin/users", bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusCreated {
		text, _ := io.ReadAll(io.LimitReader(res.Body, 1000))
		return fmt.Errorf("add account: %s: %s", res.Status, text)
	}
	return nil
}
