package pack

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
)

// ManifestFile is the file in the root of every pack that says what the pack is.
const ManifestFile = "plugin.yaml"

// Values of Manifest.Load.
const (
	LoadEager    = "eager"
	LoadDeferred = "deferred"
)

// providerAPI is the one version of the provider contract (packs.md 3.2, `api`).
const providerAPI = "1"

// Manifest is a plugin.yaml as its dialect's client reads it (packs.md 3.2). Texts are stripped and coerced as the
// client does it. Its JSON is the stored form: the client's to_dict with the same keys in the same order.
type Manifest struct {
	Dialect dialect.Dialect
	Kind    Kind // "" when the file names none that the dialect knows

	Schema     string
	Name       string
	Version    string
	Summary    string
	Entrypoint string // module.path:callable
	Wheel      string // tuneplane: a provider wheel in the pack's root, instead of an entrypoint
	Provider   string // tuneplane: the entry point in the wheel
	Load       string // LoadEager or LoadDeferred; "" on kinds without an entrypoint
	Requires   Requires
	Icon       string
	Homepage   string
	License    string
	Author     string
	Keywords   []string
}

// Requires says what the pack runs with. Forge reads only Core.
type Requires struct {
	Core       string      `json:"core,omitempty"`       // PEP 440 specifiers over the client's version
	Python     string      `json:"python,omitempty"`     // PEP 440 specifiers over the interpreter's version
	Frameworks Constraints `json:"frameworks,omitempty"` // framework name to PEP 440 specifiers
	Methods    []string    `json:"methods,omitempty"`    // recipe ids
	Backends   []string    `json:"backends,omitempty"`
}

// IsZero reports whether nothing is required.
func (r Requires) IsZero() bool {
	return r.Core == "" && r.Python == "" && len(r.Frameworks) == 0 && len(r.Methods) == 0 && len(r.Backends) == 0
}

// Constraint is a version range of one framework.
type Constraint struct {
	Name      string
	Specifier string // "" allows every version
}

// Constraints keep the order of the file. Their JSON is an object.
type Constraints []Constraint

// MarshalJSON writes the object with the keys in their order.
func (c Constraints) MarshalJSON() ([]byte, error) {
	var t Table[string]
	for _, one := range c {
		t.set(one.Name, one.Specifier)
	}
	return t.MarshalJSON()
}

// UnmarshalJSON reads an object of texts in its order.
func (c *Constraints) UnmarshalJSON(src []byte) error {
	dec := json.NewDecoder(bytes.NewReader(src))
	t, err := dec.Token()
	if err != nil {
		return err
	}
	if t != json.Delim('{') {
		return errors.New("frameworks: expected an object")
	}
	*c = nil
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return err
		}
		var specifier string
		if err := dec.Decode(&specifier); err != nil {
			return fmt.Errorf("frameworks: %w", err)
		}
		*c = append(*c, Constraint{Name: name.(string), Specifier: specifier})
	}
	_, err = dec.Token()
	return err
}

// stored is the client's to_dict: the order of its fields is the order of the keys.
type stored struct {
	Schema     string   `json:"schema"`
	Name       string   `json:"name"`
	Version    string   `json:"version"`
	Kind       string   `json:"kind,omitempty"`
	Capability string   `json:"capability,omitempty"`
	Execution  string   `json:"execution,omitempty"`
	Summary    string   `json:"summary,omitempty"`
	Entrypoint string   `json:"entrypoint,omitempty"`
	Wheel      string   `json:"wheel,omitempty"`
	Provider   string   `json:"provider,omitempty"`
	API        string   `json:"api,omitempty"`
	Load       string   `json:"load,omitempty"`
	Requires   Requires `json:"requires,omitzero"`
	Icon       string   `json:"icon,omitempty"`
	Homepage   string   `json:"homepage,omitempty"`
	License    string   `json:"license,omitempty"`
	Author     string   `json:"author,omitempty"`
	Keywords   []string `json:"keywords,omitempty"`
}

// MarshalJSON writes the stored form.
func (m Manifest) MarshalJSON() ([]byte, error) {
	s := stored{
		Schema: m.Schema, Name: m.Name, Version: m.Version, Summary: m.Summary, Entrypoint: m.Entrypoint,
		Wheel: m.Wheel, Provider: m.Provider, Load: m.Load, Requires: m.Requires, Icon: m.Icon,
		Homepage: m.Homepage, License: m.License, Author: m.Author, Keywords: m.Keywords,
	}
	if m.Wheel != "" {
		s.API = providerAPI
	}
	switch {
	case m.Dialect != dialect.TunePlane:
		s.Kind = string(m.Kind)
	default:
		s.Capability = m.Kind.Capability()
		if len(executionsOf(s.Capability)) > 1 {
			s.Execution = m.Kind.Execution()
		}
	}
	return plainJSON(s)
}

// plainJSON is v as JSON with <, > and & written as they are.
func plainJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}

// UnmarshalJSON reads a stored form back. It trusts the form: it is for what a gate has admitted.
func (m *Manifest) UnmarshalJSON(src []byte) error {
	var s stored
	if err := json.Unmarshal(src, &s); err != nil {
		return err
	}
	d, ok := dialect.Detect(s.Schema, pluginSchema)
	if !ok {
		return fmt.Errorf("stored manifest: unknown schema %.100q", s.Schema)
	}
	spelling := s.Kind
	if d == dialect.TunePlane {
		spelling = s.Capability
	}
	kind, ok := kindOf(d, spelling, s.Execution)
	if !ok {
		return fmt.Errorf("stored manifest: unknown kind %.100q", spelling)
	}
	*m = Manifest{
		Dialect: d, Kind: kind, Schema: s.Schema, Name: s.Name, Version: s.Version, Summary: s.Summary,
		Entrypoint: s.Entrypoint, Wheel: s.Wheel, Provider: s.Provider, Load: s.Load, Requires: s.Requires,
		Icon: s.Icon, Homepage: s.Homepage, License: s.License, Author: s.Author, Keywords: s.Keywords,
	}
	return nil
}

func pluginSchema(n dialect.Names) string { return n.PluginSchema }
