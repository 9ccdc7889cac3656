package jobbuild

import (
	"encoding/json"
	"fmt"

	"github.com/gatehouse-registry/gatehouse/digest/wtf8"
)

// Meta is what a client sends beside a spec (recipes-and-locks.md 6).
type Meta struct {
	Exp       string
	Profile   string
	GitCommit string
	GitDirty  bool
	ConfigSHA string
	Project   string // "" is left out
}

// Encode is the metadata with the spec inside, as one line of printable ASCII: a header can carry it whatever names the
// project has. The real client of forge fails for what is not latin-1 (wire.md 6.1).
func (m Meta) Encode(spec []byte) ([]byte, error) {
	fields := struct {
		Exp       string          `json:"exp"`
		Profile   string          `json:"profile"`
		GitCommit string          `json:"git_commit"`
		GitDirty  bool            `json:"git_dirty"`
		ConfigSHA string          `json:"config_sha"`
		Project   string          `json:"project,omitempty"`
		Spec      json.RawMessage `json:"spec,omitempty"`
	}{m.Exp, m.Profile, m.GitCommit, m.GitDirty, m.ConfigSHA, m.Project, spec}
	text, err := json.Marshal(fields)
	if err != nil {
		return nil, fmt.Errorf("the metadata can't be written: %w", err)
	}
	return escape(text), nil
}

// escape writes what is not ASCII in a JSON text as \u escapes. It stands in strings only, so the text keeps its meaning.
func escape(text []byte) []byte {
	out := make([]byte, 0, len(text))
	for len(text) > 0 {
		if text[0] < 0x80 {
			out = append(out, text[0])
			text = text[1:]
			continue
		}
		r, n := wtf8.DecodeRune(string(text[:min(len(text), 4)]))
		text = text[n:]
		if r > 0xFFFF {
			r -= 0x10000
			out = fmt.Appendf(out, `\u%04x`, 0xD800+r>>10)
			r = 0xDC00 + r&0x3FF
		}
		out = fmt.Appendf(out, `\u%04x`, r)
	}
	return out
}
