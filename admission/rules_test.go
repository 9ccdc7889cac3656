package admission

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/gatehouse-registry/gatehouse/admission/rule"
)

// families are the rule ids that the gates and the packages of documents file themselves.
var families = regexp.MustCompile(`^(manifest|layout|oci|publish|digest|job)\.[a-z_.]+$`)

// Every rule that the code names is in the table, and every rule of the table is named by the code.
func TestRulesAreInTheTable(t *testing.T) {
	named := make(map[rule.ID]bool)
	for _, dir := range []string{".", "pack", "jobspec", "catalogue", "pyjson"} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if strings.HasSuffix(e.Name(), ".go") && !strings.HasSuffix(e.Name(), "_test.go") {
				collectRules(t, filepath.Join(dir, e.Name()), named)
			}
		}
	}
	for id := range named {
		if _, ok := rule.Lookup(id); !ok {
			t.Errorf("the code names %s, which the table lacks", id)
		}
	}
	for _, info := range rule.All() {
		if families.MatchString(string(info.ID)) && !named[info.ID] {
			t.Errorf("the table has %s, which no code names", info.ID)
		}
	}
}

func collectRules(t *testing.T, file string, named map[rule.ID]bool) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if s, err := strconv.Unquote(lit.Value); err == nil && families.MatchString(s) {
				named[rule.ID(s)] = true
			}
		}
		return true
	})
}
