package archive

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/gatehouse-registry/gatehouse/admission/limit"
)

// extended is what the headers before a member's own say about it.
type extended struct {
	records  map[string]string // of a PAX header, nil when there was none
	longName *string           // of GNU
	longLink *string
}

func (x *extended) empty() bool { return x.records == nil && x.longName == nil && x.longLink == nil }

// add takes an extended header and its data.
func (x *extended) add(h header, data []byte, at string) *fault {
	twice := func(what string) *fault {
		return faultf("archive.header.extended", "%s has two %s", at, what)
	}
	switch h.typeflag {
	case 'x':
		if x.records != nil {
			return twice("PAX headers")
		}
		records, f := parsePAX(data, at)
		x.records = records
		return f
	case 'L':
		if x.longName != nil {
			return twice("GNU long names")
		}
		name, f := longText(data, at)
		x.longName = &name
		return f
	default:
		if x.longLink != nil {
			return twice("GNU long links")
		}
		link, f := longText(data, at)
		x.longLink = &link
		return f
	}
}

// longText is a GNU long name or link: text and a NUL.
func longText(data []byte, at string) (string, *fault) {
	name, ok := text(data)
	if !ok {
		return "", faultf("archive.header.extended", "%s has a GNU long name or link that holds a NUL: %.100q", at, data)
	}
	return name, nil
}

// The keys that clients write. Only path, linkpath and size mean anything to us.
var ordinaryKeys = []string{"path", "linkpath", "size", "mtime", "atime", "ctime", "uid", "gid", "uname", "gname"}

// parsePAX reads the records "<length> <key>=<value>\n" of a PAX header.
func parsePAX(data []byte, at string) (map[string]string, *fault) {
	records := make(map[string]string)
	for len(data) > 0 {
		record, rest, ok := cutRecord(data)
		if !ok {
			return nil, faultf("archive.header.extended", "%s has a malformed PAX record %.60q", at, data)
		}
		key, value, ok := strings.Cut(record, "=")
		_, twice := records[key]
		switch {
		case !ok || key == "" || strings.ContainsRune(key, 0):
			return nil, faultf("archive.header.extended", "%s has a PAX record without a key: %.60q", at, record)
		case twice:
			return nil, faultf("archive.header.extended", "%s has the PAX key %.60q twice", at, key)
		case value == "":
			return nil, faultf("archive.header.extended", "%s has the PAX key %.60q without a value, which readers take for different things", at, key)
		case key == "hdrcharset":
			return nil, faultf("archive.header.extended", "%s sets the character set of its names (hdrcharset %.40q)", at, value)
		}
		records[key] = value
		data = rest
	}
	return records, checkNumbers(records, at)
}

// cutRecord cuts off the first record, without its length and its newline.
func cutRecord(data []byte) (record string, rest []byte, ok bool) {
	digits, _, ok := bytes.Cut(data[:min(len(data), 20)], []byte{' '})
	n, err := strconv.ParseUint(string(digits), 10, 31)
	if !ok || err != nil || digits[0] == '0' {
		return "", nil, false
	}
	begin, end := len(digits)+1, int(n)
	if end > len(data) || end < begin+1 || data[end-1] != '\n' {
		return "", nil, false
	}
	return string(data[begin : end-1]), data[end:], true
}

// checkNumbers makes sure that the records that readers take for numbers are numbers.
func checkNumbers(records map[string]string, at string) *fault {
	for _, key := range []string{"size", "uid", "gid", "mtime", "atime", "ctime"} {
		value, ok := records[key]
		if !ok {
			continue
		}
		number := value
		if key != "size" {
			number = strings.TrimPrefix(number, "-")
			whole, fraction, dot := strings.Cut(number, ".")
			if number = whole; dot && strings.Trim(fraction, "0123456789") != "" {
				number = ""
			}
		}
		if number == "" || len(number) > 18 || strings.Trim(number, "0123456789") != "" {
			return faultf("archive.header.number", "%s has the PAX %s %.40q, expected a decimal number", at, key, value)
		}
	}
	return nil
}

// apply makes of a header and what stood before it the member that readers see.
func (x *extended) apply(h header, m *member, at string) *fault {
	m.path, m.link = h.name, h.link
	if x.records != nil && (x.longName != nil || x.longLink != nil) {
		return faultf("archive.header.extended", "%s has a PAX header and a GNU long name", at)
	}
	if h.gnu && x.records != nil || !h.gnu && (x.longName != nil || x.longLink != nil) {
		return faultf("archive.header.extended", "%s mixes the POSIX and the GNU format", at)
	}
	if x.longName != nil {
		m.path = *x.longName
	}
	if x.longLink != nil {
		m.link = *x.longLink
	}
	if path, ok := x.records["path"]; ok {
		m.path = path
	}
	if link, ok := x.records["linkpath"]; ok {
		m.link = link
	}
	if size, ok := x.records["size"]; ok {
		n, _ := strconv.ParseInt(size, 10, 64)
		if n > limit.Unpacked {
			return faultf("archive.limit.unpacked", "%s has %d bytes, at most %d are allowed", at, n, limit.Unpacked)
		}
		if n != h.size {
			return faultf("archive.header.size", "%s has %d bytes by its header and %d by its PAX header", at, h.size, n)
		}
	}
	x.judgeKeys(m)
	return nil
}

// judgeKeys notes the keys that are not ordinary.
func (x *extended) judgeKeys(m *member) {
	var odd []string
	sparse := false
	for key := range x.records {
		if strings.HasPrefix(key, "GNU.sparse.") {
			sparse = true
		} else if !slices.Contains(ordinaryKeys, key) {
			odd = append(odd, key)
		}
	}
	if sparse {
		size, _ := strconv.ParseInt(cmp.Or(x.records["GNU.sparse.realsize"], x.records["GNU.sparse.size"]), 10, 64)
		m.sparse(size)
	}
	slices.Sort(odd)
	if n := len(odd); n > 5 {
		odd = append(odd[:5], "…")
	}
	if len(odd) > 0 {
		m.note("archive.header.key", "its PAX header has the keys %.200q", strings.Join(odd, ", "))
	}
}

// sparse notes a sparse file that unpacks to size bytes; 0 is unknown.
func (m *member) sparse(size int64) {
	m.note("archive.type.sparse", "it is stored as a sparse file")
	if size > limit.Unpacked {
		m.note("archive.limit.unpacked", "it unpacks to %d bytes, at most %d are allowed", size, limit.Unpacked)
	}
}
