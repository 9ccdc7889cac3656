package denylist

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

var errReason = errors.New("a reason is needed, on one line")

// CheckReason says what is wrong with the reason of a revocation: it is one line of 1 to MaxReason bytes.
func CheckReason(reason string) error {
	switch {
	case strings.TrimSpace(reason) == "":
		return errReason
	case len(reason) > MaxReason:
		return fmt.Errorf("the reason has %d bytes, at most %d allowed", len(reason), MaxReason)
	case !utf8.ValidString(reason) || strings.ContainsFunc(reason, unicode.IsControl):
		return errReason
	}
	return nil
}
