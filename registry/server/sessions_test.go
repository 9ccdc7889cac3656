package server_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/api/wire"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
)

// deviceText is what a client says of itself.
func deviceText(tb testing.TB, d registry.Device) string {
	tb.Helper()
	text, err := json.Marshal(d)
	if err != nil {
		tb.Fatal(err)
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

var laptop = registry.Device{Hostname: "laptop", User: "ann", OS: "Linux", CLIVersion: "0.3.51", Source: "forge-cli"}

// startDevice begins a device flow.
func (g *gatehouse) startDevice(d registry.Device) wire.DeviceCode {
	g.tb.Helper()
	var out wire.DeviceCode
	g.send("", http.MethodPost, "/api/cli/device/code", wire.StartDevice{Device: deviceText(g.tb, d)}).want(g.tb, http.StatusOK).into(g.tb, &out)
	return out
}

func (g *gatehouse) poll(code string) reply {
	g.tb.Helper()
	return g.send("", http.MethodPost, "/api/cli/device/token", wire.PollDevice{DeviceCode: code})
}

// approve approves a device flow as an administrator.
func (g *gatehouse) approve(userCode, account string) {
	g.tb.Helper()
	g.send("admin", http.MethodPost, "/api/admin/device/approve", wire.ApproveDevice{Code: userCode, Account: account}).want(g.tb, http.StatusOK)
}

// session signs a device in as an account.
func (g *gatehouse) session(account string) wire.SignedIn {
	g.tb.Helper()
	code := g.startDevice(laptop)
	g.approve(code.UserCode, account)
	var in wire.SignedIn
	g.poll(code.DeviceCode).want(g.tb, http.StatusOK).into(g.tb, &in)
	return in
}

func (g *gatehouse) refresh(token string) reply {
	g.tb.Helper()
	return g.send("", http.MethodPost, "/api/auth/refresh", wire.RefreshToken{RefreshToken: token})
}

// refreshed is refresh that succeeds.
func (g *gatehouse) refreshed(token string) wire.SignedIn {
	g.tb.Helper()
	var in wire.SignedIn
	g.refresh(token).want(g.tb, http.StatusOK).into(g.tb, &in)
	return in
}

// whoami is the status of a question with a token.
func (g *gatehouse) whoami(token string) int {
	g.tb.Helper()
	return g.with(token, http.MethodGet, "/api/whoami").status
}

func (g *gatehouse) sleep(d time.Duration) { g.ahead.Add(int64(d)) }

// said is the detail of a refusal.
func said(tb testing.TB, r reply, status int) string {
	tb.Helper()
	ref, err := refusalOf("/api/", r.want(tb, status))
	if err != nil {
		tb.Error(err)
	}
	return ref.Detail
}

// TestDeviceFlow goes through a device flow as the real clients do (wire.md 3.2): nothing but 200 is a yes, and what they act
// upon stands in the detail, word for word.
func TestDeviceFlow(t *testing.T) {
	g := startGatehouse(t)
	code := g.startDevice(laptop)
	if code.Verification != g.url+"/cli/device" || code.VerificationAll != g.url+"/cli/device?user_code="+code.UserCode || code.Interval < 1 || code.ExpiresIn != 900 {
		t.Errorf("the begin is %+v", code)
	}
	if len(code.UserCode) != 9 || strings.Trim(code.UserCode, "BCDFGHJKLMNPQRSTVWXZ-") != "" || code.UserCode[4] != '-' {
		t.Errorf("user code %q", code.UserCode)
	}
	if got := said(t, g.poll(code.DeviceCode), http.StatusBadRequest); got != "authorization_pending" {
		t.Errorf("the first question is answered %q", got)
	}
	if got := said(t, g.poll(code.DeviceCode), http.StatusBadRequest); got != "slow_down" {
		t.Errorf("a question too soon is answered %q", got)
	}
	g.sleep(time.Duration(code.Interval) * time.Second)
	if got := said(t, g.poll(code.DeviceCode), http.StatusBadRequest); got != "authorization_pending" {
		t.Errorf("a question in time is answered %q", got)
	}
	g.approve(strings.ToLower(strings.ReplaceAll(code.UserCode, "-", " ")), "alice")
	var in wire.SignedIn
	g.poll(code.DeviceCode).want(t, http.StatusOK).into(t, &in)
	if in.User.Username != "alice" || in.ExpiresIn != 3600 || g.whoami(in.AccessToken) != http.StatusOK {
		t.Errorf("signed in: %+v", in)
	}
	g.poll(code.DeviceCode).want(t, http.StatusBadRequest)
	g.send("admin", http.MethodPost, "/api/admin/device/approve", wire.ApproveDevice{Code: code.UserCode, Account: "bob"}).want(t, http.StatusNotFound)

	late := g.startDevice(laptop)
	g.sleep(16 * time.Minute)
	if got := said(t, g.poll(late.DeviceCode), http.StatusBadRequest); !strings.Contains(got, "expired") {
		t.Errorf("a late question is answered %q", got)
	}
	g.send("admin", http.MethodPost, "/api/admin/device/approve", wire.ApproveDevice{Code: late.UserCode, Account: "alice"}).want(t, http.StatusNotFound)
	for _, device := range []string{"", strings.Repeat("x", 9000), "!", "bm90IGpzb24", base64.RawURLEncoding.EncodeToString([]byte(`{"hostname":1}`)),
		deviceText(t, registry.Device{User: "a\x00b"}), deviceText(t, registry.Device{User: "\x1b[31m"})} {
		r := g.send("", http.MethodPost, "/api/cli/device/code", wire.StartDevice{Device: device})
		if want := map[bool]int{true: 200, false: 422}[device == ""]; r.status != want {
			t.Errorf("device %.20q: status %d, want %d", device, r.status, want)
		}
	}
	g.send("admin", http.MethodPost, "/api/admin/device/approve", wire.ApproveDevice{Code: g.startDevice(laptop).UserCode, Account: "nobody"}).want(t, http.StatusNotFound)
	g.send("alice", http.MethodPost, "/api/admin/device/approve", wire.ApproveDevice{Code: g.startDevice(laptop).UserCode, Account: "alice"}).want(t, http.StatusForbidden)
}

// TestDeviceCodesAreBounded: anybody may begin a sign-in, so not anybody may fill the database.
func TestDeviceCodesAreBounded(t *testing.T) {
	g := startGatehouse(t)
	body, _ := json.Marshal(wire.StartDevice{})
	n := 0
	for r := (reply{}); n < 1000; n++ {
		if r = g.do(call{method: http.MethodPost, path: "/api/cli/device/code", body: body}); r.status == http.StatusTooManyRequests {
			break
		}
		r.want(t, http.StatusOK)
	}
	if n != 200 {
		t.Errorf("%d sign-ins of one network wait at once, want 200", n)
	}
	g.sleep(16 * time.Minute)
	g.startDevice(laptop)
}

// TestRefreshTokens rotates them with a grace, and ends the session of one that comes too late.
func TestRefreshTokens(t *testing.T) {
	g := startGatehouse(t)
	first := g.session("alice")
	young := g.refreshed(first.RefreshToken)
	if young.RefreshToken != first.RefreshToken || young.AccessToken == first.AccessToken {
		t.Error("a refresh token that is young must come back as it is, with another access token")
	}
	g.sleep(2 * time.Minute)
	var all [8]wire.SignedIn
	var together sync.WaitGroup
	for i := range all { // parallel steps of a CI, with one credentials file
		together.Go(func() { all[i] = g.refreshed(first.RefreshToken) })
	}
	together.Wait()
	for i, in := range all {
		if in.RefreshToken == first.RefreshToken || g.whoami(in.AccessToken) != http.StatusOK {
			t.Errorf("parallel refresh %d: rotated %v, access %d", i, in.RefreshToken != first.RefreshToken, g.whoami(in.AccessToken))
		}
		if again := g.refreshed(in.RefreshToken); g.whoami(again.AccessToken) != http.StatusOK {
			t.Errorf("what parallel refresh %d gave is worth nothing", i)
		}
	}
	g.sleep(2 * time.Minute)
	if got := said(t, g.refresh(first.RefreshToken), http.StatusUnauthorized); !strings.Contains(got, "sign in again") {
		t.Errorf("reuse is answered %q", got)
	}
	for i, in := range all {
		if g.whoami(in.AccessToken) != http.StatusUnauthorized || g.refresh(in.RefreshToken).status != http.StatusUnauthorized {
			t.Errorf("the session lives on after a reuse: tokens %d", i)
		}
	}
	for _, bad := range []string{"", "x", first.AccessToken, g.tokens["alice"], strings.Repeat("a", 20_000)} {
		g.refresh(bad).want(t, http.StatusUnauthorized)
	}
}

// TestAccessToken holds a session's access token to its life, and to its use.
func TestAccessToken(t *testing.T) {
	g := startGatehouse(t)
	in := g.session("alice")
	if r := g.with(in.RefreshToken, http.MethodGet, "/api/whoami"); r.status != http.StatusUnauthorized {
		t.Errorf("a refresh token is taken for an access token: %d", r.status)
	}
	// It is a password of the account for OCI clients, directly and at the token endpoint.
	g.tokens["alice"] = in.AccessToken
	g.image("alice", "alice/x", "v1")
	var b bearerAnswer
	g.do(call{method: http.MethodGet, path: "/v2/token?scope=repository:alice/x:pull", header: basic("alice", in.AccessToken)}).want(t, http.StatusOK).into(t, &b)
	g.do(call{method: http.MethodGet, path: "/v2/token", header: basic("bob", in.AccessToken)}).want(t, http.StatusUnauthorized)
	g.with(b.Token, http.MethodGet, "/v2/alice/x/manifests/v1").want(t, http.StatusOK)
	g.with(b.Token, http.MethodGet, "/api/whoami").want(t, http.StatusUnauthorized)

	g.sleep(59 * time.Minute)
	if got := g.whoami(in.AccessToken); got != http.StatusOK {
		t.Errorf("after 59 minutes: %d", got)
	}
	g.sleep(2 * time.Minute)
	if got := g.whoami(in.AccessToken); got != http.StatusUnauthorized {
		t.Errorf("after an hour: %d", got)
	}
}

// TestSessionLife ends sessions that nobody refreshes, and those that lived long enough.
func TestSessionLife(t *testing.T) {
	g := startGatehouse(t, func(s *setup) { s.config.Sessions.Idle, s.config.Sessions.Life = 24*time.Hour, 50*time.Hour })
	idle, used := g.session("alice"), g.session("alice")
	g.sleep(23 * time.Hour)
	used = g.refreshed(used.RefreshToken)
	g.sleep(2 * time.Hour)
	g.refresh(idle.RefreshToken).want(t, http.StatusUnauthorized)
	used = g.refreshed(used.RefreshToken)
	g.sleep(23 * time.Hour)
	used = g.refreshed(used.RefreshToken)
	if used.ExpiresIn > 3600 {
		t.Errorf("an access token lives for %d s", used.ExpiresIn)
	}
	g.sleep(3 * time.Hour)
	g.refresh(used.RefreshToken).want(t, http.StatusUnauthorized)
	var list wire.SessionList
	g.get("alice", "/api/sessions").want(t, http.StatusOK).into(t, &list)
	if len(list.Sessions) != 0 {
		t.Errorf("sessions that ended are listed: %+v", list)
	}
	if _, err := g.server.Service().Expire(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestLogout ends the whole session with its refresh token alone, and with it what was made from it.
func TestLogout(t *testing.T) {
	g := startGatehouse(t)
	g.image("alice", "alice/x", "v1")
	in, other := g.session("alice"), g.session("alice")
	var b bearerAnswer
	g.do(call{method: http.MethodGet, path: "/v2/token?offline_token=true&scope=repository:alice/x:pull", header: basic("alice", in.AccessToken)}).want(t, http.StatusOK).into(t, &b)
	g.with(b.Token, http.MethodGet, "/v2/alice/x/manifests/v1").want(t, http.StatusOK)
	logout := func(token string) {
		t.Helper()
		g.send("", http.MethodPost, "/api/auth/logout", wire.RefreshToken{RefreshToken: token}).want(t, http.StatusOK)
	}
	logout("x")
	logout(in.AccessToken)
	if g.whoami(in.AccessToken) != http.StatusOK {
		t.Error("an access token ends a session")
	}
	logout(in.RefreshToken)
	logout(in.RefreshToken)
	if got := g.whoami(in.AccessToken); got != http.StatusUnauthorized {
		t.Errorf("the access token lives on: %d", got)
	}
	g.refresh(in.RefreshToken).want(t, http.StatusUnauthorized)
	g.with(b.Token, http.MethodGet, "/v2/alice/x/manifests/v1").want(t, http.StatusUnauthorized)
	if got := g.whoami(other.AccessToken); got != http.StatusOK {
		t.Errorf("another session of the account: %d", got)
	}
}

// TestSessionsOfUsers lists and ends them: one's own, and all for an administrator.
func TestSessionsOfUsers(t *testing.T) {
	g := startGatehouse(t)
	one, two := g.session("alice"), g.session("bob")
	var list wire.SessionList
	g.with(one.AccessToken, http.MethodGet, "/api/sessions").want(t, http.StatusOK).into(t, &list)
	if len(list.Sessions) != 1 || list.Sessions[0].ID != one.Session || !list.Sessions[0].Current || list.Sessions[0].Device.Name != "ann@laptop" {
		t.Errorf("alice's sessions are %+v", list)
	}
	g.get("alice", "/api/sessions?account=bob").want(t, http.StatusForbidden)
	g.get("admin", "/api/sessions?all=true").want(t, http.StatusOK).into(t, &list)
	if len(list.Sessions) != 2 {
		t.Errorf("all sessions are %+v", list)
	}
	g.do(call{as: "alice", method: http.MethodDelete, path: "/api/sessions/" + two.Session}).want(t, http.StatusNotFound)
	g.do(call{as: "alice", method: http.MethodDelete, path: "/api/sessions/" + one.Session}).want(t, http.StatusNoContent)
	g.do(call{as: "alice", method: http.MethodDelete, path: "/api/sessions/" + one.Session}).want(t, http.StatusNotFound)
	if g.whoami(one.AccessToken) != http.StatusUnauthorized || g.whoami(two.AccessToken) != http.StatusOK {
		t.Error("another session than the revoked one ended")
	}
	g.do(call{as: "admin", method: http.MethodDelete, path: "/api/sessions/" + two.Session}).want(t, http.StatusNoContent)
}

// TestDisabledAccount loses its sessions for good, and a sign-in that waits is worth nothing.
func TestDisabledAccount(t *testing.T) {
	g := startGatehouse(t)
	in, waiting := g.session("bob"), g.startDevice(laptop)
	g.approve(waiting.UserCode, "bob")
	disabled := func(v string) {
		t.Helper()
		g.do(call{as: "admin", method: http.MethodPatch, path: "/api/admin/users/bob/disabled?disabled=" + v}).want(t, http.StatusOK)
	}
	disabled("true")
	for range 2 {
		if got := g.whoami(in.AccessToken); got != http.StatusUnauthorized {
			t.Errorf("the access token: %d", got)
		}
		g.refresh(in.RefreshToken).want(t, http.StatusUnauthorized)
		if t.Failed() {
			return
		}
		g.send("admin", http.MethodPost, "/api/admin/device/approve", wire.ApproveDevice{Code: g.startDevice(laptop).UserCode, Account: "bob"})
		if got := said(t, g.poll(waiting.DeviceCode), http.StatusBadRequest); !strings.Contains(got, "disabled") {
			t.Errorf("an approval for a disabled account is answered %q", got)
		}
	}
	disabled("false")
	if got := g.whoami(in.AccessToken); got != http.StatusUnauthorized {
		t.Errorf("a session came back with its account: %d", got)
	}
	g.robot("alice", "ci", scope("alice/**", auth.Pull))
	g.send("admin", http.MethodPost, "/api/admin/device/approve", wire.ApproveDevice{Code: g.startDevice(laptop).UserCode, Account: "alice+ci"}).want(t, http.StatusUnprocessableEntity)
}

// TestApprovedByExpiringToken: what an administrator approves with a token that expires ends with it, and makes no token that
// outlives it.
func TestApprovedByExpiringToken(t *testing.T) {
	g := startGatehouse(t)
	var brief wire.Token
	g.send("admin", http.MethodPost, "/api/tokens", wire.NewToken{ExpiresIn: 3600}).want(t, http.StatusCreated).into(t, &brief)
	for _, account := range []string{"admin", "alice"} {
		code := g.startDevice(laptop)
		body := []byte(fmt.Sprintf(`{"code":%q,"account":%q}`, code.UserCode, account))
		g.do(call{token: brief.Secret, method: http.MethodPost, path: "/api/admin/device/approve", body: body}).want(t, http.StatusOK)
		var in wire.SignedIn
		g.poll(code.DeviceCode).want(t, http.StatusOK).into(t, &in)
		if got := g.whoami(in.AccessToken); got != http.StatusOK || in.User.Username != account {
			t.Errorf("%s: status %d of the session of %q", account, got, in.User.Username)
		}
		g.do(call{token: in.AccessToken, method: http.MethodPost, path: "/api/tokens", body: []byte(`{}`)}).refused(t, "/api/", http.StatusForbidden)
		g.sleep(59 * time.Minute)
		in = g.refreshed(in.RefreshToken)
		g.sleep(2 * time.Minute)
		if got := g.whoami(in.AccessToken); got != http.StatusUnauthorized {
			t.Errorf("%s: the session outlives the token that approved it: status %d", account, got)
		}
		g.refresh(in.RefreshToken).want(t, http.StatusUnauthorized)
		g.ahead.Store(0)
	}
}

// TestReleaseOfSession gives a client the catalogue of the release that it named when it signed in, unless its address names
// another one.
func TestReleaseOfSession(t *testing.T) {
	g := startGatehouse(t)
	release := func(token, path string, header map[string]string) string {
		t.Helper()
		var c struct {
			Core struct{ Version string }
		}
		h := map[string]string{"Authorization": "Bearer " + token}
		for k, v := range header {
			h[k] = v
		}
		g.do(call{method: http.MethodGet, path: path, header: h}).want(t, http.StatusOK).into(t, &c)
		return c.Core.Version
	}
	in := g.session("alice") // of sf 0.3.51
	tp := map[string]string{"User-Agent": "tuneplane-cli/0.4.0 (Linux; x86_64) python/3.12.0"}
	for _, tt := range []struct {
		token, path string
		header      map[string]string
		want        string
	}{
		{in.AccessToken, "/api/recipes", nil, "0.3.51"},
		{in.AccessToken, "/sf/api/recipes", nil, "0.3.51"},
		{in.AccessToken, "/sf@0.3.56/api/recipes", nil, "0.3.56"},
		{in.AccessToken, "/tp/api/recipes", nil, "0.4.0"},
		{in.AccessToken, "/api/recipes", tp, "0.4.0"},
		{g.tokens["alice"], "/api/recipes", nil, "0.3.56"},
	} {
		if got := release(tt.token, tt.path, tt.header); got != tt.want {
			t.Errorf("%s %v: the catalogue of %s, want %s", tt.path, tt.header, got, tt.want)
		}
	}
	for _, version := range []string{"../../etc", "0.3.51 ", strings.Repeat("9", 100), "<b>", "9.9.9"} {
		d := laptop
		d.CLIVersion = version
		code := g.startDevice(d)
		g.approve(code.UserCode, "alice")
		var odd wire.SignedIn
		g.poll(code.DeviceCode).want(t, http.StatusOK).into(t, &odd)
		if got, want := release(odd.AccessToken, "/api/recipes", nil), map[bool]string{true: "0.3.51", false: "0.3.56"}[version == "0.3.51 "]; got != want {
			t.Errorf("release %q gets the catalogue of %s, want %s", version, got, want)
		}
	}
}

// TestChangePassword ends the other sessions and what hangs on the old password, and keeps the one that asks.
func TestChangePassword(t *testing.T) {
	g := startGatehouse(t)
	g.send("admin", http.MethodPost, "/api/admin/users", wire.NewUser{Username: "pia", Password: "correct horse"}).want(t, http.StatusCreated)
	b := newBrowser(t, g)
	b.signIn("/cli/device", "pia", "correct horse")
	signed := func() wire.SignedIn {
		code := g.startDevice(laptop)
		b.approveDevice(code.UserCode)
		var in wire.SignedIn
		g.poll(code.DeviceCode).want(t, http.StatusOK).into(t, &in)
		return in
	}
	mine, other, byAdmin := signed(), signed(), g.session("pia")
	change := func(token string, body wire.NewPassword) reply {
		t.Helper()
		text, _ := json.Marshal(body)
		return g.do(call{method: http.MethodPost, path: "/api/password", body: text, header: map[string]string{"Authorization": "Bearer " + token}})
	}
	change(mine.AccessToken, wire.NewPassword{New: "battery staple"}).want(t, http.StatusUnprocessableEntity)
	change(mine.AccessToken, wire.NewPassword{Old: "wrong horse", New: "battery staple"}).want(t, http.StatusForbidden)
	change(mine.AccessToken, wire.NewPassword{Old: "correct horse", New: "short"}).want(t, http.StatusUnprocessableEntity)
	change(mine.AccessToken, wire.NewPassword{Old: "correct horse", New: strings.Repeat("x", 2000)}).want(t, http.StatusUnprocessableEntity)
	change(g.tokens["alice"], wire.NewPassword{Username: "pia", New: "battery staple"}).want(t, http.StatusForbidden)
	change(mine.AccessToken, wire.NewPassword{Old: "correct horse", New: "battery staple"}).want(t, http.StatusNoContent)
	if g.whoami(mine.AccessToken) != http.StatusOK || g.whoami(other.AccessToken) != http.StatusUnauthorized || g.whoami(byAdmin.AccessToken) != http.StatusUnauthorized {
		t.Errorf("after a change: mine %d, other %d, by an administrator %d", g.whoami(mine.AccessToken), g.whoami(other.AccessToken), g.whoami(byAdmin.AccessToken))
	}
	g.sleep(2 * time.Minute)
	g.refreshed(mine.RefreshToken)
	if b.signedIn("/cli/device") {
		t.Error("the browser is signed in with the old password")
	}
	b.signIn("/cli/device", "pia", "battery staple")
	change(g.tokens["admin"], wire.NewPassword{Username: "pia", New: "a third password"}).want(t, http.StatusNoContent)
	if g.whoami(mine.AccessToken) != http.StatusUnauthorized {
		t.Error("an administrator's change leaves sessions")
	}
	// Who has no password yet sets the first one, but not with a token that expires.
	change(g.tokens["bob"], wire.NewPassword{New: "bob's password"}).want(t, http.StatusNoContent)
	var short wire.Token
	g.send("vera", http.MethodPost, "/api/tokens", wire.NewToken{ExpiresIn: 60}).want(t, http.StatusCreated).into(t, &short)
	change(short.Secret, wire.NewPassword{New: "vera's password"}).want(t, http.StatusForbidden)
}
