package suite_test

import (
	"strings"
	"testing"

	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/admission/suite"
)

// TestNumbersAsWritten: a message shows a number that is refused as it was written, and a long one cut.
func TestNumbersAsWritten(t *testing.T) {
	index := func(size string) rule.Report {
		_, report := suite.ParseIndex([]byte(`{"files":[{"name":"a","size":`+size+`,"sha256":"`+strings.Repeat("0", 64)+`"}]}`), rule.Policy{})
		return report
	}
	port := func(port string) rule.Report {
		_, report := suite.ParseManifest([]byte(`{"schema":"tuneplane/environment/v1","protocol":"openenv","verifier":{"kind":"plugin","ref":"a/b"},"image":"x","image_port":`+port+`}`), suite.ManifestOptions{})
		return report
	}
	for _, c := range []struct {
		report rule.Report
		want   string
	}{
		{index("-1"), "found the size -1"},
		{index(strings.Repeat("9", 400)), "found the size " + strings.Repeat("9", 40)},
		{port("65536"), "found 65536, expected 1 to 65535"},
	} {
		said := ""
		for _, v := range c.report.Violations {
			said += v.Message + "\n"
		}
		if !strings.Contains(said, c.want+"\n") {
			t.Errorf("said %q, want %q", said, c.want)
		}
	}
}
