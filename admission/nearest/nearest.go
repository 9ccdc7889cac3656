// Package nearest finds the known words that an unknown one was meant to be, so that a refusal can name them.
package nearest

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxWord bounds the words that are compared: a longer one was not mistyped but made up.
const maxWord = 128

// How a word is near to a known one, from what is most likely meant to what is least.
const (
	same       = iota // but for case
	beginsWith        // a short word that is the first parts of the known one: gpus, gpus_per_node
	mistyped          // few letters differ
	holdsPart         // one is some of the parts of the other: every, every_steps
	holds             // one is a piece of the other
	begins            // both begin alike and one ends soon after: hyperparameters, hyperparams
	initials          // the first letters of the known one's parts: lr, learning_rate
	firstPart         // the known one's first part is one of the word's: num_gpus, gpus_per_node
	far
)

// likeness says how near a known word is: by its kind, then by its cost.
type likeness struct {
	word       string
	kind, cost int
}

// Word is the known word that is nearest to word, case aside; "" when none is near.
func Word(word string, known []string) string {
	if near := Words(word, known, 1); len(near) > 0 {
		return near[0]
	}
	return ""
}

// Mistyped is the known word that differs least from word, case aside: at most a third of its letters may differ, and at
// most three, or a short word is its beginning. It is "" when there is none.
func Mistyped(word string, known []string) string {
	if near := likes(word, known); len(near) > 0 && near[0].kind <= mistyped {
		return near[0].word
	}
	return ""
}

// Words are at most n known words that are near to word, the nearest first: those that differ in few letters, then those
// that hold it or are held by it, that begin like it, and that it abbreviates.
func Words(word string, known []string, n int) []string {
	near := likes(word, known)
	words := make([]string, 0, min(n, len(near)))
	for _, l := range near[:min(n, len(near))] {
		words = append(words, l.word)
	}
	return words
}

// likes are the known words that are near, the nearest first; equally near ones in the order given.
func likes(word string, known []string) []likeness {
	if len(word) > maxWord {
		return nil
	}
	var near []likeness
	lower := strings.ToLower(strings.TrimSpace(word))
	for _, k := range known {
		if len(k) > maxWord {
			continue
		}
		if kind, cost := compare(lower, strings.ToLower(k)); kind < far {
			near = append(near, likeness{k, kind, cost})
		}
	}
	slices.SortStableFunc(near, func(a, b likeness) int {
		return cmp.Or(a.kind-b.kind, a.cost-b.cost)
	})
	return near
}

// compare says how near two words in lower case are.
func compare(word, known string) (kind, cost int) {
	most := max(1, min(3, len(known)/3))
	d := most + 1
	if apart := utf8.RuneCountInString(word) - utf8.RuneCountInString(known); -most <= apart && apart <= most {
		d = distance(word, known) // which is at least apart, and is the costly part
	}
	switch {
	case d == 0:
		return same, 0
	case len(word) >= 3 && len(word) <= shortWord && strings.HasPrefix(known, word) && edge(known, len(word)):
		return beginsWith, len(known)
	case d <= most:
		return mistyped, d
	}
	short, long := word, known
	if len(short) > len(long) {
		short, long = long, short
	}
	more := len(long) - len(short)
	switch at := strings.Index(long, short); {
	case len(short) < 3:
	case at >= 0 && edge(long, at) && edge(long, at+len(short)):
		return holdsPart, more
	case at == 0, at > 0 && len(short) >= 4 && 2*len(short) >= len(long):
		return holds, more
	case beginAlike(short, long):
		return begins, more
	}
	if len(word) >= 2 && word == firstLetters(known) {
		return initials, len(known)
	}
	if sharesFirstPart(word, known) {
		return firstPart, len(known)
	}
	return far, 0
}

// shortWord is how many letters a word has at most of which a single one makes another word: gpus, cpus.
const shortWord = 5

// sharesFirstPart reports whether the first of several parts of a known word is one of the word's, a final s aside.
func sharesFirstPart(word, known string) bool {
	parts := partsOf(known)
	if len(parts) < 2 || len(parts[0]) < 3 || strings.Contains(known, "/") { // an owner's name says nothing
		return false
	}
	first := strings.TrimSuffix(parts[0], "s")
	return slices.ContainsFunc(partsOf(word), func(part string) bool { return strings.TrimSuffix(part, "s") == first })
}

func partsOf(s string) []string {
	return strings.FieldsFunc(s, func(c rune) bool { return strings.ContainsRune(separators, c) })
}

// separators stand between the parts of a word.
const separators = "_-./ "

// edge reports whether a part of s begins or ends at i.
func edge(s string, i int) bool {
	return i == 0 || i == len(s) || strings.IndexByte(separators, s[i]) >= 0 || strings.IndexByte(separators, s[i-1]) >= 0
}

// beginAlike reports whether all but the last two letters of the shorter word begin the longer one, in the same part.
func beginAlike(short, long string) bool {
	same := 0
	for same < len(short) && short[same] == long[same] {
		same++
	}
	return same >= 5 && len(short)-same <= 2 && !strings.ContainsAny(short[same-1:]+long[same-1:], separators)
}

// firstLetters are the first letters of a word's parts, "" for a word of one part.
func firstLetters(s string) string {
	parts := partsOf(s)
	if len(parts) < 2 {
		return ""
	}
	letters := make([]rune, len(parts))
	for i, part := range parts {
		letters[i] = []rune(part)[0]
	}
	return string(letters)
}

// distance counts the insertions, deletions, substitutions and swaps of neighbours between two words.
func distance(a, b string) int {
	s, t := []rune(a), []rune(b)
	before, last, row := make([]int, len(t)+1), make([]int, len(t)+1), make([]int, len(t)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(s); i++ {
		row[0] = i
		for j := 1; j <= len(t); j++ {
			cost := 1
			if s[i-1] == t[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && s[i-1] == t[j-2] && s[i-2] == t[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(t)]
}
