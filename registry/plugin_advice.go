package registry

import (
	"strings"

	"github.com/gatehouse-registry/gatehouse/admission"
	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/jobspec"
	"github.com/gatehouse-registry/gatehouse/admission/name"
	"github.com/gatehouse-registry/gatehouse/admission/nearest"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
)

// What a refusal bounds itself to when it looks for what a job could have meant.
const (
	maxAdvised    = 8   // plugins of one job
	maxRecent     = 20  // versions of a plugin, those published last
	maxNeighbours = 200 // repositories of the owner whose names are compared
	maxCandidates = 4   // of them whose right to be read is asked for
)

// advisor looks within one transaction for what helps to mend the triples that a job can't use. It tells of nothing that the
// principal may not read.
type advisor struct {
	s     *Service
	tx    Tx
	p     auth.Principal
	d     dialect.Dialect
	asked int
	names map[string][]string // by owner: what the owner's repositories are called
	err   error               // of the store; it makes the decision void
}

// advise is admission.SubmissionInput.Advise.
func (a *advisor) advise(use jobspec.Plugin) admission.PluginAdvice {
	if a.asked++; a.asked > maxAdvised || a.err != nil {
		return admission.PluginAdvice{}
	}
	owner, packName, _ := strings.Cut(use.ID, "/")
	advice, err := a.about(owner, packName, use.Digest)
	if err == nil && advice.ID == "" {
		advice, err = a.like(owner, use.ID)
	}
	a.err = err
	return advice
}

// about is the advice about a pack, zero for one that is not there.
func (a *advisor) about(owner, packName, sum string) (admission.PluginAdvice, error) {
	repository, err := name.RepositoryName(owner, packName)
	if err != nil {
		return admission.PluginAdvice{}, nil
	}
	readable, err := a.s.canRead(a.tx, a.p, repository)
	if err != nil || !readable {
		return admission.PluginAdvice{}, err
	}
	versions, err := a.tx.LastVersions(repository, maxRecent)
	if err != nil || len(versions) == 0 || versions[0].PackName != packName {
		return admission.PluginAdvice{}, err
	}
	advice := admission.PluginAdvice{ID: versions[0].ID()}
	if v, ok := newest(inDialect(versions, a.d), true); ok {
		advice.Version, advice.Content = v.Version, v.Content
	} else {
		advice.None = len(versions) < maxRecent
	}
	for _, v := range versions {
		if v.Content.String() == sum {
			advice.DigestOf = v.Version
		}
	}
	return advice, nil
}

// like is the advice about the owner's pack whose name is nearest to an unknown one.
func (a *advisor) like(owner, id string) (admission.PluginAdvice, error) {
	names, err := a.neighbours(owner)
	if err != nil {
		return admission.PluginAdvice{}, err
	}
	_, wanted, _ := strings.Cut(id, "/")
	for _, near := range nearest.Words(wanted, names, maxCandidates) {
		r, err := a.tx.Repository(owner + "/" + near)
		if err != nil {
			return admission.PluginAdvice{}, err
		}
		advice, err := a.about(owner, r.PackName, "")
		if err != nil || advice.ID != "" {
			return advice, err
		}
	}
	return admission.PluginAdvice{}, nil
}

// neighbours are the names of an owner's repositories.
func (a *advisor) neighbours(owner string) ([]string, error) {
	if names, known := a.names[owner]; known {
		return names, nil
	}
	all, err := a.tx.Repositories(owner+"/", maxNeighbours)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, repository := range all {
		if inside, ok := strings.CutPrefix(repository, owner+"/"); ok {
			names = append(names, inside)
		}
	}
	if a.names == nil {
		a.names = make(map[string][]string)
	}
	a.names[owner] = names
	return names, nil
}
