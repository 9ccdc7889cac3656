package server

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/registry"
)

// complete is the configuration with the default of everything that is not set. A zero that somebody wrote down is meant;
// an empty text never is.
func (c Config) complete() Config {
	preset := defaults()
	for _, k := range Keys() {
		f := k.field(&c)
		if f.IsZero() && (c.sources[k.Name] == "" || f.Kind() == reflect.String) {
			f.Set(k.field(&preset))
		}
	}
	return c
}

// checker collects the faults of a configuration.
type checker struct {
	c      Config
	faults []error
}

// fault notes what is wrong with a key, behind the place where it was set.
func (k *checker) fault(key, format string, args ...any) {
	err := fmt.Errorf(key+": "+format, args...)
	if source := k.c.sources[key]; source != "" {
		err = fmt.Errorf("%s: %w", source, err)
	}
	k.faults = append(k.faults, err)
}

// settings checks the configuration and gives what of it belongs to the domain. All faults are reported together.
func (c Config) settings() (registry.Settings, error) {
	k := &checker{c: c.complete()}
	k.numbers()
	k.addresses()
	k.stores()
	k.transport()
	k.logs()
	k.handover()
	c, set := k.c, registry.DefaultSettings()
	set.MaxBlob, set.UploadTTL, set.PreviewTTL = c.Limits.MaxBlobBytes, c.Limits.UploadTTL, c.Limits.PreviewTTL
	set.LeaseTTL, set.ReceiptTTL, set.DenyListTTL = c.Limits.LeaseTTL, c.Limits.ReceiptTTL, c.Limits.DenyListTTL
	if ttl := c.Limits.DenyListTTL; ttl > 0 && ttl < time.Minute {
		k.fault("limits.denylist_ttl", "%s: a list that lives less than a minute is over before it is read", ttl)
	}
	set.ImageHosts, set.Profiles = c.ImageHosts, slices.Clone(c.Profiles)
	set.PinImages, set.Hubs, set.PinHubs = c.RequireImageDigest, k.hubs(), c.RequireHubCommit
	set.RefuseUnchecked = k.resolver()
	set.AnonymousRead, set.RobotTTL, set.Workloads = c.AnonymousRead, c.RobotTTL, k.access()
	set.Sessions = registry.SessionSettings(c.Sessions)
	set.Collection = registry.CollectionSettings{Every: c.Collection.Every, Grace: c.Collection.Grace}
	set.Scrub = registry.ScrubSettings{Every: c.Scrub.Every, Rate: c.Scrub.Rate}
	set.RedirectOver, set.Quota, set.Retention = c.RedirectOver, registry.Quota(c.Quota), c.Retention
	for i, r := range c.Retention {
		if err := r.Check(); err != nil {
			k.fault("retention", "[%d]: %w", i, err)
		}
	}
	if len(set.Profiles) == 0 {
		k.fault("profiles", "at least one profile is needed")
	}
	for i := range set.Profiles {
		k.profile(&set.Profiles[i], i)
	}
	set.Policy = k.policy()
	return set, errors.Join(k.faults...)
}

// policy is what the configuration says of rules.
func (k *checker) policy() rule.Policy {
	p, err := rule.Soften(ruleIDs(k.c.WarnRules)...)
	if err != nil {
		k.fault("warn_rules", "%w", err)
		return p
	}
	audited, err := p.Audit(ruleIDs(k.c.AuditMode)...)
	if err != nil {
		k.fault("audit_mode", "%w", err)
		return p
	}
	return audited
}

func ruleIDs(names []string) []rule.ID {
	ids := make([]rule.ID, len(names))
	for i, name := range names {
		ids[i] = rule.ID(name)
	}
	return ids
}

// needed are the numbers that can't be 0: nothing would work.
var needed = []string{
	"drain_timeout", "limits.max_blob_bytes", "limits.upload_ttl", "limits.preview_ttl", "limits.lease_ttl", "limits.receipt_ttl", "limits.denylist_ttl",
	"sessions.idle", "sessions.life", "limits.connections", "limits.requests", "limits.transfers", "limits.header_timeout", "limits.idle_timeout",
}

// numbers refuses those below zero, and zeros where nothing would work.
func (k *checker) numbers() {
	for _, key := range Keys() {
		f := key.field(&k.c)
		switch {
		case f.CanInt() && f.Int() < 0 || f.CanFloat() && f.Float() < 0:
			k.fault(key.Name, "%s is negative", format(f))
		case f.CanFloat() && math.IsInf(f.Float(), 1):
			k.fault(key.Name, "it can't be infinite; 0 sets no limit")
		case f.IsZero() && slices.Contains(needed, key.Name):
			k.fault(key.Name, "it can't be 0")
		}
	}
}

func (k *checker) profile(p *registry.Profile, i int) {
	if p.Name == "" {
		k.fault("profiles", "[%d].name: required field is missing", i)
	}
	if p.Series == "" {
		p.Series = p.Name
	}
	p.Nodes, p.GPUsPerNode = max(p.Nodes, 1), max(p.GPUsPerNode, 1)
}

func (k *checker) addresses() {
	for key, address := range map[string]string{"listen": k.c.Listen, "metrics_listen": k.c.MetricsListen} {
		if address == "" {
			continue
		}
		_, port, err := net.SplitHostPort(address)
		if err == nil {
			_, err = net.LookupPort("tcp", port)
		}
		if err != nil {
			k.fault(key, "%w (expected HOST:PORT)", err)
		}
	}
	if k.c.PublicURL == "" {
		return
	}
	u, err := url.Parse(k.c.PublicURL)
	switch {
	case err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") || u.RawQuery != "" || u.Fragment != "" || u.User != nil:
		k.fault("public_url", "%q is no http(s) address", k.c.PublicURL)
	case strings.HasSuffix(u.Path, "/"):
		k.fault("public_url", "%q ends with a slash; leave it out", k.c.PublicURL)
	}
}

// stores checks where data lie. That the addresses lead somewhere is found when they are opened.
func (k *checker) stores() {
	if k.c.DB != "" && !k.c.postgres() {
		k.fault("db", "expected postgres://USER@HOST/DATABASE, or nothing for SQLite in the data directory")
	}
	if strings.Contains(k.c.Blobs, "://") && !k.c.s3() {
		k.fault("blobs", "expected s3://…, a folder, or nothing for the data directory")
	}
	if k.c.postgres() && k.c.Blobs == "" {
		k.fault("blobs", "required with PostgreSQL: s3://… for any number of replicas, or a folder for one server alone")
	}
}

func (c Config) postgres() bool {
	return strings.HasPrefix(c.DB, "postgres://") || strings.HasPrefix(c.DB, "postgresql://")
}

func (c Config) s3() bool { return strings.HasPrefix(c.Blobs, "s3://") }

// transport holds that content and tokens don't cross a network in the clear by accident.
func (k *checker) transport() {
	if (k.c.TLSCert == "") != (k.c.TLSKey == "") {
		k.fault("tls_cert", "tls_cert and tls_key are set together or not at all")
	}
	for _, network := range k.c.TrustedProxies {
		if _, err := parseNetwork(network); err != nil {
			k.fault("trusted_proxies", "%q is no network such as 10.0.0.0/8", network)
		}
	}
	behind := strings.HasPrefix(k.c.PublicURL, "https://") && len(k.c.TrustedProxies) > 0
	if k.c.TLSCert == "" && !k.c.InsecureHTTP && !behind && !isLoopback(k.c.Listen) {
		k.fault("listen", "%s is reached from other machines, and tokens would cross the network in the clear: set tls_cert and tls_key; "+
			"or, behind a proxy that ends TLS, public_url (https://…) and trusted_proxies; or insecure_http", k.c.Listen)
	}
}

// isLoopback reports whether an address is of this machine alone.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return true // said elsewhere
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

// parseNetwork reads a network, or the address of one machine.
func parseNetwork(text string) (netip.Prefix, error) {
	if ip, err := netip.ParseAddr(text); err == nil {
		return netip.PrefixFrom(ip, ip.BitLen()), nil
	}
	p, err := netip.ParsePrefix(text)
	return p.Masked(), err
}

func (k *checker) logs() {
	if !slices.Contains([]string{"auto", "json", "text"}, k.c.LogFormat) {
		k.fault("log_format", "%.40q is none of auto, json, text", k.c.LogFormat)
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(k.c.LogLevel)); err != nil {
		k.fault("log_level", "%.40q is none of debug, info, warn, error", k.c.LogLevel)
	}
}

// folder is where bytes lie when they lie in a folder.
func (c Config) folder() string {
	if c.Blobs == "" {
		return c.Data
	}
	return filepath.Clean(c.Blobs)
}
