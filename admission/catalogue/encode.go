package catalogue

import (
	"bytes"
	"encoding/json"

	"github.com/gatehouse-registry/gatehouse/admission/pack"
)

// factsForm is what Encode writes of an entry beside its row.
type factsForm struct {
	ManifestDigest string      `json:"manifest_digest"`
	TemplateDigest string      `json:"template_digest,omitempty"`
	Entrypoint     *Entrypoint `json:"entrypoint"`
	Roles          []string    `json:"roles"`
	Plugins        []string    `json:"plugins,omitempty"`
	RequiredInputs []string    `json:"required_inputs,omitempty"`
	Observability  string      `json:"observability"`
	ConfigMode     string      `json:"config_mode,omitempty"`
	ConfigSection  string      `json:"config_section,omitempty"`
	Category       string      `json:"category,omitempty"`
	Lifecycle      actionsForm `json:"lifecycle"`
	Params         paramsForm  `json:"params"`
}

// rowForm is a row of a snapshot.
type rowForm struct {
	Name         string           `json:"name"`
	Version      string           `json:"version"`
	Digest       string           `json:"digest"`
	Framework    string           `json:"framework"`
	Adapter      string           `json:"adapter"`
	CoreRequires string           `json:"core_requires,omitempty"`
	Default      string           `json:"framework_version"`
	Supported    []string         `json:"supported_framework_versions"`
	Runtime      runtimeForm      `json:"runtime"`
	Facts        *json.RawMessage `json:"gatehouse,omitempty"`
}

type runtimeForm struct {
	Versions map[string]Variant `json:"versions"`
}

// Encode writes the catalogue as a snapshot that ParseSnapshot reads: what shipped in the client, one recipe a line.
// Recipes of packs are left out.
func (c *Catalogue) Encode() ([]byte, error) {
	var b bytes.Buffer
	b.WriteString("{\n\"recipes\": [")
	n := 0
	for _, e := range c.entries {
		if e.Pack != nil {
			continue
		}
		row, err := e.form()
		if err != nil {
			return nil, err
		}
		if err := element(&b, n, row); err != nil {
			return nil, err
		}
		n++
	}
	b.WriteString("\n],\n\"bundled_plugins\": [")
	for i, p := range c.Bundled() {
		if err := element(&b, i, p); err != nil {
			return nil, err
		}
	}
	b.WriteString("\n],\n\"benchmarks\": [")
	for i, m := range c.benchmarks {
		if err := element(&b, i, m); err != nil {
			return nil, err
		}
	}
	b.WriteString("\n]\n}\n")
	return b.Bytes(), nil
}

// element writes the nth element of a list on a line of its own.
func element(b *bytes.Buffer, n int, v any) error {
	if n > 0 {
		b.WriteByte(',')
	}
	b.WriteByte('\n')
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	b.Truncate(b.Len() - 1) // Encode's line break
	return err
}

func (e Entry) form() (rowForm, error) {
	row := rowForm{
		Name: e.Name, Version: e.Version, Digest: e.Digest, Framework: e.Framework, Adapter: e.Adapter, CoreRequires: e.CoreRequires,
		Default: e.DefaultVersion, Supported: e.Supported(), Runtime: runtimeForm{Versions: make(map[string]Variant)},
	}
	for _, v := range e.Versions {
		row.Runtime.Versions[v.Version] = v
	}
	if e.ManifestDigest == "" {
		return row, nil
	}
	facts := factsForm{
		ManifestDigest: e.ManifestDigest, TemplateDigest: e.TemplateDigest, Entrypoint: e.Entrypoint, Roles: e.Roles, Plugins: e.Plugins,
		RequiredInputs: e.RequiredInputs, Observability: e.Observability, ConfigMode: e.ConfigMode, ConfigSection: e.ConfigSection,
		Category: e.Category, Lifecycle: actionsForm{e.Lifecycle, e.LifecycleResources},
	}
	if e.Params != nil {
		facts.Params = paramsForm{*e.Params}
	}
	src, err := json.Marshal(facts)
	row.Facts = (*json.RawMessage)(&src)
	return row, err
}

// actionsForm writes actions with their GPUs in the order of the document.
type actionsForm struct {
	names []string
	gpus  map[string]int64
}

// MarshalJSON implements json.Marshaler.
func (a actionsForm) MarshalJSON() ([]byte, error) {
	return ordered(len(a.names), func(i int) (string, any) { return a.names[i], a.gpus[a.names[i]] })
}

// paramsForm writes parameters in their order, in the form that a recipe.yaml has them.
type paramsForm struct{ Params }

type paramForm struct {
	Type         string     `json:"type"`
	Path         string     `json:"path,omitempty"`
	Required     bool       `json:"required,omitempty"`
	Default      *pack.Raw  `json:"default,omitempty"`
	Minimum      *pack.Raw  `json:"min,omitempty"`
	Maximum      *pack.Raw  `json:"max,omitempty"`
	ExclusiveMin bool       `json:"exclusive_min,omitempty"`
	Choices      []pack.Raw `json:"choices,omitempty"`
	Overrides    pathsForm  `json:"path_overrides,omitempty"`
	Versions     []string   `json:"versions,omitempty"`
}

// MarshalJSON implements json.Marshaler.
func (p paramsForm) MarshalJSON() ([]byte, error) {
	names := p.Names()
	return ordered(len(names), func(i int) (string, any) {
		v, _ := p.Get(names[i])
		return names[i], paramForm{
			Type: v.Type, Path: v.Path, Required: v.Required, Default: given(v.Default), Minimum: given(v.Minimum), Maximum: given(v.Maximum),
			ExclusiveMin: v.ExclusiveMinimum, Choices: v.Choices, Overrides: v.PathOverrides, Versions: v.Versions,
		}
	})
}

// given is nil for what the document does not say.
func given(v pack.Raw) *pack.Raw {
	if v.Value == nil {
		return nil
	}
	return &v
}

// pathsForm writes path_overrides in their order.
type pathsForm [][2]string

// MarshalJSON implements json.Marshaler.
func (p pathsForm) MarshalJSON() ([]byte, error) {
	return ordered(len(p), func(i int) (string, any) { return p[i][0], p[i][1] })
}

// ordered writes an object of n members in their order.
func ordered(n int, member func(i int) (string, any)) ([]byte, error) {
	b := []byte{'{'}
	for i := range n {
		if i > 0 {
			b = append(b, ',')
		}
		key, value := member(i)
		k, err := json.Marshal(key)
		if err != nil {
			return nil, err
		}
		v, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		b = append(append(append(b, k...), ':'), v...)
	}
	return append(b, '}'), nil
}
