// Package server is Gatehouse as a process: its configuration, the gin engine with the one list of routes, the
// middleware, and Run, which serves until its context ends and then drains.
package server

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/registry"
)

// ConfigFile is the name of the configuration file in the data directory.
const ConfigFile = "gatehouse.yaml"

// Config is what an administrator may decide. The zero value of every field means its default; docs/config.md
// lists them.
type Config struct {
	Data       string             `yaml:"-"`           // the data directory
	Listen     string             `yaml:"listen"`      // HOST:PORT; port 0 picks a free one
	PublicURL  string             `yaml:"public_url"`  // the address handed out in every answer that holds one
	Profiles   []registry.Profile `yaml:"profiles"`    // hardware profiles
	ImageHosts []string           `yaml:"image_hosts"` // registry hosts of images that jobs may run; "*" allows all
	WarnRules  []string           `yaml:"warn_rules"`  // rules of ours that only warn (sf rules lists them)
	Limits     Limits             `yaml:"limits"`
}

// Limits are the limits that an administrator may change. Those of packs are fixed (admission/limit).
type Limits struct {
	MaxBlobBytes int64         `yaml:"max_blob_bytes"` // of one blob of an artifact that is no pack
	UploadTTL    time.Duration `yaml:"upload_ttl"`     // of an upload session
	PreviewTTL   time.Duration `yaml:"preview_ttl"`    // of a tuneplane preview
	LeaseTTL     time.Duration `yaml:"lease_ttl"`      // of a job's hold on its GPUs
	ReceiptTTL   time.Duration `yaml:"receipt_ttl"`    // of a receipt
}

// DefaultListen is where `sf serve` listens when told nothing.
const DefaultListen = "127.0.0.1:8080"

// LoadConfig reads a configuration file strictly: unknown keys are an error. An absent file is fine only when
// optional, and then gives the defaults.
func LoadConfig(path string, optional bool) (Config, error) {
	var c Config
	src, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && optional:
		return c, nil
	case err != nil:
		return c, err
	case len(src) > limit.Document:
		return c, fmt.Errorf("%s: %d bytes, at most %d are allowed", path, len(src), limit.Document)
	case len(bytes.TrimSpace(src)) == 0:
		return c, nil
	}
	if err := yaml.Load(src, &c, yaml.WithKnownFields()); err != nil {
		return c, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// settings checks the configuration and fills in the defaults. All faults are reported together.
func (c Config) settings() (registry.Settings, error) {
	set := registry.DefaultSettings()
	var faults []error
	override(&set.MaxBlob, c.Limits.MaxBlobBytes, "limits.max_blob_bytes", &faults)
	override(&set.UploadTTL, c.Limits.UploadTTL, "limits.upload_ttl", &faults)
	override(&set.PreviewTTL, c.Limits.PreviewTTL, "limits.preview_ttl", &faults)
	override(&set.LeaseTTL, c.Limits.LeaseTTL, "limits.lease_ttl", &faults)
	override(&set.ReceiptTTL, c.Limits.ReceiptTTL, "limits.receipt_ttl", &faults)
	if len(c.Profiles) > 0 {
		set.Profiles = c.Profiles
	}
	for i := range set.Profiles {
		faults = append(faults, completeProfile(&set.Profiles[i], i))
	}
	if c.ImageHosts != nil {
		set.ImageHosts = c.ImageHosts
	}
	ids := make([]rule.ID, len(c.WarnRules))
	for i, id := range c.WarnRules {
		ids[i] = rule.ID(id)
	}
	policy, err := rule.Soften(ids...)
	if err != nil {
		faults = append(faults, fmt.Errorf("warn_rules: %w", err))
	}
	set.Policy = policy
	faults = append(faults, c.checkAddresses())
	return set, errors.Join(faults...)
}

// override takes value when it is set; a negative one is a fault.
func override[T int64 | time.Duration](target *T, value T, field string, faults *[]error) {
	switch {
	case value < 0:
		*faults = append(*faults, fmt.Errorf("%s: %v is negative", field, value))
	case value > 0:
		*target = value
	}
}

func completeProfile(p *registry.Profile, i int) error {
	if p.Name == "" {
		return fmt.Errorf("profiles[%d].name: required field is missing", i)
	}
	if p.Series == "" {
		p.Series = p.Name
	}
	p.Nodes, p.GPUsPerNode = max(p.Nodes, 1), max(p.GPUsPerNode, 1)
	return nil
}

func (c Config) checkAddresses() error {
	if _, _, err := net.SplitHostPort(c.listen()); err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	if c.PublicURL == "" {
		return nil
	}
	u, err := url.Parse(c.PublicURL)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") || u.RawQuery != "" || u.Fragment != "" {
		return fmt.Errorf("public_url: %q is no http(s) address", c.PublicURL)
	}
	return nil
}

func (c Config) listen() string {
	if c.Listen == "" {
		return DefaultListen
	}
	return c.Listen
}

// path is a file of the data directory.
func (c Config) path(name string) string { return filepath.Join(c.Data, name) }
