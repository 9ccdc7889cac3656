package project

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-registry/gatehouse/digest/canonical"
)

func TestConfig(t *testing.T) {
	for name, test := range map[string]struct {
		files map[string]string
		want  string
	}{
		"alone":                     {map[string]string{"c.yaml": "a: 1\n"}, `{"a":1}`},
		"empty":                     {map[string]string{"c.yaml": ""}, `{}`},
		"deep, own last":            {map[string]string{"c.yaml": "defaults: b\nx: {p: 1}\n", "b.yaml": "x: {p: 0, q: 2}\ny: 3\n"}, `{"x":{"p":1,"q":2},"y":3}`},
		"later wins":                {map[string]string{"c.yaml": "defaults: [a.yml, b]\n", "a.yml": "x: 1\ny: 1\n", "b.yaml": "x: 2\n"}, `{"x":2,"y":1}`},
		"suffix replaced":           {map[string]string{"c.yaml": "defaults: b.v2\n", "b.yaml": "x: 1\n", "b.v2.yaml": "x: 2\n"}, `{"x":1}`},
		"no suffix":                 {map[string]string{"c.yaml": "defaults: [.b, d.]\n", ".b.yaml": "x: 1\n", "d..yaml": "y: 2\n", ".yaml": "z: 3\n", "d.yaml": "z: 3\n"}, `{"x":1,"y":2}`},
		"override":                  {map[string]string{"c.yaml": "defaults: b\nx: {_override_: true, p: 1}\n", "b.yaml": "x: {q: 2}\n"}, `{"x":{"p":1}}`},
		"false override":            {map[string]string{"c.yaml": "defaults: b\nx: {_override_: false, p: 1}\n", "b.yaml": "x: {q: 2}\n"}, `{"x":{"p":1,"q":2}}`},
		"override of nothing stays": {map[string]string{"c.yaml": "x: {_override_: true, p: 1}\n"}, `{"x":{"_override_":true,"p":1}}`},
		"text in a map's place":     {map[string]string{"c.yaml": "defaults: b\nx: t\n", "b.yaml": "x: {q: 2}\n"}, `{"x":"t"}`},
		"from the base's folder":    {map[string]string{"c.yaml": "defaults: d/b\n", "d/b.yaml": "defaults: ../e\n", "e.yaml": "x: 1\n"}, `{"x":1}`},
		"twice is no cycle":         {map[string]string{"c.yaml": "defaults: [b, b]\n", "b.yaml": "x: 1\n"}, `{"x":1}`},
		"null defaults":             {map[string]string{"c.yaml": "defaults:\nx: 1\n"}, `{"x":1}`},
		"anchors":                   {map[string]string{"c.yaml": "x: &a {p: 1}\ny: {<<: *a, q: 2}\n"}, `{"x":{"p":1},"y":{"p":1,"q":2}}`},
		"through a link":            {map[string]string{"c.yaml": "defaults: l.yaml\n", "l.yaml": "->d/b.yaml", "d/b.yaml": "defaults: e\n", "d/e.yaml": "x: 1\n"}, `{"x":1}`},
	} {
		test.files["starforge.yaml"] = marker
		got, err := mustOpen(t, lay(t, test.files)).Config("c.yaml")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		text, err := canonical.Python(got)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(test.want, string(text)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}

// Every refusal names the file, the place and the field.
func TestConfigFaults(t *testing.T) {
	wide := make(map[string]string)
	wide["c.yaml"] = "defaults: b0\n"
	for i := range 9 {
		wide[fmt.Sprintf("b%d.yaml", i)] = fmt.Sprintf("defaults: [b%d, b%[1]d, b%[1]d]\n", i+1)
	}
	wide["b9.yaml"] = "x: 1\n"
	deep := map[string]string{"c.yaml": "defaults: b0\n"}
	for i := range MaxConfigDepth + 1 {
		deep[fmt.Sprintf("b%d.yaml", i)] = fmt.Sprintf("defaults: b%d\n", i+1)
	}
	for name, test := range map[string]struct {
		files map[string]string
		want  string
	}{
		"missing":        {map[string]string{"c.yaml": "x: 1\ndefaults:\n  - nowhere\n"}, `c.yaml:3:5: defaults[0]: "nowhere" does not exist (looked for "nowhere.yaml")`},
		"a folder":       {map[string]string{"c.yaml": "defaults: d\n", "d.yaml/x": ""}, `does not exist`},
		"a cycle":        {map[string]string{"c.yaml": "defaults: b\n", "b.yaml": "defaults: c\n"}, `b.yaml:1:11: defaults[0]: "c" comes back`},
		"itself":         {map[string]string{"c.yaml": "defaults: c.yaml\n"}, `c.yaml:1:11: defaults[0]: "c.yaml" comes back`},
		"outside":        {map[string]string{"c.yaml": "defaults: ../../etc/x\n"}, `c.yaml:1:11: defaults[0]: "../../etc/x" lies outside the project`},
		"absolute":       {map[string]string{"c.yaml": "defaults: [/etc/passwd]\n"}, `"/etc/passwd" lies outside the project`},
		"a link outside": {map[string]string{"c.yaml": "defaults: l/hosts\n", "l": "->/etc"}, `lies outside the project`},
		"no text":        {map[string]string{"c.yaml": "defaults: [a, 3]\n"}, `c.yaml:1:15: defaults[1]: found int`},
		"a mapping":      {map[string]string{"c.yaml": "defaults: {a: b}\n"}, `c.yaml:1:11: defaults: found dict`},
		"a list":         {map[string]string{"c.yaml": "\n- 1\n"}, `c.yaml:2:1: <root>: found list`},
		"bad base":       {map[string]string{"c.yaml": "defaults: b\n", "b.yaml": "x: [\n"}, `b.yaml:`},
		"past an anchor": {map[string]string{"c.yaml": "a: &x 1\nb: [\n"}, `c.yaml:3:1`},
		"too many":       {wide, fmt.Sprintf("more than %d files", MaxConfigFiles)},
		"too deep":       {deep, fmt.Sprintf("lies more than %d files deep", MaxConfigDepth)},
		"an alias bomb":  {map[string]string{"c.yaml": bomb()}, "c.yaml:"},
	} {
		test.files["starforge.yaml"] = marker
		_, err := mustOpen(t, lay(t, test.files)).Config("c.yaml")
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

func bomb() string {
	var b strings.Builder
	b.WriteString("a0: &a0 [1,1,1,1,1,1,1,1,1,1]\n")
	for i := 1; i < 9; i++ {
		fmt.Fprintf(&b, "a%d: &a%[1]d [%s*a%[3]d]\n", i, strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 9), i-1)
	}
	return b.String()
}
