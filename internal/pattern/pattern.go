// Package pattern is regular expressions that are compiled when they are first used: a program that starts to do one thing
// does not compile those of all others.
package pattern

import (
	"regexp"
	"sync"
)

// Pattern is a regular expression. It is safe for concurrent use.
type Pattern struct{ compiled func() *regexp.Regexp }

// New gives the pattern of an expression. Its first use panics when the expression is none.
func New(expr string) Pattern {
	return Pattern{sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })}
}

// MatchString is that of regexp.
func (p Pattern) MatchString(s string) bool { return p.compiled().MatchString(s) }

// FindStringSubmatch is that of regexp.
func (p Pattern) FindStringSubmatch(s string) []string { return p.compiled().FindStringSubmatch(s) }

// FindAllIndex is that of regexp.
func (p Pattern) FindAllIndex(b []byte, n int) [][]int { return p.compiled().FindAllIndex(b, n) }
