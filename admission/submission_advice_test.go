package admission

import (
	"strings"
	"testing"

	"github.com/gatehouse-registry/gatehouse/admission/catalogue"
	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/jobspec"
)

// refusalOf is the only violation of a rule.
func refusalOf(t *testing.T, in SubmissionInput, id RuleID) Violation {
	t.Helper()
	decision, _ := CheckSubmission(in)
	var found []Violation
	for _, v := range decision.Violations {
		if v.Rule == id {
			found = append(found, v)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%v, want one of %s", decision.Violations, id)
	}
	return found[0]
}

// TestRefusedPluginSaysWhatToWrite checks that a refusal of a triple holds what the document must say, where that is known.
func TestRefusedPluginSaysWhatToWrite(t *testing.T) {
	newest := PluginAdvice{ID: "alice/opsd", Version: "1.3.0", Content: otherContent}
	useNewest := "the newest enabled version is 1.3.0, digest " + otherContent.String()
	tests := []struct {
		name, triple string
		disabled     bool
		advice       PluginAdvice
		rule         RuleID
		field, says  string
	}{
		{"disabled", plugin("alice/opsd", "1.0.0", opsdContent), true, newest, "job.plugins.record.disabled", "version", useNewest},
		{"all disabled", plugin("alice/opsd", "1.0.0", opsdContent), true, PluginAdvice{ID: "alice/opsd", None: true}, "job.plugins.record.disabled", "version", "no version for forge is enabled"},
		{"another version", plugin("alice/opsd", "9", opsdContent), false, newest, "job.plugins.record.unknown", "version", useNewest},
		{"misspelled", plugin("alice/opds", "1.0.0", opsdContent), false, newest, "job.plugins.record.unknown", "id", "did you mean alice/opsd, of which " + useNewest},
		{"nobody's", plugin("alice/nothing", "1", opsdContent), false, PluginAdvice{}, "job.plugins.record.unknown", "id", "is not published"},
		{"the tree's digest", plugin("alice/opsd", "1.0.0", opsdTree), false, newest, "job.plugins.record.digest", "digest", "is the tree digest of that version"},
		{"the manifest's digest", plugin("alice/opsd", "1.0.0", opsdManifest), false, newest, "job.plugins.record.digest", "digest", "that version's manifest"},
		{"another version's digest", plugin("alice/opsd", "1.0.0", otherContent), false, PluginAdvice{DigestOf: "1.3.0"}, "job.plugins.record.digest", "digest", "the digest of version 1.3.0"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in := inputOf(t, dialect.Forge, document(dialect.Forge, tt.triple))
			in.Resolve = nothingElse
			record := in.Plugins[PluginRef{"alice/opsd", "1.0.0"}]
			record.Enabled = !tt.disabled
			in.Plugins = map[PluginRef]PluginRecord{{"alice/opsd", "1.0.0"}: record}
			in.Advise = func(jobspec.Plugin) PluginAdvice { return tt.advice }
			v := refusalOf(t, in, tt.rule)
			if v.Field != "spec.plugins[0]."+tt.field || !strings.Contains(v.Message, tt.says) {
				t.Errorf("%s, want %q at %s", v, tt.says, tt.field)
			}
		})
	}
}

func TestMisspelledIntegrationNamesTheShippedOne(t *testing.T) {
	in := inputOf(t, dialect.TunePlane, strings.Replace(document(dialect.TunePlane), "tuneplane/framework-verl", "tuneplane/framework-vrel", 1))
	in.Advise = func(jobspec.Plugin) PluginAdvice { return PluginAdvice{} }
	v := refusalOf(t, in, "job.plugins.record.unknown")
	if v.Field != "spec.plugins[0].id" || !strings.Contains(v.Message, "did you mean tuneplane/framework-verl?") {
		t.Errorf("%s", v)
	}
}

// TestDigestOfTheOtherDialect checks that a digest copied from another catalogue is told whose it is.
func TestDigestOfTheOtherDialect(t *testing.T) {
	other, _ := catalogue.Builtin(dialect.TunePlane, catalogue.DefaultRelease(dialect.TunePlane))
	theirs, _ := other.Lookup("nemo-rl/grpo")
	mine := catalogueOf(t, dialect.Forge)
	_, found, _ := mine.Handshake(catalogue.Claim{Recipe: "nemo-rl/grpo", Digest: theirs.Digest})
	if len(found) != 1 || !strings.Contains(found[0].Message, "its digest in tuneplane 0.4.0") {
		t.Errorf("%v, want whose digest it is", found)
	}
	sft, _ := mine.Lookup("verl/sft")
	_, found, _ = mine.Handshake(catalogue.Claim{Recipe: "nemo-rl/grpo", Digest: sft.Digest})
	if len(found) != 1 || !strings.Contains(found[0].Message, "the digest of verl/sft") {
		t.Errorf("%v, want whose digest it is", found)
	}
}

// TestOneRefusalOfAnUnknownSeries checks that hardware which does not exist is refused once, with the hardware that the account
// may use.
func TestOneRefusalOfAnUnknownSeries(t *testing.T) {
	in := inputOf(t, dialect.Forge, put(t, document(dialect.Forge), "spec.resources", `{"pools":[{"name":"all","series":"H200-141GB"}]}`))
	in.Resolve = nothingElse
	in.Profiles = []Profile{{Name: "h200"}, {Name: "a100"}}
	in.Quota.Profiles = []string{"h200"}
	decision, _ := CheckSubmission(in)
	if len(decision.Violations) != 1 || decision.Violations[0].Rule != "job.resources.series.exists" ||
		!strings.Contains(decision.Violations[0].Message, "(h200); did you mean h200?") {
		t.Errorf("%v, want one refusal that names h200 alone", decision.Violations)
	}
}

// TestImageThatIsRefusedIsNotWarnedOf checks that an image of another registry is not also asked for its digest, unless that
// would refuse it too.
func TestImageThatIsRefusedIsNotWarnedOf(t *testing.T) {
	in := inputOf(t, dialect.Forge, put(t, document(dialect.Forge), "spec.framework.image", `"elsewhere.example/train:1"`))
	in.Resolve, in.ImageHosts = nothingElse, []string{"registry.example"}
	if decision, _ := CheckSubmission(in); len(decision.Violations) != 1 || len(decision.Warnings) != 0 {
		t.Errorf("%v and %v, want the host alone", decision.Violations, decision.Warnings)
	}
	in.PinImages = true
	if decision, _ := CheckSubmission(in); len(decision.Violations) != 2 {
		t.Errorf("%v, want the host and the digest", decision.Violations)
	}
}
