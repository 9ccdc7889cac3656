// Package nearest finds the known word that an unknown one was meant to be, so that a refusal can name it.
package nearest

import "strings"

// maxWord bounds the words that are compared: a longer one was not mistyped but made up.
const maxWord = 128

// Word is the known word that differs least from word, case aside; "" when none is near. At most a third of a known
// word's letters may differ, and at most three.
func Word(word string, known []string) string {
	if len(word) > maxWord {
		return ""
	}
	best, least := "", 0
	for _, k := range known {
		if len(k) > maxWord {
			continue
		}
		limit := max(1, min(3, len(k)/3))
		if d := distance(strings.ToLower(word), strings.ToLower(k)); d <= limit && (best == "" || d < least) {
			best, least = k, d
		}
	}
	return best
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
