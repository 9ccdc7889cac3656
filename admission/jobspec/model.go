package jobspec

import (
	"math/big"
	"strings"

	"github.com/gatehouse-registry/gatehouse/admission/name"
	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
)

// model reads spec.model: the type of init_from first and its grammar last, as the clients do.
func (r *reader) model(n node) {
	m, ok := r.object(n, secModel, "job.model.object")
	if !ok {
		return
	}
	from := m.get("init_from")
	object := r.tunePlane() && from.v != nil && from.v.Kind == pyvalue.Map
	text, isText := "", false
	if !from.null() && !object {
		text, isText = r.required(from, "job.model.init_from.type", "job.model.init_from.type")
	}
	r.spec.Model.Base = r.base(m.get("base"))
	r.spec.Model.PEFT = r.peft(m.get("peft"))
	switch {
	case object:
		r.spec.Model.InitFrom = r.artifactObject(from)
	case isText && text != "":
		r.spec.Model.InitFrom = r.artifact(from, text)
	}
}

// base reads spec.model.base: free text in forge; in tuneplane a path or a hub reference.
func (r *reader) base(n node) string {
	text := r.loose(n)
	if strings.Contains(text, "://") && hasUserinfo(text) {
		r.bad(n, "job.secret.userinfo", "the address holds a user name and password (they are not shown here)")
	}
	if r.tunePlane() && text != "" && !isPath(text) {
		r.hubReference(n, text, hubModel)
	}
	return text
}

// peft reads spec.model.peft. An object of which nothing is kept is absent.
func (r *reader) peft(n node) *PEFT {
	m, ok := r.object(n, secPEFT, "job.model.peft.object")
	if !ok || m.empty() {
		return nil
	}
	p := &PEFT{Kind: r.loose(m.get("kind")), Dim: r.positiveValue(m.get("dim")), Alpha: r.positiveValue(m.get("alpha"))}
	if p.Kind == "" && p.Dim == nil && p.Alpha == nil {
		return nil
	}
	return p
}

// positiveValue keeps any JSON value, as the clients do; ours asks for a positive integer. Nil is null.
func (r *reader) positiveValue(n node) *pyvalue.Value {
	if n.null() {
		return nil
	}
	if n.v.Kind != pyvalue.Int || n.v.Int.Sign() <= 0 || n.v.Int.Cmp(big.NewInt(maxInteger)) > 0 {
		r.expected(n, "job.model.peft.values", "a whole number above 0, or null")
	}
	return n.v
}

// artifact reads run/<id>/<kind>[@...]; the part after '@' is looked at first, as the clients do.
func (r *reader) artifact(n node, text string) *Artifact {
	body, qualifier, _ := strings.Cut(text, "@")
	a := &Artifact{}
	whole := r.qualifier(n, a, qualifier)
	parts := split(body)
	if len(parts) != 3 || parts[0] != "run" {
		r.bad(n, "job.model.init_from.format", "found %.100q, expected run/<run id>/<kind>", text)
		return nil
	}
	ok := r.segment(n, parts[1], "job.model.init_from.segment")
	if !r.segment(n, parts[2], "job.model.init_from.segment") || !ok || !whole {
		return nil
	}
	a.RunID, a.Kind = pyvalue.Strip(parts[1]), pyvalue.Strip(parts[2])
	return a
}

// qualifier reads step=N; in tuneplane also attempt=N, in any order, each once. It may be empty.
func (r *reader) qualifier(n node, a *Artifact, text string) bool {
	want := "step=<number>"
	fields := map[string]**int64{"step": &a.Step}
	items := []string{text}
	if r.tunePlane() {
		want += ", attempt=<number>, or both with a comma between"
		fields["attempt"] = &a.Attempt
		items = strings.Split(text, ",")
	}
	if text == "" {
		return true
	}
	for _, item := range items {
		key, number, _ := strings.Cut(item, "=")
		field := fields[key]
		value, ok := digits(number)
		if field == nil || *field != nil || !ok {
			r.bad(n, "job.model.init_from.qualifier", "found %.100q after '@', expected %s", text, want)
			return false
		}
		*field = &value
	}
	return true
}

// artifactObject reads the form of init_from that the platform's documents show and its package refuses.
func (r *reader) artifactObject(n node) *Artifact {
	a, ok := &Artifact{}, true
	for _, it := range n.v.Items {
		c := n.child(it.Key.Text, it.Value).as(n) // the clients see no further than init_from
		switch it.Key.Text {
		case "run_id":
			a.RunID, ok = r.artifactText(c, ok)
		case "kind":
			a.Kind, ok = r.artifactText(c, ok)
		case "step":
			a.Step, ok = r.artifactNumber(c, ok)
		case "attempt":
			a.Attempt, ok = r.artifactNumber(c, ok)
		default:
			r.bad(n, "job.model.init_from.object", "found the key %.100q, expected run_id, kind, step and attempt only", it.Key.Text)
			ok = false
		}
	}
	for _, key := range []string{"run_id", "kind"} {
		if !n.v.Has(key) {
			r.bad(n, "job.model.init_from.object", "found no %s, expected run_id and kind", key)
			ok = false
		}
	}
	if !ok {
		return nil
	}
	return a
}

func (r *reader) artifactText(n node, ok bool) (string, bool) {
	if n.v.Kind != pyvalue.Str || !name.IsSegment(pyvalue.Strip(n.v.Text)) {
		r.expected(n, "job.model.init_from.object", "a name")
		return "", false
	}
	return pyvalue.Strip(n.v.Text), ok
}

func (r *reader) artifactNumber(n node, ok bool) (*int64, bool) {
	if n.null() {
		return nil, ok
	}
	if n.v.Kind != pyvalue.Int || n.v.Int.Sign() < 0 || n.v.Int.Cmp(big.NewInt(maxInteger)) > 0 {
		r.expected(n, "job.model.init_from.object", "a whole number of at least 0, or null")
		return nil, false
	}
	value := n.v.Int.Int64()
	return &value, ok
}
