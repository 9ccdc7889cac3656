package jobspec

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
)

// hostile are documents that try to exhaust or to confuse, each with the rule that must refuse it.
func hostile() map[string]struct {
	src  string
	rule rule.ID
} {
	small := smallest(dialect.TunePlane)
	put := func(path, value string) string { return string(with(small, path, value)) }
	repeat := strings.Repeat
	return map[string]struct {
		src  string
		rule rule.ID
	}{
		"2 MiB":                    {put("spec.hyperparams", `{"x":"`+repeat("a", 2*limit.MiB)+`"}`), "job.json.limit"},
		"5000 levels":              {strings.Replace(small, `"spec":{`, `"spec":{"hyperparams":{"x":`+repeat("[", 5000)+repeat("]", 5000)+`},`, 1), "job.json.depth"},
		"5000 levels, unclosed":    {repeat("[", 5000), "job.json.depth"},
		"integer of 5000 digits":   {strings.Replace(small, `"spec":{`, `"spec":{"hyperparams":{"x":`+repeat("9", 5000)+`},`, 1), "job.json.limit"},
		"integer of 400 digits":    {strings.Replace(small, `"spec":{`, `"spec":{"hyperparams":{"x":`+repeat("9", 400)+`},`, 1), "job.json.number"},
		"1e999":                    {strings.Replace(small, `"spec":{`, `"spec":{"hyperparams":{"x":1e999},`, 1), "job.json.number"},
		"lone surrogate in a key":  {strings.Replace(small, `"spec":{`, `"spec":{"hyperparams":{"\udc00":1},`, 1), "job.json.string"},
		"NUL in a name":            {strings.Replace(small, `"demo"`, `"de\u0000mo"`, 1), "job.json.string"},
		"bytes that are no UTF-8":  {strings.Replace(small, `demo"`, "demo\xff\"", 1), "job.json.syntax"},
		"byte-order mark":          {"\ufeff" + small, "job.json.syntax"},
		"look-alike key":           {strings.Replace(small, `"kind":"Tr`, `"kınd":"x","kind":"Tr`, 1), "job.unknown_field"},
		"two names but for case":   {put("spec.plugins", pluginList("a/x", "b/X")), "job.plugins.leaf_collision.fold"},
		"60,000 bad plugins":       {put("spec.plugins", "["+repeat("1,", 60_000)+"1]"), "job.plugins.item.object"},
		"20,000 unknown keys":      {put("spec.model", manyKeys(20_000)), "job.unknown_field"},
		"100,000 values":           {put("spec.hyperparams", `{"x":[`+repeat("1,", 150_000)+`1]}`), "job.json.limit"},
		"line break in a recipe":   {put("spec.recipe.name", `"verl\n/grpo"`), "job.name.inner_space"},
		"80,000 repeated keys":     {strings.Replace(small, `"spec":{`, `"spec":{"hyperparams":{"x":`+repeat("[", 50)+`{`+repeat(`"a":1,`, 80_000)+`"a":1}`+repeat("]", 50)+`},`, 1), "job.json.duplicate_key"},
		"100,000 escapes":          {put("spec.hyperparams", `{"x":"`+repeat(`\ud800 `, 100_000)+`"}`), "job.json.string"},
		"60,000 labels":            {put("metadata.labels", `{`+labels(60_000)+`"x":[]}`), "job.type.string"},
		"80,000 faulty keys":       {strings.Replace(small, `"spec":{`, `"spec":{"hyperparams":{`+repeat(`"\ud800":1,`, 80_000)+`"a":1},`, 1), "job.json.string"},
		"one long name":            {put("metadata.name", `"`+repeat("x", limit.MiB-1000)+`/"`), "job.metadata.name.segment"},
		"a path of 500,000 parts":  {put("spec.source.exp", `"`+repeat("/a", 500_000)[1:]+`/."`), "job.source.exp.segment"},
		"a path of 500,000 faults": {put("spec.source.exp", `"`+repeat("/.", 500_000)[1:]+`"`), "job.source.exp.segment"},
		"200,000 slashes":          {put("spec.model.init_from", `"run`+repeat("/", 900_000)+`"`), "job.model.init_from.format"},
		"200,000 qualifiers":       {put("spec.model.init_from", `"run/a/b@`+repeat("step=1,", 140_000)+`"`), "job.model.init_from.qualifier"},
		"a link of 1 MiB":          {put("spec.framework.observability_url", `"`+repeat("a:", 500_000)+`"`), "job.framework.observability_url.url"},
		"a number of 4,000 digits": {put("spec.resources.pools", `[{"name":"a","nodes":`+repeat("9", 4000)+`}]`), "job.resources.pool.nodes.max"},
		"20,000 gates":             {put("spec.evaluation", `{"suites":["a"],"gates":[`+repeat(`{"metric":"b/c","min":1},`, 20_000)+`{}]}`), "job.evaluation.gate.metric.suite"},
		"gates of other suites":    {put("spec.evaluation", `{"suites":[`+entries(30_000, `"s%d"`)+`],"gates":[`+entries(12_000, `{"metric":"t%d/x","min":1}`)+`]}`), "job.evaluation.gate.metric.suite"},
		"roles of other pools":     {put("spec.resources", `{"pools":[`+entries(12_000, `{"name":"p%d"}`)+`],"roles":{`+entries(12_000, `"r%d":"q"`)+`}}`), "job.resources.roles.target"},
		"NaN":                      {strings.Replace(small, `"spec":{`, `"spec":{"hyperparams":{"x":NaN},`, 1), "job.json.syntax"},
		"key with a Cyrillic a":    {strings.Replace(small, `"name":"demo"`, `"nаme":"x","name":"demo"`, 1), "job.unknown_field"},
		"key in capitals":          {strings.Replace(small, `"name":"demo"`, `"NAME":"x","name":"demo"`, 1), "job.unknown_field"},
		"name with a Cyrillic a":   {put("metadata.name", `"demо"`), "job.metadata.name.segment"},
		"control escape in a path": {put("spec.data.train", `{"path":"a\u001b[2Jb"}`), "job.json.string"},
	}
}

func labels(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"l%d":"",`, i)
	}
	return b.String()
}

// entries is a list with a comma between, each entry with its number.
func entries(n int, entry string) string {
	list := make([]string, n)
	for i := range n {
		list[i] = fmt.Sprintf(entry, i)
	}
	return strings.Join(list, ",")
}

func pluginList(ids ...string) string {
	var list []map[string]string
	for _, id := range ids {
		list = append(list, map[string]string{"id": id, "version": "1", "digest": "sha256:" + strings.Repeat("a", 64)})
	}
	out, err := json.Marshal(list)
	if err != nil {
		panic(err)
	}
	return string(out)
}

func TestHostile(t *testing.T) {
	for name, h := range hostile() {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, report := Parse([]byte(h.src), Options{Dialect: dialect.TunePlane})
			runtime.ReadMemStats(&after)
			if !rulesOf(report.Violations)[h.rule] {
				t.Errorf("%s is not among %.2000s", h.rule, fmt.Sprint(report.Violations))
			}
			if used := after.TotalAlloc - before.TotalAlloc; used > 64*limit.MiB {
				t.Errorf("%d bytes were allocated", used)
			}
			if n := len(report.Violations) + len(report.Warnings); n > 2*maxFindings+64 {
				t.Errorf("%d findings", n)
			}
			for _, v := range report.Violations {
				if len(v.Message) > 4000 || len(v.Field) > 4000 || strings.ContainsAny(v.Message+v.Field, "\x00\x1b\n") {
					t.Errorf("a violation is not fit to be shown: %.200q", v)
				}
			}
		})
	}
}

// TestTruncated checks that what is left out of a report is said.
func TestTruncated(t *testing.T) {
	_, report := Parse(with(smallest(dialect.TunePlane), "spec.plugins", "["+strings.Repeat("1,", 999)+"1]"), Options{})
	if len(report.Violations) != maxFindings {
		t.Errorf("%d violations, want %d", len(report.Violations), maxFindings)
	}
	last := report.Warnings[len(report.Warnings)-1]
	if last.Rule != "job.report.truncated" || !strings.Contains(last.Message, "500 more") {
		t.Errorf("last warning %v", last)
	}
}

func TestCredentials(t *testing.T) {
	letters := strings.Repeat("A1", 20)
	for text, want := range map[string]string{
		"hf_" + letters: "a Hugging Face token", "x=sk-" + letters: "an API key", "ghp_" + letters: "a GitHub token",
		"github_pat_" + letters: "a GitHub token", "glpat-" + letters: "a GitLab token", "xoxb-" + letters: "a Slack token",
		"AKIA" + letters[:16]: "an AWS access key", "-----BEGIN RSA PRIVATE KEY-----": "a private key",
		"risk-" + letters: "", "task-" + letters: "", "hf_short_and_with_underscores": "", "sha256:" + letters: "",
		"-----BEGIN CERTIFICATE-----": "", "BAKIA" + letters[:16]: "",
	} {
		if got := credential(text); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

func FuzzJobSpec(f *testing.F) {
	for _, d := range dialect.All {
		for i, v := range readVectors[vector](f, dialectFiles[d]) {
			if i%7 == 0 {
				f.Add(v.source())
			}
		}
	}
	for _, h := range hostile() {
		if len(h.src) < 4096 {
			f.Add([]byte(h.src))
		}
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		for _, d := range dialect.All {
			spec, report := Parse(src, Options{Dialect: d})
			if spec == nil {
				if report.OK() {
					t.Fatal("nothing was read and nothing is wrong")
				}
				continue
			}
			for range spec.References() {
			}
			spec.TotalGPUs()
			stored := spec.Normalised()
			if !report.OK() {
				continue
			}
			if _, err := spec.Digest(); err != nil {
				t.Fatalf("accepted, but has no digest: %v", err)
			}
			again, report := Parse(stored, Options{Dialect: d})
			if !report.OK() {
				t.Fatalf("the stored document is refused: %v\n%s", report.Violations, stored)
			}
			if got := again.Normalised(); string(got) != string(stored) && !strings.Contains(string(stored), ":{}") {
				t.Fatalf("the stored document\n%s\nreads as\n%s", stored, got)
			}
		}
	})
}

func BenchmarkParse(b *testing.B) {
	var largest []byte
	for _, v := range readVectors[vector](b, dialectFiles[dialect.TunePlane]) {
		if v.Gatehouse.Verdict == "accept" && len(v.source()) > len(largest) {
			largest = v.source()
		}
	}
	b.SetBytes(int64(len(largest)))
	b.ReportAllocs()
	for b.Loop() {
		if _, report := Parse(largest, Options{Dialect: dialect.TunePlane}); !report.OK() {
			b.Fatal(report.Violations)
		}
	}
}

// BenchmarkHostile reads each hostile document. None should take longer than a few hundredths of a second.
func BenchmarkHostile(b *testing.B) {
	for name, h := range hostile() {
		src := []byte(h.src)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, report := Parse(src, Options{Dialect: dialect.TunePlane}); report.OK() {
					b.Fatal("accepted")
				}
			}
		})
	}
}

// TestMisspelledSuites checks that looking for what was meant ends: of a million bytes each name could be compared with each.
func TestMisspelledSuites(t *testing.T) {
	gates := func(n int) []rule.Violation {
		src := with(smallest(dialect.Forge), "spec.evaluation", `{"suites":["gsm8k",`+entries(n, `"s%d"`)+`],"gates":[`+entries(n, `{"metric":"gsmk8/x%d","min":1}`)+`]}`)
		_, report := Parse(src, Options{})
		return report.Violations
	}
	if few := gates(3); len(few) != 3 || !strings.Contains(few[2].Message, "misspelled") {
		t.Errorf("a few gates: %v", few)
	}
	if many := gates(1000); len(many) != maxFindings || !strings.Contains(many[0].Message, "misspelled") || strings.Contains(many[maxNamed].Message, "misspelled") {
		t.Errorf("%d findings, %q to %q", len(many), many[0].Message, many[maxNamed].Message)
	}
}
