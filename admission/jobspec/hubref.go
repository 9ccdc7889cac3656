package jobspec

import (
	"fmt"
	"strings"

	"github.com/gatehouse-registry/gatehouse/admission/name"
	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/internal/pattern"
)

// HubKind says what a hub reference names.
type HubKind string

// The kinds of hub references.
const (
	HubModel   HubKind = "model"
	HubDataset HubKind = "dataset"
)

// HubRef is [<hub>:]<namespace>/<name>[@<revision>], as tuneplane writes models and datasets.
type HubRef struct {
	Hub       string // tp (this platform), hf or ms
	Kind      HubKind
	Namespace string // "" for a Hugging Face model with a single part
	Name      string
	Revision  string
}

// String is the canonical spelling: with the hub's short name, and without an empty revision.
func (h HubRef) String() string {
	s := h.Hub + ":"
	if h.Namespace != "" {
		s += h.Namespace + "/"
	}
	s += h.Name
	if h.Revision != "" {
		s += "@" + h.Revision
	}
	return s
}

// Platform reports whether the reference is to this platform and not to a hub outside.
func (h HubRef) Platform() bool { return h.Hub == "tp" }

// Pinned reports whether the reference names bytes that can't change: any version of the platform, a commit elsewhere.
func (h HubRef) Pinned() bool {
	if h.Platform() {
		return h.Revision != ""
	}
	return commit.MatchString(h.Revision)
}

var commit = pattern.New(`^[0-9a-f]{40}$`)

// Hubs are the short names of the hubs: this platform, Hugging Face, ModelScope.
var Hubs = []string{"tp", "hf", "ms"}

var hubs = map[string]string{
	"tp": "tp", "tuneplane": "tp", "sf": "tp", "hf": "hf", "huggingface": "hf", "ms": "ms", "modelscope": "ms",
}

// hubRules are the rules of one field that holds a hub reference.
type hubRules struct {
	kind                     HubKind
	hub, reference, revision rule.ID
}

var (
	hubModel   = hubRules{HubModel, "job.model.base.hub", "job.model.base.reference", "job.model.base.revision"}
	hubDataset = hubRules{HubDataset, "job.data.dataset.hub", "job.data.dataset.reference", "job.data.dataset.revision"}
)

var (
	drive     = pattern.New(`^[A-Za-z]:(?:$|[/\\])`)
	hubPrefix = pattern.New(`^[A-Za-z][A-Za-z0-9_-]*$`)
)

// isPath reports whether tuneplane takes a text for a path or an interpolation rather than a reference.
func isPath(s string) bool {
	for _, prefix := range []string{"/", "~", "./", "../", "${"} {
		if strings.HasPrefix(s, prefix) {
			return true
		}
	}
	return strings.Contains(s, `\`) || drive.MatchString(s)
}

// hubReference reads a trimmed text that is neither empty nor a path.
func (r *reader) hubReference(n node, text string, rules hubRules) (HubRef, bool) {
	ref := HubRef{Hub: "tp", Kind: rules.kind}
	rest := text
	if colon := strings.IndexByte(text, ':'); colon >= 0 && !strings.Contains(text[:colon], "/") {
		prefix := text[:colon]
		hub, ok := hubs[strings.ToLower(prefix)]
		if !hubPrefix.MatchString(prefix) || !ok {
			r.noHub(n, prefix, text, rules)
			return ref, false
		}
		ref.Hub, rest = hub, strings.TrimPrefix(text[colon+1:], "//")
	}
	if strings.Contains(rest, ":") {
		r.bad(n, rules.revision, "found a second ':' in %.100q, expected the revision after '@'", text)
		return ref, false
	}
	body, revision, _ := strings.Cut(rest, "@")
	ok := r.hubName(n, &ref, body, text, rules)
	ref.Revision = pyvalue.Strip(revision)
	if ref.Revision != "" {
		ok = r.hubRevision(n.part("revision"), ref.Hub, revision, rules.revision) && ok
	}
	return ref, ok
}

// noHub says what is wrong with a text that begins with none of the hubs.
func (r *reader) noHub(n node, prefix, text string, rules hubRules) {
	if !strings.Contains(text, "://") {
		r.bad(n, rules.hub, "found the hub %.100q, expected tp, hf or ms", prefix)
		return
	}
	hint := "Name the dataset: <owner>/<name>@<version> on this platform, hf: or ms: before it on a hub. A file that the job can read by its path goes into path, without dataset."
	if rules.kind == HubModel {
		hint = "Name the model: <namespace>/<name> on this platform, hf: or ms: before it on a hub, or a path that the job can read."
	}
	meant := ""
	if ref := ofPage(text); ref != "" {
		meant = "; did you mean " + ref + "?"
	}
	r.badWith(n, rules.hub, hint, "found the address %.100q, expected a reference, [<hub>:]<namespace>/<name>[@<revision>]%s", WithoutUserinfo(text), meant)
}

// hubSites are the hosts of the hubs' pages.
var hubSites = map[string]string{
	"huggingface.co": "hf", "www.huggingface.co": "hf", "hf.co": "hf", "modelscope.cn": "ms", "www.modelscope.cn": "ms",
}

// ofPage is the reference to what a page of a hub shows, "" for any other address.
func ofPage(address string) string {
	_, rest, _ := strings.Cut(address, "://")
	host, path, _ := strings.Cut(rest, "/")
	hub, ok := hubSites[strings.ToLower(host)]
	parts := split(path)
	if len(parts) > 0 && (parts[0] == "datasets" || parts[0] == "models") {
		parts = parts[1:]
	}
	if !ok || len(parts) < 2 || !name.IsSegment(parts[0]) || !name.IsSegment(parts[1]) {
		return ""
	}
	return hub + ":" + parts[0] + "/" + parts[1]
}

// hubName reads <namespace>/<name>, or a single part where the hub allows it.
func (r *reader) hubName(n node, ref *HubRef, body, text string, rules hubRules) bool {
	parts := strings.Split(body, "/")
	single := len(parts) == 1 && ref.Hub == "hf" && rules.kind == HubModel
	if len(parts) != 2 && !single || parts[0] == "" || parts[len(parts)-1] == "" {
		r.bad(n, rules.reference, "found %.100q, expected %s", text, hubShape(ref.Hub, rules.kind))
		return false
	}
	ok := true
	for _, part := range parts {
		ok = r.segment(n, part, rules.reference) && ok
	}
	ref.Name = pyvalue.Strip(parts[len(parts)-1])
	if !single {
		ref.Namespace = pyvalue.Strip(parts[0])
	}
	return ok
}

func hubShape(hub string, kind HubKind) string {
	if hub == "hf" && kind == HubModel {
		return "hf:[<namespace>/]<name>[@<revision>]"
	}
	return fmt.Sprintf("[%s:]<namespace>/<name>[@<revision>]", hub)
}

// hubRevision checks a revision: a version of the platform is a name, one elsewhere a git reference.
func (r *reader) hubRevision(n node, hub, revision string, id rule.ID) bool {
	if hub == "tp" {
		return r.segment(n, revision, id)
	}
	for part := range strings.SplitSeq(revision, "/") {
		if !r.segment(n, part, id) {
			return false
		}
	}
	return true
}

// HubRef reads a reference of the spec to a model or to a data set that is read; false for any other, for a path, and in
// forge, whose documents have no hubs.
func (s *Spec) HubRef(ref Reference) (HubRef, bool) {
	switch {
	case ref.Kind == RefModel:
		return s.hubRef(ref.Text, hubModel)
	case ref.Kind == RefDataset && ref.Access == AccessRead:
		return s.hubRef(ref.Text, hubDataset)
	}
	return HubRef{}, false
}

func (s *Spec) hubRef(text string, rules hubRules) (HubRef, bool) {
	if text == "" || isPath(text) || !s.hasHubs() {
		return HubRef{}, false
	}
	quiet := &reader{d: s.Dialect, report: &rule.Report{}}
	return quiet.hubReference(node{}, text, rules)
}

// HubRefs lists what spec.model.base and the two datasets name on a hub, each once; it is empty in forge, whose
// documents have no hubs.
func (s *Spec) HubRefs() []HubRef {
	var refs []HubRef
	seen := make(map[HubRef]bool)
	add := func(text string, rules hubRules) {
		if ref, ok := s.hubRef(text, rules); ok && !seen[ref] {
			seen[ref] = true
			refs = append(refs, ref)
		}
	}
	add(s.Model.Base, hubModel)
	for _, d := range []*DataRef{s.Data.Train, s.Data.Validation} {
		if d != nil {
			add(d.Dataset, hubDataset)
		}
	}
	return refs
}
