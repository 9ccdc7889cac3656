package jobspec

import (
	"fmt"
	"strings"

	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
)

// Topology is what one pool comes to when a recipe's roles run in it.
type Topology struct {
	Pool           string `json:"pool"`
	Series         string `json:"series"`
	Machines       int64  `json:"machines"`
	GPUsPerMachine int64  `json:"gpus_per_machine"`
	WorldSize      int64  `json:"world_size"`
}

func (p Pool) topology() Topology {
	return Topology{Pool: p.Name, Series: p.Series, Machines: p.Nodes, GPUsPerMachine: p.GPUsPerNode, WorldSize: p.Nodes * p.GPUsPerNode}
}

// PoolTopologies says how the pools carry a recipe's roles, the pool of the first role first (jobspec.md 3). A single
// pool carries everything; of several each must carry a role, and each role must be mapped. The violations name the
// clients' fields.
func (r Resources) PoolTopologies(roles []string) ([]Topology, []rule.Violation) {
	cpuOnly := r.cpuOnly()
	if len(r.Pools) == 1 {
		if cpuOnly != nil {
			return nil, cpuOnly
		}
		return []Topology{r.Pools[0].topology()}, nil
	}
	roles = cleanRoles(roles)
	if len(roles) == 0 {
		return nil, append([]rule.Violation{topologyViolation("spec.resources.pools", "job.resources.topology.roles",
			"found %d pools and a recipe without roles, expected one pool", len(r.Pools))}, cpuOnly...)
	}
	found := r.unmapped(roles)
	target := r.targets()
	if found == nil {
		found = r.idle(roles, target)
	}
	if found = append(found, cpuOnly...); found != nil {
		return nil, found
	}
	return r.mainFirst(target[roles[0]]), nil
}

// unmapped files each role that runs in no pool.
func (r Resources) unmapped(roles []string) (found []rule.Violation) {
	target := r.targets()
	for _, role := range roles {
		if target[role] == "" {
			found = append(found, topologyViolation("spec.resources.roles."+showKey(role), "job.resources.topology.roles",
				"the recipe's role %.100q is mapped to no pool, expected one of %.200s: with several pools each role must be", role, poolNames(r.Pools)))
		}
	}
	return found
}

// idle files the first pool in which no role runs.
func (r Resources) idle(roles []string, target map[string]string) []rule.Violation {
	carrying := make(map[string]bool, len(roles))
	for _, role := range roles {
		carrying[target[role]] = true
	}
	for _, p := range r.Pools {
		if !carrying[p.Name] {
			return []rule.Violation{topologyViolation("spec.resources.pools", "job.resources.topology.idle",
				"the pool %.100q carries no role of the recipe, expected one of %.200s", p.Name, strings.Join(roles, ", "))}
		}
	}
	return nil
}

// DistributedTopology is for a framework whose processes form one homogeneous world: one pool only.
func (r Resources) DistributedTopology(roles []string) (Topology, []rule.Violation) {
	cpuOnly := r.cpuOnly()
	if len(r.Pools) == 1 {
		if cpuOnly != nil {
			return Topology{}, cpuOnly
		}
		return r.Pools[0].topology(), nil
	}
	roles = cleanRoles(roles)
	if found := r.unmapped(roles); found != nil {
		return Topology{}, append(found, cpuOnly...)
	}
	target := r.targets()
	for _, role := range roles {
		if first := target[roles[0]]; target[role] != first {
			return Topology{}, append([]rule.Violation{topologyViolation("spec.resources.roles", "job.resources.topology.single",
				"the roles run in the pools %.100q and %.100q, expected one: this framework's processes form one world", first, target[role])}, cpuOnly...)
		}
	}
	return Topology{}, append([]rule.Violation{topologyViolation("spec.resources.pools", "job.resources.topology.single",
		"found %d pools, expected one: this framework's processes form one world", len(r.Pools))}, cpuOnly...)
}

// cpuOnly files the first pool without GPUs: it can't be part of a GPU world.
func (r Resources) cpuOnly() []rule.Violation {
	for _, p := range r.Pools {
		if p.GPUsPerNode == 0 {
			return []rule.Violation{topologyViolation("spec.resources.pools", "job.resources.topology.cpu_only",
				"the pool %.100q has no GPUs, expected some: it is part of a GPU world", p.Name)}
		}
	}
	return nil
}

func (r Resources) targets() map[string]string {
	m := make(map[string]string, len(r.Roles))
	for _, role := range r.Roles {
		m[role.Name] = role.Pool
	}
	return m
}

// mainFirst lists the pools' topologies with one pool put first.
func (r Resources) mainFirst(main string) []Topology {
	var first, rest []Topology
	for _, p := range r.Pools {
		if p.Name == main {
			first = append(first, p.topology())
			continue
		}
		rest = append(rest, p.topology())
	}
	return append(first, rest...)
}

// cleanRoles trims the roles and drops blanks and repeats.
func cleanRoles(roles []string) []string {
	var clean []string
	seen := make(map[string]bool)
	for _, role := range roles {
		if role = pyvalue.Strip(role); role != "" && !seen[role] {
			seen[role] = true
			clean = append(clean, role)
		}
	}
	return clean
}

func topologyViolation(field string, id rule.ID, format string, args ...any) rule.Violation {
	return rule.Violation{Rule: id, Field: field, Message: fmt.Sprintf(format, args...)}
}
