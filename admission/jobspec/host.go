package jobspec

import (
	"math"
	"strings"

	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/internal/pattern"
)

// atMost bounds an integer; what is no integer is somebody else's breach.
func (r *reader) atMost(n node, most int64, id rule.ID) bool {
	if exceeds(n.v, most) {
		r.bad(n, id, "found %s, expected at most %d", show(n.v), most)
		return false
	}
	return true
}

// cpuOnly reads what a tuneplane pool without GPUs must say, in the strict form that holds there.
func (r *reader) cpuOnly(m node, p *Pool) bool {
	ok := true
	if p.Series != "" {
		r.bad(m.get("series"), "job.resources.pool.cpu_only.series", "found %.100q, expected no series where there are no GPUs", p.Series)
		ok = false
	}
	for _, key := range []string{"cpus", "memory_gb"} {
		n := m.get(key)
		if n.absent() {
			r.expected(n, "job.resources.pool.cpu_only.host", "a whole number above 0")
			ok = false
		} else if !exceeds(n.v, maxHost) {
			_, whole := r.positive(n, "job.resources.pool.cpu_only.host", 0)
			ok = ok && whole
		}
	}
	if n := m.get("scratch_gb"); !exceeds(n.v, maxHost) {
		_, whole := r.integer(n, "job.resources.pool.cpu_only.host", 0, 0, "a whole number of at least 0")
		ok = ok && whole
	}
	return ok
}

// host reads cpus, memory_gb and scratch_gb of a tuneplane pool.
func (r *reader) host(m node, p *Pool) bool {
	ok := true
	for _, field := range []struct {
		key string
		to  *int64
	}{{"cpus", &p.CPUs}, {"memory_gb", &p.MemoryGB}, {"scratch_gb", &p.ScratchGB}} {
		value, whole := r.hostNumber(m.get(field.key))
		*field.to = value
		ok = ok && whole
	}
	return ok
}

var wholeNumber = pattern.New(`^-?[0-9]+$`)

// hostNumber reads a whole number in any of the forms that the clients take: an integer, a float without a fraction, or
// a text. Null and "" are 0: not said.
func (r *reader) hostNumber(n node) (int64, bool) {
	const whole, negative, most = "job.resources.pool.host.whole", "job.resources.pool.host.negative", "job.resources.pool.host.max"
	if n.null() || (n.v.Kind == pyvalue.Str && n.v.Text == "") {
		return 0, true
	}
	sign, magnitude, ok := hostMagnitude(n.v)
	switch {
	case !ok:
		r.expected(n, whole, "a whole number")
	case sign < 0 && magnitude > 0:
		r.expected(n, negative, "a whole number that is not negative")
	case magnitude > maxHost:
		r.bad(n, most, "found %s, expected at most %d", show(n.v), maxHost)
	default:
		return int64(magnitude), true
	}
	return 0, false
}

// hostMagnitude takes a number apart. Magnitudes beyond maxHost need not be exact.
func hostMagnitude(v *pyvalue.Value) (sign int, magnitude float64, ok bool) {
	switch v.Kind {
	case pyvalue.Int:
		return v.Int.Sign(), clampedDigits(strings.TrimPrefix(v.Int.String(), "-")), true
	case pyvalue.Float:
		if math.Trunc(v.Float) != v.Float || math.IsInf(v.Float, 0) {
			return 0, 0, false
		}
		return sgn(v.Float), math.Abs(v.Float), true
	case pyvalue.Str:
		text := pyvalue.Strip(v.Text)
		if !wholeNumber.MatchString(text) {
			return 0, 0, false
		}
		body, minus := strings.CutPrefix(text, "-")
		sign = 1
		if minus {
			sign = -1
		}
		return sign, clampedDigits(body), true
	}
	return 0, 0, false
}

func sgn(f float64) int {
	if f < 0 {
		return -1
	}
	return 1
}

// clampedDigits is a decimal number, or something beyond maxHost when it has too many digits.
func clampedDigits(s string) float64 {
	s = strings.TrimLeft(s, "0")
	if s == "" {
		return 0
	}
	n, ok := digits(s)
	if !ok {
		return maxHost + 1
	}
	return float64(n)
}
