package admission

import (
	"testing"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/jobspec"
)

// BenchmarkCheckSubmission is gate 2 on a good job, reading it included.
func BenchmarkCheckSubmission(b *testing.B) {
	for _, d := range dialect.All {
		b.Run(string(d), func(b *testing.B) {
			src := []byte(document(d, plugin("alice/opsd", "1.0.0", opsdContent)))
			in := inputOf(b, d, string(src))
			in.Resolve = nothingElse
			b.ReportAllocs()
			for b.Loop() {
				in.Spec, in.Report = jobspec.Parse(src, jobspec.Options{Dialect: d})
				if decision, _ := CheckSubmission(in); !decision.Allowed {
					b.Fatal(decision.Violations)
				}
			}
		})
	}
}
