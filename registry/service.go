package registry

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"log/slog"
	"time"

	"github.com/gatehouse-registry/gatehouse/admission/jobspec"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
	"github.com/gatehouse-registry/gatehouse/registry/auth/bearer"
)

// Deps are what a Service works with. Blobs, Meta and Ledger are required.
type Deps struct {
	Blobs  BlobStore
	Meta   MetaStore
	Ledger LedgerFile
	Signer Signer
	Log    *slog.Logger     // nil discards
	Now    func() time.Time // nil is time.Now
	// Decided is told every decision of a gate that a caller is told, for statistics. nil tells nobody.
	Decided func(rule.Decision)
	// Told hears of every grant that a node asked for, every statement about a run, and what nodes were refused to read, with why
	// it came to nothing, for statistics. nil tells nobody.
	Told func(Event, error)
	// Source opens what a repair fetches bytes from; nil: nothing is repaired.
	Source func(from string) (RepairSource, error)
	// Handover are the platforms that hear of admitted jobs.
	Handover []HandoverTarget
	// Alone says that no other process works on the stores: what a Service of a process that ended was doing is over.
	Alone bool
	// Workloads verifies the identity documents of programs; nil accepts none.
	Workloads WorkloadVerifier
	// Resolver answers for what jobs name and the registry does not hold; nil: nobody does.
	Resolver Resolver
}

// Settings are an administrator's choices. DefaultSettings gives working ones.
type Settings struct {
	RegistryID string      // who the registry is in receipts; set by the server from its stored identity
	Policy     rule.Policy // softened rules
	SpoolDir   string      // where archives out of order are spooled; "" is the system's folder for temporary files
	MaxBlob    int64       // bytes of one blob of an artifact that is no pack
	// RedirectOver is the size in bytes beyond which a blob is fetched from the store of bytes itself, where that gives out
	// addresses; 0 means never. Only the distribution protocol redirects.
	RedirectOver int64
	UploadTTL    time.Duration // how long an upload session lives after its start
	PreviewTTL   time.Duration // how long a preview may be committed
	LeaseTTL     time.Duration // how long a job's GPUs count without a sign of life
	ReceiptTTL   time.Duration // how long a receipt may launch
	DenyListTTL  time.Duration // how long a deny list proves that nothing else was revoked
	Profiles     []Profile     // hardware profiles, at least one
	ImageHosts   []string      // registry hosts that images may come from; "*" allows all
	PinImages    bool          // images must be named by digest
	Hubs         []string      // hubs that models and data sets may come from, of jobspec.Hubs
	PinHubs      bool          // what comes from a hub outside must name a commit
	// RefuseUnchecked are the kinds of references that refuse a job when nobody could check them.
	RefuseUnchecked []jobspec.RefKind

	Collection CollectionSettings
	Scrub      ScrubSettings
	Retention  []RetentionRule
	Quota      Quota // of owners that have none of their own

	AnonymousRead []string      // patterns of repositories that are read without a sign-in; never a private one
	RobotTTL      time.Duration // how long a robot lives at most
	Sessions      SessionSettings
	Workloads     []WorkloadRule // which programs may act as which robot
}

// DefaultSettings are the settings of `sf serve` without a configuration file.
func DefaultSettings() Settings {
	return Settings{
		MaxBlob:    16 << 30,
		UploadTTL:  24 * time.Hour,
		PreviewTTL: time.Hour,
		LeaseTTL:   24 * time.Hour,
		ReceiptTTL: 30 * 24 * time.Hour, DenyListTTL: time.Hour,
		Profiles:   []Profile{{Name: "h200", Series: "h200", Nodes: 1, GPUsPerNode: 8, Label: "NVIDIA H200"}},
		ImageHosts: []string{"*"},
		Hubs:       jobspec.Hubs,
		Collection: CollectionSettings{Every: 6 * time.Hour, Grace: 2 * time.Hour},
		Scrub:      ScrubSettings{Every: 7 * 24 * time.Hour, Rate: 20 << 20},
		RobotTTL:   400 * 24 * time.Hour,
		Sessions:   SessionSettings{Idle: 30 * 24 * time.Hour, Life: 180 * 24 * time.Hour},
	}
}

// Profile is a kind of hardware that jobs may ask for (wire.md 6).
type Profile struct {
	Name        string `json:"name" yaml:"name"`
	Series      string `json:"series" yaml:"series"`
	Nodes       int    `json:"num_nodes" yaml:"num_nodes"`
	GPUsPerNode int    `json:"gpus_per_node" yaml:"gpus_per_node"`
	Label       string `json:"label" yaml:"label"`
}

// Service holds the use cases. Its methods are safe for concurrent use.
type Service struct {
	blobs  BlobStore
	meta   MetaStore // writable
	always MetaStore // the same, that takes changes while the registry is read-only
	ledger LedgerFile
	signer Signer
	log    *slog.Logger
	now    func() time.Time
	set    Settings

	uploadKey   []byte // signs the ids of uploads
	rows        *cache[rowKey, row]
	bytes       *cache[digest.Digest, []byte]
	catalogues  catalogues
	inspections chan struct{} // bounds archives being read
	decided     func(rule.Decision)
	upkeep      upkeep
	source      func(from string) (RepairSource, error)

	tokenKey  bearer.Key // signs the tokens of the token endpoint
	verified  *cache[[32]byte, bearer.Claims]
	workloads WorkloadVerifier
	launches  *cache[string, *auth.Launch]
	told      func(Event, error)
	denyList  denyList
	refusals  refusals
	handover  handover
	resolver  Resolver // nil: nobody answers for the platform
}

// New makes a Service and brings the ledger file up to what the store holds.
func New(ctx context.Context, d Deps, set Settings) (*Service, error) {
	s := &Service{blobs: d.Blobs, meta: d.Meta, ledger: d.Ledger, signer: d.Signer, log: d.Log, now: d.Now, set: set, inspections: make(chan struct{}, maxInspections)}
	s.verified = newCache[[32]byte, bearer.Claims](maxVerified)
	s.launches = newCache[string, *auth.Launch](maxLaunches)
	s.rows, s.bytes = newCache[rowKey, row](maxCachedRows), newCache[digest.Digest, []byte](maxCachedBytes)
	s.handover.targets = d.Handover
	if s.decided = d.Decided; s.decided == nil {
		s.decided = func(rule.Decision) {}
	}
	if s.told = d.Told; s.told == nil {
		s.told = func(Event, error) {}
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.now == nil {
		s.now = time.Now
	}
	var err error
	if s.uploadKey, err = sharedKey(ctx, s.meta, uploadKeySetting); err != nil {
		return s, err
	}
	if s.tokenKey, err = sharedKey(ctx, s.meta, tokenKeySetting); err != nil {
		return s, err
	}
	s.workloads, s.upkeep.alone = d.Workloads, d.Alone
	s.source, s.resolver = d.Source, d.Resolver
	s.always = s.meta
	s.meta = writable{s.meta}
	if err := s.fillShelf(ctx); err != nil {
		return s, err
	}
	if err := s.indexJobs(ctx); err != nil {
		return s, err
	}
	return s, s.openLedger(ctx)
}

// Settings are the settings in force.
func (s *Service) Settings() Settings { return s.set }

// authorize answers Unauthorized for nobody and Denied for somebody who may not; who is denied a write is audited.
func (s *Service) authorize(ctx context.Context, p auth.Principal, a auth.Action, owner, what string) error {
	if p.CanIn(a, owner) {
		return nil
	}
	if p.Anonymous() {
		return &Error{Code: Unauthorized}
	}
	err := Errorf(Denied, "account %s (%s) may not do %s on %s", p.Account, p.Role, a, Shown(what))
	if a != auth.ReadContent {
		s.auditRefusal(ctx, p, string(a), what, err)
	}
	return err
}

// Require answers as the use cases do when the principal's role does not allow the action anywhere, so that the body of a
// request is not read in vain. what says what was asked for.
func (s *Service) Require(ctx context.Context, p auth.Principal, a auth.Action, what string) error {
	if p.Can(a) {
		return nil
	}
	return s.authorize(ctx, p, a, "", what)
}

// randomHex is n random bytes in hex.
func randomHex(n int) string {
	b := make([]byte, n)
	rand.Read(b) // never fails (crypto/rand)
	return hex.EncodeToString(b)
}
