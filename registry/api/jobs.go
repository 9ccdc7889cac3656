package api

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/gatehouse-registry/gatehouse/admission"
	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/digest/strictjson"
	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/api/wire"
)

// metaHeaders carry the metadata of a submission whose body is the package, the spec among them (wire.md 6.1). Older clients of
// tuneplane sent theirs as forge's do.
var metaHeaders = []struct {
	name    string
	dialect dialect.Dialect
}{{"X-Forge-Meta", dialect.Forge}, {"X-TunePlane-Meta", dialect.TunePlane}}

// metadata is what both clients send beside a job's package.
type metadata struct {
	Exp     string          `json:"exp"`
	Profile string          `json:"profile"`
	Project string          `json:"project"`
	Spec    json.RawMessage `json:"spec"`
}

// keyHeader makes a submission that is sent again the job that it was the first time. The real clients do not send it.
const keyHeader = "Idempotency-Key"

// withoutSpec is what is kept of metadata: everything that was sent but the spec, in whichever case it was read, which is stored
// by itself.
func withoutSpec(raw []byte) (json.RawMessage, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return nil, err
	}
	maps.DeleteFunc(members, func(name string, _ json.RawMessage) bool { return strings.EqualFold(name, "spec") })
	return json.Marshal(members)
}

// SubmitJob serves POST /api/jobs. The real sf sends the package as the body and the spec in a header; ours may send
// the spec alone as a JSON body, in either dialect.
func (a *API) SubmitJob(c *gin.Context) error {
	ctx := c.Request.Context()
	sub, found, err := headerSubmission(c.Request.Header)
	if err != nil {
		return err
	}
	body := io.Reader(c.Request.Body)
	if !found {
		body = nil
		if sub.Spec, err = readBody(c, limit.Document); err != nil {
			return err
		}
	}
	if key := c.GetHeader(keyHeader); key != "" {
		sub.Key = "once:" + key // apart from the keys of commits
	}
	job, err := a.svc.Submit(ctx, caller(c), sub, body)
	if err != nil {
		return err
	}
	return a.submitted(c, job)
}

// headerSubmission reads a submission from the one header that may carry it. Errors: Invalid, TooLarge.
func headerSubmission(header http.Header) (sub registry.Submission, found bool, err error) {
	for _, h := range metaHeaders {
		switch n := len(header.Values(h.name)); {
		case n == 0:
			continue
		case n > 1, found:
			return sub, true, registry.Errorf(registry.Invalid, "%s: a submission has one header of metadata, once", h.name)
		}
		found = true
		raw := fromLatin1(header.Get(h.name))
		meta, err := parseMetadata(raw)
		switch {
		case err != nil:
			return sub, true, err
		case meta.Spec == nil:
			return sub, true, registry.Errorf(registry.Invalid, "%s: spec: required field is missing", h.name)
		case len(meta.Spec) > limit.Document:
			return sub, true, registry.Errorf(registry.TooLarge, "%s: spec: %d bytes, at most %d are allowed", h.name, len(meta.Spec), limit.Document)
		}
		sub = registry.Submission{
			Dialect: h.dialect, Spec: meta.Spec,
			Beside: &admission.Beside{Exp: meta.Exp, Profile: meta.Profile, Project: meta.Project},
		}
		if sub.Meta, err = withoutSpec(raw); err != nil {
			return sub, true, registry.Errorf(registry.Invalid, "%s: %w", h.name, err)
		}
	}
	return sub, found, nil
}

// fromLatin1 undoes how the client's HTTP library writes a header: each byte is a code point.
func fromLatin1(header string) []byte {
	runes := make([]rune, len(header))
	for i := range len(header) {
		runes[i] = rune(header[i])
	}
	return []byte(string(runes))
}

// besideSpec is how strictly a request that carries a spec is read. What stands inside the spec is judged by gate 2 with
// rules of its own; around it no member may be named twice, or there would be two specs.
var besideSpec = strictjson.Options{MaxDepth: limit.JSONDepth + 1, Tolerate: func(f *strictjson.Fault) bool {
	twice := f.Kind == strictjson.Duplicate || f.Kind == strictjson.Folded
	return !twice || strings.HasPrefix(f.Path, "spec.") || strings.HasPrefix(f.Path, "metadata.spec.")
}}

func parseMetadata(raw []byte) (metadata, error) {
	var m metadata
	err := strictjson.Scan(raw, besideSpec)
	if err == nil {
		err = json.Unmarshal(raw, &m)
	}
	if err != nil {
		return m, malformed("metadata", err)
	}
	return m, nil
}

// submitted answers a stored job in the form that both clients show (wire.md 6.1).
func (a *API) submitted(c *gin.Context, job registry.Job) error {
	warnings := job.Warnings
	if warnings == nil {
		var d admission.Decision
		if err := json.Unmarshal(job.Decision, &d); err != nil {
			return err
		}
		warnings = d.Warnings
	}
	c.JSON(http.StatusOK, wire.Submitted{
		Queued: true, RunID: job.ID, JobID: job.ID, GPUs: job.GPUs,
		Message:  "admitted; the decision and the signed receipt are kept with the job",
		Warnings: textsOf(warnings), SpecDigest: job.SpecDigest.String(),
	})
	return nil
}

func textsOf(warnings []rule.Violation) []string {
	texts := make([]string, len(warnings))
	for i, w := range warnings {
		texts[i] = w.String()
	}
	return texts
}

// DryRun serves POST /api/admission: gate 2 on a JobSpec, in either dialect, with the Decision as the answer. A refusal
// is a 200 here: the question was answered.
func (a *API) DryRun(c *gin.Context) error {
	spec, err := readBody(c, limit.Document)
	if err != nil {
		return err
	}
	d, err := a.svc.DryRun(c.Request.Context(), caller(c), registry.Submission{Spec: spec})
	if err != nil {
		return err
	}
	answer, err := admission.EncodeDecision(d)
	if err != nil {
		return err
	}
	c.Data(http.StatusOK, "application/json; charset=utf-8", answer)
	return nil
}

// Preview serves POST /api/submissions/previews: admission without a commitment.
func (a *API) Preview(c *gin.Context) error {
	body, err := readBody(c, limit.JSONBody)
	if err != nil {
		return err
	}
	var in struct {
		metadata
		Form     string          `json:"form"`
		Source   *packageSource  `json:"source"`
		Metadata json.RawMessage `json:"metadata"`
	}
	var beside metadata
	err = strictjson.Scan(body, besideSpec)
	if err == nil {
		err = json.Unmarshal(body, &in)
	}
	what := "request body"
	if err == nil && len(in.Metadata) > 0 {
		what, err = "metadata", json.Unmarshal(in.Metadata, &beside)
	}
	switch {
	case err != nil:
		return malformed(what, err)
	case len(in.Spec) > limit.Document:
		return registry.Errorf(registry.TooLarge, "spec: %d bytes, at most %d are allowed", len(in.Spec), limit.Document)
	case in.Form != "source":
		return registry.Errorf(registry.Invalid, "form: %.40q is not served here; expected \"source\"", in.Form)
	case in.Spec == nil:
		return registry.Errorf(registry.Invalid, "spec: required field is missing")
	}
	sub := registry.Submission{
		Dialect: dialect.TunePlane, Spec: in.Spec,
		Beside: &admission.Beside{Exp: beside.Exp, Profile: beside.Profile, Project: beside.Project, Spec: beside.Spec},
	}
	if len(in.Metadata) > 0 {
		if sub.Meta, err = withoutSpec(in.Metadata); err != nil {
			return registry.Errorf(registry.Invalid, "metadata: %w", err)
		}
	}
	upload := ""
	if in.Source != nil {
		upload = in.Source.Upload
	}
	pv, value, err := a.svc.Preview(c.Request.Context(), caller(c), sub, upload)
	if err != nil {
		return err
	}
	c.JSON(http.StatusOK, gin.H{
		"id": pv.ID, "digest": pv.Digest, "expires_at": stamp(pv.ExpiresAt), "project": in.Project, "profile": in.Profile,
		"resolved": gin.H{"execution": gin.H{"fleet_id": "", "requested_gpus": value.TotalGPUs}, "spec": value.Spec},
	})
	return nil
}

// Commit serves POST /api/submissions/commits. It is idempotent by preview and by key.
func (a *API) Commit(c *gin.Context) error {
	var in struct {
		Preview string `json:"preview_id"`
		Digest  string `json:"digest"`
		Key     string `json:"key"`
	}
	if err := decode(c, &in); err != nil {
		return err
	}
	job, err := a.svc.Commit(c.Request.Context(), caller(c), in.Preview, in.Digest, in.Key)
	if err != nil {
		return err
	}
	return a.submitted(c, job)
}

// GetTrust serves GET /api/trust: what a launch agent needs to verify this registry's receipts offline.
func (a *API) GetTrust(c *gin.Context) error {
	text, err := a.svc.Trust()
	if err != nil {
		return err
	}
	c.Data(http.StatusOK, "text/plain; charset=utf-8", text)
	return nil
}

// intQuery reads a whole number from the query.
func intQuery(c *gin.Context, key string, otherwise int) (int, error) {
	text := c.Query(key)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, registry.Errorf(registry.Invalid, "%s: %.40q is no whole number", key, text)
	}
	return n, nil
}
