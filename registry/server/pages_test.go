package server_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/api/wire"
)

const verifier = "a-verifier-that-is-long-enough-for-anybody-0123456789"

// authorizePath is the page of authorization as a client opens it, with some of its parameters changed.
func authorizePath(tb testing.TB, changed ...string) string {
	sum := sha256.Sum256([]byte(verifier))
	q := url.Values{
		"redirect_uri": {"http://127.0.0.1:43210/callback"}, "state": {"s&t=a te"}, "challenge": {base64.RawURLEncoding.EncodeToString(sum[:])},
		"device": {deviceText(tb, laptop)},
	}
	for i := 0; i+1 < len(changed); i += 2 {
		q.Set(changed[i], changed[i+1])
	}
	return "/cli/authorize?" + q.Encode()
}

// authorized signs in at the page, says yes, and gives the code that the browser brings to the client.
func (b *browser) authorized(account string) string {
	b.tb.Helper()
	path := authorizePath(b.tb)
	page := b.open(path).want(b.tb, http.StatusOK)
	if !strings.Contains(string(page.body), "Signed in as") {
		page = b.signIn(path, account, b.tokens[account])
	}
	r := b.submit(path, page, "approve").want(b.tb, http.StatusSeeOther)
	to, err := url.Parse(r.header.Get("Location"))
	if err != nil || !strings.HasPrefix(to.String(), "http://127.0.0.1:43210/callback?") || to.Query().Get("state") != "s&t=a te" {
		b.tb.Fatalf("the browser is sent to %v (%v)", to, err)
	}
	return to.Query().Get("code")
}

func (g *gatehouse) redeem(code, verifier, redirect string) reply {
	g.tb.Helper()
	return g.send("", http.MethodPost, "/api/cli/token", map[string]string{"code": code, "verifier": verifier, "redirect_uri": redirect, "device": "x"})
}

// TestBrowserFlow binds a code to its client: by PKCE, by the address, once, for a minute.
func TestBrowserFlow(t *testing.T) {
	g := startGatehouse(t)
	b := newBrowser(t, g)
	const redirect = "http://127.0.0.1:43210/callback"
	code := b.authorized("alice")
	g.redeem(code, verifier+"x", redirect).want(t, http.StatusBadRequest)
	g.redeem(code, "", redirect).want(t, http.StatusBadRequest)
	g.redeem(code, verifier, "http://127.0.0.1:43211/callback").want(t, http.StatusBadRequest)
	g.redeem("x", verifier, redirect).want(t, http.StatusBadRequest)
	g.redeem(strings.Repeat("x", 10_000), strings.Repeat("y", 10_000), redirect).want(t, http.StatusBadRequest)
	var in wire.SignedIn
	g.redeem(code, verifier, redirect).want(t, http.StatusOK).into(t, &in)
	if in.User.Username != "alice" || g.whoami(in.AccessToken) != http.StatusOK {
		t.Errorf("signed in: %+v", in)
	}
	g.redeem(code, verifier, redirect).want(t, http.StatusBadRequest)
	if got := g.whoami(in.AccessToken); got != http.StatusUnauthorized {
		t.Errorf("a code was shown twice, and its session lives: %d", got)
	}
	late := b.authorized("alice")
	g.sleep(61 * time.Second)
	g.redeem(late, verifier, redirect).want(t, http.StatusBadRequest)

	path := authorizePath(t)
	r := b.submit(path, b.open(path), "deny").want(t, http.StatusSeeOther)
	if got := r.header.Get("Location"); got != redirect+"?error=access_denied&state=s%26t%3Da+te" {
		t.Errorf("after a no the browser is sent to %s", got)
	}
	b.open("/cli/success").want(t, http.StatusOK)
	b.open("/sf/cli/success").want(t, http.StatusOK)
	b.open("/sf"+path).want(t, http.StatusOK)
}

// TestRedirects: the page sends a browser nowhere but to a client on its own machine, and says why not.
func TestRedirects(t *testing.T) {
	g := startGatehouse(t)
	b := newBrowser(t, g)
	b.signIn("/cli/device", "alice", g.tokens["alice"])
	for _, address := range []string{
		"", "x", "//evil.example/", "https://evil.example/", "http://evil.example:80/callback", "https://127.0.0.1:1/callback", "http://127.0.0.1/callback",
		"http://127.0.0.1:0/callback", "http://127.0.0.1:99999/callback", "http://127.0.0.1:1", "http://127.0.0.1:1@evil.example/", "http://evil.example#@127.0.0.1:1/",
		"http://127.0.0.1:1/callback#x", "http://127.0.0.1:1/callback?x=1", "http://127.0.0.1:1/a\r\nSet-Cookie: x=1", "http://127.0.0.1:01/callback",
		"http://127.0.0.1.evil.example:1/", "http://localhost.evil.example:1/", "http://127.1:1/", "http://0x7f000001:1/", "http://2130706433:1/",
		"http://127.0.0.2:1/", "http://0.0.0.0:1/", "http://[::ffff:127.0.0.1]:1/", "HTTP://127.0.0.1:1/", "http://LOCALHOST:1/", "http:127.0.0.1:1/", "http:\\\\127.0.0.1:1/",
		"javascript:alert(1)//127.0.0.1:1/", "data:text/html,x", "http://127.0.0.1:1/%0d%0ax", "http://127.0.0.1:1/\"><b>", "http://127.0.0.1:1/" + strings.Repeat("a", 300),
		"http://user@127.0.0.1:1/", "http://127.0.0.1:1//../..\\x", " http://127.0.0.1:1/", "http://127.0.0.1 :1/", "http://127.0.0.1:+1/", "http://①27.0.0.1:1/",
	} {
		path := authorizePath(t, "redirect_uri", address)
		for _, r := range []reply{b.open(path), b.post(path, url.Values{"do": {"deny"}}, nil), b.post(path, url.Values{"do": {"approve"}}, nil)} {
			if _, err := pageRefusal(r.want(t, http.StatusUnprocessableEntity)); err != nil || r.header.Get("Location") != "" {
				t.Errorf("redirect_uri %q: to %q (%v)", address, r.header.Get("Location"), err)
			}
		}
	}
	for _, bad := range [][]string{
		{"challenge", ""}, {"challenge", strings.Repeat("a", 42)}, {"challenge", strings.Repeat("a", 44)}, {"challenge", strings.Repeat("!", 43)}, {"challenge", strings.Repeat("a", 42) + "="},
		{"state", strings.Repeat("s", 600)}, {"device", "{}"}, {"device", strings.Repeat("A", 9000)},
	} {
		b.open(authorizePath(t, bad...)).want(t, http.StatusUnprocessableEntity)
	}
	b.open(authorizePath(t)+"&redirect_uri=http%3A%2F%2Fevil.example%3A1%2F").want(t, http.StatusUnprocessableEntity)
	for _, good := range []string{"http://127.0.0.1:1/callback", "http://localhost:65535/", "http://127.0.0.1:8080/a/b-c_d.e~f"} {
		r := b.open(authorizePath(t, "redirect_uri", good)).want(t, http.StatusOK)
		origin := good[:strings.Index(good[7:], "/")+7]
		if csp := r.header.Get("Content-Security-Policy"); !strings.Contains(csp, "form-action 'self' "+origin+";") {
			t.Errorf("%s: policy %s", good, csp)
		}
	}
}

// TestForms: only a form that this server gave this browser, sent by its own page, does anything.
func TestForms(t *testing.T) {
	g := startGatehouse(t)
	b, stranger := newBrowser(t, g), newBrowser(t, g)
	b.signIn("/cli/device", "alice", g.tokens["alice"])
	stranger.signIn("/cli/device", "bob", g.tokens["bob"])
	const path = "/cli/device"
	code := g.startDevice(laptop)
	approve := func(form string) url.Values {
		return url.Values{"form": {form}, "do": {"approve"}, "user_code": {code.UserCode}}
	}
	good := b.formOf(b.open(path))
	for what, r := range map[string]reply{
		"no token":               b.post(path, approve(""), nil),
		"the token of another":   b.post(path, approve(stranger.formOf(stranger.open(path))), nil),
		"another origin":         b.post(path, approve(good), map[string]string{"Origin": "https://evil.example"}),
		"another site":           b.post(path, approve(good), map[string]string{"Sec-Fetch-Site": "cross-site"}),
		"a sibling site":         b.post(path, approve(good), map[string]string{"Sec-Fetch-Site": "same-site", "Origin": g.url}),
		"an origin of nothing":   b.post(path, approve(good), map[string]string{"Origin": "null"}),
		"no cookies":             newBrowser(t, g).post(path, approve(good), nil),
		"a sign-in of elsewhere": newBrowser(t, g).post(path, url.Values{"form": {good}, "do": {"signin"}, "account": {"alice"}, "secret": {g.tokens["alice"]}}, nil),
	} {
		if _, err := pageRefusal(r.want(t, http.StatusForbidden)); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	b.open(path+"?user_code="+code.UserCode+"&do=approve&form="+url.QueryEscape(good)).want(t, http.StatusOK)
	g.sleep(5 * time.Second)
	if got := said(t, g.poll(code.DeviceCode), http.StatusBadRequest); got != "authorization_pending" {
		t.Fatalf("a form of another approved a sign-in: %s", got)
	}
	b.post(path, url.Values{"form": {good}, "do": {"nonsense"}}, nil).want(t, http.StatusUnprocessableEntity)
	b.post(path, url.Values{"form": {good}, "x": {strings.Repeat("y", 20<<10)}}, nil).want(t, http.StatusRequestEntityTooLarge)
	b.post(path, url.Values{"form": {good}}, map[string]string{"Content-Type": "text/plain"}).want(t, http.StatusUnprocessableEntity)

	// Signed out, the old form is worth nothing; the cookie neither, nor is it a token of the API.
	cookie := ""
	for _, c := range b.jar.Cookies(mustParse(t, g.url+"/")) {
		if c.Name == "gatehouse" {
			cookie = c.Value
		}
	}
	if got := g.whoami(cookie); cookie == "" || got != http.StatusUnauthorized {
		t.Errorf("the cookie is a token of the API: %d", got)
	}
	b.submit(path, b.open(path), "signout").want(t, http.StatusSeeOther)
	if b.signedIn(path) {
		t.Error("signed in after signing out")
	}
	stolen := newBrowser(t, g)
	stolen.jar.SetCookies(mustParse(t, g.url+"/"), []*http.Cookie{{Name: "gatehouse", Value: cookie, Path: "/"}})
	if stolen.signedIn(path) {
		t.Error("a cookie lives on after signing out")
	}
}

func mustParse(tb testing.TB, address string) *url.URL {
	tb.Helper()
	u, err := url.Parse(address)
	if err != nil {
		tb.Fatal(err)
	}
	return u
}

// TestCookiesOverTLS go nowhere but to this server, over TLS.
func TestCookiesOverTLS(t *testing.T) {
	g := startGatehouse(t, func(s *setup) { s.config.PublicURL = "https://registry.example.test" })
	inside := httptest.NewServer(g.server) // what a proxy that ends TLS speaks to
	defer inside.Close()
	g.url = inside.URL
	page := g.get("", "/cli/device").want(t, http.StatusOK)
	cookies := (&http.Response{Header: page.header}).Cookies()
	if len(cookies) != 1 || cookies[0].Name != "__Host-gatehouse-form" || !cookies[0].Secure {
		t.Errorf("cookies %v", cookies)
	}
	form := url.Values{"form": {newBrowser(t, g).formOf(page)}, "do": {"signin"}, "account": {"alice"}, "secret": {g.tokens["alice"]}}
	r := g.do(call{method: http.MethodPost, path: "/cli/device", body: []byte(form.Encode()), header: map[string]string{
		"Content-Type": "application/x-www-form-urlencoded", "Cookie": cookies[0].Name + "=" + cookies[0].Value, "Origin": "https://registry.example.test"}}).want(t, http.StatusSeeOther)
	if err := checkPage(r); err != nil {
		t.Error(err)
	}
	if got := r.header.Get("Set-Cookie"); !strings.HasPrefix(got, "__Host-gatehouse=") || !strings.Contains(got, "; Secure") {
		t.Errorf("Set-Cookie: %s", got)
	}
	code := g.startDevice(laptop)
	if code.Verification != "https://registry.example.test/cli/device" {
		t.Errorf("handed out: %s", code.Verification)
	}
}

// TestWhatClientsSayOfThemselves stands in pages as text, whatever it is.
func TestWhatClientsSayOfThemselves(t *testing.T) {
	g := startGatehouse(t)
	b := newBrowser(t, g)
	b.signIn("/cli/device", "alice", g.tokens["alice"])
	evil := `"><script>alert(1)</script><img src=x onerror=alert(1)>'{{.Form}}`
	d := registry.Device{Hostname: evil, User: "a\u202eb", Platform: evil, CLIVersion: evil, Source: evil, OS: strings.Repeat("長", 3000)[:2000]}
	code := g.startDevice(d)
	found := b.submit("/cli/device", b.open("/cli/device"), "find", "user_code", code.UserCode).want(t, http.StatusOK)
	pages := []reply{found, b.open(authorizePath(t, "device", deviceText(t, d))), b.open("/cli/device?user_code=" + url.QueryEscape(evil)), b.open("/cli/" + url.PathEscape(evil))}
	for i, r := range pages {
		text := string(r.body)
		if strings.Contains(text, "<script") || strings.Contains(text, "<img src=x") || strings.ContainsAny(text, "\x00\x1b\u202e") {
			t.Errorf("page %d holds what a client said: %s", i, text)
		}
	}
	if !strings.Contains(string(found.body), "&lt;script&gt;") {
		t.Errorf("the page does not show what the client said: %s", found.body)
	}
	g.approve(code.UserCode, "alice")
	var in wire.SignedIn
	g.poll(code.DeviceCode).want(t, http.StatusOK).into(t, &in)
	var list wire.SessionList
	g.get("alice", "/api/sessions").want(t, http.StatusOK).into(t, &list)
	for _, s := range list.Sessions {
		if len([]rune(s.Device.Name)) > 250 || strings.ContainsAny(s.Device.Name, "\x00\x1b\u202e") {
			t.Errorf("session of %q", s.Device.Name)
		}
	}
}

// TestSignInAtPages takes passwords and tokens of accounts, counts wrong ones, and says no more than that they are wrong.
func TestSignInAtPages(t *testing.T) {
	g := startGatehouse(t)
	g.send("admin", http.MethodPost, "/api/admin/users", wire.NewUser{Username: "pia", Password: "correct horse"}).want(t, http.StatusCreated)
	robot := g.robot("alice", "ci", scope("alice/**", "pull"))
	b := newBrowser(t, g)
	attempt := func(account, secret string) reply {
		t.Helper()
		return b.submit("/cli/device", b.open("/cli/device"), "signin", "account", account, "secret", secret)
	}
	texts := map[string]bool{}
	for _, bad := range [][2]string{{"pia", "wrong horse"}, {"nobody", "wrong horse"}, {"alice", "wrong horse"}, {"", ""}} {
		ref, err := pageRefusal(attempt(bad[0], bad[1]).want(t, http.StatusUnauthorized))
		if err != nil {
			t.Error(err)
		}
		texts[ref.Detail] = true
	}
	if len(texts) != 1 {
		t.Errorf("wrong sign-ins are told apart: %v", texts)
	}
	attempt("bob", g.tokens["alice"]).want(t, http.StatusUnauthorized)
	attempt(robot, g.tokens[robot]).want(t, http.StatusForbidden)
	attempt("alice", g.session("alice").AccessToken).want(t, http.StatusUnauthorized)
	for range 12 {
		attempt("pia", "wrong horse")
	}
	if r := attempt("pia", "correct horse"); r.status != http.StatusTooManyRequests {
		t.Errorf("after many wrong passwords: %d", r.status)
	}
	g.sleep(time.Hour)
	attempt("pia", "correct horse").want(t, http.StatusSeeOther)
	b.submit("/cli/device", b.open("/cli/device"), "signout").want(t, http.StatusSeeOther)

	var short wire.Token
	g.send("alice", http.MethodPost, "/api/tokens", wire.NewToken{ExpiresIn: 600}).want(t, http.StatusCreated).into(t, &short)
	// A session is worth no more than the token that it was made from.
	attempt("alice", short.Secret).want(t, http.StatusSeeOther)
	code := g.startDevice(laptop)
	b.approveDevice(code.UserCode)
	var in wire.SignedIn
	g.poll(code.DeviceCode).want(t, http.StatusOK).into(t, &in)
	if in.ExpiresIn > 600 {
		t.Errorf("a session of a token that lives for 600 s gives one of %d s", in.ExpiresIn)
	}
	body, _ := json.Marshal(wire.NewToken{})
	g.do(call{method: http.MethodPost, path: "/api/tokens", body: body, header: map[string]string{"Authorization": "Bearer " + in.AccessToken}}).want(t, http.StatusForbidden)
	g.do(call{as: "alice", method: http.MethodDelete, path: "/api/tokens/" + short.ID}).want(t, http.StatusNoContent)
	if got := g.whoami(in.AccessToken); got != http.StatusUnauthorized || b.signedIn("/cli/device") {
		t.Errorf("the token was revoked, and its sessions live: %d", got)
	}
}

// TestGuessingUserCodes is slowed down by account and by network, and right codes give no new tries.
func TestGuessingUserCodes(t *testing.T) {
	g := startGatehouse(t)
	b := newBrowser(t, g)
	b.signIn("/cli/device", "alice", g.tokens["alice"])
	guess := func(b *browser, code string) int {
		t.Helper()
		return b.submit("/cli/device", b.open("/cli/device"), "find", "user_code", code).status
	}
	for _, bad := range []string{"", "BCDF", "AEIO-UAEI", "BCDF-GHJK-L", strings.Repeat("B", 10_000), "BCDFGHJ1"} {
		if got := guess(b, bad); got != http.StatusUnprocessableEntity {
			t.Errorf("code %.20q: %d", bad, got)
		}
	}
	mine := g.startDevice(laptop)
	for i := range 10 {
		if got := guess(b, "BCDF-GHJK"); got != http.StatusNotFound {
			t.Fatalf("guess %d: %d", i, got)
		}
		if i == 4 && guess(b, mine.UserCode) != http.StatusOK {
			t.Fatal("a right code is refused")
		}
	}
	if got := guess(b, mine.UserCode); got != http.StatusTooManyRequests {
		t.Errorf("after ten guesses: %d", got)
	}
	other := newBrowser(t, g)
	other.signIn("/cli/device", "bob", g.tokens["bob"])
	if got := guess(other, "BCDF-GHJK"); got != http.StatusNotFound {
		t.Errorf("another account of the network: %d", got)
	}
	g.sleep(time.Hour)
	if got := guess(b, g.startDevice(laptop).UserCode); got != http.StatusOK {
		t.Errorf("after an hour: %d", got)
	}
}
