package jobspec

import (
	"github.com/gatehouse-registry/gatehouse/admission/name"
)

// metadata reads metadata: labels first, as the clients do.
func (r *reader) metadata(n node) {
	m, ok := r.object(n, secMetadata, "job.metadata.object")
	if !ok {
		return
	}
	out := &r.spec.Metadata
	out.Labels = r.labels(m.get("labels"))
	job := m.get("name")
	if text, ok := r.required(job, "job.metadata.name.required", "job.metadata.name.type"); ok && r.segment(job, text, "job.metadata.name.segment") {
		out.Name = text
	}
	out.Project = r.project(m.get("project"))
	owner := m.get("owner")
	if out.Owner = r.strict(owner, "job.metadata.owner.type"); out.Owner != "" && !r.opt.Stored && out.Owner != r.opt.Account {
		r.bad(owner, "job.metadata.owner.ignored", "%.100q is not used; the server fills in the account", out.Owner)
	}
	display := m.get("display_name")
	out.DisplayName = r.strict(display, "job.metadata.display_name.type")
	r.shorter(display, out.DisplayName)
}

// labels reads a map from text to text. Only null and {} are empty here.
func (r *reader) labels(n node) []Label {
	m, ok := r.object(n, secFree, "job.metadata.labels.object")
	if !ok || m.empty() {
		return nil
	}
	labels := make([]Label, 0, len(m.v.Items))
	for _, it := range m.v.Items {
		e := m.child(it.Key.Text, it.Value)
		value := r.text(e)
		r.shorter(e, it.Key.Text)
		r.shorter(e, value)
		labels = append(labels, Label{it.Key.Text, value})
	}
	return labels
}

// notProject is notName for a project's name, which may begin with any of its characters.
func notProject(s string) string { return notName("x" + s) }

func (r *reader) project(n node) string {
	text := r.strict(n, "job.metadata.project.type")
	if _, err := name.Project(text); err != nil {
		r.bad(n, "job.metadata.project.charset", "found %.100q%s, expected letters, digits, '.', '_' and '-' (not '.' or '..')", text, notProject(text))
		return ""
	}
	return text
}
