package registry

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/gatehouse-registry/gatehouse/admission"
	"github.com/gatehouse-registry/gatehouse/admission/jobspec"
	"github.com/gatehouse-registry/gatehouse/admission/name"
	"github.com/gatehouse-registry/gatehouse/admission/pack"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
)

// A job may name twenty plugins, and is asked about twice. So what is known of a version is remembered as the rows of the cache
// are (remember.go): whether it is enabled and who may read it change under MetaStore.AccessGeneration.

// pluginKnown is what a principal may know of a version. found is false for what is not there, or not for it.
type pluginKnown struct {
	record admission.PluginRecord
	found  bool
}

// pluginRecords looks up every version that the spec names and the principal may read.
func (s *Service) pluginRecords(tx rememberingTx, p auth.Principal, spec *jobspec.Spec) (map[admission.PluginRef]admission.PluginRecord, error) {
	records := make(map[admission.PluginRef]admission.PluginRecord, len(spec.Plugins))
	for _, use := range spec.Plugins {
		look := func() (pluginKnown, error) { return s.pluginRecord(tx, p, use.ID, use.Version) }
		var known pluginKnown
		var err error
		if p.Role == auth.Robot || p.Grant != nil { // what bounds it further is no part of a key
			known, err = look()
		} else {
			key := rowKey{pluginRow, p.Account + "@" + string(p.Role), use.ID + "@" + use.Version}
			known, err = remembered(tx, key, func(pluginKnown) int { return knownSize }, look)
		}
		if err != nil {
			return nil, err
		}
		if known.found {
			records[admission.PluginRef{ID: use.ID, Version: use.Version}] = known.record
		}
	}
	return records, nil
}

// knownSize is about what a pluginKnown takes, in bytes.
const knownSize = 1 << 10

// pluginRecord looks up one version.
func (s *Service) pluginRecord(tx Tx, p auth.Principal, id, version string) (pluginKnown, error) {
	owner, packName, _ := strings.Cut(id, "/")
	repository, err := name.RepositoryName(owner, packName)
	if err != nil {
		return pluginKnown{}, nil
	}
	readable, err := s.canRead(tx, p, repository)
	if err != nil || !readable {
		return pluginKnown{}, err
	}
	v, err := tx.Version(repository, version)
	if errors.Is(err, ErrNotFound) || err == nil && v.PackName != packName {
		return pluginKnown{}, nil
	}
	if err != nil {
		return pluginKnown{}, err
	}
	record, err := recordOf(v)
	return pluginKnown{record, true}, err
}

func recordOf(v Version) (admission.PluginRecord, error) {
	var m pack.Manifest
	if err := json.Unmarshal(v.Document, &m); err != nil {
		return admission.PluginRecord{}, fmt.Errorf("stored manifest of %s@%s: %w", v.ID(), v.Version, err)
	}
	return admission.PluginRecord{
		Kind: pack.Kind(v.Kind), Dialect: v.Dialect, Enabled: v.Enabled, Revoked: !v.RevokedAt.IsZero(), Reason: v.Reason,
		Content: v.Content, Tree: v.Tree, Manifest: v.Manifest, Requires: m.Requires,
	}, nil
}
