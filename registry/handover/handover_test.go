package handover_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/handover"
	"github.com/gatehouse-registry/gatehouse/registry/webhook"
)

const base = "https://gatehouse.example"

var packageBytes = bytes.Repeat([]byte("package "), 1000)

// blob is a registry.Blob of bytes.
type blob struct{ *bytes.Reader }

func (blob) Close() error { return nil }

// message is an event of a job with a package, whose bytes are content.
func message(event registry.HandoverEvent, content []byte) registry.HandoverMessage {
	at := time.Date(2026, 11, 30, 12, 0, 0, 5000, time.UTC)
	spec := []byte(`{"metadata":{"name":"a<b"}}`)
	return registry.HandoverMessage{
		ID: "run-20261130-120000-00000001.admitted.t", Event: event, Target: "t", Try: 3, At: at, Registry: "reg",
		Job: registry.Job{
			ID: "run-20261130-120000-00000001", Account: "alice", Dialect: dialect.Forge, Exp: "experiments/a", Name: "a", GPUs: 8, Spec: spec,
			SpecDigest: digest.FromBytes(spec), Receipt: []byte(`{"payload":"cGF5bG9hZA=="}`), SubmittedAt: at, Meta: json.RawMessage(`{"sweep_id":"s1"}`),
			Package: digest.Descriptor{MediaType: "application/gzip", Digest: digest.FromBytes(packageBytes), Size: int64(len(packageBytes))},
		},
		Package: func(context.Context) (registry.Blob, error) { return blob{bytes.NewReader(content)}, nil },
	}
}

// checkDocument compares what a platform got with the message.
func checkDocument(t *testing.T, got []byte, m registry.HandoverMessage) handover.Document {
	t.Helper()
	var d handover.Document
	if err := json.Unmarshal(got, &d); err != nil {
		t.Fatalf("%v: %s", err, got)
	}
	if d.APIVersion != handover.APIVersion || d.ID != m.ID || d.Event != m.Event || d.Job.RunID != m.Job.ID || d.Job.GPUs != 8 ||
		d.Job.SpecDigest != m.Job.SpecDigest.String() || string(d.Job.Meta) != `{"sweep_id":"s1"}` || d.At != "2026-11-30T12:00:00.000005Z" {
		t.Errorf("document %s", got)
	}
	if (d.Package != nil) != (m.Event == registry.EventAdmitted) {
		t.Errorf("package %+v in %s", d.Package, m.Event)
	}
	return d
}

func TestWebhook(t *testing.T) {
	const secret = "a secret of enough bytes"
	key, err := webhook.Key(secret)
	if err != nil {
		t.Fatal(err)
	}
	var bodies [][]byte
	status, after, why := http.StatusNoContent, "", "why"
	platform := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		seconds, err := strconv.ParseInt(r.Header.Get(webhook.HeaderTimestamp), 10, 64)
		id := r.Header.Get(webhook.HeaderID)
		if err != nil || r.Header.Get(webhook.HeaderSignature) != webhook.Sign(key, id, time.Unix(seconds, 0), body) || r.Header.Get("Idempotency-Key") != id {
			t.Errorf("headers %v", r.Header)
		}
		bodies = append(bodies, body)
		w.Header().Set("Retry-After", after)
		w.WriteHeader(status)
		io.WriteString(w, why)
	}))
	defer platform.Close()
	to, err := handover.NewWebhook(webhook.Target{URL: platform.URL, Secret: secret, Timeout: 5 * time.Second}, base)
	if err != nil {
		t.Fatal(err)
	}
	m := message(registry.EventAdmitted, packageBytes)
	if err := to.Deliver(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	d := checkDocument(t, bodies[0], m)
	if !bytes.Equal(d.Spec, m.Job.Spec) || string(d.Receipt) != string(m.Job.Receipt) || d.Package.URL != base+"/api/jobs/"+m.Job.ID+"/package" || d.Package.Digest != m.Job.Package.Digest.String() {
		t.Errorf("document %s", bodies[0])
	}
	for s, refused := range map[int]bool{410: true, 422: true, 500: false, 404: false, 302: false, 429: false} {
		status, after = s, "120"
		err := to.Deliver(t.Context(), m)
		_, got := errors.AsType[*registry.RefusedHandover](err)
		if err == nil || got != refused {
			t.Errorf("status %d: error %v, refused %v", s, err, got)
		}
		if e, ok := errors.AsType[*registry.Error](err); !refused && (!ok || e.RetryAfter != 2*time.Minute) {
			t.Errorf("status %d: error %#v", s, err)
		}
	}
	why = strings.Repeat("so much to say", 10_000)
	for s, want := range map[int]bool{200: true, 422: false} {
		status, after = s, ""
		err := to.Deliver(t.Context(), m)
		if _, refused := errors.AsType[*registry.RefusedHandover](err); (err == nil) != want || refused == want {
			t.Errorf("status %d with a long answer: %v", s, err)
		}
	}
	for _, b := range bodies {
		if !bytes.Equal(b, bodies[0]) {
			t.Errorf("another body: %s", b)
		}
	}
	if status, m = http.StatusOK, message(registry.EventCancelled, nil); to.Deliver(t.Context(), m) != nil {
		t.Error("a cancellation was not delivered")
	}
	if d := checkDocument(t, bodies[len(bodies)-1], m); d.Spec != nil || d.Receipt != nil {
		t.Errorf("a cancellation carries the job: %+v", d)
	}
}

// checkFolder compares the files of a job.
func checkFolder(t *testing.T, folder string, m registry.HandoverMessage) {
	t.Helper()
	read := func(name string) []byte {
		b, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Error(err)
		}
		return b
	}
	d := checkDocument(t, read(handover.DocumentFile), m)
	if !bytes.Equal(read(handover.SpecFile), m.Job.Spec) || !bytes.Equal(read(handover.ReceiptFile), m.Job.Receipt) || !bytes.Equal(read(d.Package.File), packageBytes) || d.Spec != nil {
		t.Errorf("files of %s: %+v", folder, d)
	}
}

func TestDirectory(t *testing.T) {
	dir := t.TempDir()
	to := handover.Directory{Path: dir, Package: true, Base: base}
	m := message(registry.EventAdmitted, packageBytes)
	// What a try that was killed left is in nobody's way.
	left := filepath.Join(dir, fmt.Sprintf(".%s.%d.tmp", m.ID, m.Try-1))
	if err := errors.Join(os.Mkdir(left, 0o700), os.WriteFile(filepath.Join(left, handover.SpecFile), []byte("half"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := to.Deliver(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		checkFolder(t, filepath.Join(dir, m.Job.ID), m)
	}
	cancelled := message(registry.EventCancelled, nil)
	if err := to.Deliver(t.Context(), cancelled); err != nil {
		t.Fatal(err)
	}
	document, err := os.ReadFile(filepath.Join(dir, m.Job.ID+".cancelled", handover.DocumentFile))
	if err != nil {
		t.Fatal(err)
	}
	checkDocument(t, document, cancelled)
	if err := os.RemoveAll(filepath.Join(dir, m.Job.ID)); err != nil {
		t.Fatal(err)
	}
	// Bytes that are not the package's are never handed over, nor is anything else that is not whole.
	if err := to.Deliver(t.Context(), message(registry.EventAdmitted, []byte("other bytes"))); err == nil {
		t.Error("other bytes were delivered")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := to.Deliver(ended, m); !errors.Is(err, context.Canceled) {
		t.Errorf("after its end: %v", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

// atEnd is a blob that does something before it says that it ends.
type atEnd struct {
	registry.Blob
	do func()
}

func (b atEnd) Read(p []byte) (int, error) {
	n, err := b.Blob.Read(p)
	if err == io.EOF {
		b.do()
	}
	return n, err
}

// TestDirectoryAfterAPause: a try stands still behind the package until another one, on another replica, has begun, and goes on beside
// it. What then has the job's name is whole, whichever of them gave it.
func TestDirectoryAfterAPause(t *testing.T) {
	dir := t.TempDir()
	to := handover.Directory{Path: dir, Package: true, Base: base}
	first, second := message(registry.EventAdmitted, packageBytes), message(registry.EventAdmitted, packageBytes)
	second.Try++
	open, failed := first.Package, errors.New("the store is away")
	begun, goOn, ended := make(chan bool), make(chan bool), make(chan error)
	second.Package = func(context.Context) (registry.Blob, error) {
		close(begun)
		<-goOn
		return nil, failed
	}
	first.Package = func(ctx context.Context) (registry.Blob, error) {
		b, err := open(ctx)
		return atEnd{b, func() {
			go func() { ended <- to.Deliver(ctx, second) }()
			<-begun
		}}, err
	}
	err := to.Deliver(t.Context(), first)
	close(goOn)
	if got := <-ended; !errors.Is(got, failed) {
		t.Errorf("the second try: %v", got)
	}
	if _, there := os.Lstat(filepath.Join(dir, first.Job.ID)); err == nil || there == nil {
		checkFolder(t, filepath.Join(dir, first.Job.ID), first)
	}
	second.Package = open
	if second.Try++; to.Deliver(t.Context(), second) != nil {
		t.Error("the third try failed")
	}
	checkFolder(t, filepath.Join(dir, first.Job.ID), second)
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

// script writes a program for a Command.
func script(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "enqueue")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestCommand(t *testing.T) {
	t.Setenv("GATEHOUSE_SECRET", "of the server")
	out, folder := t.TempDir(), t.TempDir()
	m := message(registry.EventAdmitted, packageBytes)
	program := script(t, `cp -r . "$1"/files && cat > "$1"/stdin && env > "$1"/env && echo "$#:$2" > "$1"/args`)
	to := handover.Command{Args: []string{program, out, "$(id) ; * 'q"}, Folder: folder, Package: true, Base: base}
	if err := to.Deliver(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join(out, name))
		if err != nil {
			t.Error(err)
		}
		return string(b)
	}
	checkFolder(t, filepath.Join(out, "files"), m)
	if d := checkDocument(t, []byte(read("stdin")), m); !bytes.Equal(d.Spec, m.Job.Spec) {
		t.Errorf("standard input: %s", read("stdin"))
	}
	if got := read("args"); got != "2:$(id) ; * 'q\n" {
		t.Errorf("arguments %q", got)
	}
	for _, want := range []string{"GATEHOUSE_EVENT=job.admitted\n", "GATEHOUSE_EVENT_ID=" + m.ID + "\n", "GATEHOUSE_JOB=" + m.Job.ID + "\n", "GATEHOUSE_TARGET=t\n", "GATEHOUSE_TRY=3\n"} {
		if !strings.Contains(read("env"), want) {
			t.Errorf("environment %q lacks %q", read("env"), want)
		}
	}
	if strings.Contains(read("env"), "SECRET") {
		t.Error("the command got the server's environment")
	}
	for text, refused := range map[string]bool{"echo no >&2; exit 65": true, "echo no >&2; exit 1": false, "kill -9 $$": false} {
		to.Args = []string{script(t, text)}
		err := to.Deliver(t.Context(), m)
		if _, got := errors.AsType[*registry.RefusedHandover](err); err == nil || got != refused {
			t.Errorf("%s: %v, refused %v", text, err, got)
		}
	}
	to.Args = []string{filepath.Join(out, "nothing")}
	if err := to.Deliver(t.Context(), m); err == nil {
		t.Error("a program that is not there delivered")
	}
	if entries, err := os.ReadDir(folder); err != nil || len(entries) != 0 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

// TestCommandIsKilled has a command and its child outstay their time, and a child outlive its parent.
func TestCommandIsKilled(t *testing.T) {
	for what, text := range map[string]string{
		"too long":         `sleep 300 & echo $! > "$1"/pid; wait`,
		"left a child":     `sleep 300 & echo $! > "$1"/pid`,
		"failed":           `sleep 300 & echo $! > "$1"/pid; exit 1`,
		"failed silently":  `sleep 300 >/dev/null 2>&1 & echo $! > "$1"/pid; exit 65`,
		"deaf to the term": `trap "" TERM HUP; sleep 300 & echo $! > "$1"/pid; wait`,
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			out := t.TempDir()
			to := handover.Command{Args: []string{script(t, text), out}, Folder: t.TempDir()}
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			err := to.Deliver(ctx, message(registry.EventCancelled, nil))
			if (err == nil) != (what == "left a child") {
				t.Errorf("error %v", err)
			}
			text, err := os.ReadFile(filepath.Join(out, "pid"))
			if err != nil {
				t.Fatal(err)
			}
			pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
			if err != nil {
				t.Fatal(err)
			}
			for running(pid) {
				time.Sleep(10 * time.Millisecond) // the kill is certain, its moment is the system's
			}
		})
	}
}

// running reports whether a process is there and no zombie.
func running(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && !bytes.Contains(stat, []byte(") Z "))
}
