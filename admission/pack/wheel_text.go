package pack

import (
	"fmt"
	"strings"

	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
)

// parseHeaders reads the header lines of a METADATA document, the first of each name, names in lower case.
func parseHeaders(text string) map[string]string {
	headers := make(map[string]string)
	last := ""
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimSuffix(line, "\r")
		if line == "" {
			break
		}
		if (line[0] == ' ' || line[0] == '\t') && last != "" {
			headers[last] += "\n" + line
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok || strings.ContainsFunc(name, notHeaderRune) {
			break
		}
		name = strings.ToLower(name)
		if last = ""; headers[name] == "" {
			headers[name], last = strings.TrimLeft(value, " \t"), name
		}
	}
	return headers
}

// notHeaderRune reports whether r can't stand in the name of a header.
func notHeaderRune(r rune) bool { return r <= ' ' || r > '~' }

// entryPoints lists the values of the entry points of that group and name in an entry_points.txt.
func entryPoints(text, group, name string) ([]string, error) {
	var values []string
	section, inSection := "", false
	for _, line := range strings.FieldsFunc(text, isLineBreak) {
		line = pyvalue.Strip(line)
		if line == "" || line[0] == '#' {
			continue
		}
		if strings.HasPrefix(line, "[") && strings.HasSuffix(line, "]") {
			section, inSection = strings.Trim(line, "[]"), true
			continue
		}
		if !inSection {
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok {
			return nil, fmt.Errorf("its entry_points.txt has the line %.100q; expected name = module:callable", line)
		}
		if section == group && pyvalue.Strip(key) == name {
			values = append(values, pyvalue.Strip(value))
		}
	}
	return values, nil
}

// isLineBreak reports whether Python's str.splitlines ends a line at r.
func isLineBreak(r rune) bool {
	switch r {
	case '\n', '\r', '\v', '\f', 0x1C, 0x1D, 0x1E, 0x85, 0x2028, 0x2029:
		return true
	}
	return false
}

// parseEntryPoint reads module[:attribute] [extras].
func parseEntryPoint(value string) (module string, extras, ok bool) {
	rest := strings.TrimLeftFunc(value, func(r rune) bool { return isWordRune(r) || r == '.' })
	module = value[:len(value)-len(rest)]
	rest = strings.TrimLeftFunc(rest, pyvalue.IsSpace)
	if after, found := strings.CutPrefix(rest, ":"); found {
		after = strings.TrimLeftFunc(after, pyvalue.IsSpace)
		rest = strings.TrimLeftFunc(after, func(r rune) bool { return isWordRune(r) || r == '.' })
		if len(rest) == len(after) {
			return "", false, false
		}
		rest = strings.TrimLeftFunc(rest, pyvalue.IsSpace)
	}
	if strings.HasPrefix(rest, "[") && strings.HasSuffix(rest, "]") {
		return module, strings.ContainsFunc(rest, isWordRune), module != ""
	}
	return module, false, module != "" && rest == ""
}
