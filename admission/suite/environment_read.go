package suite

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/pack"
	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
)

const defaultDomain = "other"

// Words that fields of a manifest may hold.
var (
	protocols = map[dialect.Dialect][]string{
		dialect.Forge:     {"nemo-gym", "openenv", "openenv-remote", "openenv-image"},
		dialect.TunePlane: {"nemo-gym", "openenv"},
	}
	verifierKinds = map[dialect.Dialect][]string{
		dialect.Forge:     {"rubric", "plugin", "endpoint"},
		dialect.TunePlane: {"rubric", "plugin", "endpoint", "self"},
	}
	deployments = []string{"local", "remote", "container"}
	domains     = []string{"math", "coding", "agent", "knowledge", "instruction_following", "long_context", "safety", "games", "translation", "e2e", "rlhf", defaultDomain}
	fields      = []string{"schema", "protocol", "deployment", "verifier", "tools", "harness", "domain", "image", "image_port", "endpoint", "fleet", "sandbox", "description"}
)

// manifestReader carries one reading of a manifest.json.
type manifestReader struct {
	findings
	root *pyvalue.Value
	out  Manifest
}

// read takes the fields in the order in which the clients check them.
func (r *manifestReader) read(opt ManifestOptions) {
	r.schema(opt)
	m := &r.out
	m.Protocol = r.word("environment.protocol", "protocol", protocols[m.Dialect])
	if m.Dialect == dialect.TunePlane {
		r.deployment()
	}
	r.verifier()
	r.tools()
	r.harness()
	m.Image, m.Endpoint, m.Fleet = r.text("image"), r.text("endpoint"), r.text("fleet")
	m.Text = r.text("description")
	if m.Dialect == dialect.TunePlane {
		r.imagePort()
		r.placeTunePlane()
	} else {
		r.placeForge()
	}
	r.sandbox()
	r.ignored("environment.ignored", r.root, fields)
}

func (r *manifestReader) text(field string) string { return r.root.Get(field).TextOf() }

func (r *manifestReader) schema(opt ManifestOptions) {
	v := r.root.Get("schema")
	schema := v.TextOf()
	d := opt.Dialect
	if named, ok := dialect.Detect(schema, func(n dialect.Names) string { return n.Environment }); ok && d == "" {
		d = named
	}
	d = cmp.Or(d, opt.Fallback, dialect.Forge)
	r.out.Dialect, r.report.Dialect = d, d
	if want := d.Names().Environment; schema != want {
		r.fault("environment.schema", "schema", or(v, r.root), "found the schema %.100q, expected %s", schema, want)
	}
}

// word is a text field that holds one of some words.
func (r *manifestReader) word(id rule.ID, field string, words []string) string {
	v := r.root.Get(field)
	text := v.TextOf()
	if !slices.Contains(words, text) {
		r.fault(id, field, or(v, r.root), "found %.100q, expected %s", text, oneOf(words))
		return ""
	}
	return text
}

// deployment is compared as it stands: neither blanks nor another type pass.
func (r *manifestReader) deployment() {
	v := r.root.Get("deployment")
	if v == nil || v.Kind != pyvalue.Str || !slices.Contains(deployments, v.Text) {
		r.fault("environment.deployment", "deployment", or(v, r.root), "found %s, expected %s", found(v), oneOf(deployments))
		return
	}
	r.out.Deployment = v.Text
	if r.out.Protocol == "nemo-gym" && v.Text != "local" {
		r.fault("environment.deployment", "deployment", v, "found %q with the protocol nemo-gym, which only the job itself can serve: expected local", v.Text)
	}
}

func (r *manifestReader) verifier() {
	v := r.root.Get("verifier")
	if !isMap(v) {
		r.fault("environment.verifier", "verifier", or(v, r.root), "found %s, expected an object {kind, ref}", found(v))
		return
	}
	kinds := verifierKinds[r.out.Dialect]
	kind, ref := v.Get("kind").TextOf(), v.Get("ref").TextOf()
	at := or(v.Get("ref"), v)
	switch {
	case !slices.Contains(kinds, kind):
		r.fault("environment.verifier.kind", "verifier.kind", or(v.Get("kind"), v), "found %.100q, expected %s", kind, oneOf(kinds))
	case kind == "self" && ref != "":
		r.fault("environment.verifier.ref", "verifier.ref", at, "found %.100q with the kind self, which names nothing: leave ref out", ref)
	case kind == "self" && r.out.Deployment == "local":
		r.fault("environment.verifier.kind", "verifier.kind", or(v.Get("kind"), v), "found self with the deployment local: only a remote or container environment scores itself")
	case kind != "self" && ref == "":
		r.fault("environment.verifier.ref", "verifier.ref", at, "a %s verifier names what decides: found nothing", kind)
	case kind == "rubric" && strings.Count(ref, "/") != 1:
		r.fault("environment.verifier.ref", "verifier.ref", at, "found the rubric %.100q, expected <owner>/<name>: a bare name means another rubric for everybody who submits", ref)
	}
	r.out.Verifier = Verifier{Kind: kind, Ref: ref}
}

func (r *manifestReader) tools() {
	v := r.root.Get("tools")
	if v == nil || v.Kind == pyvalue.None {
		return
	}
	if !isList(v) {
		r.fault("environment.tools", "tools", v, "found %s, expected a list of {name, endpoint}", found(v))
		return
	}
	seen := make(map[string]bool, len(v.List))
	for i, item := range v.List {
		field := fmt.Sprintf("tools[%d]", i)
		if !isMap(item) {
			r.fault("environment.tools", field, item, "found %s, expected an object {name, endpoint}", found(item))
			continue
		}
		t := Tool{Name: item.Get("name").TextOf(), Endpoint: item.Get("endpoint").TextOf(), Schema: pack.Raw{Value: &pyvalue.Value{Kind: pyvalue.Map}}}
		switch {
		case t.Name == "":
			r.fault("environment.tools", field+".name", or(item.Get("name"), item), "a tool needs a name: found %s", found(item.Get("name")))
		case seen[t.Name]:
			r.fault("environment.tools.unique", field+".name", item.Get("name"), "the name %.100q comes twice", t.Name)
		}
		if t.Endpoint == "" {
			r.fault("environment.tools", field+".endpoint", or(item.Get("endpoint"), item), "a tool needs an endpoint: found %s", found(item.Get("endpoint")))
		}
		seen[t.Name] = true
		if schema := item.Get("schema"); schema.Truthy() {
			if t.Schema.Value = schema; !isMap(schema) {
				r.fault("environment.tools", field+".schema", schema, "found %s, expected an object", found(schema))
			}
		}
		r.out.Tools = append(r.out.Tools, t)
	}
}

func (r *manifestReader) harness() {
	v := r.root.Get("harness")
	if v.Truthy() && !isMap(v) {
		r.fault("environment.harness", "harness", v, "found %s, expected an object {plugin, version, entrypoint, digest}", found(v))
	}
	h := Harness{Plugin: v.Get("plugin").TextOf(), Version: v.Get("version").TextOf(), Entrypoint: v.Get("entrypoint").TextOf(), Digest: v.Get("digest").TextOf()}
	r.out.Harness = h
	r.out.Domain = defaultDomain
	domain := r.root.Get("domain")
	if domain.Truthy() {
		r.out.Domain = domain.TextOf()
	}
	if r.out.Protocol != "nemo-gym" {
		return
	}
	if h.Plugin == "" {
		r.fault("environment.harness", "harness.plugin", or(v.Get("plugin"), or(v, r.root)), "a nemo-gym environment names the plugin that holds its harness: found nothing")
	}
	if !strings.Contains(h.Entrypoint, ":") {
		r.fault("environment.harness", "harness.entrypoint", or(v.Get("entrypoint"), or(v, r.root)), "found %.100q, expected module:ClassName of the harness", h.Entrypoint)
	}
	if !slices.Contains(domains, r.out.Domain) {
		r.fault("environment.domain", "domain", domain, "found %.100q, expected %s", r.out.Domain, oneOf(domains))
	}
}

// imagePort reads a port number, or a text of digits; absent, null and the empty text mean the platform's default.
func (r *manifestReader) imagePort() {
	v := r.root.Get("image_port")
	if v == nil || v.Kind == pyvalue.None || v.Kind == pyvalue.Str && v.Text == "" {
		return
	}
	n, ok := pyvalue.ParseInt(v)
	switch {
	case v.Kind != pyvalue.Int && v.Kind != pyvalue.Str, !ok:
		r.fault("environment.image_port", "image_port", v, "found %s, expected a port number", found(v))
	case !n.IsInt64() || n.Int64() < 1 || n.Int64() > 65535:
		r.fault("environment.image_port", "image_port", v, "found %.40s, expected 1 to 65535", n.String())
	default:
		r.out.ImagePort = n.Int64()
	}
}

// placeForge holds where an environment runs to the protocol.
func (r *manifestReader) placeForge() {
	m := &r.out
	if m.Protocol == "" {
		return
	}
	remote := m.Protocol == "openenv-remote"
	if m.Protocol == "openenv-image" && m.Image == "" {
		r.fault("environment.image", "image", or(r.root.Get("image"), r.root), "an openenv-image environment names the image that runs it: found nothing")
	}
	switch {
	case remote && m.Endpoint == "" && m.Fleet == "":
		r.fault("environment.endpoint", "endpoint", r.root, "an openenv-remote environment says where it runs: give endpoint or fleet")
	case m.Endpoint != "" && m.Fleet != "":
		r.fault("environment.endpoint", "fleet", r.root.Get("fleet"), "found an endpoint and a fleet, expected one of the two")
	}
	for _, field := range []string{"endpoint", "fleet"} {
		if text := r.text(field); text != "" && !remote {
			r.fault("environment.endpoint", field, r.root.Get(field), "found %.100q with the protocol %s: only openenv-remote has one", text, m.Protocol)
		}
	}
}

// placeTunePlane holds where an environment runs to its deployment.
func (r *manifestReader) placeTunePlane() {
	m := &r.out
	if m.Deployment == "" {
		return
	}
	container := m.Deployment == "container"
	switch {
	case container && m.Image == "":
		r.fault("environment.image", "image", or(r.root.Get("image"), r.root), "a container deployment names the image that runs it: found nothing")
	case !container && m.Image != "":
		r.fault("environment.image", "image", r.root.Get("image"), "found an image with the deployment %s: only container has one", m.Deployment)
	}
	if !container && m.ImagePort != 0 {
		r.fault("environment.image_port", "image_port", r.root.Get("image_port"), "found a port with the deployment %s: only container has one", m.Deployment)
	}
	if m.Endpoint != "" && m.Fleet != "" {
		r.fault("environment.endpoint", "fleet", r.root.Get("fleet"), "found an endpoint and a fleet, expected one of the two")
	}
	for _, field := range []string{"endpoint", "fleet"} {
		if text := r.text(field); text != "" && m.Deployment != "remote" {
			r.fault("environment.endpoint", field, r.root.Get(field), "found %.100q with the deployment %s: only remote has one", text, m.Deployment)
		}
	}
}

func (r *manifestReader) sandbox() {
	v := r.root.Get("sandbox")
	if v.Truthy() && !isMap(v) {
		r.fault("environment.sandbox", "sandbox", v, "found %s, expected an object {required}", found(v))
		return
	}
	r.out.Sandbox.Required = v.Get("required").Truthy()
	if r.out.Dialect == dialect.TunePlane {
		r.out.Sandbox.Profile = v.Get("profile").TextOf()
	}
}
