package strictjson

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

func (r *Reader) fault(k Kind, at int, format string, args ...any) *Fault {
	line, col := r.place(at)
	f := &Fault{Kind: k, Offset: at, Line: line, Column: col + 1}
	if r.faults[k]++; r.faults[k] <= maxTold {
		f.Path, f.Pointer, f.Message = r.path(), r.pointer(), fmt.Sprintf(format, args...)
	}
	return f
}

// place is the line of an offset and how many characters stand before it there. A long text may hold many faults, so counting
// goes on from the last one.
func (r *Reader) place(at int) (line, col int) {
	from := mark{r.colAt, r.col}
	switch {
	case at < r.colAt:
		return position(r.src, at)
	case r.last.at >= r.colAt && r.last.at <= at:
		from = r.last
	}
	r.last = mark{at, from.col + utf8.RuneCount(r.src[from.at:at])}
	return r.line, r.last.col
}

// maxTold is how many faults of a kind are told in words: that takes longer than to read on, and nobody looks at more.
const maxTold = 1000

// tolerate is nil when the options let reading go on past the fault.
func (r *Reader) tolerate(k Kind, at int, format string, args ...any) error {
	f := r.fault(k, at, format, args...)
	if r.opt.Tolerate != nil && r.opt.Tolerate(f) {
		return nil
	}
	return f
}

// path names the member being read; it is cut where it gets long.
func (r *Reader) path() string {
	var b strings.Builder
	for i := range r.stack {
		f := &r.stack[i]
		switch {
		case b.Len() > 400:
			b.WriteString("...")
			return b.String()
		case !f.object:
			fmt.Fprintf(&b, "[%d]", f.count)
		case f.key != "":
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(showKey(f.key))
		}
	}
	return b.String()
}

// maxPointer is how long a pointer may be: one that is cut off would name something else.
const maxPointer = 1000

var pointerEscaper = strings.NewReplacer("~", "~0", "/", "~1")

// pointer is the JSON pointer to the member being read.
func (r *Reader) pointer() string {
	var b strings.Builder
	for i := range r.stack {
		f := &r.stack[i]
		switch {
		case b.Len() > maxPointer:
			return ""
		case !f.object:
			fmt.Fprintf(&b, "/%d", f.count)
		case f.key != "":
			b.WriteString("/" + pointerEscaper.Replace(f.key))
		}
	}
	return b.String()
}

// showKey is a key as a path shows it: as it is when it is a plain word, else quoted.
func showKey(key string) string {
	plain := func(c rune) bool {
		return c == '_' || c == '-' || c == '/' || (c < 0x80 && (unicode.IsLetter(c) || unicode.IsDigit(c)))
	}
	if len(key) <= 100 && strings.IndexFunc(key, func(c rune) bool { return !plain(c) }) < 0 {
		return key
	}
	return fmt.Sprintf("%.100q", key)
}
