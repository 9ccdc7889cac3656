package runrecord_test

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-registry/gatehouse/admission/denylist"
	"github.com/gatehouse-registry/gatehouse/admission/receipt"
	"github.com/gatehouse-registry/gatehouse/admission/runrecord"
)

// docs/runs.md describes every field that is signed, in the order in which it is written, and no other.
func TestDocument(t *testing.T) {
	src, err := os.ReadFile("../../docs/runs.md")
	if err != nil {
		t.Fatal(err)
	}
	for heading, value := range map[string]any{
		"## The statement": runrecord.Statement{},
		"### predicate":    runrecord.Predicate{},
		"### node":         runrecord.Node{},
		"### pins":         receipt.Pin{},
		"### user":         runrecord.User{},
		"### protection":   runrecord.Protection{},
		"### decision":     runrecord.Decision{},
		"### denyList":     runrecord.DenyList{},
		"### training":     runrecord.Training{},
		"## The deny list": denylist.List{},
		"### revoked":      denylist.Entry{},
	} {
		if diff := cmp.Diff(fieldsOf(value), documented(t, string(src), heading)); diff != "" {
			t.Errorf("%s (-type +document):\n%s", heading, diff)
		}
	}
	for _, fact := range []string{runrecord.PredicateType, runrecord.PayloadType, denylist.PayloadType, runrecord.HowChild, runrecord.HowWaited, runrecord.HowOrphan, runrecord.SubjectSpec, runrecord.SubjectRun} {
		if !strings.Contains(string(src), fact) {
			t.Errorf("docs/runs.md does not name %q", fact)
		}
	}
	for _, f := range fieldsOf(runrecord.Finding{}) {
		if !strings.Contains(string(src), "`"+f+"`") {
			t.Errorf("docs/runs.md does not name %q of a violation", f)
		}
	}
}

// fieldsOf lists the names of a value's fields in JSON.
func fieldsOf(value any) []string {
	var names []string
	for field := range reflect.TypeOf(value).Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}

// documented lists the fields in the first table below a heading.
func documented(t *testing.T, src, heading string) []string {
	t.Helper()
	_, below, found := strings.Cut(src, "\n"+heading+"\n")
	_, table, ok := strings.Cut(below, "| field | meaning |\n| --- | --- |\n")
	if !found || !ok {
		t.Fatalf("docs/runs.md has no table below %q", heading)
	}
	var names []string
	for line := range strings.Lines(table) {
		row, isRow := strings.CutPrefix(line, "| `")
		if !isRow {
			break
		}
		name, text, _ := strings.Cut(row, "` | ")
		if len(strings.Trim(text, " |\n")) < 10 {
			t.Errorf("%s: %s is not described", heading, name)
		}
		names = append(names, name)
	}
	return names
}
