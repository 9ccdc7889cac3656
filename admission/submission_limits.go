package admission

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gatehouse-registry/gatehouse/admission/jobspec"
	"github.com/gatehouse-registry/gatehouse/digest"
)

// quota asks that the job fits into what the account may still hold, and that its hardware is of profiles that it may use.
func (g *submissionGate) quota() {
	q := g.in.Quota
	if gpus := g.spec.TotalGPUs(); q.Limit > 0 && gpus > 0 && gpus > q.Limit-q.InUse {
		g.add("job.quota.gpus", "spec.resources.pools", "the job asks for %d GPUs; the account may use %d at a time and %d are in use", gpus, q.Limit, q.InUse)
	}
	if q.MaxJobs > 0 && q.Jobs >= q.MaxJobs {
		g.add("job.quota.jobs", "", "the account may have %d jobs at a time and has %d", q.MaxJobs, q.Jobs)
	}
	if len(q.Profiles) > 0 && g.in.Profiles != nil {
		g.allowedProfiles(q.Profiles)
	}
}

// allowedProfiles asks that each pool with GPUs is of an allowed profile's series. A pool that names none takes what the
// request's profile says; without one nothing tells what hardware it would get.
func (g *submissionGate) allowedProfiles(names []string) {
	var series []string
	for _, p := range g.in.Profiles {
		if slices.Contains(names, p.Name) {
			series = append(series, p.series())
		}
	}
	profile := ""
	if g.in.Beside != nil {
		profile = g.in.Beside.Profile
	}
	allowed := strings.Join(names, ", ")
	if profile != "" && !slices.Contains(names, profile) {
		g.add("job.quota.profiles", "profile", "the account may not use the profile %.100q, it may use %.300s", profile, allowed)
	}
	for i, pool := range g.spec.Resources.Pools {
		field := fmt.Sprintf("spec.resources.pools[%d].series", i)
		switch {
		case pool.GPUsPerNode == 0, pool.Series == "" && profile != "", slices.Contains(series, pool.Series):
		case g.refused("job.resources.series.exists", field): // there is no such hardware to be allowed
		case pool.Series == "":
			g.add("job.quota.profiles", field, "the pool names no series, and the account may use the profiles %.300s alone: expected one of the series %.300s", allowed, strings.Join(series, ", "))
		default:
			g.add("job.quota.profiles", field, "the account may not use hardware of the series %.100q, it may use the profiles %.300s", pool.Series, allowed)
		}
	}
}

// imagePin asks that an image names its bytes: a tag can be moved between the admission of a job and its start.
func (g *submissionGate) imagePin(image string) {
	_, sum, pinned := strings.Cut(image, "@")
	if pinned {
		if _, err := digest.Parse(sum); err == nil {
			return
		}
	}
	id := RuleID("job.framework.image.unpinned")
	if g.in.PinImages {
		id = "job.framework.image.digest"
	}
	g.add(id, "spec.framework.image", "the image %.200q names no digest, expected @sha256: and 64 hex digits behind it", jobspec.WithoutUserinfo(image))
}

// fromHub asks that a model or a data set comes from a hub that the deployment allows, pinned where it wants that. What is
// no reference to a hub passes.
func (g *submissionGate) fromHub(ref jobspec.Reference) bool {
	hub, ok := g.spec.HubRef(ref)
	if !ok {
		return true
	}
	if g.in.Hubs != nil && !slices.Contains(g.in.Hubs, hub.Hub) {
		g.add("job.hub.policy", ref.Path, "%.200q is on the hub %s, this server allows %s", ref.Text, hub.Hub, orNone(g.in.Hubs))
		return false
	}
	if g.in.PinHubs && !hub.Platform() && !hub.Pinned() {
		g.add("job.hub.policy", ref.Path, "%.200q can change on the hub %s, expected a commit of 40 hex digits behind '@'", ref.Text, hub.Hub)
		return false
	}
	return true
}
