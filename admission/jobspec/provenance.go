package jobspec

import (
	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
)

// provenance reads provenance.
func (r *reader) provenance(n node) {
	p, ok := r.object(n, secProvenance, "job.provenance.object")
	if !ok {
		return
	}
	out := &r.spec.Provenance
	core := p.get("core_version")
	if text, ok := r.required(core, "job.provenance.core_version.required", "job.provenance.core_version.type"); ok {
		if text == "" {
			r.expected(core, "job.provenance.core_version.empty", "a version")
		}
		out.CoreVersion = text
	}
	out.GitCommit = r.loose(p.get("git_commit"))
	dirty := p.get("git_dirty")
	if !dirty.null() && dirty.v.Kind != pyvalue.Bool {
		r.bad(dirty, "job.provenance.git_dirty.type", "%s was read as %t", show(dirty.v), dirty.v.Truthy())
	}
	out.GitDirty = dirty.v.Truthy()
	out.ConfigSHA = r.loose(p.get("config_sha"))
	out.ModelName = r.loose(p.get("model_name"))
}
