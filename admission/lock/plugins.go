// Package lock reads and writes the lock files of an experiment as the real clients do, byte for byte. No lock ever
// reaches a server: a client copies what it says into the JobSpec. So nothing here is a rule of a gate; what can't be
// read is an error that says where and why. Nothing here does I/O.
//
// plugins.lock.json lists the plugins of an experiment (recipes-and-locks.md 2). Reading is as lenient as the
// clients': unknown keys, repeated entries and values of other types than text pass. Where a client would crash,
// ours is an error.
package lock

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/pyjson"
	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/digest/canonical"
)

// PluginsFile is the name of the plugins lock in an experiment's folder.
const PluginsFile = "plugins.lock.json"

// Plugins is a plugins lock. An experiment without the file has the empty one.
type Plugins struct {
	Dialect dialect.Dialect
	Entries []Plugin // in the order of the file
}

// Plugin is one entry. A client keeps a value that is no text as it is, so it stays in Python's model.
type Plugin struct{ id, version, digest *pyvalue.Value }

// NewPlugin is the entry that an install writes.
func NewPlugin(id, version, digest string) Plugin {
	return Plugin{pyvalue.NewStr(id), pyvalue.NewStr(version), pyvalue.NewStr(digest)}
}

// ID is the plugin's <owner>/<name>, not checked.
func (p Plugin) ID() string { return p.id.PyStr() }

// Version is the locked version, not checked.
func (p Plugin) Version() string { return p.version.PyStr() }

// Digest is the locked content digest, not checked.
func (p Plugin) Digest() string { return p.digest.PyStr() }

// The keys of the file.
const (
	keyAPIVersion = "apiVersion"
	keyPlugins    = "plugins"
	keyID         = "id"
	keyVersion    = "version"
	keyDigest     = "digest"
)

// ParsePlugins reads a plugins lock of the dialect. Its errors do not name the file.
func ParsePlugins(src []byte, d dialect.Dialect) (Plugins, error) {
	p := Plugins{Dialect: d}
	doc, err := load(src)
	if err != nil {
		return p, err
	}
	want := d.Names().PluginsLock
	if got := doc.Get(keyAPIVersion); got == nil || got.Kind != pyvalue.Str || got.Text != want {
		return p, errorAt(cmp.Or(got, doc), keyAPIVersion, "Remove the file and install the plugins again.", "found %s, expected %q", shown(got), want)
	}
	list := doc.Get(keyPlugins)
	if !list.Truthy() {
		return p, nil
	}
	if list.Kind != pyvalue.List {
		return p, errorAt(list, keyPlugins, "", "must be a list, found %s", list.TypeName())
	}
	for i, item := range list.List {
		entry, err := parsePlugin(item, fmt.Sprintf("%s[%d]", keyPlugins, i))
		if err != nil {
			return p, err
		}
		p.Entries = append(p.Entries, entry)
	}
	return p, nil
}

// load reads the document as Python's reader does, softening what only we refuse.
func load(src []byte) (*pyvalue.Value, *Error) {
	doc, report := pyjson.Load(src, pyjson.Options{Policy: lenient()})
	if !report.OK() {
		v := report.Violations[0]
		return nil, &Error{Line: max(v.Line, 1), Column: max(v.Column, 1), Message: v.Message, Hint: "Correct the file at this place, or restore an earlier one."}
	}
	if doc.Kind != pyvalue.Map {
		return nil, errorAt(doc, "", "", "the document must be an object, found %s", doc.TypeName())
	}
	return doc, nil
}

// lenient is the policy under which a JSON document is read as the clients read it.
var lenient = sync.OnceValue(func() rule.Policy {
	p, err := rule.Soften("json.duplicate_key", "json.constant", "json.number", "json.depth", "json.string")
	if err != nil {
		panic(err)
	}
	return p
})

func parsePlugin(item *pyvalue.Value, field string) (Plugin, error) {
	if item.Kind != pyvalue.Map {
		return Plugin{}, errorAt(item, field, "", "must be an object, found %s", item.TypeName())
	}
	p := Plugin{item.Get(keyID), item.Get(keyVersion), item.Get(keyDigest)}
	var missing []string
	for _, f := range []struct {
		key   string
		value *pyvalue.Value
	}{{keyID, p.id}, {keyVersion, p.version}, {keyDigest, p.digest}} {
		if f.value == nil || f.value.TextOf() == "" {
			missing = append(missing, f.key)
		}
	}
	if len(missing) > 0 {
		return Plugin{}, errorAt(item, field, "", "missing or empty: %s", strings.Join(missing, ", "))
	}
	return p, nil
}

// shown is a value for a message.
func shown(v *pyvalue.Value) string {
	switch {
	case v == nil:
		return "nothing"
	case v.Kind == pyvalue.Str:
		return fmt.Sprintf("%.100q", v.Text)
	}
	return v.TypeName()
}

// Upsert puts an entry in place of all entries with its id and sorts the list by id.
func (p *Plugins) Upsert(entry Plugin) {
	p.Remove(entry.ID())
	p.Entries = append(p.Entries, entry)
	slices.SortStableFunc(p.Entries, func(a, b Plugin) int { return strings.Compare(a.ID(), b.ID()) })
}

// Remove takes out all entries of an id and reports whether there was one. With the last entry gone the clients
// remove the file.
func (p *Plugins) Remove(id string) bool {
	before := len(p.Entries)
	p.Entries = slices.DeleteFunc(p.Entries, func(e Plugin) bool { return e.id.Kind == pyvalue.Str && e.id.Text == id })
	return len(p.Entries) < before
}

// Encode is the file as the clients write it: two blanks a level, keys sorted, non-ASCII as it is, a newline at the
// end. It fails for a text with a lone surrogate, which no UTF-8 file holds.
func (p Plugins) Encode() ([]byte, error) {
	list := make([]any, len(p.Entries))
	for i, e := range p.Entries {
		list[i] = canonical.Object{{Key: keyDigest, Value: e.digest}, {Key: keyID, Value: e.id}, {Key: keyVersion, Value: e.version}}
	}
	text, err := canonical.Form{Indent: 2}.Encode(canonical.Object{
		{Key: keyAPIVersion, Value: p.Dialect.Names().PluginsLock}, {Key: keyPlugins, Value: list},
	})
	if err != nil {
		return nil, err
	}
	return append(text, '\n'), nil
}
