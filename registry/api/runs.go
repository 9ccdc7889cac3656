package api

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/gatehouse-registry/gatehouse/admission/receipt"
	"github.com/gatehouse-registry/gatehouse/admission/runrecord"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/api/wire"
)

// RecordRun serves POST /api/runs: the body is the envelope of a statement.
func (a *API) RecordRun(c *gin.Context) error {
	envelope, err := readBody(c, runrecord.MaxEnvelope)
	if err != nil {
		return err
	}
	run, err := a.svc.RecordRun(c.Request.Context(), caller(c), envelope)
	if err != nil {
		return err
	}
	c.JSON(http.StatusOK, wire.RunReceived{ID: run.ID, State: string(run.State), Attested: run.Attested})
	return nil
}

// ListRuns serves GET /api/runs[?plugin=OWNER/NAME@VERSION][&digest=D][&job=ID][&node=N][&state=S][&cursor=C][&limit=N].
func (a *API) ListRuns(c *gin.Context) error {
	limit, err := intQuery(c, "limit", 0)
	if err != nil {
		return err
	}
	f := registry.RunFilter{Job: c.Query("job"), Node: c.Query("node"), State: registry.RunState(c.Query("state")), Before: c.Query("cursor"), Limit: limit}
	if plugin := c.Query("plugin"); plugin != "" {
		f.Pack, f.Version, _ = strings.Cut(plugin, "@")
	}
	if text := c.Query("digest"); text != "" {
		if f.Digest, err = digest.Parse(text); err != nil {
			return registry.Errorf(registry.Invalid, "digest: %w", err)
		}
	}
	runs, next, err := a.svc.Runs(c.Request.Context(), caller(c), f)
	if err != nil {
		return err
	}
	list := wire.RunList{Runs: make([]wire.Run, len(runs)), Next: next}
	for i, run := range runs {
		list.Runs[i] = runOf(run)
	}
	c.JSON(http.StatusOK, list)
	return nil
}

func runOf(run registry.Run) wire.Run {
	out := wire.Run{
		ID: run.ID, State: string(run.State), Node: run.Node, Attested: run.Attested, Mode: run.Mode, Job: run.Job, Account: run.Account,
		StartedAt: maybeStamp(run.StartedAt), EndedAt: maybeStamp(run.EndedAt), ReceivedAt: stamp(run.ReceivedAt), Packs: run.Packs,
	}
	if out.Packs == nil {
		out.Packs = []receipt.Pin{}
	}
	if run.ExitCode != registry.NoExitCode {
		out.ExitCode = &run.ExitCode
	}
	return out
}

// GetRun serves GET /api/runs/{id}.
func (a *API) GetRun(c *gin.Context) error {
	run, keys, err := a.svc.Run(c.Request.Context(), caller(c), c.Param("id"))
	if err != nil {
		return err
	}
	out := runOf(run)
	out.Sender, out.Key = run.Sender, run.Key
	if out.Keys, err = nodeKeys(keys); err != nil {
		return err
	}
	for _, e := range []struct {
		state    string
		envelope []byte
	}{{string(registry.RunStarted), run.Started}, {string(run.State), run.Final}} {
		if e.envelope == nil {
			continue
		}
		out.Envelopes = append(out.Envelopes, wire.RunEnvelope{State: e.state, Envelope: e.envelope})
		said, err := statementOf(e.envelope)
		if err != nil {
			return err
		}
		out.Statements = append(out.Statements, said)
	}
	c.JSON(http.StatusOK, out)
	return nil
}

// statementOf is what a stored envelope says, as it was signed.
func statementOf(envelope []byte) (json.RawMessage, error) {
	payload, err := receipt.Peek(envelope, runrecord.PayloadType, runrecord.MaxEnvelope)
	return payload, err
}

// GetDenyList serves GET /api/denylist: the signed list of revoked versions.
func (a *API) GetDenyList(c *gin.Context) error {
	envelope, tag, err := a.svc.DenyList(c.Request.Context(), caller(c))
	if err != nil {
		return err
	}
	etag := strconv.Quote(tag)
	c.Header("ETag", etag)
	c.Header("Cache-Control", "no-cache")
	if c.GetHeader("If-None-Match") == etag {
		c.Status(http.StatusNotModified)
		return nil
	}
	c.Data(http.StatusOK, "application/json", envelope)
	return nil
}

// RevokePlugin serves POST /api/plugins/{owner}/{name}/revoke.
func (a *API) RevokePlugin(c *gin.Context) error {
	var in wire.RevokeRequest
	if err := decodeStrict(c, &in); err != nil {
		return err
	}
	out, err := a.svc.RevokeVersion(c.Request.Context(), caller(c), c.Param("owner"), c.Param("name"), in.Version, in.Reason)
	if err != nil {
		return err
	}
	answer := wire.Revoked{ID: out.Pack, Version: out.Version, Reason: out.Reason, DenyList: uint64(out.Seq) + 1, Same: []string{}, Use: useOf(out.Use)}
	for _, r := range out.Same {
		answer.Same = append(answer.Same, r.Pack+"@"+r.Version)
		answer.DenyList = max(answer.DenyList, uint64(r.Seq)+1)
	}
	c.JSON(http.StatusOK, answer)
	return nil
}

func useOf(u registry.PackUse) wire.PackUse {
	return wire.PackUse{QueuedJobs: u.QueuedJobs, RunningJobs: u.RunningJobs, SilentJobs: u.SilentJobs, ActiveRuns: u.ActiveRuns, SilentRuns: u.SilentRuns, Runs: u.Runs}
}
