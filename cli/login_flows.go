package cli

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/api/wire"
	"github.com/gatehouse-registry/gatehouse/registry/client"
)

// What a client waits for.
const (
	browserWait = 3 * time.Minute // for the user to say yes at the page
	slowerBy    = 5 * time.Second // after the server said to slow down (RFC 8628)
	slowest     = time.Minute
)

// hasDisplay reports whether a browser on this machine is one that the user sees.
func (e *Env) hasDisplay() bool {
	switch {
	case e.Vars["SSH_CONNECTION"] != "" || e.Vars["SSH_TTY"] != "":
		return false
	case runtime.GOOS == "darwin":
		return true
	}
	return e.Vars["DISPLAY"] != "" || e.Vars["WAYLAND_DISPLAY"] != ""
}

// deviceText is what this client says of itself at a sign-in, for the user to know it by.
func (e *Env) deviceText() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	text, err := json.Marshal(registry.Device{
		Hostname: host, OS: runtime.GOOS, Machine: runtime.GOARCH, Platform: runtime.GOOS + "/" + runtime.GOARCH, User: e.Vars["USER"],
		Terminal: e.Vars["TERM"], Shell: filepath.Base(e.Vars["SHELL"]), CLIVersion: Version, Source: "gatehouse-cli",
	})
	if err != nil {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

// deviceSignIn shows a code and waits until somebody has approved it.
func (a app) deviceSignIn(ctx context.Context, c *client.Client) (session, error) {
	code, err := c.StartDevice(ctx, a.env.deviceText())
	if err != nil {
		return session{}, err
	}
	page := code.VerificationAll
	if page == "" {
		page = code.Verification
	}
	fmt.Fprintf(a.env.Err, "Finish the sign-in in a browser:\n\n  Open  %s\n  Code  %s\n\n", printable(page), printable(code.UserCode))
	interval := max(time.Duration(code.Interval)*time.Second, time.Second)
	end := time.Now().Add(time.Duration(code.ExpiresIn) * time.Second)
	for time.Now().Before(end) {
		select {
		case <-time.After(interval):
		case <-ctx.Done():
			return session{}, ctx.Err()
		}
		got, err := c.PollDevice(ctx, code.DeviceCode)
		switch refusal, _ := errors.AsType[*registry.Error](err); {
		case err == nil:
			return sessionOf(got), nil
		case refusal == nil || refusal.Code != registry.GrantPending && refusal.Code != registry.TooManyRequests:
			return session{}, err
		case refusal.Code == registry.TooManyRequests || refusal.Message == "slow_down":
			interval = min(interval+slowerBy, slowest)
		}
	}
	return session{}, registry.Errorf(registry.GrantInvalid, "nobody approved the sign-in in time: try again")
}

// browserSignIn opens the server's page in a browser of this machine and waits for what it brings.
func (a app) browserSignIn(ctx context.Context, c *client.Client) (session, error) {
	verifier, state := rand.Text()+rand.Text(), rand.Text()
	sum := sha256.Sum256([]byte(verifier))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return session{}, err
	}
	redirect := "http://" + listener.Addr().String() + "/callback"
	brought := make(chan arrival, 1)
	server := &http.Server{Handler: callback(state, c.SuccessPage(), brought), ReadHeaderTimeout: 10 * time.Second}
	go server.Serve(listener) // ends with Close
	defer server.Close()

	page := c.AuthorizePage(redirect, state, base64.RawURLEncoding.EncodeToString(sum[:]), a.env.deviceText())
	fmt.Fprintf(a.env.Err, "Finish the sign-in in the browser. Should none open, open this address in one on this machine:\n\n  %s\n\n", page)
	a.env.openBrowser(ctx, page)
	select {
	case <-ctx.Done():
		return session{}, ctx.Err()
	case <-time.After(browserWait):
		return session{}, registry.Errorf(registry.GrantInvalid, "nobody finished the sign-in in %s: try again, or use --device", browserWait)
	case got := <-brought:
		if got.err != nil {
			return session{}, got.err
		}
		in, err := c.RedeemCode(ctx, wire.RedeemCode{Code: got.code, Verifier: verifier, RedirectURI: redirect})
		shut, cancel := context.WithTimeout(ctx, time.Second) // the browser is on its way to the last page
		defer cancel()
		server.Shutdown(shut)
		return sessionOf(in), err
	}
}

// arrival is what the browser brought.
type arrival struct {
	code string
	err  error
}

// callback takes what the browser brings from the server's page: once, and only with the state that this sign-in began with.
func callback(state, success string, brought chan<- arrival) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /callback", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(state)) != 1 {
			http.Error(w, "This is not the sign-in that was started here.", http.StatusBadRequest)
			return
		}
		got := arrival{code: q.Get("code")}
		if reason := q.Get("error"); reason != "" || got.code == "" {
			got.err = registry.Errorf(registry.Denied, "the sign-in was refused at the page (%s)", printable(reason))
		}
		select {
		case brought <- got:
		default: // it was brought before
		}
		w.Header().Set("Connection", "close")
		if got.err != nil {
			fmt.Fprintln(w, "The sign-in was refused. You can close this page.")
			return
		}
		http.Redirect(w, r, success, http.StatusFound)
	})
	return mux
}

// openBrowser tries to open an address. Whether that worked, nobody can tell: the address was printed.
func (e *Env) openBrowser(ctx context.Context, address string) {
	opener := "xdg-open"
	switch {
	case e.Vars["BROWSER"] != "":
		opener = e.Vars["BROWSER"]
	case runtime.GOOS == "darwin":
		opener = "open"
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), opener, address)
	cmd.Env = e.environ
	if err := cmd.Start(); err == nil {
		go cmd.Wait() // so that it leaves no zombie
	}
}
