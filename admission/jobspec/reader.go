package jobspec

import (
	"fmt"
	"strconv"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
)

// maxFindings bounds the violations and, apart from them, the warnings of one report.
const maxFindings = 500

// rootField is the clients' word for the document.
const rootField = "<root>"

// reader walks a document, fills spec and files what it finds.
type reader struct {
	d       dialect.Dialect
	opt     Options
	report  *rule.Report
	spec    *Spec
	opened  []opened // objects in the order in which the clients read them
	dropped int      // findings beyond maxFindings
}

// tunePlane reports whether the document is read as tuneplane/v1.
func (r *reader) tunePlane() bool { return r.d == dialect.TunePlane }

// bad files a breach of a rule and reports whether it refuses.
func (r *reader) bad(n node, id rule.ID, format string, args ...any) bool {
	return r.badWith(n, id, "", format, args...)
}

// badWith is bad with a way to mend it that fits better than the rule's own; "" is the rule's own.
func (r *reader) badWith(n node, id rule.ID, hint, format string, args ...any) bool {
	if r.full(id) {
		return r.add(rule.Violation{Rule: id})
	}
	v := n.violation(id, fmt.Sprintf(format, args...))
	v.Hint = hint
	if v.File = r.opt.File; n.last.form == root && v.Field == "" {
		v.Field = rootField
	}
	return r.add(v)
}

func (r *reader) add(v rule.Violation) bool {
	if r.full(v.Rule) {
		r.dropped++
		return !r.warns(v.Rule)
	}
	return r.report.Add(v)
}

// full reports whether the list into which a breach of the rule goes takes no more.
func (r *reader) full(id rule.ID) bool {
	if r.warns(id) {
		return len(r.report.Warnings) >= maxFindings
	}
	return len(r.report.Violations) >= maxFindings
}

func (r *reader) warns(id rule.ID) bool {
	info, ok := rule.Lookup(id)
	return ok && info.Warns(r.d, r.report.Policy)
}

func (r *reader) addAll(found []rule.Violation) {
	for _, v := range found {
		v.File = r.opt.File
		r.add(v)
	}
}

// overflow says that findings were left out.
func (r *reader) overflow() {
	if r.dropped > 0 {
		r.report.Add(rule.Violation{
			Rule: "job.report.truncated", File: r.opt.File,
			Message: fmt.Sprintf("%d more findings are not listed (at most %d violations and %d warnings are)", r.dropped, maxFindings, maxFindings),
		})
	}
}

// expected files a breach that is told by what was found and what should stand there.
func (r *reader) expected(n node, id rule.ID, want string) bool {
	return r.bad(n, id, "found %s, expected %s", show(n.v), want)
}

// missing files the absence of a required field; null stands for it as little as an empty object does.
func (r *reader) missing(n node, id rule.ID) {
	if n.absent() {
		r.bad(n, id, "the required field is missing")
		return
	}
	r.bad(n, id, "found %s, expected a value: the field is required", show(n.v))
}

// show is a value in messages: bounded, in JSON's words, outside text escaped.
func show(v *pyvalue.Value) string {
	if v == nil {
		return "nothing"
	}
	switch v.Kind {
	case pyvalue.None:
		return "null"
	case pyvalue.Bool:
		return strconv.FormatBool(v.Bool)
	case pyvalue.Str:
		return fmt.Sprintf("%.100q", v.Text)
	case pyvalue.List:
		return fmt.Sprintf("an array (%d entries)", len(v.List))
	case pyvalue.Map:
		return fmt.Sprintf("an object (%d keys)", len(v.Items))
	}
	if len(v.Written) > 40 {
		return fmt.Sprintf("%.40s... (a number of %d characters)", v.Written, len(v.Written))
	}
	return "the number " + v.Written
}
