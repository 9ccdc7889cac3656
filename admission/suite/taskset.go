package suite

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/admission/name"
	"github.com/gatehouse-registry/gatehouse/admission/pyjson"
	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/digest/canonical"
)

// The taskset.json of a taskset (packs.md 11). Only tuneplane has tasksets.
const (
	TasksetFile   = "taskset.json"
	TasksetSchema = "tuneplane/taskset/v1"
	TasksetFormat = "harbor"
	// TaskMarker is the file that each task of the format has.
	TaskMarker = "task.toml"
)

// TasksetDocument is a taskset.json.
type TasksetDocument struct {
	Format string        `json:"format"`
	Tasks  []TasksetTask `json:"tasks"`
	Digest string        `json:"digest"` // 64 hex digits: the client's, over the whole document
}

// TasksetTask is one task: a folder whose content is pinned.
type TasksetTask struct {
	ID     string `json:"id"`
	Path   string `json:"path"`
	Split  string `json:"split"`
	SHA256 string `json:"sha256"` // TaskDigest of the files below Path

	place *pyvalue.Value
}

// TasksetSummary is what the client shows of a taskset.
type TasksetSummary struct {
	Format string         `json:"format"`
	Digest string         `json:"digest"`
	Total  int            `json:"total"`
	Splits map[string]int `json:"splits"`
}

// Summary sums the taskset up.
func (t *TasksetDocument) Summary() TasksetSummary {
	s := TasksetSummary{Format: t.Format, Digest: t.Digest, Total: len(t.Tasks), Splits: map[string]int{"train": 0, "eval": 0}}
	for _, task := range t.Tasks {
		s.Splits[task.Split]++
	}
	return s
}

// ParseTaskset reads a taskset.json of at most limit.TasksetManifest bytes. The document is nil when it could not be read as
// far as its tasks; only an OK report says that it is whole.
func ParseTaskset(src []byte, policy rule.Policy) (*TasksetDocument, rule.Report) {
	root, report := pyjson.Load(src, pyjson.Options{Policy: policy, File: TasksetFile, MaxBytes: limit.TasksetManifest})
	r := &tasksetReader{findings: findings{file: TasksetFile, report: report}}
	if root == nil {
		return nil, r.finish()
	}
	if !r.members("taskset.root", "", root, "schema", "format", "tasks") {
		return nil, r.finish()
	}
	for field, want := range map[string]string{"schema": TasksetSchema, "format": TasksetFormat} {
		if v := root.Get(field); v.Kind != pyvalue.Str || v.Text != want {
			r.fault("taskset.schema", field, v, "found %s, expected %q", found(v), want)
		}
	}
	list := root.Get("tasks")
	if !isList(list) || len(list.List) == 0 || len(list.List) > limit.TasksetTasks {
		n := ""
		if isList(list) {
			n = fmt.Sprintf(" of %d", len(list.List))
		}
		r.fault("taskset.tasks", "tasks", list, "found %s%s, expected a list of 1 to %d tasks", found(list), n, limit.TasksetTasks)
		return nil, r.finish()
	}
	doc := &TasksetDocument{Format: TasksetFormat}
	for i, row := range list.List {
		if task, ok := r.task(fmt.Sprintf("tasks[%d]", i), row); ok {
			doc.Tasks = append(doc.Tasks, task)
		}
	}
	r.overlaps(doc.Tasks)
	if text, err := canonical.ASCII(root); err == nil {
		sum := sha256.Sum256(text)
		doc.Digest = hex.EncodeToString(sum[:])
	}
	return doc, r.finish()
}

// tasksetReader carries one reading of a taskset.json.
type tasksetReader struct{ findings }

// members holds that v is an object of exactly these members.
func (r *tasksetReader) members(id rule.ID, field string, v *pyvalue.Value, names ...string) bool {
	if !isMap(v) {
		r.fault(id, field, v, "found %s, expected an object of %s", found(v), strings.Join(names, ", "))
		return false
	}
	ok := true
	for _, n := range names {
		if !v.Has(n) {
			r.fault(id, join(field, n), v, "the field is missing; expected exactly %s", strings.Join(names, ", "))
			ok = false
		}
	}
	for _, it := range v.Items {
		if !slices.Contains(names, it.Key.Text) {
			r.fault(id, join(field, printed(it.Key.Text)), it.Key, "the field is not known; expected exactly %s", strings.Join(names, ", "))
		}
	}
	return ok
}

func join(field, member string) string {
	if field == "" {
		return member
	}
	return field + "." + member
}

// task reads one task. ok says that it has a path to compare.
func (r *tasksetReader) task(field string, v *pyvalue.Value) (task TasksetTask, ok bool) {
	if !r.members("taskset.task", field, v, "id", "path", "split", "sha256") {
		return task, false
	}
	for _, f := range []string{"id", "path", "split", "sha256"} {
		if one := v.Get(f); one.Kind != pyvalue.Str {
			r.fault("taskset.task", field+"."+f, one, "found %s, expected a text", found(one))
			return task, false
		}
	}
	task = TasksetTask{ID: v.Get("id").Text, Path: v.Get("path").Text, Split: v.Get("split").Text, SHA256: v.Get("sha256").Text, place: v}
	if _, err := name.Segment(task.ID, "id"); err != nil {
		r.fault("taskset.task.id", field+".id", v.Get("id"), "found the id %.100q", task.ID)
	}
	elements := strings.Split(task.Path, "/")
	ok = len(task.Path) <= limit.Path && !strings.Contains(task.Path, `\`) && !slices.ContainsFunc(elements, func(e string) bool { return e == "" || e == "." || e == ".." })
	switch {
	case len(task.Path) > limit.Path: // every folder above it is looked at (overlaps)
		r.fault("taskset.task.path", field+".path", v.Get("path"), "found a path of %d bytes, expected at most %d", len(task.Path), limit.Path)
	case !ok:
		r.fault("taskset.task.path", field+".path", v.Get("path"), "found %.200q, expected a plain relative folder", task.Path)
	case elements[len(elements)-1] != task.ID:
		r.fault("taskset.task.path", field+".path", v.Get("path"), "found %.200q, whose last folder is not the task's id %.100q", task.Path, task.ID)
	}
	if !slices.Contains(Splits, task.Split) {
		r.fault("taskset.task.split", field+".split", v.Get("split"), "found %.100q, expected %s", task.Split, oneOf(Splits))
	}
	if !isHexDigest(task.SHA256) {
		r.fault("taskset.task.sha256", field+".sha256", v.Get("sha256"), "found %.100q, expected 64 lower-case hex digits", task.SHA256)
	}
	return task, ok
}

func isHexDigest(s string) bool {
	return len(s) == 64 && !strings.ContainsFunc(s, func(r rune) bool { return (r < '0' || r > '9') && (r < 'a' || r > 'f') })
}

// overlaps finds ids and folders that come twice, and folders inside folders.
func (r *tasksetReader) overlaps(tasks []TasksetTask) {
	ids, paths := make(map[string]bool, len(tasks)), make(map[string]bool, len(tasks))
	for _, t := range tasks {
		if ids[t.ID] {
			r.fault("taskset.unique", "", t.place.Get("id"), "the id %.100q comes twice", t.ID)
		}
		if paths[t.Path] {
			r.fault("taskset.unique", "", t.place.Get("path"), "the folder %.200q comes twice", t.Path)
		}
		ids[t.ID], paths[t.Path] = true, true
	}
	for _, t := range tasks {
		for above := parent(t.Path); above != ""; above = parent(above) {
			if paths[above] {
				r.fault("taskset.unique", "", t.place.Get("path"), "the folder %.200q lies in %.200q, which is a task too", t.Path, above)
			}
		}
	}
}

// parent is the folder that a path lies in, "" for one at the top.
func parent(path string) string { return path[:max(strings.LastIndexByte(path, '/'), 0)] }

// TaskDigest is the client's digest of a task: 64 hex digits over the names, sizes and digests of its files, whose names are
// relative to the task's folder.
func TaskDigest(files []File) string {
	sorted := slices.SortedFunc(slices.Values(files), func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	rows := make([]any, len(sorted))
	for i, f := range sorted {
		rows[i] = canonical.Object{{Key: "name", Value: f.Name}, {Key: "size", Value: big.NewInt(f.Size)}, {Key: "sha256", Value: f.Digest.Hex()}}
	}
	text, err := canonical.ASCII(rows)
	if err != nil {
		return "" // more than a canonical form may have: equal to no digest
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// CheckFiles compares a taskset with the files of its version: each task has its marker and the very content that its digest
// names. Files that are of no task are a warning.
func (t *TasksetDocument) CheckFiles(index Index, policy rule.Policy) rule.Report {
	r := &tasksetReader{findings: findings{file: TasksetFile, report: rule.Report{Policy: policy}}}
	below := make(map[string]int, len(t.Tasks))
	for i, task := range t.Tasks {
		below[task.Path] = i
	}
	files := make([][]File, len(t.Tasks))
	for _, f := range index {
		at := -1
		for above := parent(f.Name); above != ""; above = parent(above) {
			if i, ok := below[above]; ok {
				at = i
				break
			}
		}
		switch {
		case at >= 0:
			f.Name = f.Name[len(t.Tasks[at].Path)+1:]
			files[at] = append(files[at], f)
		case f.Name != TasksetFile:
			r.fault("taskset.extra", "", nil, "the file %.200q belongs to no task", f.Name)
		}
	}
	for i, task := range t.Tasks {
		switch {
		case !slices.ContainsFunc(files[i], func(f File) bool { return f.Name == TaskMarker }):
			r.fault("taskset.marker", fmt.Sprintf("tasks[%d].path", i), task.place, "the task %.100q has no file %s/%s", task.ID, task.Path, TaskMarker)
		case TaskDigest(files[i]) != task.SHA256:
			r.fault("taskset.digest", fmt.Sprintf("tasks[%d].sha256", i), task.place, "the files of task %.100q have the digest %s, the document says %s", task.ID, TaskDigest(files[i]), task.SHA256)
		}
	}
	return r.finish()
}

// encodeTaskset writes a taskset.json as people read it.
func encodeTaskset(tasks []TasksetTask) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(struct {
		Schema string        `json:"schema"`
		Format string        `json:"format"`
		Tasks  []TasksetTask `json:"tasks"`
	}{TasksetSchema, TasksetFormat, tasks})
	return b.Bytes(), err
}
