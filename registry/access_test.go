package registry

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-registry/gatehouse/registry/auth"
)

func TestPatternsOf(t *testing.T) {
	for repository, want := range map[string][]string{
		"alpine": {"alpine", "**"}, "a/b": {"a/b", "a/*", "a/**", "**"}, "a/b/c": {"a/b/c", "a/b/*", "a/b/**", "a/**", "**"},
	} {
		if diff := cmp.Diff(want, patternsOf(repository)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", repository, diff)
		}
		for _, p := range want {
			if !auth.Match(p, repository) {
				t.Errorf("%s does not match %s", p, repository)
			}
		}
	}
}

func TestParseScopes(t *testing.T) {
	asked, catalogue, err := parseScopes([]string{
		"repository:a/b:pull,push repository:a/b:delete,pull", "repository(plugin):c:*", "registry:catalog:*", "repository:A:pull", "repository:x", "other:y:pull", "repository:d:", ":", "",
	})
	want := []auth.Scope{{Repository: "a/b", Actions: []auth.Verb{"pull", "push", "delete"}}, {Repository: "c", Actions: []auth.Verb{"pull", "push", "delete"}}, {Repository: "d"}}
	if diff := cmp.Diff(want, asked); err != nil || !catalogue || diff != "" {
		t.Errorf("catalogue %v, %v (-want +got):\n%s", catalogue, err, diff)
	}
	for _, texts := range [][]string{{strings.Repeat("repository:a:pull ", 65)}, {strings.Repeat("x", maxScopeText*maxScopeRequests+1)}} {
		if _, _, err := parseScopes(texts); CodeOf(err) != Invalid {
			t.Errorf("%.40q…: %v, want Invalid", texts[0], err)
		}
	}
}

func TestClaimFits(t *testing.T) {
	for _, tt := range []struct {
		pattern string
		claim   any
		want    bool
	}{
		{"x", "x", true}, {"x", "xy", false}, {"repo:a/*", "repo:a/b:ref", true}, {"repo:a/*", "repo:ab", false}, {"*:main", "repo:main", true}, {"*:main", ":main2", false},
		{"a*b*c", "abc", true}, {"a*b*c", "a-b-c", true}, {"a*b*c", "ac", false}, {"a*a", "a", false}, {"a*a", "aa", true}, {"a*bc*c", "abc", false}, {"", "", true}, {"x", "", false},
		{"true", true, true}, {"true", "true", true}, {"true", false, false}, {"x", []any{"y", "x"}, true}, {"x", []any{"y", 1.0}, false}, {"1", 1.0, false}, {"x", nil, false}, {"x", map[string]any{"x": "x"}, false},
	} {
		if got := claimFits(tt.pattern, tt.claim); got != tt.want {
			t.Errorf("claimFits(%q, %v) = %v", tt.pattern, tt.claim, got)
		}
	}
	if (WorkloadRule{Issuer: "i"}).fits(Workload{Issuer: "i"}) {
		t.Error("a rule without claims fits")
	}
}

func TestNetworkOf(t *testing.T) {
	for remote, want := range map[string]string{
		"192.0.2.77": "192.0.2.0/24", "::ffff:192.0.2.77": "192.0.2.0/24", "2001:db8:1:2:3::4": "2001:db8:1:2::/64", "fe80::1%eth0": "fe80::/64", "": "unknown", "x": "unknown",
	} {
		if got := networkOf(remote); got != want {
			t.Errorf("networkOf(%q) = %s, want %s", remote, got, want)
		}
	}
}

// TestRefusalsAreBounded floods the log from one source and from many.
func TestRefusalsAreBounded(t *testing.T) {
	var r refusals
	at := time.Unix(1_000_000, 0)
	rows := func(account, remote string, n int) (written int) {
		for range n {
			written += len(r.take(AuditRow{At: at, Account: account, Remote: remote, Detail: "no"}))
		}
		return written
	}
	if got := rows("bob", "192.0.2.1", 1000); got != refusalRows {
		t.Errorf("%d rows of bob, want %d", got, refusalRows)
	}
	if got := rows("carol", "192.0.2.1", 1); got != 1 {
		t.Errorf("carol, beside bob: %d rows", got)
	}
	at = at.Add(refusalWindow)
	settled := r.settle(at, false)
	if len(settled) != 1 || settled[0].Account != "bob" || !strings.HasPrefix(settled[0].Detail, fmt.Sprintf("and %d more since ", 1000-refusalRows)) {
		t.Errorf("after the minute: %+v", settled)
	}
	if got := rows("bob", "192.0.2.1", 1); got != 1 {
		t.Errorf("bob, a minute later: %d rows", got)
	}
	written := 0
	for i := range 50_000 {
		written += rows("", fmt.Sprintf("10.%d.%d.1", i/256, i%256), 1)
	}
	if most := refusalSources + refusalRows; written > most || len(r.sources) > refusalSources+1 {
		t.Errorf("%d rows and %d sources of 50,000 networks, want %d rows at most", written, len(r.sources), most)
	}
}
