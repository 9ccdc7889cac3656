package rule_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
)

var update = flag.Bool("update", false, "write docs/rules.md")

const documentFile = "../../docs/rules.md"

// TestRulesDocument holds docs/rules.md to the table: `go test ./admission/rule -run RulesDocument -update` writes it.
func TestRulesDocument(t *testing.T) {
	want := rulesDocument()
	if *update {
		if err := os.WriteFile(documentFile, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(documentFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not what the table gives; run the test with -update", documentFile)
	}
}

// rulesDocument is docs/rules.md.
func rulesDocument() []byte {
	var b bytes.Buffer
	all := rule.All()
	fmt.Fprintf(&b, `# Rules

Everything that the three gates check, %d rules, one a heading. This page is made from the table in `+"`admission/rule`"+`
(`+"`go test ./admission/rule -run RulesDocument -update`"+`); `+"`sf rules RULE`"+` prints the same of one rule, `+"`sf rules --json`"+` of all.

A rule marked "ours" is stricter than the platforms' own clients. One that may be softened can be named in `+"`warn_rules`"+` of the server's
configuration, and then only warns; one that may be audited in `+"`audit_mode`"+`, and then reports what it would refuse (docs/admission.md). A job's
example says what to put where in an otherwise good document. Every decision names the version of this table: %s.
`, len(all), rule.Version())
	family := ""
	for _, i := range all {
		if f, _, _ := strings.Cut(string(i.ID), "."); f != family {
			family = f
			fmt.Fprintf(&b, "\n## %s\n", family)
		}
		writeRule(&b, i)
	}
	return b.Bytes()
}

func writeRule(b *bytes.Buffer, i rule.Info) {
	fmt.Fprintf(b, "\n### %s\n\n%s\n\n", i.ID, markdown(i.Title))
	fmt.Fprintf(b, "- %s; gate: %s; dialect: %s; source: %s\n", i.Effect(), join(i.Gates), join(dialectsOf(i)), i.Source)
	fmt.Fprintf(b, "- breaks it: %s\n", markdown(i.Example.String()))
	fmt.Fprintf(b, "- fix: %s\n", markdown(i.Fix))
}

func dialectsOf(i rule.Info) []dialect.Dialect {
	if len(i.Dialects) == 0 {
		return dialect.All
	}
	return i.Dialects
}

func join[T ~string](list []T) string {
	var words []string
	for _, w := range list {
		words = append(words, string(w))
	}
	return strings.Join(slices.Compact(words), ", ")
}

// markdown escapes what Markdown would take for markup.
func markdown(s string) string {
	return strings.NewReplacer("<", `\<`, "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "|", `\|`).Replace(s)
}
