package denylist

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

var errReason = errors.New("a reason is needed, on one line")

// CheckReason says what is wrong with the reason of a revocation: it is one line of 1 to MaxReason bytes as the list writes it,
// so that a list of MaxEntries can be signed whatever the reasons are.
func CheckReason(reason string) error {
	if err := checkReason(reason); err != nil {
		return err
	}
	written, err := encode(reason)
	if n := len(written) - len(`""`); err == nil && n > MaxReason {
		err = fmt.Errorf("the reason has %d bytes with \\ before each \" and \\, at most %d allowed", n, MaxReason)
	}
	return err
}

// checkReason is CheckReason for a reason that was revoked with.
func checkReason(reason string) error {
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

// encode is JSON as a list is written, which leaves <, > and & as they are.
func encode(v any) ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), err
}
