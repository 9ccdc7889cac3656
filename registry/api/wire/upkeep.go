package wire

import "github.com/gatehouse-registry/gatehouse/registry"

// Collect is the body of POST /api/gc.
type Collect struct {
	DryRun bool `json:"dry_run"`
}

// Fsck is the body of POST /api/admin/fsck.
type Fsck struct {
	From string `json:"from"` // where missing and damaged content is fetched from: an address, or a folder on the server; "" repairs nothing
}

// UpkeepLine is a line of the answer to both: a stream of JSON values, of which one field is set. The last line has
// Collected, Checked or Error.
type UpkeepLine struct {
	Removal   *registry.Removal       `json:"removal,omitempty"`
	Finding   *registry.Finding       `json:"finding,omitempty"`
	Progress  *registry.FsckReport    `json:"progress,omitempty"`
	Waiting   bool                    `json:"waiting,omitempty"` // nothing to tell yet
	Collected *registry.CollectReport `json:"collected,omitempty"`
	Omitted   int                     `json:"omitted,omitempty"` // beside Collected: removals that were made but not told
	Checked   *registry.FsckReport    `json:"checked,omitempty"`
	Error     *UpkeepError            `json:"error,omitempty"`
}

// UpkeepError ends a stream whose work failed.
type UpkeepError struct {
	Code    registry.Code `json:"code"`
	Message string        `json:"message"`
}

// Owners is the answer of GET /api/admin/owners.
type Owners struct {
	Owners []registry.OwnerLimit `json:"owners"`
}
