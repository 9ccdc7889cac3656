package rule_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
)

// TestTable asks of every line of the table what a reader needs: an id, one sentence each for what holds and how to mend it, where
// it comes from, a gate and an example.
func TestTable(t *testing.T) {
	id := regexp.MustCompile(`^[a-z][a-z0-9_]*(\.[a-z0-9_-]+)+$`)
	for _, i := range rule.All() {
		switch {
		case !id.MatchString(string(i.ID)):
			t.Errorf("%s is no id", i.ID)
		case !strings.HasSuffix(i.Title, ".") || !strings.HasSuffix(i.Fix, ".") && !strings.HasSuffix(i.Fix, "!"):
			t.Errorf("%s: title and fix are sentences: %q %q", i.ID, i.Title, i.Fix)
		case i.Source == "" || len(i.Gates) == 0:
			t.Errorf("%s has no source or no gate", i.ID)
		case i.Example.None():
			t.Errorf("%s has no example", i.ID)
		case i.Fixed && !i.Ours:
			t.Errorf("%s is fixed, which only a rule of ours needs to be", i.ID)
		}
	}
}

func TestPolicy(t *testing.T) {
	if _, err := rule.Soften("job.quota.gpus"); err == nil {
		t.Error("a rule of the platforms was softened")
	}
	soft, err := rule.Soften("job.name.length")
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[rule.ID]string{
		"no.such.rule":              "no rule is called",
		"job.name.length":           "only warns already",
		"job.root.object":           "can't be put in audit mode",
		"job.json.duplicate_key":    "can't be put in audit mode",
		"job.type.coerced":          "can't be put in audit mode",
		"job.handshake.runtime_id":  "can't be put in audit mode",
		"job.plugins.record.digest": "can't be put in audit mode",
	} {
		if _, err := soft.Audit(id); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", id, err, want)
		}
	}
	both, err := soft.Audit("job.quota.gpus", "job.data.dataset.reference")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		d              dialect.Dialect
		id             rule.ID
		refuses, audit bool
	}{
		{dialect.Forge, "job.name.length", false, false},
		{dialect.Forge, "job.quota.gpus", false, true},
		{dialect.TunePlane, "job.quota.gpus", false, true},
		{dialect.Forge, "job.data.dataset.reference", false, true},
		{dialect.TunePlane, "job.data.dataset.reference", true, false}, // there it is the client's own
		{dialect.Forge, "job.root.object", true, false},
		{dialect.Forge, "no.such.rule", true, false},
	} {
		r := rule.Report{Policy: both, Dialect: tt.d}
		if refused := r.Add(rule.Violation{Rule: tt.id}); refused != tt.refuses || r.OK() == tt.refuses {
			t.Errorf("%s in %s: refused %t", tt.id, tt.d, refused)
		}
		if len(r.Warnings) > 0 && r.Warnings[0].Audit != tt.audit {
			t.Errorf("%s in %s: audit %t", tt.id, tt.d, r.Warnings[0].Audit)
		}
	}
}

func TestInDocumentOrder(t *testing.T) {
	r := rule.Report{Violations: []rule.Violation{
		{Rule: "beside"}, {Rule: "c", Line: 2, Column: 1}, {Rule: "b", Line: 1, Column: 9}, {Rule: "a", Line: 1, Column: 2}, {Rule: "b2", Line: 1, Column: 9}, {Rule: "beside2"},
	}}
	r.InDocumentOrder()
	var got []string
	for _, v := range r.Violations {
		got = append(got, string(v.Rule))
	}
	if s := strings.Join(got, " "); s != "a b b2 c beside beside2" {
		t.Errorf("order %s", s)
	}
}

func TestVersion(t *testing.T) {
	if v := rule.Version(); !regexp.MustCompile(`^[0-9a-f]{16}$`).MatchString(v) {
		t.Errorf("version %q", v)
	}
	var r rule.Report
	if d := r.Decide(rule.Publish, rule.Subject{}, nil); d.Rules != rule.Version() {
		t.Errorf("a decision names the rules %q", d.Rules)
	}
}
