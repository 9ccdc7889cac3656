package registry

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxShown bounds a name in a text, in bytes.
const maxShown = 300

// Shown is a name that came from outside as a message may hold it: as it is when it is plain and short, else in quotes,
// escaped and cut.
func Shown(name string) string {
	if len(name) > maxShown || strings.ContainsFunc(name, func(r rune) bool { return r == utf8.RuneError || !strconv.IsPrint(r) }) {
		return fmt.Sprintf("%.*q", maxShown, name)
	}
	return name
}

// maxAuditDetail bounds the detail of an audit row, in bytes: whoever is refused must not fill the disk with it.
const maxAuditDetail = 4096

// auditText is a text as an audit row keeps it.
func auditText(s string) string {
	if len(s) > maxAuditDetail {
		s = s[:maxAuditDetail] + " (cut)"
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
