package registry

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the documents that are made from tables")

// TestErrorsDocument holds docs/errors.md to the table of codes.
func TestErrorsDocument(t *testing.T) {
	codes := Codes()
	slices.SortFunc(codes, func(a, b Code) int {
		return cmp.Or(cmp.Compare(a.Meaning().Status, b.Meaning().Status), cmp.Compare(a, b))
	})
	var b strings.Builder
	b.WriteString(`# Errors

Every error has a code. It decides the HTTP status and the exit code of ` + "`sf`" + `, in one table (registry/code.go) from which
this page is made (` + "`go test ./registry -run ErrorsDocument -update`" + `).

- Below ` + "`/v2`" + ` the answer is the OCI envelope ` + "`{\"errors\": [{\"code\", \"message\", \"detail\"}]}`" + `. The message names
  every violation (the first ten); with ` + "`Accept: application/vnd.gatehouse.decision.v1+json`" + ` the detail is the gate's Decision.
- Below ` + "`/api`" + ` it is ` + "`{\"detail\": \"title\\n- violation…\", \"code\", \"decision\"}`" + `: the detail is what the real clients show.
- A refusal's decision lists every violation with its rule, field, file, line, message and hint. Where several kinds of
  violation meet, the status is 403 before 413 before 409 before 400.

| HTTP | code | exit | meaning |
| --- | --- | --- | --- |
`)
	for _, c := range codes {
		m := c.Meaning()
		fmt.Fprintf(&b, "| %d | `%s` | %d | %s |\n", m.Status, c, m.Exit, m.Text)
	}
	const path = "../docs/errors.md"
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != b.String() {
		t.Errorf("%s is not what the table of codes says; run with -update", path)
	}
}

func TestErrorIsComparesCodes(t *testing.T) {
	err := fmt.Errorf("open: %w", Errorf(BlobUnknown, "blob %s", "x"))
	if !errors.Is(err, ErrBlobUnknown) {
		t.Error("an error of code BLOB_UNKNOWN is not ErrBlobUnknown")
	}
	if errors.Is(err, ErrNotFound) {
		t.Error("an error of code BLOB_UNKNOWN is ErrNotFound")
	}
	if got := CodeOf(errors.New("disk on fire")); got != Internal {
		t.Errorf("CodeOf(a foreign error) = %s, want %s", got, Internal)
	}
	if got := CodeOf(nil); got != "" {
		t.Errorf("CodeOf(nil) = %q, want none", got)
	}
}

// TestHiddenCause holds that what clients see of an error does not hold its cause unless the message was made of it.
func TestHiddenCause(t *testing.T) {
	cause := errors.New("secret path")
	err := &Error{Code: Internal, Err: cause}
	if strings.Contains(err.Error(), "secret") {
		t.Errorf("Error() = %q shows the hidden cause", err.Error())
	}
	if !errors.Is(err, cause) {
		t.Error("the cause is not in the chain")
	}
}
