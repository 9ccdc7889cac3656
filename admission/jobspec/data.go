package jobspec

import (
	"strings"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
)

// hasHubs reports whether the dialect names models and datasets by hub.
func (s *Spec) hasHubs() bool { return s.Dialect == dialect.TunePlane }

// data reads spec.data, in the clients' order.
func (r *reader) data(n node) {
	m, ok := r.object(n, secData, "job.data.object")
	if !ok {
		return
	}
	out := &r.spec.Data
	out.Volumes = r.volumes(m.get("volumes"))
	out.OutputDataset = r.outputDataset(m.get("output_dataset"))
	out.Environment = r.environment(m.get("environment"))
	if r.tunePlane() {
		out.Taskset = r.taskset(m.get("taskset"))
	} else {
		out.Corpus = r.corpus(m.get("corpus"))
	}
	out.Train = r.dataRef(m.get("train"))
	out.Validation = r.dataRef(m.get("validation"))
	r.quality(m.get("quality"))
}

// volumes reads <owner>/<name> entries. Each is compared with those before it, so a name that would hide another is
// reported before what is wrong with later entries.
func (r *reader) volumes(n node) []string {
	list, _ := r.list(n, "job.data.volumes.array", "\"<owner>/<name>\"")
	var volumes []string
	owners := make(map[string]string)
	for i, v := range list {
		owner, leaf, ok := r.volume(n.entry(i, v))
		if !ok {
			continue
		}
		if other, taken := owners[leaf]; taken && other != owner {
			r.bad(n.entry(i, v).as(n), "job.data.volumes.leaf_collision", "found %.100q and %.100q, expected names that differ: both would be mounted at one path", other+"/"+leaf, owner+"/"+leaf)
			continue
		}
		owners[leaf] = owner
		volumes = append(volumes, owner+"/"+leaf)
	}
	return volumes
}

// volume reads one entry; white space around the parts is dropped here.
func (r *reader) volume(n node) (owner, leaf string, ok bool) {
	text := r.loose(n)
	body, _, versioned := strings.Cut(text, "@")
	if versioned {
		r.bad(n, "job.data.volumes.version", "found %.100q, expected <owner>/<name> without a version", text)
	}
	parts := split(body)
	if len(parts) != 2 {
		r.bad(n, "job.data.volumes.format", "found %.100q, expected <owner>/<name>", text)
		return "", "", false
	}
	owner, leaf = pyvalue.Strip(parts[0]), pyvalue.Strip(parts[1])
	ok = r.segment(n, owner, "job.data.volumes.segment")
	ok = r.segment(n, leaf, "job.data.volumes.segment") && ok && !versioned
	if ok && strings.HasPrefix(text, "/") {
		r.bad(n, "job.data.volumes.absolute", "found the path %.100q, expected <owner>/<name>", text)
	}
	return owner, leaf, ok
}

// outputDataset reads the dataset version that the job publishes.
func (r *reader) outputDataset(n node) string {
	text := r.loose(n)
	if text == "" {
		return ""
	}
	if colon := strings.IndexByte(text, ':'); r.tunePlane() && colon >= 0 && !strings.Contains(text[:colon], "/") {
		r.bad(n, "job.data.output_dataset.hub", "found the hub prefix %.100q, expected <owner>/<name>@<version> of this platform", text[:colon])
		text = strings.TrimPrefix(text[colon+1:], "//")
	}
	ref, ok := r.reference(n, text, "job.data.output_dataset.format", false)
	if !ok {
		return ""
	}
	if pyvalue.Strip(ref.version) == "" {
		r.bad(n, "job.data.output_dataset.version", "found %.100q, expected the version to publish: <owner>/<name>@<version>", text)
	}
	return text
}

// environment reads an environment, whose version may be missing.
func (r *reader) environment(n node) string {
	text := r.loose(n)
	if text == "" {
		return ""
	}
	ref, ok := r.reference(n, text, "job.data.environment.format", false)
	if !ok {
		return ""
	}
	if pyvalue.Strip(ref.version) == "" {
		r.bad(n, "job.data.environment.unpinned", "%.100q names no version; the newest is used", text)
	}
	return text
}

// taskset reads a task set, whose version must be an exact one.
func (r *reader) taskset(n node) string {
	text := r.loose(n)
	if text == "" {
		return ""
	}
	ref, ok := r.reference(n, text, "job.data.taskset.format", false)
	if !ok {
		return ""
	}
	if pyvalue.Strip(ref.version) == "" || strings.HasSuffix(text, "@latest") {
		r.bad(n, "job.data.taskset.version", "found %.100q, expected an exact version", text)
	}
	return text
}

// corpus reads spec.data.corpus: the platform's documents have it, forge's package drops it, so the whole rule is ours.
func (r *reader) corpus(n node) string {
	text := r.loose(n)
	if text == "" {
		return ""
	}
	if _, ok := r.reference(n, text, "job.data.corpus.reference", true); !ok && !r.report.Policy.Softened("job.data.corpus.reference") {
		return ""
	}
	return text
}

// dataRef reads spec.data.train or validation. An object without keys is absent, one with blank values is not.
func (r *reader) dataRef(n node) *DataRef {
	m, ok := r.object(n, secDataRef, "job.data.ref.object")
	if !ok || m.empty() {
		return nil
	}
	ref := &DataRef{Dataset: r.dataset(m.get("dataset")), Split: r.loose(m.get("split"))}
	path := m.get("path")
	ref.Path = r.loose(path)
	r.dataPath(path, ref)
	return ref
}

// dataset reads a dataset: a hub reference in tuneplane; in forge, whose parser takes any text, a reference to this
// platform.
func (r *reader) dataset(n node) string {
	text := r.loose(n)
	switch {
	case text == "":
	case !r.tunePlane():
		r.reference(n, text, hubDataset.reference, true)
	case isPath(text):
		r.bad(n, hubDataset.reference, "found the path %.100q, expected [<hub>:]<owner>/<name>[@<version>]", text)
	default:
		r.hubReference(n, text, hubDataset)
	}
	return text
}

// dataPath keeps a path inside its dataset.
func (r *reader) dataPath(n node, ref *DataRef) {
	parts := strings.FieldsFunc(ref.Path, func(c rune) bool { return c == '/' || c == '\\' })
	for _, part := range parts {
		if part == ".." {
			r.bad(n, "job.data.path.relative", "found %.100q, expected a path without '..'", ref.Path)
			return
		}
	}
	if ref.Dataset != "" && (strings.HasPrefix(ref.Path, "/") || drive.MatchString(ref.Path)) {
		r.bad(n, "job.data.path.relative", "found %.100q, expected a path inside the dataset", ref.Path)
	}
}

// ratio is a number from 0 to 1, or not given.
type ratio struct {
	key string
	to  **float64
}

// quality reads spec.data.quality: all types, then all ranges, then what a bound needs.
func (r *reader) quality(n node) {
	m, ok := r.object(n, secQuality, "job.data.quality.object")
	if !ok {
		return
	}
	q := &r.spec.Data.Quality
	overlap := m.get("overlap_with")
	text := r.loose(overlap)
	if text != "" {
		if _, ok := r.reference(overlap, text, "job.data.quality.overlap_with.format", false); ok {
			q.OverlapWith = text
		}
	}
	ratios := []ratio{{"max_duplicate_ratio", &q.MaxDuplicateRatio}, {"max_overlap_ratio", &q.MaxOverlapRatio}}
	if r.tunePlane() {
		ratios = append(ratios, ratio{"max_group_leak_ratio", &q.MaxGroupLeakRatio})
	}
	for _, ratio := range ratios {
		*ratio.to, _ = r.number(m.get(ratio.key), "job.data.quality.type")
	}
	for _, ratio := range ratios {
		if v := *ratio.to; v != nil && !(*v >= 0 && *v <= 1) {
			r.expected(m.get(ratio.key), "job.data.quality.range", "a number from 0 to 1")
		}
	}
	if q.MaxOverlapRatio != nil && text == "" {
		r.bad(overlap, "job.data.quality.overlap_with.required", "found max_overlap_ratio alone, expected the dataset to compare with")
	}
	if r.tunePlane() {
		r.groupKey(m.get("group_key"), q)
	}
}

func (r *reader) groupKey(n node, q *Quality) {
	q.GroupKey = r.loose(n)
	if q.MaxGroupLeakRatio != nil && q.GroupKey == "" {
		r.bad(n, "job.data.quality.group_key.required", "found max_group_leak_ratio alone, expected the key that makes a group")
	}
}
