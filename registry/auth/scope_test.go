package auth

import (
	"strings"
	"testing"
)

func TestMatch(t *testing.T) {
	for pattern, names := range map[string]map[string]bool{
		"team/app": {"team/app": true, "team/app/x": false, "team": false, "team/apps": false, "": false},
		"team/*":   {"team/app": true, "team/app/x": false, "team": false, "team/": false, "teams/app": false, "xteam/app": false},
		"team/**":  {"team/app": true, "team/app/x": true, "team": false, "team/": false, "teams/app": false},
		"a/b/*":    {"a/b/c": true, "a/b": false, "a/x/c": false, "a/b/c/d": false},
		"**":       {"team": true, "a/b/c": true, "": false},
		"":         {"team": false},
		"*":        {"team": false}, // no pattern
		"a/*/c":    {"a/b/c": false},
	} {
		for name, want := range names {
			if got := Match(pattern, name); got != want {
				t.Errorf("Match(%q, %q) = %v", pattern, name, got)
			}
		}
	}
}

func TestCheckPattern(t *testing.T) {
	for pattern, good := range map[string]bool{
		"**": true, "alpine": true, "team/*": true, "team/**": true, "a/b/c": true, "a-b/c_d.e/**": true,
		"": false, "*": false, "/**": false, "/*": false, "a/*/b": false, "a*": false, "a/b*": false, "***": false, "A": false, "a//b": false, "a/": false, "/a": false,
		"a/**/*": false, "-a": false, "a-": false, "a/../b": false, strings.Repeat("a", 256): false, "a b": false, "a\x00": false,
	} {
		if err := CheckPattern(pattern); (err == nil) != good {
			t.Errorf("CheckPattern(%q): %v", pattern, err)
		}
	}
}

// TestBounds holds robots and bearer tokens to what they are for.
func TestBounds(t *testing.T) {
	scopes := []Scope{{Repository: "alice/**", Actions: []Verb{Pull, Push}}}
	robot := Principal{Account: "alice+ci", Role: Robot, Owner: "alice", OwnerRole: Operator, Scopes: scopes}
	for what, tt := range map[string]struct {
		p                     Principal
		pull, del, foreign    bool // in scope
		write, writes, admins bool // by the table: below alice, below bob, accounts
	}{
		"robot":            {robot, true, false, false, true, false, false},
		"of a viewer":      {with(robot, func(p *Principal) { p.OwnerRole = Viewer }), true, false, false, false, false, false},
		"of an admin":      {with(robot, func(p *Principal) { p.OwnerRole = Admin }), true, false, false, true, true, false},
		"without scopes":   {with(robot, func(p *Principal) { p.Scopes = nil }), false, false, false, true, false, false},
		"of nobody":        {with(robot, func(p *Principal) { p.OwnerRole = "" }), true, false, false, false, false, false},
		"account":          {Principal{Account: "alice", Role: Operator}, true, true, true, true, false, false},
		"admin":            {Principal{Account: "root", Role: Admin}, true, true, true, true, true, true},
		"admin, by bearer": {Principal{Account: "root", Role: Admin, Grant: &Grant{}}, true, true, true, true, true, false},
	} {
		got := []bool{
			tt.p.InScope(Pull, "alice/x"), tt.p.InScope(Delete, "alice/x"), tt.p.InScope(Pull, "bob/x"),
			tt.p.CanIn(WriteContent, "alice"), tt.p.CanIn(WriteContent, "bob"), tt.p.Can(ManageAccounts),
		}
		want := []bool{tt.pull, tt.del, tt.foreign, tt.write, tt.writes, tt.admins}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("%s: question %d: %v, want %v", what, i, got[i], want[i])
			}
		}
	}
	bearer := Principal{Account: "alice", Role: Operator, Grant: &Grant{Scopes: []Scope{{Repository: "alice/x", Actions: []Verb{Pull}}}}}
	if !bearer.Granted(Pull, "alice/x") || bearer.Granted(Push, "alice/x") || bearer.Granted(Pull, "alice/y") {
		t.Error("a bearer token is not held to its grant")
	}
}

// TestWhoReportsJobs: administrators, and robots of administrators within their scopes.
func TestWhoReportsJobs(t *testing.T) {
	robot := Principal{Account: "root+platform", Role: Robot, Owner: "root", OwnerRole: Admin, Scopes: []Scope{{Repository: "alice/*", Actions: []Verb{Report}}}}
	if !robot.Can(ReportJobs) || !robot.InScope(Report, JobScope("alice", "run-1")) || robot.InScope(Report, JobScope("bob", "run-1")) || robot.InScope(Pull, "alice/x") {
		t.Error("an administrator's robot is not held to its scope")
	}
	if with(robot, func(p *Principal) { p.OwnerRole = Operator }).Can(ReportJobs) {
		t.Error("an operator's robot reports jobs")
	}
	if with(robot, func(p *Principal) { p.Grant = &Grant{Scopes: robot.Scopes} }).Can(ReportJobs) {
		t.Error("a token of the token endpoint reports jobs")
	}
	if err := CheckScopes(robot.Scopes); err != nil {
		t.Error(err)
	}
}

func with(p Principal, change func(*Principal)) Principal {
	change(&p)
	return p
}
