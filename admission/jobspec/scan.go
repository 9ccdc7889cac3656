package jobspec

import (
	"fmt"
	"math"
	"math/big"
	"strings"

	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/internal/pattern"
)

// scanned is what a look at every value of a document finds, wherever it stands.
type scanned struct {
	numbers []rule.Violation // integers that no double holds: the clients' parser crashes on some, and no digest has a form for them
	secrets []rule.Violation // texts that look like credentials
}

// scanTree looks at every value below root. JSON values form a tree, so it ends.
func scanTree(root node) scanned {
	var s scanned
	s.walk(root)
	return s
}

func (s *scanned) walk(n node) {
	switch n.v.Kind {
	case pyvalue.Int:
		if n.v.Int.BitLen() > 1000 {
			s.number(n)
		}
	case pyvalue.Str:
		if kind := credential(n.v.Text); kind != "" && len(s.secrets) < maxFindings {
			s.secrets = append(s.secrets, n.violation("job.secret.token", fmt.Sprintf("the text looks like %s (it is not shown here)", kind)))
		}
	case pyvalue.List:
		for i, v := range n.v.List {
			s.walkChild(v, func() node { return n.item(i, v) })
		}
	case pyvalue.Map:
		for _, it := range n.v.Items {
			s.walkChild(it.Value, func() node { return n.child(it.Key.Text, it.Value) })
		}
	}
}

// walkChild makes the child's place only where something may be found: most values are short and harmless.
func (s *scanned) walkChild(v *pyvalue.Value, place func() node) {
	switch v.Kind {
	case pyvalue.List, pyvalue.Map:
	case pyvalue.Int:
		if v.Int.BitLen() <= 1000 {
			return
		}
	case pyvalue.Str:
		if credential(v.Text) == "" {
			return
		}
	default:
		return
	}
	s.walk(place())
}

func (s *scanned) number(n node) {
	if f, _ := new(big.Float).SetInt(n.v.Int).Float64(); math.IsInf(f, 0) && len(s.numbers) < maxFindings {
		s.numbers = append(s.numbers, n.violation("job.json.number", "found "+show(n.v)+", expected one within the range of a double"))
	}
}

// minCredential is the length of the shortest text that credentials looks at.
const minCredential = 20

// credentials are the forms of well-known tokens, with the words that a warning uses for them. A text without the mark is
// not looked at further: most texts of a document have none.
var credentials = []struct {
	mark string
	form pattern.Pattern
	kind string
}{
	{"hf_", pattern.New(`\bhf_[A-Za-z0-9]{20,}`), "a Hugging Face token"},
	{"sk-", pattern.New(`\bsk-[A-Za-z0-9_-]{20,}`), "an API key"},
	{"gh", pattern.New(`\bgh[pousr]_[A-Za-z0-9]{20,}`), "a GitHub token"},
	{"github_pat_", pattern.New(`\bgithub_pat_[A-Za-z0-9_]{20,}`), "a GitHub token"},
	{"glpat-", pattern.New(`\bglpat-[A-Za-z0-9_-]{20,}`), "a GitLab token"},
	{"xox", pattern.New(`\bxox[abeprs]-[A-Za-z0-9-]{16,}`), "a Slack token"},
	{"AKIA", pattern.New(`\bAKIA[A-Z0-9]{16}\b`), "an AWS access key"},
	{"ASIA", pattern.New(`\bASIA[A-Z0-9]{16}\b`), "an AWS access key"},
	{"-----BEGIN ", pattern.New(`-----BEGIN [A-Z ]*PRIVATE KEY-----`), "a private key"},
}

// credential says what kind of credential a text holds, "" when none shows.
func credential(text string) string {
	if len(text) < minCredential {
		return ""
	}
	for _, c := range credentials {
		if strings.Contains(text, c.mark) && c.form.MatchString(text) {
			return c.kind
		}
	}
	return ""
}

// WithoutUserinfo is an address without the user name and password in front of its host, for messages and comparisons.
func WithoutUserinfo(address string) string {
	if !hasUserinfo(address) {
		return address
	}
	scheme, rest, ok := strings.Cut(address, "://")
	if !ok {
		scheme, rest = "", address
	} else {
		scheme += "://"
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	return scheme + rest[strings.LastIndexByte(rest[:end], '@')+1:]
}

// hasUserinfo reports whether an address, with a scheme or without, begins with user:password@. What follows the
// '@' of an image's digest is no host.
func hasUserinfo(address string) bool {
	if _, rest, ok := strings.Cut(address, "://"); ok {
		address = rest
	}
	if end := strings.IndexAny(address, "/?#"); end >= 0 {
		address = address[:end]
	}
	at := strings.LastIndexByte(address, '@')
	if at < 0 || strings.HasPrefix(address[at+1:], "sha256:") {
		return false
	}
	user, password, ok := strings.Cut(address[:at], ":")
	return ok && user != "" && password != ""
}
