package lock

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gatehouse-registry/gatehouse/admission/catalogue"
	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
)

// State says how a recipe lock stands against a catalogue (recipes-and-locks.md 1.2).
type State string

// The states. The first three admit a submission.
const (
	Current         State = "current"          // nothing differs
	Compatible      State = "compatible"       // something differs, and nothing that the experiment depends on
	UpgradeAdvised  State = "upgrade_advised"  // its framework version will go
	Incompatible    State = "incompatible"     // something that it depends on is gone or has changed
	CoreIncompat    State = "sdk_incompatible" // the recipe excludes this client release
	RuntimeRemoved  State = "runtime_removed"  // its framework version is gone
	Malformed       State = "malformed"        // it can't be read, or names no recipe of the catalogue
	maxParamMessage       = 20                 // binding breaks that a message lists
)

// Admits reports whether an experiment with a lock in this state may be submitted.
func (s State) Admits() bool { return s == Current || s == Compatible || s == UpgradeAdvised }

// Subject is what Inspect looks at.
type Subject struct {
	Source    []byte               // the file's bytes; nil when there is no file
	Unread    error                // why the file could not be read; nil when it could
	Path      string               // of the file, as messages name it
	Command   string               // the experiment's name, as a hint names it
	Requested string               // the recipe that the caller asks for; "" is the one that the lock names
	Catalogue *catalogue.Catalogue // what this client release can submit, published packs included
}

// Change is a recorded field that differs from the catalogue.
type Change struct {
	Field   string `json:"field"`
	Locked  string `json:"locked"`
	Current string `json:"current"`
	Line    int    `json:"line,omitempty"` // where the lock records it; 0 when it does not
}

// Inspection is what Inspect found.
type Inspection struct {
	State            State    `json:"state"`
	Admits           bool     `json:"admits"`
	Path             string   `json:"path"`
	Recipe           string   `json:"recipe"`
	FrameworkVersion string   `json:"framework_version"` // the locked one, else the default
	Changes          []Change `json:"changes"`
	Breaks           []string `json:"breaks,omitempty"` // what the experiment depends on and the catalogue no longer has
	Message          string   `json:"message"`

	subject Subject
	lock    *Recipe          // nil when it can't be read
	entry   *catalogue.Entry // nil when the catalogue has no such recipe
	err     *Error           // why it is malformed, when that is at one place
}

// Lock is the lock that was read, nil when it can't be.
func (i Inspection) Lock() *Recipe { return i.lock }

// Entry is the catalogue's recipe; ok is false when it has none.
func (i Inspection) Entry() (e catalogue.Entry, ok bool) {
	if i.entry == nil {
		return e, false
	}
	return *i.entry, true
}

// Fault is the place of what can't be read, nil when the state comes from something else.
func (i Inspection) Fault() *Error { return i.err }

// Inspect decides the state of a lock. It never fails: what can't be read is Malformed.
func Inspect(s Subject) Inspection {
	i := Inspection{Path: s.Path, Recipe: s.Requested, Changes: []Change{}, subject: s}
	if s.Unread != nil {
		return i.malformed("%v", s.Unread)
	}
	if s.Source == nil {
		return i.malformed("the experiment has no %s; sf new makes one with the experiment", RecipeFile)
	}
	lock, err := readRecipe(s.Source, s.Catalogue.Dialect())
	if err != nil {
		return i.malformedAt(err)
	}
	i.lock = lock
	requested := pyvalue.Strip(s.Requested)
	if i.Recipe = requested; requested == "" {
		i.Recipe = lock.Name
	}
	named := lock.places[fieldName]
	switch {
	case i.Recipe == "":
		return i.malformedAt(errorAt(named, fieldName, "", "is missing or empty"))
	case requested != "" && lock.Name != "" && lock.Name != requested:
		return i.malformedAt(errorAt(named, fieldName, "", "found %.100q, expected %.100q as asked for", lock.Name, requested))
	}
	entry, ok := s.Catalogue.Lookup(i.Recipe)
	if !ok {
		return i.malformedAt(errorAt(named, fieldName, "If it was published, sf recipe sync fetches it.", "the recipe %.100q is not in the catalogue of %s %s%s",
			i.Recipe, s.Catalogue.Dialect(), s.Catalogue.Release(), s.Catalogue.Near(i.Recipe)))
	}
	i.entry = &entry
	i.FrameworkVersion = lock.FrameworkVersion
	return i.decide(entry)
}

func (i Inspection) malformed(format string, args ...any) Inspection {
	i.State, i.Message = Malformed, fmt.Sprintf(format, args...)
	i.FrameworkVersion, i.lock = "", nil
	return i
}

func (i Inspection) malformedAt(at *Error) Inspection {
	i.err = at
	return i.malformed("%s", at.in(i.Path))
}

// decide is Inspect for a lock and the recipe that it names.
func (i Inspection) decide(entry catalogue.Entry) Inspection {
	release := i.subject.Catalogue.Release()
	if why := outOfRange(entry, release); why != "" {
		return i.as(CoreIncompat, "%s: %s", i.Path, why)
	}
	locked := i.lock.FrameworkVersion
	variant, known := entry.Variant(locked)
	if locked != "" && !known {
		i.Changes = i.compare(entry, entry.DefaultVersion)
		return i.as(RuntimeRemoved, "%s: the catalogue no longer has %s %.100q; it has %s. Run sf recipe upgrade %s --accept-runtime-change, or name one with --framework-version",
			i.where(fieldFrameworkVersion), entry.Framework, locked, strings.Join(entry.Supported(), ", "), i.subject.Command)
	}
	if locked == "" {
		i.FrameworkVersion = entry.DefaultVersion
	}
	i.Changes = i.compare(entry, i.FrameworkVersion)
	i.Breaks = breaks(i.lock.Bindings, entry)
	what := slices.Clone(i.Breaks[:min(len(i.Breaks), maxParamMessage)])
	for _, c := range i.Changes {
		if blocks(c) {
			what = append(what, fmt.Sprintf("%s was %s and is %s", c.Field, c.Locked, orNothing(c.Current)))
		}
	}
	switch {
	case len(what) > 0:
		return i.as(Incompatible, "%s depends on what the catalogue no longer offers: %s. Run sf recipe upgrade %s and look at the config again",
			i.Path, strings.Join(what, "; "), i.subject.Command)
	case locked != "" && variant.Status == catalogue.Deprecated:
		return i.as(UpgradeAdvised, "%s %s is deprecated%s; a submission still goes through. Move to %s before it is gone",
			entry.Framework, locked, until(variant.Sunset), entry.DefaultVersion)
	case len(i.Changes) > 0:
		return i.as(Compatible, "%s records an older form of %s; nothing that the experiment depends on has changed", i.Path, i.Recipe)
	}
	return i.as(Current, "%s has what the catalogue has", i.Path)
}

func (i Inspection) as(state State, format string, args ...any) Inspection {
	i.State, i.Admits, i.Message = state, state.Admits(), fmt.Sprintf(format, args...)
	return i
}

// where is the lock's path with the line of a field.
func (i Inspection) where(label string) string {
	if v := i.lock.places[label]; v != nil && v.Line > 0 {
		return fmt.Sprintf("%s:%d:%d: %s", i.Path, v.Line, v.Column, label)
	}
	return i.Path + ": " + label
}

// Advisory is what to tell a user whose lock admits and is not current; "" in every other state.
func (i Inspection) Advisory() string {
	switch i.State {
	case UpgradeAdvised:
		return i.Message
	case Compatible:
		var names []string
		for _, c := range i.Changes {
			names = append(names, c.Field)
		}
		return fmt.Sprintf("%s (%s); sf recipe upgrade %s records the new one", i.Message, strings.Join(names, ", "), i.subject.Command)
	}
	return ""
}

// outOfRange says why a recipe excludes a client release; "" when it does not.
func outOfRange(e catalogue.Entry, release string) string {
	if e.CoreRequires == "" {
		return ""
	}
	in, err := catalogue.InRange(release, e.CoreRequires)
	switch {
	case err != nil:
		return fmt.Sprintf("the recipe %s %s requires the client %.100q, which can't be compared with %.100q: %v", e.Name, e.Version, e.CoreRequires, release, err)
	case !in:
		return fmt.Sprintf("the recipe %s %s requires the client %.100q, this is %s", e.Name, e.Version, e.CoreRequires, release)
	}
	return ""
}

// compare lists the fields that differ from what a lock of the version would record. A fact that the catalogue does not
// know differs from nothing.
func (i Inspection) compare(e catalogue.Entry, version string) []Change {
	want := recorded(i.subject.Catalogue, e, version)
	changes := []Change{}
	for _, f := range fields {
		locked, current := *f.of(i.lock), *f.of(want)
		unknown := current == "" && (f.label == fieldManifestDigest || f.label == fieldTemplateDigest)
		if locked == current || unknown {
			continue
		}
		c := Change{Field: f.label, Locked: locked, Current: current}
		if v := i.lock.places[f.label]; v != nil {
			c.Line = v.Line
		}
		changes = append(changes, c)
	}
	return changes
}

// blocks reports whether a change stops a submission: only what a job is started from does, and only when the lock recorded it.
func blocks(c Change) bool {
	return c.Locked != "" && (c.Field == fieldName || c.Field == fieldFramework || c.Field == fieldRuntimeID)
}

// breaks lists what the bindings name and the recipe no longer offers as it was. A recipe whose parameters are not known
// breaks none.
func breaks(b *Bindings, e catalogue.Entry) []string {
	if b == nil {
		return nil
	}
	var list []string
	for _, was := range b.Params {
		if e.Params == nil {
			break
		}
		now, ok := e.Params.Get(was.Name)
		if !ok {
			list = append(list, fmt.Sprintf("the parameter %s is gone from %s", pyvalue.Quote(was.Name), e.Name))
			continue
		}
		if was.Path != "" && now.Path != "" && was.Path != now.Path {
			list = append(list, fmt.Sprintf("the parameter %s moved from %s to %s", pyvalue.Quote(was.Name), was.Path, now.Path))
		}
		if was.Type != "" && now.Type != "" && was.Type != now.Type {
			list = append(list, fmt.Sprintf("the parameter %s changed its type from %s to %s", pyvalue.Quote(was.Name), was.Type, now.Type))
		}
	}
	if was := b.Entrypoint; was != nil && e.Entrypoint != nil && was.Kind != "" && was.Value != "" {
		if now := (Entrypoint{e.Entrypoint.Kind, e.Entrypoint.Value}); *was != now {
			list = append(list, fmt.Sprintf("the entrypoint moved from %s:%s to %s:%s", was.Kind, was.Value, now.Kind, now.Value))
		}
	}
	return list
}

func until(sunset string) string {
	if sunset == "" {
		return ""
	}
	return " and goes after " + sunset
}

func orNothing(s string) string {
	if s == "" {
		return "not there"
	}
	return s
}
