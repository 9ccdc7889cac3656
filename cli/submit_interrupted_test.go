package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/registry/client"
)

// Who interrupts a submission after it was sent is told how to find out whether there is a job, and of a preview how to ask for the
// same job again.
func TestInterruptedSubmission(t *testing.T) {
	interrupts := make(chan context.CancelFunc, 1)
	interrupted := func() context.Context {
		ctx, cancel := context.WithCancel(t.Context())
		interrupts <- cancel
		return ctx
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		(<-interrupts)()
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	c, err := client.New(client.Options{Server: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	a := app{env: newEnv([]string{"GATEHOUSE_HOME=" + t.TempDir()}, strings.NewReader(""), &out, &out), opt: &rootOptions{}}

	id := strings.Repeat("a", 32)
	err = a.commit(interrupted(), c, client.Preview{ID: id, Digest: "sha256:1"}, submitFlags{})
	if !errors.Is(err, context.Canceled) || !strings.Contains(out.String(), "sf submit --commit "+id) {
		t.Errorf("a commit: %v, told %q", err, out.String())
	}

	out.Reset()
	file, err := temporary()
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	pkg, err := packInto(file, func(w io.Writer) error { _, err := w.Write([]byte("x")); return err })
	if err != nil {
		t.Fatal(err)
	}
	err = a.send(interrupted(), c, outgoing{dialect: dialect.Forge, document: []byte("{}"), pkg: pkg}, submitFlags{})
	if !errors.Is(err, context.Canceled) || !strings.Contains(out.String(), "sf job ls") {
		t.Errorf("a job with its package: %v, told %q", err, out.String())
	}
}
