package jobspec

import (
	"strings"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
)

// source reads spec.source: the entrypoint that must not be there comes first.
func (r *reader) source(n node) {
	m, ok := r.nonEmpty(n, secSource, "job.source.object", "job.source.empty")
	if !ok {
		return
	}
	if e := m.get("entrypoint"); !e.null() {
		switch {
		case !e.v.Truthy() && e.v.Kind != pyvalue.Str:
			r.falsy(e)
		case e.v.Truthy() && pyvalue.Strip(e.v.PyStr()) != "":
			r.bad(e, "job.source.entrypoint", "found %s, expected nothing: the recipe decides what runs", show(e.v))
		}
	}
	exp := m.get("exp")
	if text, ok := r.required(exp, "job.source.exp.required", "job.source.exp.type"); ok {
		r.spec.Source.Exp = r.exp(exp, text)
	}
}

// expPart checks one part of the path. What is wrong with the path as a whole is said of the whole.
func (r *reader) expPart(n node, path, part string) bool {
	switch pyvalue.Strip(part) {
	case "":
		r.bad(n, "job.source.exp.segment", "found %.200q, expected a path without empty parts", path)
	case ".", "..":
		r.bad(n, "job.source.exp.segment", "found %.200q, expected a path inside the project, without '.' and '..'", path)
	default:
		return r.segment(n, part, "job.source.exp.segment")
	}
	return false
}

// exp checks the experiment's path: relative, trailing slashes dropped, every part a name.
func (r *reader) exp(n node, text string) string {
	if strings.HasPrefix(text, "/") {
		r.bad(n, "job.source.exp.absolute", "found %.100q, expected a path relative to the project", text)
		r.relativeRest(n, text)
		return ""
	}
	path := strings.TrimRight(text, "/")
	if path == "" {
		r.bad(n, "job.source.exp.empty", "found %.100q, expected a path", text)
		return ""
	}
	r.shorter(n, path)
	ok := true
	if first, _, _ := strings.Cut(path, "/"); dialect.IsJobFolder(pyvalue.Strip(first)) {
		r.bad(n, "job.source.exp.reserved", "found %.100q, expected a folder of the project: %.100q is where the platform puts pinned files", path, first)
	}
	for part := range strings.SplitSeq(path, "/") {
		ok = r.expPart(n, path, part) && ok
		if !ok && len(path) > maxLabel {
			break // too long as it is
		}
	}
	if !ok {
		return ""
	}
	return path
}

// relativeRest checks what an absolute path will be once it is relative: what stands below the project's experiments, or
// else its last part.
func (r *reader) relativeRest(n node, text string) {
	path := strings.Trim(text, "/")
	if len(path) > maxLabel {
		r.shorter(n, path)
		return
	}
	rest := path[strings.LastIndexByte(path, '/')+1:]
	if at := strings.LastIndex("/"+path, "/experiments/"); at >= 0 {
		rest = path[at:]
	}
	if rest == "" {
		return
	}
	for part := range strings.SplitSeq(rest, "/") {
		r.expPart(n, rest, part)
	}
}
