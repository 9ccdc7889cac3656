package pack

import (
	"math/big"
	"slices"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/digest"
)

// BenchmarkFile is the document of a benchmark pack.
const BenchmarkFile = "benchmark.yaml"

// Benchmark is a benchmark.yaml as its dialect's client reads it (packs.md 6): defaults filled in, texts coerced and
// stripped.
type Benchmark struct {
	Dialect dialect.Dialect

	Schema     string
	Name       string
	Title      string // the name when the document has none
	Summary    string
	Runner     string
	Suites     []string // duplicates kept
	Metrics    []BenchmarkMetric
	Category   string
	Rubric     string   // <owner>/<name>; needed by the runner judge
	Keywords   []string // lower case, without repetitions
	NumFewshot *big.Int // nil when absent
	Limit      *big.Int // nil when absent
	BatchSize  string
	ExtraArgs  string
	I18n       Table[Texts] // by locale: title, summary

	Digest digest.Digest // content digest of the pack; zero when only the document was read
}

// BenchmarkMetric is a number that the benchmark reports.
type BenchmarkMetric struct {
	Key       string `json:"key"`
	Label     string `json:"label"`
	Direction string `json:"direction"` // higher, lower or neutral
	Ratio     bool   `json:"ratio"`     // between 0 and 1
	Primary   bool   `json:"primary"`

	I18n Table[Texts] `json:"-"` // by locale: label
}

// PrimaryMetric is the key of the metric by which runs are compared: the one marked so, else the first.
func (b Benchmark) PrimaryMetric() string {
	for _, m := range b.Metrics {
		if m.Primary {
			return m.Key
		}
	}
	if len(b.Metrics) == 0 {
		return ""
	}
	return b.Metrics[0].Key
}

// Localized is the benchmark with its texts in a locale; those that are not translated stay.
func (b Benchmark) Localized(locale string) Benchmark {
	if locale == "" {
		return b
	}
	b.Title = localized(b.I18n, locale, "title", b.Title)
	b.Summary = localized(b.I18n, locale, "summary", b.Summary)
	b.Metrics = slices.Clone(b.Metrics)
	for i, m := range b.Metrics {
		b.Metrics[i].Label = localized(m.I18n, locale, "label", m.Label)
	}
	return b
}

// BenchmarkRecord is a benchmark as the catalogue shows it: the client's to_dict.
type BenchmarkRecord struct {
	ID         string            `json:"id"` // <owner>.<name>, or the name alone without an owner
	Name       string            `json:"name"`
	Title      string            `json:"title"`
	Summary    string            `json:"summary"`
	Runner     string            `json:"runner"`
	Suites     []string          `json:"suites"`
	Category   string            `json:"category"`
	Rubric     string            `json:"rubric"`
	Metrics    []BenchmarkMetric `json:"metrics"`
	Keywords   []string          `json:"keywords"`
	Source     string            `json:"source"` // user: what ships inside a client is no pack
	Owner      string            `json:"owner"`
	Digest     digest.Digest     `json:"digest"`
	BatchSize  string            `json:"batch_size"`
	NumFewshot *big.Int          `json:"num_fewshot,omitempty"`
	Limit      *big.Int          `json:"limit,omitempty"`
	ExtraArgs  string            `json:"extra_args,omitempty"`
}

// Record is the benchmark of an owner as the catalogue shows it.
func (b Benchmark) Record(owner string) BenchmarkRecord {
	r := BenchmarkRecord{
		ID: b.Name, Name: b.Name, Title: b.Title, Summary: b.Summary, Runner: b.Runner, Suites: b.Suites, Category: b.Category,
		Rubric: b.Rubric, Metrics: b.Metrics, Keywords: b.Keywords, Source: "user", Owner: owner, Digest: b.Digest,
		BatchSize: b.BatchSize, NumFewshot: b.NumFewshot, Limit: b.Limit, ExtraArgs: b.ExtraArgs,
	}
	if owner != "" {
		r.ID = owner + "." + b.Name
	}
	return r
}

// MarshalJSON writes the record without an owner.
func (b Benchmark) MarshalJSON() ([]byte, error) { return plainJSON(b.Record("")) }
