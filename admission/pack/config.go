package pack

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/digest/canonical"
	"github.com/gatehouse-registry/gatehouse/digest/tree"
)

// Config is the config blob of a pack: all that is stored of it, derived from the archive and nothing else
// (design.md 2, invariant 5).
type Config struct {
	Dialect       dialect.Dialect `json:"dialect"`
	Manifest      Manifest        `json:"manifest"`
	ContentDigest digest.Digest   `json:"contentDigest"`
	TreeDigest    digest.Digest   `json:"treeDigest"`
	Files         []ConfigFile    `json:"files"` // by path
}

// ConfigFile is one file of a pack.
type ConfigFile struct {
	Path       string `json:"path"`
	Size       int64  `json:"size"`   // bytes
	SHA256     string `json:"sha256"` // 64 hex digits
	Executable bool   `json:"executable,omitempty"`
}

// BuildConfig writes the config blob of a pack as canonical JSON (RFC 8785): the same bytes for the same pack. The pack must
// be one that Check accepted.
func BuildConfig(p *Pack) ([]byte, error) {
	if p.Manifest == nil || p.Manifest.Kind == "" || p.Content().IsZero() || p.Tree().IsZero() {
		return nil, errors.New("a pack that was refused has no config")
	}
	c := Config{
		Dialect: p.Manifest.Dialect, Manifest: *p.Manifest, ContentDigest: p.Content(), TreeDigest: p.Tree(),
		Files: make([]ConfigFile, 0, p.Listing.Files),
	}
	for e := range p.Listing.Counted {
		c.Files = append(c.Files, configFile(e))
	}
	return c.encode()
}

func configFile(e tree.Entry) ConfigFile {
	return ConfigFile{Path: e.Path, Size: e.Size, SHA256: hex.EncodeToString(e.SHA256[:]), Executable: e.Executable}
}

func (c Config) encode() ([]byte, error) {
	plain, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	text, err := canonical.JCS(plain)
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	if len(text) > limit.Config {
		return nil, fmt.Errorf("config: %d bytes, at most %d are allowed", len(text), limit.Config)
	}
	return text, nil
}

// ParseConfig reads a config blob. It accepts exactly what BuildConfig writes: other bytes that would mean the same
// are an error.
func ParseConfig(src []byte) (*Config, error) {
	if len(src) > limit.Config {
		return nil, fmt.Errorf("config: %d bytes, at most %d are allowed", len(src), limit.Config)
	}
	var c Config
	dec := json.NewDecoder(bytes.NewReader(src))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&c); err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	again, err := c.encode()
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(again, src) {
		return nil, errors.New("config: not in canonical form")
	}
	return &c, nil
}
