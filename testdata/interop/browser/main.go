// Command browser signs the unmodified clients of both platforms, and ours, in at the pages of a registry with a real Chromium:
// by the device flow and by the browser flow with PKCE, to the end. It looks at what only a browser knows: that the pages breach
// no policy of their own, that no page may frame them or send their forms, and that every field has a name.
//
//	go run ./testdata/interop/browser -server URL -token T -sf bin/sf -venv DIR
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "browser:", err)
		os.Exit(1)
	}
}

// round is a run of all checks.
type round struct {
	*driver
	ctx               context.Context
	server, dir       string
	account, password string
	passed, failed    int
}

// check counts a check and tells how it ended.
func (r *round) check(name string, err error) {
	if err != nil {
		r.failed++
		fmt.Printf("FAIL %s: %v\n", name, err)
		return
	}
	r.passed++
	fmt.Printf("ok   %s\n", name)
}

func run(ctx context.Context) (err error) {
	server := flag.String("server", "", "address of the registry")
	token := flag.String("token", "", "an administrator's token")
	sf := flag.String("sf", "", "path of the sf binary")
	venv := flag.String("venv", "", "folder of the platforms' clients")
	chromedriver := flag.String("chromedriver", "chromedriver", "the program that steers Chromium")
	flag.Parse()
	dir, err := os.MkdirTemp("", "gatehouse-browser-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	r := &round{ctx: ctx, server: *server, dir: dir, account: "ann-" + strings.ToLower(rand.Text()[:6]), password: rand.Text()}
	if err := addAccount(r.server, *token, r.account, r.password); err != nil {
		return err
	}
	for _, c := range clients(*venv, *sf) {
		if r.driver, err = startDriver(ctx, *chromedriver); err != nil {
			return fmt.Errorf("start Chromium: %w", err)
		}
		r.check(c.name+".device", r.device(c))
		r.check(c.name+".browser", r.browser(c))
		r.check(c.name+".browser-refused", r.refused(c))
		r.check(c.name+".policy-kept", r.silent())
		if err := r.close(); err != nil {
			return err
		}
	}
	if r.driver, err = startDriver(ctx, *chromedriver); err != nil {
		return fmt.Errorf("start Chromium: %w", err)
	}
	r.check("fields-have-names", r.named())
	r.check("base-path", r.basePath())
	r.check("no-frame", r.framed())
	r.check("no-form-of-another-site", r.forged())
	err = r.close()
	fmt.Printf("%d passed, %d failed\n", r.passed, r.failed)
	if r.failed > 0 {
		err = errors.Join(err, errors.New("checks failed"))
	}
	return err
}

// signIn signs in at the page that is open.
func (r *round) signIn(password string) error {
	return errors.Join(r.fill("#account", r.account), r.fill("#secret", password), r.click("button[value=signin]"))
}

// ended waits for a client that must be signed in.
func (r *round) ended(l *login) error {
	text, err := l.end()
	if lower := strings.ToLower(text); err != nil || !strings.Contains(lower, "logged in") && !strings.Contains(lower, "signed in at") {
		return fmt.Errorf("the client is not signed in (%v): %.500s", err, text)
	}
	return nil
}

// device signs a client in with the code that it shows.
func (r *round) device(c client) error {
	l, err := c.start(r.ctx, r.dir, r.server, c.device)
	if err != nil {
		return err
	}
	code, address, err := l.code()
	if err != nil {
		return err
	}
	if !strings.HasPrefix(address, r.server+"/cli/device?") {
		return fmt.Errorf("the client is told to open %s", address)
	}
	if err := r.open(address); err != nil {
		return err
	}
	if err := errors.Join(r.signIn("not the password"), r.waitFor("the account or its password is wrong")); err != nil {
		return err
	}
	if err := errors.Join(r.signIn(r.password), r.waitFor("Type the code")); err != nil {
		return err
	}
	if err := errors.Join(r.click("button[value=find]"), r.waitFor(code), r.waitFor("tester@")); err != nil {
		return err
	}
	if err := errors.Join(r.click("button[value=approve]"), r.waitFor("is signed in as")); err != nil {
		return err
	}
	return r.ended(l)
}

// browser signs a client in that opens a browser. The browser is signed in already, by device.
func (r *round) browser(c client) error {
	l, err := c.start(r.ctx, r.dir, r.server, c.browser)
	if err != nil {
		return err
	}
	address, err := l.address()
	if err != nil {
		return err
	}
	if err := errors.Join(r.open(address), r.waitFor("will be able to do all"), r.click("button[value=approve]"), r.waitFor("The client is signed in")); err != nil {
		return err
	}
	if at, err := r.address(); err != nil || at != r.server+"/cli/success" {
		return fmt.Errorf("the browser ends at %s (%v)", at, err)
	}
	return r.ended(l)
}

// refused says no to a client.
func (r *round) refused(c client) error {
	l, err := c.start(r.ctx, r.dir, r.server, c.browser)
	if err != nil {
		return err
	}
	address, err := l.address()
	if err != nil {
		return err
	}
	if err := errors.Join(r.open(address), r.click("button[value=deny]")); err != nil {
		return err
	}
	if text, err := l.end(); err == nil || !strings.Contains(text, "access_denied") {
		return fmt.Errorf("the client that was refused ends with %v: %.500s", err, text)
	}
	return nil
}

// silent holds the browser to have had nothing to complain about but the sign-in that was refused, and the icon of a client
// that says no and is gone.
func (r *round) silent() error {
	lines, err := r.complaints()
	for _, line := range lines {
		if !strings.Contains(line, "401") && !strings.Contains(line, "/favicon.ico ") {
			err = errors.Join(err, errors.New(line))
		}
	}
	return err
}

// named has every field and button tell its name to who can't see it.
func (r *round) named() error {
	if err := r.open(r.server + "/cli/device"); err != nil {
		return err
	}
	parts, err := r.each("input:not([type=hidden]), button")
	if err != nil || len(parts) != 3 {
		return fmt.Errorf("%d fields and buttons, want 3 (%v)", len(parts), err)
	}
	for i, want := range []string{"Account", "Password or token", "Sign in"} {
		var label string
		if err := r.call("GET", parts[i]+"/computedlabel", nil, &label); err != nil || label != want {
			return fmt.Errorf("part %d is called %q, want %q (%v)", i, label, want, err)
		}
	}
	return nil
}

// basePath goes through the page below the path of a client.
func (r *round) basePath() error {
	if err := errors.Join(r.open(r.server+"/sf/cli/device"), r.signIn(r.password), r.waitFor("Type the code")); err != nil {
		return err
	}
	if err := errors.Join(r.fill("#code", "BCDF-GHJK"), r.click("button[value=find]"), r.waitFor("no sign-in waits for the code")); err != nil {
		return err
	}
	at, err := r.address()
	if err == nil && at != r.server+"/sf/cli/device" {
		err = fmt.Errorf("the browser is at %s", at)
	}
	return err
}

// framed tries to show the page inside another one, and something that may be framed.
func (r *round) framed() error {
	for path, want := range map[string]bool{"/healthz": true, "/cli/device": false, "/cli/success": false} {
		if err := r.trap("<h1>trap</h1><iframe src='" + r.server + path + "'></iframe>"); err != nil {
			return err
		}
		frame, err := r.find("iframe")
		if err != nil {
			return err
		}
		id := map[string]any{"id": map[string]string{elementKey: strings.TrimPrefix(frame, "/element/")}}
		var source string
		if err := errors.Join(r.call("POST", "/frame", id, nil), r.call("GET", "/source", nil, &source)); err != nil {
			return err
		}
		if shown := strings.Contains(source, "ok\n") || strings.Contains(source, "Gatehouse"); shown != want {
			return fmt.Errorf("%s in a frame of another page: shown %v, want %v: %.200s", path, shown, want, source)
		}
	}
	return nil
}

// forged sends a form from another site's page, in a browser that is signed in.
func (r *round) forged() error {
	page := "<form method=post action='" + r.server + "/cli/device'><input name=do value=approve><input name=user_code value=BCDFGHJK><button>x</button></form>"
	return errors.Join(r.trap(page), r.click("button"), r.waitFor("another site"))
}

// trap opens a page of another site, which this program serves.
func (r *round) trap(page string) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		io.WriteString(w, "<!doctype html><title>trap</title>"+page)
	})}
	go s.Serve(l) // ends with Close
	defer s.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		return err
	}
	return r.open("http://localhost:" + port + "/")
}
