package registry

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/name"
	"github.com/gatehouse-registry/gatehouse/admission/suite"
	"github.com/gatehouse-registry/gatehouse/digest"
)

// An environment, a taskset or a rubric is a suite: a named set of files with immutable versions. A version is an OCI image
// manifest in the repository <owner>/<kind in plural>/<name>, which no pack can have (packs have two components) and whose
// first component is the owner: who may push and read follows from that, as for every repository. Each file is a layer with
// its name as title, so `oras pull` writes the folder; one row of the ledger makes the version immutable for ever.

// SuiteID names a suite.
type SuiteID struct {
	Kind  suite.Kind
	Owner string
	Name  string // with its case
}

// String is <owner>/<name>, as clients name a suite.
func (id SuiteID) String() string { return id.Owner + "/" + id.Name }

// Repository is where the suite's versions lie. Errors: NameInvalid.
func (id SuiteID) Repository() (string, error) {
	plain, err := name.RepositoryName(id.Owner, id.Name)
	if err != nil {
		return "", Errorf(NameInvalid, "%s %.200q: %w", id.Kind, id.String(), err)
	}
	owner, low, _ := strings.Cut(plain, "/")
	repository := owner + "/" + id.Kind.Plural() + "/" + low
	return repository, CheckRepositoryName(repository)
}

// packKind is what the repository's row says it holds: it keeps other tags out, as those of packs do.
func (id SuiteID) packKind() string { return string(id.Kind) + " suite" }

// fold is what is unique among the owner's suites of the kind. No fold of a pack has a slash.
func (id SuiteID) fold() string { return id.Kind.Plural() + "/" + name.Fold(id.Name) }

// ledgerName is the suite's name in the ledger, where no pack's has a slash.
func (id SuiteID) ledgerName() string { return id.Kind.Plural() + "/" + id.Name }

// ledgerRepository is the repository that a row of the ledger is about.
func ledgerRepository(row LedgerRow) (string, error) {
	plural, short, ok := strings.Cut(row.Name, "/")
	if !ok {
		return name.RepositoryName(row.Owner, row.Name)
	}
	kind, _ := suite.KindOfPlural(plural)
	return SuiteID{Kind: kind, Owner: row.Owner, Name: short}.Repository()
}

// SuiteVersion is one sealed version of a suite. It is written once and never changes.
type SuiteVersion struct {
	Repository string
	Kind       suite.Kind
	Owner      string
	Name       string // with its case
	Version    string // as pushed: the tag
	Key        string // what must be unique besides Version: equal under PEP 440 or but for case
	Dialect    dialect.Dialect
	Manifest   digest.Digest
	Tree       digest.Digest   // over the files (design.md 2)
	Document   json.RawMessage // the normalised manifest.json, the summary of taskset.json; null for a rubric
	Files      int
	Bytes      int64
	CreatedBy  string
	CreatedAt  time.Time
	Private    bool // of the repository as it is now; read only
}

// ID is the suite that the version is of.
func (v SuiteVersion) ID() SuiteID { return SuiteID{v.Kind, v.Owner, v.Name} }

// LedgerRow is what the ledger keeps of the version.
func (v SuiteVersion) LedgerRow() LedgerRow {
	return LedgerRow{
		Owner: v.Owner, Name: v.ID().ledgerName(), Version: v.Version, Dialect: v.Dialect, Kind: v.ID().packKind(),
		Manifest: v.Manifest, Content: v.Tree, Tree: v.Tree, CreatedBy: v.CreatedBy, CreatedAt: v.CreatedAt,
	}
}

// SuiteFile is a file that was uploaded for a version that is not sealed yet. Its row keeps its bytes.
type SuiteFile struct {
	Repository string
	Version    string
	Name       string
	Digest     digest.Digest
	Size       int64
	Account    string    // who uploaded it
	ExpiresAt  time.Time // from then on it goes, unless a later file of the version lives
}

// Runner is a machine that serves an environment.
type Runner struct {
	ID             string
	Repository     string // of the environment
	Address        string // http or https
	Version        string // the one that it serves, "" for whichever a job asks for
	RunnerVersion  string // of the client, as it says
	CredentialHash [32]byte
	CreatedBy      string
	CreatedAt      time.Time
	BeatAt         time.Time // the last sign of life
}

// SuiteTx is the part of Tx about environments, tasksets and rubrics. Lists leave out Document.
type SuiteTx interface {
	InsertSuiteVersion(SuiteVersion) error                                    // with its row in the ledger; Conflict: the version, or its Key, is taken
	SuiteVersion(repository, version string) (SuiteVersion, error)            // ErrNotFound; exact
	SuiteVersions(repository string) ([]SuiteVersion, error)                  // by time
	SuitesOf(kind suite.Kind) ([]SuiteVersion, error)                         // every version of every suite of the kind: by repository, then time
	HoldsSuites(kind suite.Kind) (bool, error)                                // whether there is a version of the kind
	SuiteByManifest(repository string, d digest.Digest) (SuiteVersion, error) // ErrNotFound
	PutSuiteFile(SuiteFile) error                                             // replaces the one of its name; ErrNameUnknown
	SuiteFile(repository, version, name string) (SuiteFile, error)            // ErrNotFound
	SuiteFiles(repository, version string, limit int) ([]SuiteFile, error)    // by name; limit < 0: all
	SuiteFileCount(repository, version string) (int, error)                   // how many there are
	DeleteSuiteFiles(repository, version string) error                        // none is no error
	ForgetSuiteFiles(now time.Time) error                                     // those of versions for which nothing was uploaded that has not expired
	InsertRunner(Runner) error                                                // Conflict: the id is taken; ErrNameUnknown
	Runner(id string) (Runner, error)                                         // ErrNotFound
	Runners(repository string) ([]Runner, error)                              // by time of registration
	BeatRunner(id, address, runnerVersion string, at time.Time) error         // ErrNotFound
	DeleteRunner(id string) error                                             // ErrNotFound
}
