package pyvalue

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// dateParts is what Python's str() of a date or a date-time says.
type dateParts struct {
	fields []int // year, month, day, and of a date-time hour, minute, second
	micro  int
	aware  bool          // there is an offset from UTC
	offset time.Duration // east of UTC
}

// parseDate reads "2024-01-01", "2024-01-01 10:00:00", with ".000001" and with "+05:30".
func parseDate(s string) dateParts {
	var d dateParts
	day, clock, timed := strings.Cut(s, " ")
	d.fields = numbers(day, "-")
	if !timed {
		return d
	}
	if i := strings.IndexAny(clock, "+-"); i >= 0 {
		d.aware = true
		sign := time.Duration(1)
		if clock[i] == '-' {
			sign = -1
		}
		units := []time.Duration{time.Hour, time.Minute, time.Second}
		for n, v := range numbers(clock[i+1:], ":") {
			d.offset += sign * time.Duration(v) * units[min(n, 2)]
		}
		clock = clock[:i]
	}
	clock, micro, _ := strings.Cut(clock, ".")
	d.micro, _ = strconv.Atoi(micro)
	d.fields = append(d.fields, numbers(clock, ":")...)
	return d
}

func numbers(s, sep string) []int {
	var out []int
	for part := range strings.SplitSeq(s, sep) {
		n, _ := strconv.Atoi(part)
		out = append(out, n)
	}
	return out
}

// instant is a date-time's place in time, its offset taken off.
func (d dateParts) instant() time.Time {
	f := append([]int{}, d.fields...)
	for len(f) < 6 {
		f = append(f, 0)
	}
	return time.Date(f[0], time.Month(f[1]), f[2], f[3], f[4], f[5], d.micro*1000, time.UTC).Add(-d.offset)
}

// dateRepr writes datetime.date(2024, 1, 1) and the like.
func dateRepr(v *Value) string {
	d := parseDate(v.Text)
	fields := d.fields
	if v.Kind == Date {
		return "datetime.date(" + join(fields) + ")"
	}
	switch {
	case d.micro != 0:
		fields = append(fields, d.micro)
	case len(fields) == 6 && fields[5] == 0:
		fields = fields[:5]
	}
	zone := ""
	if d.aware {
		zone = ", tzinfo=" + zoneRepr(d.offset)
	}
	return "datetime.datetime(" + join(fields) + zone + ")"
}

// zoneRepr writes an offset the way Python shows it: days may be negative, seconds never are.
func zoneRepr(offset time.Duration) string {
	switch secs := int(offset / time.Second); {
	case secs == 0:
		return "datetime.timezone.utc"
	case secs < 0:
		return fmt.Sprintf("datetime.timezone(datetime.timedelta(days=-1, seconds=%d))", secs+86400)
	default:
		return fmt.Sprintf("datetime.timezone(datetime.timedelta(seconds=%d))", secs)
	}
}

func join(fields []int) string {
	texts := make([]string, len(fields))
	for i, f := range fields {
		texts[i] = strconv.Itoa(f)
	}
	return strings.Join(texts, ", ")
}
