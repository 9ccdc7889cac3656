// Package handover takes admitted jobs to the platforms that run them: by a signed request, by a command, or into a folder
// (docs/handover.md). It implements registry.HandoverDeliverer; what is delivered when, and how often, the outbox decides.
//
// The contract, of all three:
//   - A platform gets a Document. Every try of one event carries the same bytes, under the same id.
//   - An event counts as delivered when the platform said so: a status 2xx, an exit status of 0, a folder that is on the disk
//     under its name. Then it is not delivered again but for a crash at that very moment.
//   - Nothing of a job is interpreted: no shell, no template, no path made of what a job holds. Names of files and of folders
//     are ours; a job's id is.
package handover

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/registry"
)

// APIVersion names the form of a Document.
const APIVersion = "gatehouse/handover/v1"

// Document is what a platform hears of a job.
type Document struct {
	APIVersion string                 `json:"apiVersion"`
	ID         string                 `json:"id"` // of the event, the same in every try
	Event      registry.HandoverEvent `json:"event"`
	At         string                 `json:"at"`       // RFC 3339
	Registry   string                 `json:"registry"` // the registry's id, the audience of receipts
	Target     string                 `json:"target"`
	Job        Job                    `json:"job"`
	// Spec is the stored JobSpec, byte for byte what the receipt pins; in base64. Only of an admitted job.
	Spec []byte `json:"spec,omitempty"`
	// Receipt is the signed receipt, a DSSE envelope as `sf launch --receipt` reads it. Only of an admitted job.
	Receipt json.RawMessage `json:"receipt,omitempty"`
	Package *Package        `json:"package,omitempty"` // nil when the job came without one, and in a cancellation
}

// Job says which job it is.
type Job struct {
	RunID       string          `json:"run_id"`
	Account     string          `json:"account"`
	Dialect     dialect.Dialect `json:"dialect"`
	Exp         string          `json:"exp"`
	Name        string          `json:"name"`
	Project     string          `json:"project"`
	GPUs        int             `json:"requested_gpus"`
	SubmittedAt string          `json:"submitted_at"` // RFC 3339
	SpecDigest  string          `json:"spec_digest"`  // sha256 of the stored spec
	Meta        json.RawMessage `json:"meta"`         // what the client sent beside the spec: git, profile, sweep; {} for nothing
}

// Package says where a job's package is.
type Package struct {
	Digest    string `json:"digest"`
	Size      int64  `json:"size"`
	MediaType string `json:"media_type"`
	// URL is where a GET with a token of an account that may read all jobs gives it. "" when the registry has no public
	// address; then it is /api/jobs/<run_id>/package there.
	URL string `json:"url,omitempty"`
	// File is the package beside the document, where the target gets one.
	File string `json:"file,omitempty"`
}

// documentOf makes the document of a message. base is the registry's public address, "" for none.
func documentOf(m registry.HandoverMessage, base string) Document {
	j := m.Job
	d := Document{
		APIVersion: APIVersion, ID: m.ID, Event: m.Event, At: stamp(m.At), Registry: m.Registry, Target: m.Target,
		Job: Job{
			RunID: j.ID, Account: j.Account, Dialect: j.Dialect, Exp: j.Exp, Name: j.Name, Project: j.Project, GPUs: j.GPUs,
			SubmittedAt: stamp(j.SubmittedAt), SpecDigest: j.SpecDigest.String(), Meta: j.Meta,
		},
	}
	if len(d.Job.Meta) == 0 {
		d.Job.Meta = json.RawMessage(`{}`)
	}
	if m.Event != registry.EventAdmitted {
		return d
	}
	d.Spec, d.Receipt = j.Spec, j.Receipt
	if m.Package != nil {
		d.Package = &Package{Digest: j.Package.Digest.String(), Size: j.Package.Size, MediaType: j.Package.MediaType}
		if base != "" {
			d.Package.URL = base + "/api/jobs/" + j.ID + "/package"
		}
	}
	return d
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// encode is the document as it is sent.
func (d Document) encode() ([]byte, error) {
	b, err := json.Marshal(d)
	if err != nil {
		return nil, fmt.Errorf("hand-over %s: %w", d.ID, err)
	}
	return append(b, '\n'), nil
}
