package registry_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
)

// TestRefreshOverReplicas rotates a refresh token at two services at once: one generation follows another, never two, and an
// old one ends the session at both.
func TestRefreshOverReplicas(t *testing.T) {
	_, meta := newCaching(t, true)
	start := time.Now()
	ctx, admin := t.Context(), auth.Principal{Account: registry.AdminAccount, Role: auth.Admin}
	at := func(d time.Duration) [2]*registry.Service {
		return [2]*registry.Service{replicaOf(t, meta, start.Add(d)), replicaOf(t, meta, start.Add(d))}
	}
	now := at(0)
	if _, err := now[0].CreateAccount(ctx, admin, registry.NewAccount{Name: "alice", Role: auth.Operator}); err != nil {
		t.Fatal(err)
	}
	g, err := now[0].StartDevice(ctx, registry.Device{Hostname: "h"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := now[1].ApproveDevice(ctx, admin, g.UserCode, "alice"); err != nil {
		t.Fatal(err)
	}
	first, err := now[0].PollDevice(ctx, g.DeviceCode)
	if err != nil {
		t.Fatal(err)
	}
	later := at(2 * time.Minute)
	var got [16]registry.SessionTokens
	var together sync.WaitGroup
	for i := range got {
		together.Go(func() {
			var err error
			if got[i], err = later[i%2].RefreshSession(ctx, first.Refresh); err != nil {
				t.Errorf("parallel refresh: %v", err)
			}
		})
	}
	together.Wait()
	for _, tokens := range got {
		if tokens.Session.Generation != 2 {
			t.Errorf("generation %d after one token was exchanged at once, want 2", tokens.Session.Generation)
		}
	}
	end := at(4 * time.Minute)
	if _, err := end[0].RefreshSession(ctx, first.Refresh); registry.CodeOf(err) != registry.Unauthorized {
		t.Errorf("an old token: %v", err)
	}
	for _, s := range end {
		if _, err := s.Authenticate(ctx, got[0].Access); registry.CodeOf(err) != registry.Unauthorized {
			t.Errorf("after the reuse: %v", err)
		}
	}
	rows, err := end[0].Audit(ctx, admin, 0)
	if err != nil {
		t.Fatal(err)
	}
	var actions []string
	for _, row := range rows {
		actions = append(actions, row.Action)
	}
	if text := strings.Join(actions, " "); !strings.Contains(text, "device.approve session.begin session.reuse") {
		t.Errorf("the audit log has %s", text)
	}
}

// TestManySessions: an account has so many; who signs in once more ends the one that was not used for longest.
func TestManySessions(t *testing.T) {
	_, meta := newCaching(t, true)
	start := time.Now()
	ctx, admin := t.Context(), auth.Principal{Account: registry.AdminAccount, Role: auth.Admin}
	s := replicaOf(t, meta, start)
	if _, err := s.CreateAccount(ctx, admin, registry.NewAccount{Name: "alice", Role: auth.Operator}); err != nil {
		t.Fatal(err)
	}
	var all []registry.SessionTokens
	for i := range 203 {
		s = replicaOf(t, meta, start.Add(time.Duration(i)*time.Second))
		g, err := s.StartDevice(ctx, registry.Device{})
		if err == nil {
			_, err = s.ApproveDevice(ctx, admin, g.UserCode, "alice")
		}
		if err != nil {
			t.Fatal(err)
		}
		tokens, err := s.PollDevice(ctx, g.DeviceCode)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, tokens)
	}
	later := s
	list, err := later.Sessions(ctx, auth.Principal{Account: "alice", Role: auth.Operator}, "alice")
	if err != nil || len(list) != 200 {
		t.Fatalf("%d sessions after %d sign-ins: %v", len(list), len(all), err)
	}
	for i, want := range map[int]bool{0: false, 2: false, 3: true, 202: true} {
		if _, err := later.Authenticate(ctx, all[i].Access); (err == nil) != want {
			t.Errorf("session %d lives: %v, want %v", i, err == nil, want)
		}
	}
}

func TestUserCodes(t *testing.T) {
	for typed, want := range map[string]string{
		"BCDF-GHJK": "BCDFGHJK", "bcdfghjk": "BCDFGHJK", " b c d f - g h j k ": "BCDFGHJK", "BCDFGHJ": "", "BCDFGHJKL": "", "BCDF-GHJ1": "", "BCDF-GHJA": "",
		"": "", "ＢＣＤＦGHJK": "", "BCDF\x00GHJK": "", strings.Repeat("BCDFGHJK", 100): "", "ſ": "",
	} {
		got, err := registry.ParseUserCode(typed)
		if got != want || (err != nil) != (want == "") {
			t.Errorf("ParseUserCode(%.20q) = %q, %v", typed, got, err)
		}
	}
	if got := registry.ShownUserCode("BCDFGHJK"); got != "BCDF-GHJK" {
		t.Errorf("shown: %s", got)
	}
}

func TestDeviceNames(t *testing.T) {
	for want, d := range map[string]registry.Device{
		"an unnamed device": {User: "u"}, "h": {Hostname: "h"}, "u@h": {Hostname: "h", User: "u"},
	} {
		if got := d.Name(); got != want {
			t.Errorf("%+v is %q, want %q", d, got, want)
		}
	}
	for version, want := range map[string]string{"0.3.56": "0.3.56", "1!2.0.post1+x-y_z": "1!2.0.post1+x-y_z", "": "", "a/b": "", "../x": "", "a b": "", strings.Repeat("1", 41): ""} {
		if c, ok := (registry.Device{Source: "forge-cli", CLIVersion: version}).Caller(); !ok || c.Release != want {
			t.Errorf("release of %q: %+v, %v", version, c, ok)
		}
	}
	if _, ok := (registry.Device{Source: "other", CLIVersion: "1"}).Caller(); ok {
		t.Error("an unknown client is known")
	}
}
