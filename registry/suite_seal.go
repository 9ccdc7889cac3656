package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/admission/name"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/admission/suite"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
)

// suiteConfigType is the media type of the config of a suite's manifest: its kind, dialect, document and digests as JSON.
const suiteConfigType = "application/vnd.gatehouse.suite.config.v1+json"

// sealSuite makes a version of what was uploaded and what the index lists: bytes first, which lie there already and are held
// by their rows, then in one transaction everything that makes the version visible. The index, the rows and the documents
// are compared again in that transaction, so an upload that runs beside the seal is either before it, and the seal sees it, or
// after it, and is refused.
func (s *Service) sealSuite(ctx context.Context, p auth.Principal, t Ticket, repository string, src []byte) (SuiteVersion, error) {
	index, report := suite.ParseIndex(src, s.set.Policy)
	if !report.OK() {
		return SuiteVersion{}, s.refusedSuite(ctx, p, t, report, "")
	}
	if v, err := s.sealedBefore(ctx, t, repository, index); err != nil || v.Version != "" {
		return v, err
	}
	v, err := s.sealNew(ctx, p, t, repository, index)
	code := CodeOf(err)
	if code == Conflict {
		if again, lookErr := s.sealedBefore(ctx, t, repository, index); lookErr == nil && again.Version != "" {
			return again, nil // the same seal came twice, and the other one was first
		}
	}
	if _, judged := errors.AsType[*rule.Denied](err); !judged && (code == Conflict || code == Invalid) {
		s.auditRefusal(ctx, p, "suite.seal", t.ref(), err)
	}
	return v, err
}

// sealNew seals a version that is not sealed yet. Errors: Conflict when it is, Invalid, and a *rule.Denied.
func (s *Service) sealNew(ctx context.Context, p auth.Principal, t Ticket, repository string, index suite.Index) (SuiteVersion, error) {
	open := func(tx Tx) error {
		if err := checkSealed(tx, t, repository); err != nil {
			return err
		}
		return checkStored(tx, t, repository, index)
	}
	if err := s.meta.View(ctx, open); err != nil {
		return SuiteVersion{}, err
	}
	judged, err := s.judgeSuite(ctx, p, t, index)
	if err != nil {
		return SuiteVersion{}, err
	}
	v, manifest, fresh, err := s.suiteArtifact(ctx, p, t, repository, judged, index)
	if err != nil {
		return v, err
	}
	err = s.commitContent(ctx, fresh, s.charged(repository, func(tx Tx) error {
		if err := open(tx); err != nil {
			return err
		}
		return s.insertSuite(tx, p, t, v, manifest, fresh)
	}))
	if err != nil {
		return v, err
	}
	s.decided(judged.decision)
	return v, s.ledgerFollows(ctx)
}

// ledgerFollows brings the ledger file up to a row that is committed and counts: that its copy lags is no error of the request.
func (s *Service) ledgerFollows(ctx context.Context) error {
	if err := s.syncLedger(context.WithoutCancel(ctx)); err != nil {
		s.log.ErrorContext(ctx, "ledger file lags behind", "err", err)
	}
	return nil
}

// sealedBefore finds the version that the very same index sealed: a client that lost the answer may send it again.
func (s *Service) sealedBefore(ctx context.Context, t Ticket, repository string, index suite.Index) (SuiteVersion, error) {
	var v SuiteVersion
	err := s.meta.View(ctx, func(tx Tx) (err error) {
		v, err = tx.SuiteVersion(repository, t.Version)
		return err
	})
	if errors.Is(err, ErrNotFound) || err == nil && (v.Name != t.Name || v.Tree != index.Tree()) {
		return SuiteVersion{}, nil
	}
	return v, err
}

// maxNamedFiles is how many files a message names.
const maxNamedFiles = 20

// checkStored compares an index with what was uploaded. Errors: Invalid, whose message lists the files.
func checkStored(tx Tx, t Ticket, repository string, index suite.Index) error {
	files, err := tx.SuiteFiles(repository, t.Version, -1)
	if err != nil {
		return err
	}
	stored := make(map[string]SuiteFile, len(files))
	for _, f := range files {
		stored[f.Name] = f
	}
	var faults []string
	for _, want := range index {
		have, ok := stored[want.Name]
		switch {
		case !ok:
			faults = append(faults, fmt.Sprintf("missing: %.200q was not uploaded, or has expired", want.Name))
		case have.Digest != want.Digest || have.Size != want.Size:
			faults = append(faults, fmt.Sprintf("different: %.200q has %d bytes of %s, the index says %d bytes of %s", want.Name, have.Size, have.Digest, want.Size, want.Digest))
		}
	}
	if len(faults) == 0 {
		return nil
	}
	if n := len(faults); n > maxNamedFiles {
		faults = append(faults[:maxNamedFiles], fmt.Sprintf("and %d more", n-maxNamedFiles))
	}
	return Errorf(Invalid, "%s %s is not sealed: its index lists files that this registry does not hold; push them again (a client that skips them remembers an older push: remove its dataset-push-state.json, or push another version)\n- %s",
		t.Kind, t.ref(), strings.Join(faults, "\n- "))
}

// judged is what the rules made of a suite's documents.
type judged struct {
	document json.RawMessage
	dialect  dialect.Dialect
	decision rule.Decision
}

// checkBeforeIndex judges the documents that were uploaded, without an index. Nothing at all was uploaded for a version whose
// files have expired, though a client may remember that it uploaded them.
func (s *Service) checkBeforeIndex(ctx context.Context, p auth.Principal, t Ticket, repository string) error {
	var files []SuiteFile
	err := s.meta.View(ctx, func(tx Tx) (err error) {
		files, err = tx.SuiteFiles(repository, t.Version, -1)
		return err
	})
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return Errorf(Invalid, "this registry holds no file of %s %s: none was uploaded, or they have expired after %s; a client that skips files remembers an older push: remove its dataset-push-state.json, or push another version",
			t.Kind, t.ref(), s.set.UploadTTL)
	}
	index := make(suite.Index, len(files))
	for i, f := range files {
		index[i] = suite.File{Name: f.Name, Size: f.Size, Digest: f.Digest}
	}
	_, err = s.judgeDocuments(ctx, p, t, index, false)
	return err
}

// judgeSuite judges the documents of the files that an index lists. Errors: a *rule.Denied.
func (s *Service) judgeSuite(ctx context.Context, p auth.Principal, t Ticket, index suite.Index) (judged, error) {
	return s.judgeDocuments(ctx, p, t, index, true)
}

func (s *Service) judgeDocuments(ctx context.Context, p auth.Principal, t Ticket, index suite.Index, whole bool) (judged, error) {
	select {
	case s.inspections <- struct{}{}:
		defer func() { <-s.inspections }()
	case <-ctx.Done():
		return judged{}, ctx.Err()
	}
	read := s.environmentDocuments
	if t.Kind == suite.Taskset {
		read = s.tasksetDocument
	}
	document, d, report, err := read(ctx, index, whole)
	if err != nil {
		return judged{}, err
	}
	if !report.OK() {
		return judged{}, s.refusedSuite(ctx, p, t, report, d)
	}
	j := judged{dialect: d, decision: report.Decide(rule.Publish, suiteSubject(t, d), nil)}
	j.document, err = json.Marshal(document)
	return j, err
}

func suiteSubject(t Ticket, d dialect.Dialect) rule.Subject {
	return rule.Subject{Name: t.ID().String(), Version: t.Version, Kind: string(t.Kind), Dialect: d}
}

// refusedSuite records and tells a refusal.
func (s *Service) refusedSuite(ctx context.Context, p auth.Principal, t Ticket, report rule.Report, d dialect.Dialect) error {
	decision := report.Decide(rule.Publish, suiteSubject(t, d), nil)
	s.decided(decision)
	err := decision.Err()
	s.auditRefusal(ctx, p, "suite.seal", t.ref(), err)
	return err
}

// environmentDocuments reads manifest.json and tasks.jsonl.
func (s *Service) environmentDocuments(ctx context.Context, index suite.Index, _ bool) (any, dialect.Dialect, rule.Report, error) {
	fallback := CallerOf(ctx).Dialect
	report := rule.Report{Policy: s.set.Policy, Dialect: fallback}
	lacks := func(file string) {
		report.Add(rule.Violation{Rule: "environment.files", File: file, Message: "the environment has no file " + file})
	}
	file, ok := index.Lookup(suite.ManifestFile)
	if !ok {
		lacks(suite.ManifestFile)
		return nil, fallback, report, nil
	}
	src, err := s.suiteDocument(ctx, file)
	if err != nil {
		return nil, fallback, report, err
	}
	m, report := suite.ParseManifest(src, suite.ManifestOptions{Policy: s.set.Policy, Fallback: fallback})
	if m == nil {
		return nil, fallback, report, nil
	}
	tasks, ok := index.Lookup(suite.TasksFile)
	switch {
	case ok && m.NeedsTasks():
		b, err := s.openContent(ctx, digest.Descriptor{Digest: tasks.Digest, Size: tasks.Size})
		if err != nil {
			return nil, m.Dialect, report, err
		}
		defer b.Close()
		_, more, err := suite.ReadTasks(b, suite.TaskOptions{Policy: s.set.Policy}, nil)
		report.Merge(more)
		return m, m.Dialect, report, err
	case m.NeedsTasks():
		lacks(suite.TasksFile)
	}
	return m, m.Dialect, report, nil
}

// tasksetDocument reads taskset.json; with the whole index the files of its tasks are compared with it.
func (s *Service) tasksetDocument(ctx context.Context, index suite.Index, whole bool) (any, dialect.Dialect, rule.Report, error) {
	report := rule.Report{Policy: s.set.Policy, Dialect: dialect.TunePlane}
	file, ok := index.Lookup(suite.TasksetFile)
	if !ok {
		report.Add(rule.Violation{Rule: "taskset.file", File: suite.TasksetFile, Message: "the taskset has no file " + suite.TasksetFile})
		return nil, dialect.TunePlane, report, nil
	}
	src, err := s.suiteDocument(ctx, file)
	if err != nil {
		return nil, dialect.TunePlane, report, err
	}
	doc, report := suite.ParseTaskset(src, s.set.Policy)
	if doc == nil {
		return nil, dialect.TunePlane, report, nil
	}
	if whole && report.OK() {
		report.Merge(doc.CheckFiles(index, s.set.Policy))
	}
	return doc.Summary(), dialect.TunePlane, report, nil
}

// suiteArtifact makes the version's row and its OCI form, whose config and manifest are fresh content.
func (s *Service) suiteArtifact(ctx context.Context, p auth.Principal, t Ticket, repository string, j judged, index suite.Index) (SuiteVersion, Manifest, []content, error) {
	parsed, err := name.ParseVersion(t.Version)
	if err != nil {
		return SuiteVersion{}, Manifest{}, nil, err
	}
	v := SuiteVersion{
		Repository: repository, Kind: t.Kind, Owner: t.Owner, Name: t.Name, Version: t.Version, Key: parsed.Canonical(), Dialect: j.dialect,
		Tree: index.Tree(), Document: j.document, Files: len(index), Bytes: index.Bytes(), CreatedBy: p.Account, CreatedAt: s.now(),
	}
	config, err := json.Marshal(map[string]any{
		"kind": v.Kind, "name": v.ID().String(), "version": v.Version, "dialect": v.Dialect, "document": v.Document, "treeDigest": v.Tree, "files": v.Files, "bytes": v.Bytes,
	})
	if err != nil {
		return v, Manifest{}, nil, err
	}
	stored, err := s.take(ctx, digest.Descriptor{MediaType: suiteConfigType, Digest: digest.FromBytes(config), Size: int64(len(config))}, bytes.NewReader(config))
	if err != nil {
		return v, Manifest{}, nil, err
	}
	stored.MediaType = suiteConfigType
	text, err := suiteManifest(v, stored.Descriptor, index)
	if err != nil {
		return v, Manifest{}, nil, err
	}
	if len(text) > limit.Manifest {
		return v, Manifest{}, nil, Errorf(TooLarge, "the manifest of %d files has %d bytes, at most %d are allowed: shorten their names, or pack them into archives", len(index), len(text), limit.Manifest)
	}
	m, _, err := s.readManifest(repository, Reference{Tag: t.Version}, mediaImageManifest, text)
	if err != nil {
		return v, m, nil, err
	}
	v.Manifest = m.Digest
	manifest, err := s.takeManifest(ctx, m, text)
	return v, m, append(manifest, stored), err
}

// titleAnnotation holds a file's name: OCI clients that pull the manifest write the file under it.
const titleAnnotation = "org.opencontainers.image.title"

// layerOf is how a file stands in the manifest.
type layerOf struct {
	MediaType   string            `json:"mediaType"`
	Digest      digest.Digest     `json:"digest"`
	Size        int64             `json:"size"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// suiteManifest writes the OCI image manifest of a version. It is a function of the files and the document alone.
func suiteManifest(v SuiteVersion, config digest.Descriptor, index suite.Index) ([]byte, error) {
	layers := make([]layerOf, len(index))
	for i, f := range index {
		layers[i] = layerOf{blobMediaType, f.Digest, f.Size, map[string]string{titleAnnotation: f.Name}}
	}
	return json.Marshal(struct {
		SchemaVersion int               `json:"schemaVersion"`
		MediaType     string            `json:"mediaType"`
		ArtifactType  string            `json:"artifactType"`
		Config        layerOf           `json:"config"`
		Layers        []layerOf         `json:"layers"`
		Annotations   map[string]string `json:"annotations"`
	}{2, mediaImageManifest, v.Kind.ArtifactType(), layerOf{config.MediaType, config.Digest, config.Size, nil}, layers,
		map[string]string{"dev.gatehouse.tree-digest": v.Tree.String(), "org.opencontainers.image.version": v.Version}})
}

// readSuiteManifest lists the files that a manifest of ours names.
func readSuiteManifest(text []byte) (suite.Index, error) {
	var m struct {
		Layers []layerOf `json:"layers"`
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, err
	}
	index := make(suite.Index, len(m.Layers))
	for i, l := range m.Layers {
		index[i] = suite.File{Name: l.Annotations[titleAnnotation], Size: l.Size, Digest: l.Digest}
	}
	return index, nil
}

// insertSuite writes every row of a new version and ends its uploads.
func (s *Service) insertSuite(tx Tx, p auth.Principal, t Ticket, v SuiteVersion, m Manifest, fresh []content) error {
	if err := s.ensureSuiteRepository(tx, v.Repository); err != nil {
		return err
	}
	if err := checkVacant(tx, v.Repository); err != nil {
		return err
	}
	before, err := tx.SuiteVersions(v.Repository)
	if err != nil {
		return err
	}
	if len(before) == 0 && t.Public {
		readers, err := tx.RepositoryReaders(v.Repository)
		if err != nil {
			return err
		}
		if err := tx.SetRepositoryAccess(v.Repository, false, readers); err != nil {
			return err
		}
	}
	if err := tx.SetPackRepository(v.Repository, v.Name, v.ID().fold(), v.ID().packKind()); err != nil {
		return err
	}
	for _, c := range fresh {
		if c.Digest == m.Digest {
			continue
		}
		if err := tx.LinkBlob(v.Repository, c.Descriptor, s.now()); err != nil {
			return err
		}
	}
	if err := putOwnManifest(tx, m); err != nil {
		return err
	}
	if err := tx.InsertSuiteVersion(v); err != nil {
		return err
	}
	if err := tx.PutTag(Tag{Repository: v.Repository, Name: v.Version, Digest: m.Digest, UpdatedAt: v.CreatedAt}); err != nil {
		return err
	}
	if err := tx.DeleteSuiteFiles(v.Repository, v.Version); err != nil {
		return err
	}
	return s.audit(tx, p, string(v.Kind)+".push", v.ID().String()+"@"+v.Version, v.Tree.String())
}
