package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// driver is a Chromium that chromedriver steers, by the WebDriver protocol.
type driver struct {
	base    string // of the session
	http    *http.Client
	process *exec.Cmd
}

// elementKey is what a reference to an element stands under (W3C WebDriver, 12.1).
const elementKey = "element-6066-11e4-a52e-4f735466cecf"

// patience is how long a page may take to show what is looked for.
const patience = 20 * time.Second

// startDriver starts a browser with an empty profile. The caller closes it.
func startDriver(ctx context.Context, chromedriver string) (d *driver, err error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	d = &driver{base: "http://127.0.0.1:" + strconv.Itoa(port), http: &http.Client{Timeout: time.Minute}}
	d.process = exec.CommandContext(ctx, chromedriver, "--port="+strconv.Itoa(port), "--log-level=SEVERE")
	if err := d.process.Start(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			d.close()
		}
	}()
	capabilities := map[string]any{
		"browserName": "chrome", "goog:loggingPrefs": map[string]string{"browser": "ALL"},
		"goog:chromeOptions": map[string]any{"args": []string{
			"--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking", "--disable-component-update",
			"--no-first-run", "--disable-sync", "--disable-quic", "--window-size=480,900",
		}},
	}
	var session struct{ SessionID string }
	for end := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		err = d.call(http.MethodPost, "/session", map[string]any{"capabilities": map[string]any{"alwaysMatch": capabilities}}, &session)
		if _, refused := errors.AsType[*net.OpError](err); !refused || time.Now().After(end) {
			break
		}
	}
	d.base += "/session/" + session.SessionID
	return d, err
}

// freePort is one that nobody listens at: chromedriver wants to be told.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

func (d *driver) close() error {
	err := d.call(http.MethodDelete, "", nil, nil)
	d.process.Process.Kill()
	d.process.Wait() // killed
	return err
}

// call makes a request of the protocol and decodes its value.
func (d *driver) call(method, path string, in, out any) error {
	var body io.Reader = http.NoBody
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(text)
	}
	r, err := http.NewRequest(method, d.base+path, body)
	if err != nil {
		return err
	}
	res, err := d.http.Do(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	var answer struct{ Value json.RawMessage }
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s: %.300s", method, path, answer.Value)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(answer.Value, out)
}

func (d *driver) open(address string) error {
	return d.call(http.MethodPost, "/url", map[string]string{"url": address}, nil)
}

// address is where the browser is.
func (d *driver) address() (s string, err error) {
	err = d.call(http.MethodGet, "/url", nil, &s)
	return s, err
}

// find waits for the first element that a selector names.
func (d *driver) find(selector string) (path string, err error) {
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		var found map[string]string
		err = d.call(http.MethodPost, "/element", map[string]string{"using": "css selector", "value": selector}, &found)
		if err == nil || time.Now().After(end) {
			return "/element/" + found[elementKey], err
		}
	}
}

// each lists what a selector names.
func (d *driver) each(selector string) (paths []string, err error) {
	var found []map[string]string
	err = d.call(http.MethodPost, "/elements", map[string]string{"using": "css selector", "value": selector}, &found)
	for _, f := range found {
		paths = append(paths, "/element/"+f[elementKey])
	}
	return paths, err
}

func (d *driver) text(selector string) (s string, err error) {
	path, err := d.find(selector)
	if err == nil {
		err = d.call(http.MethodGet, path+"/text", nil, &s)
	}
	return s, err
}

// fill types into a field, in the place of what stands there.
func (d *driver) fill(selector, text string) error {
	path, err := d.find(selector)
	if err != nil {
		return err
	}
	return errors.Join(d.call(http.MethodPost, path+"/clear", struct{}{}, nil), d.call(http.MethodPost, path+"/value", map[string]string{"text": text}, nil))
}

func (d *driver) click(selector string) error {
	path, err := d.find(selector)
	if err != nil {
		return err
	}
	return d.call(http.MethodPost, path+"/click", struct{}{}, nil)
}

// waitFor waits until the page's text holds a text.
func (d *driver) waitFor(want string) error {
	last := ""
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if text, err := d.text("body"); err == nil {
			if last = text; strings.Contains(text, want) {
				return nil
			}
		}
	}
	return fmt.Errorf("the page does not say %q: %.400q", want, last)
}

// complaints is what the browser wrote into its console since the last call: breaches of a page's policy stand there.
func (d *driver) complaints() ([]string, error) {
	var lines []struct{ Message string }
	err := d.call(http.MethodPost, "/se/log", map[string]string{"type": "browser"}, &lines)
	var out []string
	for _, l := range lines {
		out = append(out, l.Message)
	}
	return out, err
}
