package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
)

// A rule in audit mode reports in the job's decision what it would refuse, is counted, and refuses nothing; the same server
// still refuses by every other rule.
func TestAuditMode(t *testing.T) {
	g := startGatehouse(t, func(s *setup) {
		s.config.AuditMode = []string{"job.data.volumes.absolute", "job.framework.image.allowlist"}
		s.config.ImageHosts = []string{"registry.example"}
	})
	spec := strings.Replace(jobSpec(t, dialect.Forge, "demo"), `"resources":`, `"data":{"volumes":["/alice/corpus"]},"resources":`, 1)
	spec = strings.Replace(spec, `"framework":{`, `"framework":{"image":"elsewhere.example/x:1",`, 1)
	id := g.submitted("alice", spec)
	var job struct {
		Decision rule.Decision `json:"decision"`
	}
	g.get("alice", "/api/jobs/"+id).want(t, http.StatusOK).into(t, &job)
	if !job.Decision.Allowed || job.Decision.Rules != rule.Version() {
		t.Errorf("allowed %t by the rules %q, this table is %q", job.Decision.Allowed, job.Decision.Rules, rule.Version())
	}
	audited := map[rule.ID]bool{}
	for _, v := range job.Decision.Warnings {
		if v.Audit {
			audited[v.Rule] = true
		}
	}
	if len(audited) != 2 || !audited["job.data.volumes.absolute"] || !audited["job.framework.image.allowlist"] {
		t.Errorf("audited %v among %v", audited, job.Decision.Warnings)
	}
	var refusal struct{ Detail string }
	g.submit("alice", strings.Replace(spec, `"/alice/corpus"`, `"/alice/corpus@v1"`, 1)).want(t, http.StatusUnprocessableEntity).into(t, &refusal)
	if !strings.Contains(refusal.Detail, "job.data.volumes.version") {
		t.Errorf("refusal %s", refusal.Detail)
	}
	text := string(g.get("admin", "/metrics").want(t, http.StatusOK).body)
	for _, rule := range []string{"job.data.volumes.absolute", "job.framework.image.allowlist"} {
		if want := `gatehouse_audited_total{gate="submission",rule="` + rule + `"} `; !strings.Contains(text, want) {
			t.Errorf("no %s", want)
		}
		if bad := `gatehouse_violations_total{gate="submission",rule="` + rule; strings.Contains(text, bad) {
			t.Errorf("%s counted as a refusal", rule)
		}
	}
}
