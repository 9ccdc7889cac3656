package api

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/gatehouse-registry/gatehouse/admission"
	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/digest/strictjson"
	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/api/wire"
)

// metaHeader carries a forge submission's metadata, the spec among them (wire.md 6.1).
const metaHeader = "X-Forge-Meta"

// metadata is what both clients send beside a job's package.
type metadata struct {
	Exp     string          `json:"exp"`
	Profile string          `json:"profile"`
	Project string          `json:"project"`
	Spec    json.RawMessage `json:"spec"`
}

// SubmitJob serves POST /api/jobs. The real sf sends the package as the body and the spec in a header; ours may send
// the spec alone as a JSON body, in either dialect.
func (a *API) SubmitJob(c *gin.Context) error {
	ctx := c.Request.Context()
	if c.GetHeader(metaHeader) == "" {
		spec, err := readBody(c, limit.Document)
		if err != nil {
			return err
		}
		job, err := a.svc.Submit(ctx, caller(c), registry.Submission{Spec: spec}, nil)
		if err != nil {
			return err
		}
		return a.submitted(c, job)
	}
	if n := len(c.Request.Header.Values(metaHeader)); n > 1 {
		return registry.Errorf(registry.Invalid, "%s: sent %d times, expected once", metaHeader, n)
	}
	raw := fromLatin1(c.GetHeader(metaHeader))
	meta, err := parseMetadata(raw)
	if err != nil {
		return err
	}
	if meta.Spec == nil {
		return registry.Errorf(registry.Invalid, "%s: spec: required field is missing", metaHeader)
	}
	sub := registry.Submission{
		Dialect: dialect.Forge, Spec: meta.Spec, Meta: raw,
		Beside: &admission.Beside{Exp: meta.Exp, Profile: meta.Profile, Project: meta.Project},
	}
	job, err := a.svc.Submit(ctx, caller(c), sub, c.Request.Body)
	if err != nil {
		return err
	}
	return a.submitted(c, job)
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
		return m, registry.Errorf(registry.Invalid, "metadata: %w", err)
	}
	return m, nil
}

// submitted answers a stored job in the form that both clients show (wire.md 6.1).
func (a *API) submitted(c *gin.Context, job registry.Job) error {
	d, err := decisionOf(job)
	if err != nil {
		return err
	}
	c.JSON(http.StatusOK, wire.Submitted{
		Queued: true, RunID: job.ID, JobID: job.ID, GPUs: job.GPUs,
		Message:  "admitted; the decision and the signed receipt are kept with the job",
		Warnings: warningsOf(d), SpecDigest: job.SpecDigest.String(),
	})
	return nil
}

func decisionOf(job registry.Job) (admission.Decision, error) {
	var d admission.Decision
	err := json.Unmarshal(job.Decision, &d)
	return d, err
}

func warningsOf(d admission.Decision) []string {
	texts := make([]string, len(d.Warnings))
	for i, w := range d.Warnings {
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
	c.JSON(http.StatusOK, d)
	return nil
}

// StartPackage serves POST /api/submissions/uploads {digest, size}; the digest is hex without a prefix (wire.md 6.2).
func (a *API) StartPackage(c *gin.Context) error {
	var in struct {
		Digest string `json:"digest"`
		Size   int64  `json:"size"`
	}
	if err := decode(c, &in); err != nil {
		return err
	}
	d, err := digest.Parse("sha256:" + in.Digest)
	if err != nil {
		return registry.Errorf(registry.Invalid, "digest: %w", err)
	}
	u, token, err := a.svc.StartPackage(c.Request.Context(), caller(c), digest.Descriptor{Digest: d, Size: in.Size})
	if err != nil {
		return err
	}
	c.JSON(http.StatusCreated, gin.H{"id": u.ID, "token": token, "expires_at": stamp(u.ExpiresAt)})
	return nil
}

// packageSource is the answer to an upload, which the client repeats as `source`.
type packageSource struct {
	Upload string        `json:"upload"`
	Digest digest.Digest `json:"digest"`
	Size   int64         `json:"size"`
}

// PutPackage serves PUT /api/submissions/uploads/{id}.
func (a *API) PutPackage(c *gin.Context) error {
	u, err := a.svc.PutPackage(c.Request.Context(), caller(c), c.Param("id"), c.GetHeader("X-Upload-Token"), c.Request.Body)
	if err != nil {
		return err
	}
	c.JSON(http.StatusOK, packageSource{Upload: u.ID, Digest: u.Want.Digest, Size: u.Want.Size})
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
		Form     string         `json:"form"`
		Source   *packageSource `json:"source"`
		Metadata metadata       `json:"metadata"`
	}
	err = strictjson.Scan(body, besideSpec)
	if err == nil {
		err = json.Unmarshal(body, &in)
	}
	switch {
	case err != nil:
		return registry.Errorf(registry.Invalid, "request body: %w", err)
	case in.Form != "source":
		return registry.Errorf(registry.Invalid, "form: %.40q is not served here; expected \"source\"", in.Form)
	case in.Spec == nil:
		return registry.Errorf(registry.Invalid, "spec: required field is missing")
	}
	sub := registry.Submission{
		Dialect: dialect.TunePlane, Spec: in.Spec,
		Beside: &admission.Beside{Exp: in.Metadata.Exp, Profile: in.Metadata.Profile, Project: in.Metadata.Project, Spec: in.Metadata.Spec},
	}
	if sub.Meta, err = json.Marshal(in.Metadata); err != nil {
		return err
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

func jobOf(j registry.Job) wire.Job {
	return wire.Job{
		RunID: j.ID, JobRef: j.ID, Status: string(j.Status), Exp: j.Exp, Name: j.Name, Owner: j.Account, Dialect: j.Dialect,
		GPUs: j.GPUs, SubmittedAt: stamp(j.SubmittedAt), SpecDigest: j.SpecDigest.String(), Package: j.Package.Digest.String(),
	}
}

// The number of jobs in a list when the client names none, and the most.
const (
	defaultJobs = 15
	maxJobs     = 200
)

// ListJobs serves GET /api/jobs/mine[?limit=N].
func (a *API) ListJobs(c *gin.Context) error {
	limit, err := intQuery(c, "limit", defaultJobs)
	if err != nil {
		return err
	}
	jobs, err := a.svc.Jobs(c.Request.Context(), caller(c), min(max(limit, 1), maxJobs))
	if err != nil {
		return err
	}
	rows := make([]wire.Job, len(jobs))
	for i, j := range jobs {
		rows[i] = jobOf(j)
	}
	c.JSON(http.StatusOK, wire.JobList{Jobs: rows})
	return nil
}

// GetJob serves GET /api/jobs/{id}: the job with its decision.
func (a *API) GetJob(c *gin.Context) error {
	job, err := a.svc.Job(c.Request.Context(), caller(c), c.Param("id"))
	if err != nil {
		return err
	}
	row := jobOf(job)
	row.Decision = job.Decision
	c.JSON(http.StatusOK, row)
	return nil
}

// GetSpec serves GET /api/jobs/{id}/spec: the stored bytes that the receipt pins.
func (a *API) GetSpec(c *gin.Context) error {
	job, err := a.svc.Job(c.Request.Context(), caller(c), c.Param("id"))
	if err != nil {
		return err
	}
	c.Data(http.StatusOK, "application/json", job.Spec)
	return nil
}

// GetReceipt serves GET /api/jobs/{id}/receipt: the signed DSSE envelope.
func (a *API) GetReceipt(c *gin.Context) error {
	job, err := a.svc.Job(c.Request.Context(), caller(c), c.Param("id"))
	if err != nil {
		return err
	}
	c.Data(http.StatusOK, "application/json", job.Receipt)
	return nil
}

// StopJob serves POST /api/job/stop?id=ID.
func (a *API) StopJob(c *gin.Context) error {
	job, err := a.svc.StopJob(c.Request.Context(), caller(c), c.Query("id"))
	if err != nil {
		return err
	}
	c.JSON(http.StatusOK, gin.H{"stopped": true, "status": job.Status, "run_id": job.ID})
	return nil
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
