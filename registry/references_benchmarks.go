package registry

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gatehouse-registry/gatehouse/admission"
	"github.com/gatehouse-registry/gatehouse/admission/catalogue"
	"github.com/gatehouse-registry/gatehouse/admission/jobspec"
	"github.com/gatehouse-registry/gatehouse/admission/name"
	"github.com/gatehouse-registry/gatehouse/admission/nearest"
	"github.com/gatehouse-registry/gatehouse/admission/pack"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
)

// heldBenchmark looks for a benchmark: one that ships in the caller's client release, by its name, or a published pack, by
// <owner>.<name>. It needs the caller, so it stands beside held.
func (s *Service) heldBenchmark(tx Tx, p auth.Principal, caller Caller, ref jobspec.Reference) (admission.Resolution, error) {
	release, err := s.release(tx, caller)
	if err != nil {
		return admission.Resolution{}, err
	}
	// What the evaluation recipe takes as a parameter may also be a task of its runner, of which there are hundreds.
	parameter := strings.HasPrefix(ref.Path, "spec.hyperparams")
	for _, b := range release.Benchmarks() {
		if b.ID == ref.Text || parameter && slices.Contains(b.Suites, ref.Text) {
			return admission.Resolution{State: admission.Resolved}, nil
		}
	}
	there, published, err := s.publishedBenchmark(tx, p, caller, ref.Text)
	switch {
	case err != nil:
		return admission.Resolution{}, err
	case there:
		return admission.Resolution{State: admission.Resolved}, nil
	case !published && (parameter || s.resolver != nil || len(release.Benchmarks()) == 0):
		return admission.Resolution{}, nil
	}
	return admission.Resolution{State: admission.NotFound, Detail: noBenchmark(release.Catalogue, ref.Text)}, nil
}

// publishedBenchmark looks for a published pack. published tells of one that was there once: nobody else can have the name.
func (s *Service) publishedBenchmark(tx Tx, p auth.Principal, caller Caller, id string) (there, published bool, err error) {
	holder, err := tx.ClientIDHolder(caller.Dialect, string(pack.KindBenchmark), id)
	if errors.Is(err, ErrNotFound) {
		return false, false, nil
	}
	if err != nil || holder.ID != id {
		return false, err == nil, err
	}
	owner, packName, _ := strings.Cut(holder.Pack, "/")
	repository, err := name.RepositoryName(owner, packName)
	if err != nil {
		return false, true, nil
	}
	readable, err := s.canRead(tx, p, repository)
	if err != nil || !readable {
		return false, true, err
	}
	_, err = tx.Shelved(caller.Dialect, repository)
	if errors.Is(err, ErrNotFound) { // all its versions are disabled
		return false, true, nil
	}
	return err == nil, true, err
}

// noBenchmark says that a benchmark is not there, and which one was meant.
func noBenchmark(release *catalogue.Catalogue, id string) string {
	known := make([]string, len(release.Benchmarks()))
	for i, b := range release.Benchmarks() {
		known[i] = b.ID
	}
	text := fmt.Sprintf("the client release %s ships none of that name and no pack here offers one", release.Release())
	if word := nearest.Word(id, known); word != "" {
		text += "; did you mean " + word + "?"
	}
	return text
}
