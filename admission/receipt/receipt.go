// Package receipt reads and verifies receipts: the registry's signed statement that it admitted a job, which bytes
// its spec has and which packs, down to their manifests, it may run (design.md 3, 6). Nothing here does I/O, reads a
// clock or touches a network: a node verifies a receipt offline.
//
// A receipt is a JSON document in a DSSE envelope, signed with ed25519. Receipts are made and signed by
// registry/trust; launchverify reads them.
package receipt

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/digest/strictjson"
	"github.com/gatehouse-registry/gatehouse/internal/pattern"
)

const (
	// PayloadType is the DSSE payload type of a receipt.
	PayloadType = "application/vnd.gatehouse.receipt.v1+json"
	// Lifetime is how long a receipt is good for after it was issued (design.md 6).
	Lifetime = 30 * 24 * time.Hour
	// Suffix is what is added to a job directory's path to find the receipt beside it.
	Suffix = ".receipt.json"
)

// Receipt is the statement that a registry signs for an admitted job.
type Receipt struct {
	Audience   string          `json:"audience"`            // the registry's id
	Job        string          `json:"job"`                 // the job's id in that registry
	Dialect    dialect.Dialect `json:"dialect"`             // of the spec
	IssuedAt   time.Time       `json:"issuedAt"`            //
	Expires    time.Time       `json:"expires"`             // after which no launch may use it
	SpecBytes  digest.Digest   `json:"specBytes"`           // sha256 of the stored spec, byte for byte
	SpecDigest digest.Digest   `json:"specDigest"`          // of the normalised document (jobspec.md 7)
	JobPackage digest.Digest   `json:"jobPackage,omitzero"` // of the uploaded job package; zero when there is none
	Plugins    []Pin           `json:"plugins"`             // one for each entry of spec.plugins, in its order
	Recipes    []Pin           `json:"recipes"`             // recipe packs that come with the job
}

// Pin names the bytes of one pack.
type Pin struct {
	ID      string        `json:"id"`      // <owner>/<name>
	Version string        `json:"version"` // as the spec writes it
	Kind    string        `json:"kind"`    // pack.Kind, as text
	Content digest.Digest `json:"content"` // the platforms' content digest
	// Tree and Manifest are zero when RuntimeSupplied.
	Tree     digest.Digest `json:"tree,omitzero"`
	Manifest digest.Digest `json:"manifest,omitzero"` // of the OCI manifest
	// RuntimeSupplied marks a package that ships inside the client and has no bytes in the registry: the launcher
	// takes its own copy when the content digest agrees (launch.md 1).
	RuntimeSupplied bool `json:"runtimeSupplied,omitempty"`
}

// Leaf is the last part of the id: the folder's name in a job directory.
func (p Pin) Leaf() string { return p.ID[strings.LastIndexByte(p.ID, '/')+1:] }

// String is id@version.
func (p Pin) String() string { return p.ID + "@" + p.Version }

var (
	idForm      = pattern.New(`^[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*$`)
	versionForm = pattern.New(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)
	kindForm    = pattern.New(`^[a-z]+(-[a-z]+)*$`)
)

// Check says what makes the receipt unfit to be signed or used: a part that is missing or malformed, a lifetime
// that ends before it begins, pins whose folders would collide.
func (r *Receipt) Check() error {
	switch {
	case r.Audience == "" || r.Job == "":
		return fmt.Errorf("audience and job must not be empty, found %.100q and %.100q", r.Audience, r.Job)
	case r.Dialect != dialect.Forge && r.Dialect != dialect.TunePlane:
		return fmt.Errorf("unknown dialect %.40q", r.Dialect)
	case r.SpecBytes.Algorithm() != digest.SHA256 || r.SpecDigest.Algorithm() != digest.SHA256:
		return fmt.Errorf("specBytes and specDigest must be sha256 digests, found %.100q and %.100q", r.SpecBytes, r.SpecDigest)
	case r.IssuedAt.IsZero() || !r.Expires.After(r.IssuedAt):
		return fmt.Errorf("it must expire after it was issued, found %s and %s", r.IssuedAt, r.Expires)
	}
	if err := checkPins("plugins", r.Plugins); err != nil {
		return err
	}
	return checkPins("recipes", r.Recipes)
}

func checkPins(field string, pins []Pin) error {
	leaves := make(map[string]string, len(pins))
	for i, p := range pins {
		if err := p.check(); err != nil {
			return fmt.Errorf("%s[%d]: %w", field, i, err)
		}
		leaf := p.Leaf()
		if field == "recipes" {
			leaf = p.ID // recipes lie below their owner's folder
		}
		if other, taken := leaves[leaf]; taken {
			return fmt.Errorf("%s[%d]: %s and %s would lie in one folder", field, i, other, p.ID)
		}
		leaves[leaf] = p.ID
	}
	return nil
}

func (p Pin) check() error {
	switch {
	case !idForm.MatchString(p.ID) || len(p.ID) > 2*limit.Name+1:
		return fmt.Errorf("id %.100q is no <owner>/<name>", p.ID)
	case !versionForm.MatchString(p.Version) || len(p.Version) > limit.Name:
		return fmt.Errorf("%s: version %.100q is none", p.ID, p.Version)
	case !kindForm.MatchString(p.Kind):
		return fmt.Errorf("%s: kind %.40q is none", p.ID, p.Kind)
	case p.Content.Algorithm() != digest.SHA256:
		return fmt.Errorf("%s: content must be a sha256 digest, found %.100q", p.ID, p.Content)
	case p.RuntimeSupplied && !(p.Tree.IsZero() && p.Manifest.IsZero()):
		return fmt.Errorf("%s: a runtime-supplied package has no tree and no manifest here", p.ID)
	case !p.RuntimeSupplied && (p.Tree.Algorithm() != digest.SHA256 || p.Manifest.IsZero()):
		return fmt.Errorf("%s: tree and manifest must be digests, found %.100q and %.100q", p.ID, p.Tree, p.Manifest)
	}
	return nil
}

// Encode is the receipt's payload: the bytes that are signed. It fails when Check does.
func (r Receipt) Encode() ([]byte, error) {
	r.IssuedAt, r.Expires = r.IssuedAt.UTC(), r.Expires.UTC()
	if r.Plugins == nil {
		r.Plugins = []Pin{}
	}
	if r.Recipes == nil {
		r.Recipes = []Pin{}
	}
	if err := r.Check(); err != nil {
		return nil, fmt.Errorf("receipt: %w", err)
	}
	plugins, recipes := r.Plugins, r.Recipes
	r.Plugins, r.Recipes = []Pin{}, []Pin{}
	b, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	b = bytes.TrimSuffix(b, []byte(`[],"recipes":[]}`)) // the last two members
	b = append(AppendPins(b, plugins), `,"recipes":`...)
	return append(AppendPins(b, recipes), '}'), nil
}

// Parse reads a payload. Unknown and repeated keys are refused, and so is whatever Check refuses. It proves
// nothing: use Verify for what came from outside.
func Parse(payload []byte) (*Receipt, error) {
	var r Receipt
	if err := decodeStrict(payload, limit.Document, &r); err != nil {
		return nil, &Error{Malformed, "the receipt can't be read", err}
	}
	if err := r.Check(); err != nil {
		return nil, &Error{Malformed, "the receipt says too little or the impossible", err}
	}
	return &r, nil
}

// decodeStrict reads one JSON document of at most max bytes that every reader reads alike.
func decodeStrict(src []byte, max int, into any) error {
	return strictjson.Decode(src, max, strictjson.Options{MaxDepth: 8}, into)
}
