package cli

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"syscall"

	"github.com/gatehouse-registry/gatehouse/admission/archive"
	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/jobspec"
	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/cli/jobbuild"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/internal/durable"
	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/client"
)

// outgoing is a submission on its way: a document with what goes beside it, and its package.
type outgoing struct {
	dialect  dialect.Dialect
	document []byte
	meta     jobbuild.Meta
	pkg      client.Package
}

// sendExperiment packs the files and submits.
func (a app) sendExperiment(ctx context.Context, c *client.Client, s submission, f submitFlags) error {
	file, err := temporary()
	if err != nil {
		return err
	}
	defer file.Close()
	bar := a.env.transfer("packing", s.files.Bytes())
	pkg, err := packInto(file, func(w io.Writer) error {
		return s.files.Pack(w, func(n int64) { bar.moved(n, false) })
	})
	bar.end()
	if err != nil {
		return err
	}
	if err := checkPackage(pkg, s.exp.Path, s.project.Dialect); err != nil {
		return err
	}
	return a.send(ctx, c, outgoing{s.project.Dialect, s.job.Document, s.job.Meta, pkg}, f)
}

// temporary is a file without a name, gone with the process.
func temporary() (*os.File, error) {
	file, err := os.CreateTemp("", "sf-package-*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(file.Name()); err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

// packInto writes a package into a file and gives it as it is sent.
func packInto(file *os.File, write func(io.Writer) error) (client.Package, error) {
	sum := sha256.New()
	size := &tally{}
	if err := write(io.MultiWriter(file, sum, size)); err != nil {
		return client.Package{}, err
	}
	return packageOf(file, size.n, digest.FromHash(digest.SHA256, sum)), nil
}

// packageOf is a package whose bytes lie in an open file.
func packageOf(file *os.File, size int64, d digest.Digest) client.Package {
	return client.Package{Digest: d, Size: size, Open: func() (io.ReadSeekCloser, error) {
		return section{io.NewSectionReader(file, 0, size)}, nil
	}}
}

// section is a part of a file that stays open.
type section struct{ *io.SectionReader }

func (section) Close() error { return nil }

// tally counts what is written, up to the limit of a package.
type tally struct{ n int64 }

func (t *tally) Write(p []byte) (int, error) {
	if t.n += int64(len(p)); t.n > limit.JobPackage {
		return 0, registry.Errorf(registry.TooLarge, "the job package has more than %s, which is what a server takes", sizeText(limit.JobPackage))
	}
	return len(p), nil
}

// checkPackage judges a package as the server will.
func checkPackage(pkg client.Package, exp string, d dialect.Dialect) error {
	src := archive.Source{Size: pkg.Size, Open: func() (io.ReadCloser, error) { return pkg.Open() }}
	found, report, err := archive.CheckJob(src, rule.Policy{})
	if err != nil {
		return err
	}
	if report.OK() {
		for _, v := range archive.CheckExperiment(found.Experiment, exp) {
			report.Add(v)
		}
	}
	decision := report.Decide(rule.Submission, rule.Subject{Name: exp, Dialect: d}, nil)
	return decision.Err()
}

// send submits in the way of the dialect: forge with one request, tuneplane by upload, preview and commit.
func (a app) send(ctx context.Context, c *client.Client, out outgoing, f submitFlags) error {
	bar := a.env.transfer("uploading", out.pkg.Size)
	defer bar.end()
	if out.dialect == dialect.Forge {
		meta, err := out.meta.Encode(out.document)
		if err != nil {
			return err
		}
		if len(meta) > maxMeta {
			return tooLongForHeader(out, len(meta))
		}
		job, err := c.SubmitPackage(ctx, meta, out.pkg, randomKey(), bar.reader)
		bar.end()
		if err != nil {
			return a.unsure(err, "sf job ls tells")
		}
		return a.finish(ctx, c, job, f)
	}
	source, err := c.Upload(ctx, out.pkg, bar.reader)
	bar.end()
	if err != nil {
		return err
	}
	preview, err := a.preview(ctx, c, out, source)
	if err != nil {
		return err
	}
	if f.preview {
		return a.keepPreview(preview)
	}
	return a.commit(ctx, c, preview, f)
}

// maxMeta leaves room for the other headers of a request.
const maxMeta = limit.Header - 16*limit.KiB

func tooLongForHeader(out outgoing, n int) error {
	report := rule.Report{Dialect: out.dialect}
	report.Add(rule.Violation{Rule: "submit.header", Field: client.MetaHeader, Message: fmt.Sprintf("the spec and what goes beside it have %d bytes, expected at most %d", n, maxMeta)})
	d := report.Decide(rule.Submission, rule.Subject{Name: out.meta.Exp, Dialect: out.dialect}, nil)
	return d.Err()
}

// randomKey makes one submission recognisable when it is sent again.
func randomKey() string {
	b := make([]byte, 16)
	rand.Read(b) // never fails (crypto/rand)
	return "sf-" + hex.EncodeToString(b)
}

// preview has the gate decide on what was uploaded.
func (a app) preview(ctx context.Context, c *client.Client, out outgoing, source json.RawMessage) (client.Preview, error) {
	meta, err := out.meta.Encode(out.document)
	if err != nil {
		return client.Preview{}, err
	}
	project := out.meta.Project
	if project == "" {
		project = filepath.Base(out.meta.Exp)
	}
	return c.Preview(ctx, client.Intent{Form: "source", Project: project, Spec: out.document, Profile: out.meta.Profile, Source: source, Meta: meta})
}

// commit makes the job of a preview. When no answer comes the preview is kept, so that the same job can be asked for again.
func (a app) commit(ctx context.Context, c *client.Client, preview client.Preview, f submitFlags) error {
	job, err := c.Commit(ctx, preview.ID, preview.Digest)
	if unanswered(err) {
		path, keepErr := a.savePreview(preview)
		if keepErr != nil {
			return a.unsure(err, "sf job ls tells")
		}
		return a.unsure(err, fmt.Sprintf("ask again with: sf submit --commit %s (kept in %s); it makes one job however often it is asked", preview.ID, path))
	}
	if err != nil {
		return err
	}
	return a.finish(ctx, c, job, f)
}

// unanswered reports whether a request failed in a way that does not tell what the server did.
func unanswered(err error) bool {
	code := registry.CodeOf(err)
	return err != nil && (code == registry.Unavailable || code == registry.Internal || code == registry.TooManyRequests)
}

// unsure adds to the error of an unanswered request that was to make a job how to find out whether there is one. To somebody who
// interrupted it, it is said here: nothing else is said of an interruption.
func (a app) unsure(err error, advice string) error {
	switch {
	case !unanswered(err):
		return err
	case errors.Is(err, context.Canceled):
		fmt.Fprintf(a.env.Err, "sf: whether the job was made is not known\n%s\n", advice)
		return err
	}
	return fmt.Errorf("whether the job was made is not known: %w\n%s", err, advice)
}

// keepPreview stores a preview for a later --commit and says so.
func (a app) keepPreview(preview client.Preview) error {
	path, err := a.savePreview(preview)
	if err != nil {
		return err
	}
	if a.opt.json {
		return a.env.writeJSON(preview)
	}
	_, err = fmt.Fprintf(a.env.Out, "preview %s, %d GPUs, digest %s\n", preview.ID, preview.Resolved.Execution.GPUs, preview.Digest)
	if err == nil {
		_, err = fmt.Fprintf(a.env.Err, "  make the job with: sf submit --commit %s (kept in %s)\n", preview.ID, path)
	}
	return err
}

var previewID = regexp.MustCompile(`^[0-9a-f]{32}$`)

// previewFile is where a preview is kept: in our own folder, not in the project, whose tree it would make dirty.
func (a app) previewFile(id string) (string, error) {
	if !previewID.MatchString(id) {
		return "", fmt.Errorf("the preview's id %.64q is not 32 hex digits", id)
	}
	home, err := a.env.home()
	return filepath.Join(home, "previews", id+".json"), err
}

func (a app) savePreview(preview client.Preview) (string, error) {
	path, err := a.previewFile(preview.ID)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	text, err := json.Marshal(preview)
	if err != nil {
		return "", err
	}
	return path, durable.Replace(path, append(text, '\n'), 0o600)
}

// submitCommit makes the job of a preview that was kept: by us, or by the real client, whose file may be named.
func (a app) submitCommit(ctx context.Context, f submitFlags) error {
	path := f.commit
	if previewID.MatchString(f.commit) {
		var err error
		if path, err = a.previewFile(f.commit); err != nil {
			return err
		}
	}
	src, err := readFile(path, limit.JSONBody)
	if err != nil {
		return err
	}
	var preview client.Preview
	if err := json.Unmarshal(src, &preview); err != nil || preview.ID == "" || preview.Digest == "" {
		return fmt.Errorf("%s is no preview: expected a JSON object with id and digest", path)
	}
	c, _, err := a.env.client()
	if err != nil {
		return err
	}
	c = c.For(dialect.TunePlane, f.of(dialect.TunePlane))
	if !f.yes {
		if err := a.confirm(ctx, fmt.Sprintf("Make the job of preview %s, %d GPUs?", printable(preview.ID), preview.Resolved.Execution.GPUs)); err != nil {
			return err
		}
	}
	return a.commit(ctx, c, preview, f)
}

// submitDocument submits a JobSpec that was made elsewhere.
func (a app) submitDocument(ctx context.Context, f submitFlags) error {
	src, err := readFile(f.jobspec, limit.Document+1)
	if err != nil {
		return err
	}
	c, _, err := a.env.client()
	if err != nil {
		return err
	}
	name := filepath.Base(f.jobspec)
	if f.dry {
		d, err := c.DryRun(ctx, src)
		if err != nil {
			return err
		}
		ofFile(&d, name)
		return a.printDecision(d)
	}
	if f.pkg == "" {
		job, err := c.Submit(ctx, src)
		if err != nil {
			return refusalOf(err, func(d *rule.Decision) { ofFile(d, name) })
		}
		return a.finish(ctx, c, job, f)
	}
	return a.submitPackage(ctx, c, src, f)
}

// ofFile names the file in a server's decision about the document that was sent from it: the server knows the places in the
// document and not its name. What is said of something else than the document has no place. A nil decision is left alone.
func ofFile(d *rule.Decision, name string) {
	if d == nil {
		return
	}
	for _, list := range [][]rule.Violation{d.Violations, d.Warnings} {
		for i := range list {
			if v := &list[i]; v.File == "" && v.Line > 0 {
				v.File = name
			}
		}
	}
	if d.Subject.Name == "" {
		d.Subject.Name = name
	}
}

// submitPackage submits a JobSpec with its package, as the dialect's client does.
func (a app) submitPackage(ctx context.Context, c *client.Client, src []byte, f submitFlags) error {
	name := filepath.Base(f.jobspec)
	spec, report := jobspec.Parse(src, jobspec.Options{File: name})
	decision := report.Decide(rule.Submission, rule.Subject{Name: name, Dialect: report.Dialect}, nil)
	if err := decision.Err(); err != nil {
		return err
	}
	file, err := os.OpenFile(f.pkg, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe must not block
	if err != nil {
		return err
	}
	defer file.Close()
	pkg, err := packageFrom(file)
	if err != nil {
		return fmt.Errorf("%s: %w", f.pkg, err)
	}
	if err := checkPackage(pkg, spec.Source.Exp, spec.Dialect); err != nil {
		return err
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, src); err != nil {
		return err
	}
	p := spec.Provenance
	meta := jobbuild.Meta{Exp: spec.Source.Exp, GitCommit: p.GitCommit, GitDirty: p.GitDirty, ConfigSHA: p.ConfigSHA, Project: spec.Metadata.Project}
	err = a.send(ctx, c.For(spec.Dialect, f.release), outgoing{spec.Dialect, compact.Bytes(), meta, pkg}, f)
	return refusalOf(err, func(d *rule.Decision) {
		placeIn(d, spec)
		ofFile(d, name)
	})
}

// refusalOf changes the decision that an error carries, if it carries one, and gives the error back.
func refusalOf(err error, change func(*rule.Decision)) error {
	d := registry.DecisionOf(err)
	if d == nil {
		return err
	}
	change(d)
	if e, ok := errors.AsType[*registry.Error](err); ok {
		e.Detail = *d // d may be of a copy
	}
	return err
}

// placeIn gives a decision about the compacted form of a document the places in the document itself.
func placeIn(d *rule.Decision, spec *jobspec.Spec) {
	for _, list := range [][]rule.Violation{d.Violations, d.Warnings} {
		for i := range list {
			if v := &list[i]; v.Line > 0 {
				p := spec.Place(v.Field)
				v.Line, v.Column = p.Line, p.Column
			}
		}
	}
}

// packageFrom is the package in a file.
func packageFrom(file *os.File) (client.Package, error) {
	info, err := file.Stat()
	if err != nil {
		return client.Package{}, err
	}
	if !info.Mode().IsRegular() {
		return client.Package{}, errors.New("is no regular file")
	}
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(sum, &tally{}), file)
	if err != nil {
		return client.Package{}, err
	}
	return packageOf(file, n, digest.FromHash(digest.SHA256, sum)), nil
}
