package rule

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"sync"
)

// families are the parts of the table.
var families = [][]Info{archiveRules, yamlRules, jsonRules, manifestRules, layoutRules, documentRules, suiteRules, publishRules, jobRules, submissionRules, submitRules, jobPackageRules, launchRules}

var index = sync.OnceValue(func() map[ID]*Info {
	n := 0
	for _, family := range families {
		n += len(family)
	}
	m := make(map[ID]*Info, n)
	for _, family := range families {
		for i := range family {
			if _, dup := m[family[i].ID]; dup {
				panic("rule listed twice: " + string(family[i].ID))
			}
			m[family[i].ID] = &family[i]
		}
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
	all := slices.Concat(families...)
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
