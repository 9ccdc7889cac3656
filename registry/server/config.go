// Package server is Gatehouse as a process: its configuration, the gin engine with the one list of routes, the
// middleware, and Run, which serves until its context ends and then drains.
package server

import (
	"path/filepath"
	"time"

	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/webhook"
)

// ConfigFile is the name of the configuration file in the data directory.
const ConfigFile = "gatehouse.yaml"

// DefaultListen is where `sf serve` listens when told nothing.
const DefaultListen = "127.0.0.1:8080"

// Config is what an administrator may decide. The zero value of every field means its default, unless LoadConfig read that a
// zero is meant. A field is a key that
// flags, environment and file set alike: its yaml tag is the name, doc what docs/config.md says of it, and secret
// marks what is never printed whole. A struct groups keys below its name.
type Config struct {
	Data           string   `yaml:"data" doc:"the data directory; the server makes it"`
	DB             string   `yaml:"db" secret:"url" doc:"where the metadata lie: a PostgreSQL address (postgres://…); unset means SQLite in the data directory"`
	Blobs          string   `yaml:"blobs" secret:"url" doc:"where the bytes lie: an S3 address (s3://…) or a folder; unset means the data directory. With PostgreSQL it must be named"`
	RedirectOver   int64    `yaml:"redirect_over" doc:"bytes beyond which a blob is fetched from the S3 store itself, by an address that is good for ten minutes (docs/operations.md); unset means never. Routes below /api never redirect"`
	Keys           string   `yaml:"keys" doc:"the folder of the key that signs receipts; unset means keys/ in the data directory, with PostgreSQL the database"`
	Listen         string   `yaml:"listen" doc:"the address to listen at, HOST:PORT; port 0 picks a free one, which DIR/address then holds"`
	PublicURL      string   `yaml:"public_url" doc:"the address that is handed out in every answer that holds one; unset means where it listens. The Host header never counts"`
	TLSCert        string   `yaml:"tls_cert" doc:"the certificate, with its chain, in PEM; together with tls_key it turns TLS on. Both files are read again when they change"`
	TLSKey         string   `yaml:"tls_key" doc:"the certificate's private key in PEM"`
	InsecureHTTP   bool     `yaml:"insecure_http" doc:"serve plain HTTP at an address that is not this machine alone, without a proxy that ends TLS"`
	TrustedProxies []string `yaml:"trusted_proxies" doc:"networks (CIDR) of the proxies whose X-Forwarded-For or Forwarded header is believed"`
	MetricsListen  string   `yaml:"metrics_listen" doc:"a second address, HOST:PORT, for /metrics, /healthz and /readyz without a sign-in; unset means none: /metrics then needs an administrator's or an auditor's token"`
	LogFormat      string   `yaml:"log_format" doc:"json, text, or auto: text on a terminal and JSON elsewhere"`
	LogLevel       string   `yaml:"log_level" doc:"debug, info, warn or error: the least that is logged"`

	DrainDelay   time.Duration `yaml:"drain_delay" doc:"how long a server that was told to stop goes on accepting, so that a load balancer sees /readyz fail first"`
	DrainTimeout time.Duration `yaml:"drain_timeout" doc:"how long requests in flight may take to finish after that"`

	AnonymousRead    []string         `yaml:"anonymous_read" doc:"patterns of repositories that are pulled from without a sign-in: a name, team/*, team/**, or ** for all; never a private one. Unset means none"`
	RobotTTL         time.Duration    `yaml:"robot_ttl" doc:"how long a robot account lives at most"`
	Sessions         Sessions         `yaml:"sessions"`
	WorkloadIdentity []workloadIssuer `yaml:"workload_identity" doc:"issuers whose identity documents programs may exchange for a robot's token: a list of issuer, audience, ca_file, and rules of claims, robot, ttl (docs/access.md)"`

	RequireImageDigest bool     `yaml:"require_image_digest" doc:"refuse jobs whose image is not named by digest (name@sha256:…); otherwise a tag is a warning"`
	Hubs               []string `yaml:"hubs" doc:"hubs that the models and data sets of tuneplane jobs may come from: tp (this platform), hf, ms"`
	RequireHubCommit   bool     `yaml:"require_hub_commit" doc:"refuse models and data sets of hf and ms that name no commit of 40 hex digits"`

	Resolver             string        `yaml:"resolver" secret:"url" doc:"the address that is asked what jobs name and the registry does not hold: data sets, volumes, models and the like (docs/resolver.md); unset means nobody is asked"`
	ResolverSecretFile   string        `yaml:"resolver_secret_file" doc:"the file that holds the secret which requests to resolver are signed with: whsec_ and base64, or 16 bytes or more of text"`
	ResolverCAFile       string        `yaml:"resolver_ca_file" doc:"the certificates of authorities, in PEM, that are trusted for resolver in place of the system's"`
	ResolverTimeout      time.Duration `yaml:"resolver_timeout" doc:"how long resolver may take to answer; a submission that has no answer by then is told to try again"`
	ResolverInsecureHTTP bool          `yaml:"resolver_insecure_http" doc:"ask resolver by plain HTTP on another machine: whoever is on the way reads and changes what is said"`
	Unchecked            string        `yaml:"unchecked" doc:"what happens to a job that names something that nobody could check: warn, or refuse:KIND[,KIND] for these kinds, or refuse:all (docs/resolver.md lists the kinds)"`

	Profiles   []registry.Profile `yaml:"profiles" doc:"hardware that jobs may ask for: a list of name, series (default: the name), num_nodes, gpus_per_node (default: 1), label"`
	ImageHosts []string           `yaml:"image_hosts" doc:"registry hosts of images that jobs may run; * allows all, *.example.org a domain"`
	WarnRules  []string           `yaml:"warn_rules" doc:"rules of ours, stricter than the real clients, that only warn (sf rules lists them). A rule of the clients, or one whose breach would harm others, can't be named"`
	AuditMode  []string           `yaml:"audit_mode" doc:"rules that report what they would refuse without refusing it, so that a stricter rule can be tried on real traffic (docs/admission.md). Any rule that warn_rules may name, and those that settings make strict, such as job.framework.image.allowlist"`

	Handover []handoverTarget `yaml:"handover" doc:"platforms that admitted jobs go to: a list of name, one of webhook (with secret_file, ca_file, insecure_http), command (a list) and directory, and package, timeout (30s), give_up (72h), parallel (4) (docs/handover.md)"`

	Collection Collection               `yaml:"collection"`
	Scrub      Scrub                    `yaml:"scrub"`
	Retention  []registry.RetentionRule `yaml:"retention" doc:"what repositories without packs keep: a list of repositories (a pattern), keep_tags, keep_for, keep, untagged_after (docs/operations.md); the first that names a repository counts. Unset means everything"`
	Quota      Quota                    `yaml:"quota"`

	Limits Limits `yaml:"limits"`

	sources map[string]string // where each key that was set comes from
}

// Sessions is how long clients stay signed in.
type Sessions struct {
	Idle time.Duration `yaml:"idle" doc:"how long a client stays signed in that does not ask for anything"`
	Life time.Duration `yaml:"life" doc:"how long a client stays signed in at most"`
}

// Collection is when the registry removes by itself what nothing names.
type Collection struct {
	Every time.Duration `yaml:"every" doc:"between two garbage collections"`
	Grace time.Duration `yaml:"grace" doc:"what was pushed no longer ago is never collected: a push must end within it"`
}

// Scrub is how the registry reads again what it holds.
type Scrub struct {
	Every time.Duration `yaml:"every" doc:"between two rounds in which everything is read again and compared with its digest"`
	Rate  int64         `yaml:"rate" doc:"bytes a second that it reads at most"`
}

// Quota is what an owner may hold that has no quota of its own.
type Quota struct {
	Bytes     int64 `yaml:"bytes" doc:"bytes that an owner may hold, each digest counted once; unset means no limit. sf admin quota sets another for one owner"`
	Versions  int64 `yaml:"versions" doc:"versions of packs that an owner may hold; unset means no limit"`
	Manifests int64 `yaml:"manifests" doc:"manifests that an owner may hold; unset means no limit"`
}

// Limits are the limits that an administrator may change. Those of packs are fixed (admission/limit).
type Limits struct {
	MaxBlobBytes int64         `yaml:"max_blob_bytes" doc:"bytes of one blob of an artifact that is no pack"`
	UploadTTL    time.Duration `yaml:"upload_ttl" doc:"how long an upload session lives"`
	PreviewTTL   time.Duration `yaml:"preview_ttl" doc:"how long a tuneplane preview may be committed"`
	LeaseTTL     time.Duration `yaml:"lease_ttl" doc:"how long a job's GPUs count against its account's quota without a sign of life"`
	ReceiptTTL   time.Duration `yaml:"receipt_ttl" doc:"how long a receipt may launch"`
	DenyListTTL  time.Duration `yaml:"denylist_ttl" doc:"how long a deny list, once signed, proves that nothing else was revoked"`

	Connections   int           `yaml:"connections" doc:"open connections; beyond it a few more are let in, for health checks and to be told 429"`
	Requests      int           `yaml:"requests" doc:"small requests of one caller (an account with its robots, else a network address) at a time; beyond it 429"`
	Transfers     int           `yaml:"transfers" doc:"requests of one caller that move content at a time; beyond it 429"`
	RequestRate   float64       `yaml:"request_rate" doc:"requests of one caller a second, over time; 0 sets no such limit"`
	HeaderTimeout time.Duration `yaml:"header_timeout" doc:"for a request's headers to come"`
	IdleTimeout   time.Duration `yaml:"idle_timeout" doc:"how long a body or an answer may stand still before its connection is dropped"`
	Database      time.Duration `yaml:"database_timeout" doc:"how long a request waits for the database before it answers 503"`
	Store         time.Duration `yaml:"store_timeout" doc:"how long a request waits for the store of bytes to begin to answer before it answers 503"`
}

// defaults are the values of what is not set.
func defaults() Config {
	set := registry.DefaultSettings()
	return Config{
		Listen: DefaultListen, LogFormat: "auto", LogLevel: "info", DrainTimeout: time.Minute,
		RobotTTL: set.RobotTTL, Sessions: Sessions(set.Sessions),
		Profiles: set.Profiles, ImageHosts: set.ImageHosts,
		Hubs: set.Hubs, ResolverTimeout: webhook.DefaultTimeout, Unchecked: uncheckedWarn,
		Collection: Collection{Every: set.Collection.Every, Grace: set.Collection.Grace},
		Scrub:      Scrub{Every: set.Scrub.Every, Rate: set.Scrub.Rate},
		Limits: Limits{
			MaxBlobBytes: set.MaxBlob, UploadTTL: set.UploadTTL, PreviewTTL: set.PreviewTTL, LeaseTTL: set.LeaseTTL, ReceiptTTL: set.ReceiptTTL, DenyListTTL: set.DenyListTTL,
			Connections: 4096, Requests: 256, Transfers: 128,
			HeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute, Database: 10 * time.Second, Store: 15 * time.Second,
		},
	}
}

// path is a file of the data directory.
func (c Config) path(name string) string { return filepath.Join(c.Data, name) }
