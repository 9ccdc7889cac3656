package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// The figures.
const (
	figurePull         = "pull"
	figurePush         = "push"
	figureManifest     = "manifest"
	figureManifestTags = "manifest among tags"
	figureSmall        = "small"
	figureTags         = "tags"
	figureList         = "list"
	figureFirstPage    = "first page"
	figureLastPage     = "last page"
	figureStart        = "start"
	figureMemory       = "memory"
)

// row is a figure in the table. goal says what the ratio must reach, of which server.
type row struct {
	figure, title, unit string
	goal                float64
	of                  string
	less                bool // the smaller, the better
}

func (b *bench) rows() []row {
	size := fmt.Sprintf("%d MiB", b.o.big>>20)
	return []row{
		{figurePull, "pull of a blob of " + size, "MB/s", 0.9, bare, false},
		{figurePush, "push of a blob of " + size + " into memory", "MB/s", 0.9, bare, false},
		{figureManifest, fmt.Sprintf("manifest by tag, %d connections", readers), "1/s", 5, theirs, false},
		{figureManifestTags, fmt.Sprintf("the same among %d tags", b.o.tags), "1/s", 5, theirs, false},
		{figureSmall, fmt.Sprintf("small artifacts, durable, %d workers", smallWorkers), "1/s", 6, theirs, false},
		{figureTags, fmt.Sprintf("setting %d tags", b.o.tags), "1/s", 5, theirs, false},
		{figureList, fmt.Sprintf("list of %d tags", b.o.tags), "ms", 15, theirs, true},
		{figureFirstPage, "first page of 100 of them", "ms", 0, theirs, true},
		{figureLastPage, "last page of 100 of them", "ms", 0, theirs, true},
		{figureStart, fmt.Sprintf("start to first answer, %d versions", b.o.versions), "ms", 0.7, theirs, true},
		{figureMemory, "resident memory at rest after the run", "MiB", 0.7, theirs, true},
	}
}

// table is what was measured, as Markdown.
func (b *bench) table() string {
	var out strings.Builder
	out.WriteString("| figure | unit | ceiling | distribution " + distributionVersion + " | Gatehouse | ratio | asked |\n| --- | --- | ---: | ---: | ---: | ---: | ---: |\n")
	for _, r := range b.rows() {
		fmt.Fprintf(&out, "| %s | %s | %s | %s | %s | %s | %s |\n", r.title, r.unit, number(b.value(r.figure, bare)),
			number(b.value(r.figure, theirs)), number(b.value(r.figure, ours)), b.ratio(r), r.asked())
	}
	return out.String()
}

// ratio is how the two compare: of times and memory that must not exceed a part of the other's, that part; else how many times
// better ours is.
func (b *bench) ratio(r row) string {
	mine, other := b.value(r.figure, ours), b.value(r.figure, r.of)
	if mine == 0 || other == 0 {
		return ""
	}
	if r.less && r.goal >= 1 || r.less && r.goal == 0 {
		mine, other = other, mine
	}
	return fmt.Sprintf("%.2f of %s", mine/other, map[string]string{bare: "the ceiling", theirs: "distribution"}[r.of])
}

func (r row) asked() string {
	switch {
	case r.goal == 0:
		return ""
	case r.less && r.goal < 1:
		return fmt.Sprintf("≤ %.2g", r.goal)
	}
	return fmt.Sprintf("≥ %.2g", r.goal)
}

// number has three digits that count.
func number(v float64) string {
	switch {
	case v == 0:
		return ""
	case v < 10:
		return fmt.Sprintf("%.2f", v)
	case v < 100:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.0f", v)
}

func median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	v = slices.Sorted(slices.Values(v))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// The table stands between these lines of the document.
const (
	tableBegin = "<!-- table: make bench writes it -->\n"
	tableEnd   = "<!-- end of the table -->\n"
)

// writeTable replaces the table in a document.
func writeTable(path, text string) error {
	document, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(document), tableBegin)
	_, after, ended := strings.Cut(rest, tableEnd)
	if !ok || !ended {
		return fmt.Errorf("%s has no place for the table", path)
	}
	return os.WriteFile(path, []byte(before+tableBegin+text+tableEnd+after), 0o644)
}
