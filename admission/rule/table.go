package rule

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"sync"
)

var index = sync.OnceValue(func() map[ID]*Info {
	all := sorted()
	m := make(map[ID]*Info, len(all))
	for i := range all {
		if _, dup := m[all[i].ID]; dup {
			panic("rule listed twice: " + string(all[i].ID))
		}
		m[all[i].ID] = &all[i]
	}
	return m
})

// Lookup finds a rule in the table.
func Lookup(id ID) (Info, bool) {
	i, ok := index()[id]
	if !ok {
		return Info{}, false
	}
	return *i, true
}

// All lists the whole table, sorted by id.
func All() []Info { return slices.Clone(sorted()) }

var sorted = sync.OnceValue(func() []Info {
	var all []Info
	for _, family := range [][]Info{archiveRules, yamlRules, jsonRules, manifestRules, layoutRules, documentRules, suiteRules, publishRules, jobRules, submissionRules, submitRules, jobPackageRules, launchRules} {
		all = append(all, family...)
	}
	slices.SortFunc(all, func(a, b Info) int { return strings.Compare(string(a.ID), string(b.ID)) })
	return all
})

// Version names the table: 16 hex digits of a digest over what every rule checks, where, and with what effect. Two decisions
// that name one version were made by the same rules; wording of fixes and examples does not count.
func Version() string { return version() }

var version = sync.OnceValue(func() string {
	h := sha256.New()
	enc := json.NewEncoder(h)
	for _, i := range sorted() {
		// A hash takes every write, and an Info holds nothing that JSON can't.
		_ = enc.Encode([]any{i.ID, i.Title, i.Gates, i.Dialects, i.Severity, i.Ours, i.Fixed, i.OursIn, i.WarnIn, i.Class, i.Deployment})
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
})
