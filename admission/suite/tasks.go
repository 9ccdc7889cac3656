package suite

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/admission/pack"
	"github.com/gatehouse-registry/gatehouse/admission/pyjson"
	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
)

// Splits are the halves of a taskset; a task that names none is of the first.
var Splits = []string{"train", "eval"}

// Task is one row of a tasks.jsonl.
type Task struct {
	ID        string   `json:"id"`
	Prompt    string   `json:"prompt"`
	Reference string   `json:"reference"` // not stripped
	Metadata  pack.Raw `json:"metadata"`  // an object
	Split     string   `json:"split"`
}

// TaskOptions say how a tasks.jsonl is read. The zero TaskOptions read every row.
type TaskOptions struct {
	Policy rule.Policy
	Split  string // only the rows of this half; "" all
	Need   bool   // a half without rows is a violation
}

// TaskCounts say how many tasks a file has.
type TaskCounts struct {
	Total, Train, Eval int
}

// errStop ends a reading that its caller has had enough of.
var errStop = errors.New("stop")

// ReadTasks reads a tasks.jsonl row by row and gives those of the asked half to each, until that answers false; each may be
// nil. It holds one row at a time, of at most limit.TaskRow bytes. The error is r's own.
func ReadTasks(r io.Reader, opt TaskOptions, each func(Task) bool) (TaskCounts, rule.Report, error) {
	t := &taskReader{findings: findings{file: TasksFile, report: rule.Report{Policy: opt.Policy}}, opt: opt, each: each, seen: map[string]bool{}}
	if opt.Split != "" && !slices.Contains(Splits, opt.Split) {
		t.fault("tasks.split", "", nil, "asked for the split %.100q, expected %s", opt.Split, oneOf(Splits))
		return t.counts, t.finish(), nil
	}
	err := t.lines(r)
	if errors.Is(err, errStop) {
		return t.counts, t.finish(), nil
	}
	if err == nil && opt.Need && t.kept == 0 {
		t.fault("tasks.split.empty", "", nil, "no row is of the split %q", opt.Split)
	}
	return t.counts, t.finish(), err
}

// maxSeen is how many ids are remembered to find repetitions.
const maxSeen = 50_000

// taskReader carries one reading of a tasks.jsonl.
type taskReader struct {
	findings
	opt    TaskOptions
	each   func(Task) bool
	counts TaskCounts
	kept   int
	seen   map[string]bool
}

// lines takes the file apart as Python's text files are: LF, CR and CR LF end a line alike.
func (t *taskReader) lines(r io.Reader) error {
	in := bufio.NewReaderSize(r, 64<<10)
	var line []byte
	number, afterCR := 1, false
	for {
		c, err := in.ReadByte()
		if errors.Is(err, io.EOF) {
			return t.line(number, line)
		}
		if err != nil {
			return err
		}
		if afterCR && c == '\n' {
			afterCR = false
			continue
		}
		afterCR = c == '\r'
		if c != '\n' && c != '\r' {
			if line = append(line, c); len(line) > limit.TaskRow {
				t.add(rule.Violation{Rule: "tasks.limit", File: t.file, Line: number, Column: 1, Message: fmt.Sprintf("the row has more than %d bytes", limit.TaskRow)})
				return errStop
			}
			continue
		}
		if err := t.line(number, line); err != nil {
			return err
		}
		number++
		line = line[:0]
	}
}

// line takes one line without its end.
func (t *taskReader) line(number int, line []byte) error {
	if t.full() {
		return errStop
	}
	if !utf8.Valid(line) {
		t.add(rule.Violation{Rule: "tasks.encoding", File: t.file, Line: number, Column: 1, Message: "the line is not UTF-8"})
		return nil
	}
	whole := string(line)
	text := pyvalue.Strip(whole)
	if text == "" {
		return nil
	}
	before := utf8.RuneCountInString(whole[:strings.Index(whole, text)])
	v := t.row(number, before, text)
	if v == nil {
		return nil
	}
	task, ok := t.task(v)
	if !ok {
		return nil
	}
	t.count(task, v)
	if t.opt.Split != "" && task.Split != t.opt.Split {
		return nil
	}
	t.kept++
	if t.each != nil && !t.each(task) {
		return errStop
	}
	return nil
}

// row reads the JSON of a line and puts positions where they are in the file.
func (t *taskReader) row(number, before int, text string) *pyvalue.Value {
	rules := pyjson.Family("json")
	rules.String = "tasks.string"
	v, report := pyjson.Load([]byte(text), pyjson.Options{Policy: t.opt.Policy, File: t.file, Rules: rules, MaxBytes: limit.TaskRow})
	for _, list := range [][]rule.Violation{report.Violations, report.Warnings} {
		for _, f := range list {
			f.Line, f.Column = number, f.Column+before
			t.add(f)
		}
	}
	if v == nil {
		return nil
	}
	place(v, number, before)
	if !isMap(v) {
		t.fault("tasks.row", "", v, "the row is %s, expected an object {id, prompt}", found(v))
		return nil
	}
	return v
}

// place moves a value and its members, which is as deep as rows are looked at, to their place in the file.
func place(v *pyvalue.Value, line, before int) {
	v.Line, v.Column = line, v.Column+before
	for _, it := range v.Items {
		it.Value.Line, it.Value.Column = line, it.Value.Column+before
	}
}

// task reads a row.
func (t *taskReader) task(v *pyvalue.Value) (Task, bool) {
	task := Task{ID: v.Get("id").TextOf(), Prompt: v.Get("prompt").TextOf(), Split: Splits[0], Metadata: pack.Raw{Value: &pyvalue.Value{Kind: pyvalue.Map}}}
	ok := true
	for _, need := range []struct{ field, text string }{{"id", task.ID}, {"prompt", task.Prompt}} {
		if need.text == "" {
			t.fault("tasks.row", need.field, or(v.Get(need.field), v), "a task needs an id and a prompt: %s is %s", need.field, found(v.Get(need.field)))
			ok = false
		}
	}
	if split := v.Get("split"); split.Truthy() {
		if task.Split = split.TextOf(); !slices.Contains(Splits, task.Split) {
			t.fault("tasks.split", "split", split, "found %.100q, expected %s", task.Split, oneOf(Splits))
			ok = false
		}
	}
	if ref := v.Get("reference"); ref.Truthy() {
		task.Reference = ref.PyStr()
	}
	switch m := v.Get("metadata"); {
	case isMap(m):
		task.Metadata.Value = m
	case m.Truthy():
		t.fault("tasks.metadata", "metadata", m, "found %s, which the clients drop; expected an object", found(m))
	}
	return task, ok
}

// count counts a task, and warns of an id that came before.
func (t *taskReader) count(task Task, v *pyvalue.Value) {
	t.counts.Total++
	if task.Split == "eval" {
		t.counts.Eval++
	} else {
		t.counts.Train++
	}
	switch {
	case t.seen[task.ID]:
		t.fault("tasks.unique", "id", v.Get("id"), "the id %.100q comes again", task.ID)
	case len(t.seen) < maxSeen:
		t.seen[task.ID] = true
	}
}
