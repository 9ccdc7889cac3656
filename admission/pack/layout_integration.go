package pack

import (
	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/digest/tree"
)

// integration reads the integration.json of a framework integration and checks that its compilers are in the pack
// (packs.md 4.5).
func (l *layout) integration() {
	e, ok := l.nodes.file(IntegrationFile)
	if !ok || e.Kind != tree.Counted {
		l.add("layout.integration.missing", "", IntegrationFile, "a %s pack needs the file %s in its root", l.m.Kind, IntegrationFile)
		return
	}
	if e.Size > limit.Document {
		l.add("layout.integration", "", IntegrationFile, "%s has %d bytes; at most %d are allowed", IntegrationFile, e.Size, limit.Document)
		return
	}
	src, ok := l.read(e.Path, limit.Document)
	if !ok {
		return
	}
	integration, report := ParseIntegration(src, l.report.Policy)
	l.report.Merge(report)
	if integration == nil {
		return
	}
	l.found.integration = integration
	for _, p := range integration.Profiles {
		if p.CompilerPath != "" {
			l.compiler(p)
		}
	}
}

func (l *layout) compiler(p IntegrationProfile) {
	e, ok := l.nodes.file(p.CompilerPath)
	switch {
	case !ok:
		l.add("layout.integration.compiler", "", p.CompilerPath, "the compiler %.200q of the profile %.100q is not a file of the pack", p.CompilerPath, p.ID)
	case !l.nodes.counted(p.CompilerPath):
		l.behindLink("", p.CompilerPath, e.Path)
	}
}

// behindLink files a file that the pack names by a path under which the published pack does not have it.
func (l *layout) behindLink(field, named, at string) {
	l.add("layout.behind_link", field, named, "%.200q lies at %.200q, behind a link to a folder or left out by the digest: the published pack does not have it under that name", named, at)
}
