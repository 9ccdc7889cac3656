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
// are (cache.go): whether it is enabled and who may read it change under MetaStore.AccessGeneration.

// pluginKnown is what a principal may know of a version. found is false for what is not there, or not for it.
type pluginKnown struct {
	record admission.PluginRecord
	found  bool
}

// moment is the generation before a View. A transaction that writes has none: what it sees of others may never be committed, so
// that it remembers nothing.
type moment struct {
	generation uint64
	exact      bool
}

// thisMoment is to be called before the View begins whose reads are remembered.
func (s *Service) thisMoment() moment {
	g, exact := s.meta.AccessGeneration()
	return moment{g, exact}
}

// pluginRecords looks up every version that the spec names and the principal may read.
func (s *Service) pluginRecords(tx Tx, p auth.Principal, spec *jobspec.Spec, since moment) (map[admission.PluginRef]admission.PluginRecord, error) {
	records := make(map[admission.PluginRef]admission.PluginRecord, len(spec.Plugins))
	generation, exact := s.meta.AccessGeneration()
	shared := p.Role != auth.Robot && p.Grant == nil // what the account may read, nothing bounds further
	for _, use := range spec.Plugins {
		key := rowKey{pluginRow, p.Account + "@" + string(p.Role), use.ID + "@" + use.Version}
		if r, ok := s.rows.get(key); ok && shared && exact && r.generation == generation {
			if known := r.value.(pluginKnown); known.found {
				records[admission.PluginRef{ID: use.ID, Version: use.Version}] = known.record
			}
			continue
		}
		known, err := s.pluginRecord(tx, p, use.ID, use.Version)
		if err != nil {
			return nil, err
		}
		if known.found {
			records[admission.PluginRef{ID: use.ID, Version: use.Version}] = known.record
		}
		if shared && since.exact {
			s.rows.put(key, row{since.generation, known}, len(key.a)+len(key.b)+knownSize)
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
		Kind: pack.Kind(v.Kind), Dialect: v.Dialect, Enabled: v.Enabled,
		Content: v.Content, Tree: v.Tree, Manifest: v.Manifest, Requires: m.Requires,
	}, nil
}
