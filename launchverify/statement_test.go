package launchverify

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/receipt"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/admission/runrecord"
	"github.com/gatehouse-registry/gatehouse/digest"
)

// Records at the edge of what can happen become statements that can be signed: whatever is too long or no text is bounded, and
// what the record leaves open is said.
func TestStatementsOfOddRecords(t *testing.T) {
	d := digest.FromBytes(nil)
	now := time.Now()
	ran := func(edit func(r *Record)) Record {
		r := Record{
			Dialect: dialect.Forge, SpecBytes: d, Receipt: d, KeysFrom: FromFile, Job: "job-1", Audience: "registry-1", Mode: ModeUser,
			Command: []string{"true"}, Decision: &rule.Decision{Allowed: true, Rules: "r"}, Started: true, StartedAt: now, EndedAt: now.Add(time.Second),
			Plugins: []receipt.Pin{}, Recipes: []receipt.Pin{},
		}
		edit(&r)
		return r
	}
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	many := func(n int, text string) []rule.Violation {
		list := make([]rule.Violation, n)
		for i := range list {
			list[i] = rule.Violation{Rule: "launch.plugin.link", Field: text, File: text, Message: text, Line: i}
		}
		return list
	}
	for name, c := range map[string]struct {
		record Record
		err    error
		check  func(p runrecord.Predicate) bool
	}{
		"the stage was killed": {
			ran(func(r *Record) { r.EndedAt = time.Time{} }), errors.New("the stage was killed\nand the job with it"),
			func(p runrecord.Predicate) bool {
				return p.State == runrecord.StateEnded && p.Problem == "the stage was killed\uFFFDand the job with it" && !p.EndedAt.Before(p.StartedAt)
			},
		},
		"the clock was set back meanwhile": {
			ran(func(r *Record) {
				r.StartedAt, r.EndedAt = r.StartedAt.Round(0), r.StartedAt.Round(0).Add(-time.Hour) // without the monotonic clock
			}), nil,
			func(p runrecord.Predicate) bool { return p.EndedAt.Equal(p.StartedAt) },
		},
		"long texts": {
			ran(func(r *Record) {
				r.Unavailable = map[Mode]string{ModeRoot: strings.Repeat("é", 5000) + "\x00"}
				r.CoreVersion = strings.Repeat("1", 5000)
				for i := range 2000 {
					r.RemovedEnv = append(r.RemovedEnv, fmt.Sprintf("VARIABLE%d\xff%s", i, strings.Repeat("x", 1000)))
				}
				r.SetEnv = []string{"A=\x00secret", "B"}
				r.Recipes = []receipt.Pin{{ID: strings.Repeat("o/", 500), Version: "\x01", Content: d}, {ID: "without/content"}}
			}), nil,
			func(p runrecord.Predicate) bool {
				return len(p.RemovedEnv) == runrecord.MaxVariables && len(p.Recipes) == 1 && strings.Join(p.SetEnv, " ") == "A B"
			},
		},
		"many violations": {
			Record{Command: []string{}, SpecBytes: d, Receipt: d, KeysFrom: FromFile, Job: "job-1", Audience: "registry-1", Dialect: dialect.Forge, Plugins: []receipt.Pin{}, Decision: &rule.Decision{Rules: "r", Violations: many(500, strings.Repeat("\x1b", 2000)), Warnings: many(101, "w")}}, &rule.Denied{},
			func(p runrecord.Predicate) bool {
				return p.State == runrecord.StateRefused && len(p.Decision.Violations) == runrecord.MaxFindings && p.Decision.Omitted == 401
			},
		},
		"little known":    {Record{SpecBytes: d, Receipt: d, KeysFrom: FromFile, Job: "job-1", Audience: "registry-1", Dialect: dialect.Forge, Plugins: []receipt.Pin{}}, errors.New("the node cache can't be opened"), func(p runrecord.Predicate) bool { return p.Problem != "" && p.Decision == nil }},
		"a run of no job": {Record{Receipt: d, KeysFrom: FromFile, SpecBytes: d}, errors.New("no key verified the receipt"), nil},
	} {
		w := Witness{Run: strings.Repeat("0", 32), Agent: "test", Node: runrecord.Node{Name: "n"}}
		s, ok := EndedStatement(c.record, c.err, 1, now, w)
		if ok != (c.check != nil) {
			t.Errorf("%s: there is something to say: %v", name, ok)
		}
		if !ok {
			continue
		}
		envelope, err := runrecord.Sign(s, key)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		read, err := runrecord.Read(envelope)
		if err != nil || !c.check(read.Predicate) {
			t.Errorf("%s: %+v, %v", name, read, err)
		}
		if c.record.Started {
			if _, err := runrecord.Sign(StartedStatement(c.record, w), key); err != nil {
				t.Errorf("%s, when it had started: %v", name, err)
			}
		}
	}
}
