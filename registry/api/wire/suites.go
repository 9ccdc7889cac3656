package wire

import (
	"encoding/json"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
)

// SuiteRow is an environment, a taskset or a rubric in a list (wire.md 7).
type SuiteRow struct {
	ID         string          `json:"id"`
	Visibility string          `json:"visibility"` // public or private
	Versions   []string        `json:"versions"`   // newest first
	Dialect    dialect.Dialect `json:"dialect"`    // of the newest
	Digest     string          `json:"digest"`     // tree digest of the newest
}

// EnvironmentList is the answer of GET /api/environments.
type EnvironmentList struct {
	Environments []SuiteRow `json:"environments"`
}

// TasksetList is the answer of GET /api/tasksets.
type TasksetList struct {
	Tasksets []SuiteRow `json:"tasksets"`
}

// RubricList is the answer of GET /api/rubrics.
type RubricList struct {
	Rubrics []SuiteRow `json:"rubrics"`
}

// UploadRequest is the body of POST /api/environments/upload-url and /api/tasksets/upload-url: Environment or Taskset is set.
type UploadRequest struct {
	Environment string `json:"environment,omitempty"`
	Taskset     string `json:"taskset,omitempty"`
	Version     string `json:"version"`
	Filename    string `json:"filename"`
	Visibility  string `json:"visibility,omitempty"` // public or private, for a new suite; "" is private
}

// UploadAddress answers it: where to PUT the file, with which headers, and the full id of the suite.
type UploadAddress struct {
	URL         string            `json:"upload_url"`
	Headers     map[string]string `json:"headers"`
	ExpiresAt   string            `json:"expires_at"` // RFC 3339
	Environment string            `json:"environment,omitempty"`
	Taskset     string            `json:"taskset,omitempty"`
}

// SuiteFile is a file of a version.
type SuiteFile struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"` // 64 hex digits
}

// Suite is one version of a suite.
type Suite struct {
	ID             string          `json:"id"`
	Kind           string          `json:"kind"`
	Version        string          `json:"version"`
	Versions       []string        `json:"versions"` // newest first
	Visibility     string          `json:"visibility"`
	Dialect        dialect.Dialect `json:"dialect"`
	Document       json.RawMessage `json:"document"` // the normalised manifest.json, or the summary of taskset.json; null for a rubric
	Digest         string          `json:"digest"`   // tree digest
	ManifestDigest string          `json:"manifest_digest"`
	Reference      string          `json:"reference"` // <repository>:<tag> in the OCI API
	CreatedBy      string          `json:"created_by"`
	CreatedAt      string          `json:"created_at"` // RFC 3339
	Files          []SuiteFile     `json:"files"`
	Text           string          `json:"text,omitempty"` // of a rubric
}

// NewRunner is the body of POST /api/environments/{o}/{n}/runners.
type NewRunner struct {
	Address       string `json:"address"`
	Version       string `json:"version"`
	RunnerVersion string `json:"runner_version"`
}

// RegisteredRunner answers it; the credential stands in this answer only.
type RegisteredRunner struct {
	ID         string `json:"id"`
	Credential string `json:"credential"`
}

// Runner is a machine that serves an environment.
type Runner struct {
	ID            string `json:"id"`
	Address       string `json:"address"`
	Version       string `json:"version"` // "" for any
	State         string `json:"state"`   // ready or silent
	Fresh         bool   `json:"fresh"`   // it gave a sign of life lately
	RunnerVersion string `json:"runner_version"`
	CreatedBy     string `json:"created_by"`
	LastBeat      string `json:"last_beat"` // RFC 3339
}

// RunnerList is the answer of GET /api/environments/{o}/{n}/runners.
type RunnerList struct {
	Runners []Runner `json:"runners"`
}
