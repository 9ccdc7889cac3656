package launchverify

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/launchverify/nodecache"
)

// A launch from the package makes the job directory itself from the job package whose digest the receipt pins. The
// experiment, common and configs are our own copies then; the packs come from the cache as ever, the spec from the job
// directory or by the digest that the receipt pins. Of what the user has on the node the job's directory shows the folder
// of its outputs alone.

// packagePlan is what the stage needs to know of a job package. The texts may hold any bytes.
type packagePlan struct {
	Path       []byte // of the archive
	Cached     bool   // the archive lies in the node's cache; else it is the job's user who must be able to read it
	Digest     digest.Digest
	Experiment []byte // spec.source.exp
	Outputs    []byte // the folder that is shown as <exp>/outputs
}

// maxPackage describes a job package as large as one may be.
func maxPackage(d digest.Digest) digest.Descriptor {
	return digest.Descriptor{Digest: d, Size: limit.JobPackage}
}

// jobHere is a job whose spec will come from the registry: its directory is the current one, as it is the launchers'.
func jobHere() (*job, error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("the current directory stands for the job's: %w", err)
	}
	return &job{dir: dir, owner: ownerOf(dir)}, nil
}

// pinnedSpec brings the spec that the receipt pins, from the cache or from the registry.
func (l *launch) pinnedSpec(ctx context.Context) error {
	store, err := l.cache()
	if err != nil {
		return err
	}
	pinned := digest.Descriptor{Digest: l.rcp.SpecBytes, Size: limit.Document}
	var text []byte
	for attempt := range 2 { // what was damaged in the cache is fetched again, once
		entry, err := store.Blob(ctx, pinned, func(ctx context.Context) (io.ReadCloser, error) { return l.o.Fetcher.FetchSpec(ctx, l.rcp) })
		if err != nil {
			return l.blobError("launch.receipt.spec", "the spec of job "+l.rcp.Job, err)
		}
		text, err = readRegular(entry.Path(), limit.Document)
		if err == nil && digest.FromBytes(text) == pinned.Digest {
			entry.Release()
			break
		}
		if err := errors.Join(store.Drop(entry), err); err != nil {
			return err
		}
		if attempt == 1 {
			return refusal("launch.receipt.spec", l.job.subject(), "the spec in the node's cache is not the one that the receipt pins (%s)", pinned.Digest)
		}
	}
	l.job.dialect = l.rcp.Dialect
	l.job.parse(text, l.o.Policy)
	return nil
}

// blobError words the failure to fetch what a digest pins; bytes of another digest are a refusal by the rule.
func (l *launch) blobError(wrong rule.ID, what string, err error) error {
	if _, ok := errors.AsType[*digest.MismatchError](err); ok {
		return refusal(wrong, l.job.subject(), "%s: the registry sent something else: %v", what, err)
	}
	return fmt.Errorf("%s: %w", what, err)
}

// jobPackage finds the package that the job directory is made of; nil when it is not.
func (l *launch) jobPackage(ctx context.Context) (*packagePlan, error) {
	if !l.o.FromPackage {
		return nil, nil
	}
	want := l.rcp.JobPackage
	if want.IsZero() {
		return nil, refusal("launch.package.missing", l.job.subject(), "the receipt of job %.200q pins no job package", l.rcp.Job)
	}
	p := &packagePlan{Digest: want, Experiment: []byte(l.job.spec.Source.Exp), Outputs: []byte(l.outputs())}
	l.rec.Package = want
	if l.o.Package != "" {
		path, err := filepath.Abs(l.o.Package)
		p.Path = []byte(path)
		return p, err
	}
	store, err := l.cache()
	if err != nil {
		return nil, err
	}
	entry, err := store.Blob(ctx, maxPackage(want), func(ctx context.Context) (io.ReadCloser, error) { return l.o.Fetcher.FetchPackage(ctx, l.rcp) })
	if err != nil {
		return nil, l.blobError("launch.package.digest", "the package of job "+l.rcp.Job, err)
	}
	l.entries = append(l.entries, entry)
	p.Path, p.Cached = []byte(entry.Path()), true
	return p, nil
}

// cache opens the node's cache, once.
func (l *launch) cache() (*nodecache.Cache, error) {
	if l.store == nil {
		store, err := nodecache.Open(l.o.CacheDir, nodecache.Options{Policy: l.o.Policy, MaxBytes: l.o.CacheBytes})
		if err != nil {
			return nil, fmt.Errorf("node cache: %w", err)
		}
		l.store = store
	}
	return l.store, nil
}
