package jobspec

import (
	"math/big"
	"strings"

	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
	"github.com/gatehouse-registry/gatehouse/internal/pattern"
)

// Bounds of a request for resources (jobspec.md 3).
const (
	maxNodes       = 65536
	maxGPUsPerNode = 1024
	maxHost        = 1 << 20   // CPUs, GB of memory or GB of scratch space of one node
	maxTotal       = 1<<31 - 1 // GPUs, CPUs or GB of memory of one job
)

// resources reads spec.resources.
func (r *reader) resources(n node) {
	m, ok := r.object(n, secResources, "job.resources.object")
	if !ok {
		return
	}
	pools := m.get("pools")
	named := r.pools(pools)
	r.roles(m.get("roles"), named)
	if r.tunePlane() {
		r.leases(m.get("leases"))
		if network := m.get("network"); !network.absent() {
			r.network(network)
		}
	}
}

// pools reads every pool, then what they come to together. It reports whether the name of every pool could be read.
func (r *reader) pools(n node) bool {
	list, ok := r.list(n, "job.resources.pools.array", "objects")
	if !ok {
		return false
	}
	whole, named := true, true
	for i, v := range list {
		pool, ok := r.pool(n.item(i, v))
		whole, named = whole && ok, named && pool.Name != ""
		r.spec.Resources.Pools = append(r.spec.Resources.Pools, pool)
	}
	if len(list) == 0 {
		r.bad(n, "job.resources.pools.empty", "found no pool, expected at least one")
		return false
	}
	if whole {
		r.totals(n)
	}
	if named {
		r.poolNames(n)
	}
	return named
}

// totals bounds the sums over nodes and pools. Every pool is within its bounds, so no sum overflows.
func (r *reader) totals(n node) {
	var gpus, cpus, memory int64
	for _, p := range r.spec.Resources.Pools {
		gpus += p.Nodes * p.GPUsPerNode
		cpus += p.Nodes * p.CPUs
		memory += p.Nodes * p.MemoryGB
	}
	for _, sum := range []struct {
		what  string
		total int64
	}{{"GPUs", gpus}, {"cpus", cpus}, {"memory_gb", memory}} {
		if sum.total > maxTotal {
			r.bad(n, "job.resources.total", "the pools together ask for %d %s, expected at most %d", sum.total, sum.what, maxTotal)
			return
		}
	}
}

func (r *reader) poolNames(n node) {
	seen := make(map[string]bool)
	for _, p := range r.spec.Resources.Pools {
		if seen[p.Name] {
			r.bad(n, "job.resources.pools.duplicate", "found the pool %.100q more than once, expected every pool to have its own name", p.Name)
			return
		}
		seen[p.Name] = true
	}
}

// pool reads one pool; the two dialects look at its parts in different orders.
func (r *reader) pool(n node) (p Pool, ok bool) {
	m, ok := r.object(n, secPool, "job.resources.pool.object")
	if !ok {
		return p, false
	}
	if r.tunePlane() {
		gpus := r.gpusPerNode(m.get("gpus_per_node"), &p, 0, "a whole number of at least 0")
		atMost := r.atMost(m.get("nodes"), maxNodes, "job.resources.pool.nodes.max")
		p.Series = r.loose(m.get("series"))
		host := !gpus || p.GPUsPerNode > 0 || r.cpuOnly(m, &p)
		name := r.poolName(m.get("name"), &p)
		nodes := r.nodes(m.get("nodes"), &p)
		host = host && r.host(m, &p)
		return p, gpus && atMost && host && name && nodes
	}
	name := r.poolName(m.get("name"), &p)
	p.Series = r.loose(m.get("series"))
	nodes := r.nodes(m.get("nodes"), &p)
	gpus := r.gpusPerNode(m.get("gpus_per_node"), &p, 1, "a whole number above 0")
	atMost := r.atMost(m.get("nodes"), maxNodes, "job.resources.pool.nodes.max")
	return p, name && nodes && gpus && atMost
}

func (r *reader) poolName(n node, p *Pool) bool {
	text, ok := r.required(n, "job.resources.pool.name.required", "job.resources.pool.name.type")
	if ok && r.segment(n, text, "job.resources.pool.name.segment") {
		p.Name = text
		return true
	}
	return false
}

// nodes reads a number of nodes; one beyond the bound is reported by atMost alone.
func (r *reader) nodes(n node, p *Pool) bool {
	if exceeds(n.v, maxNodes) {
		return false
	}
	nodes, ok := r.positive(n, "job.resources.pool.nodes.positive", 1)
	p.Nodes = nodes
	return ok
}

func (r *reader) gpusPerNode(n node, p *Pool, least int64, want string) bool {
	if exceeds(n.v, maxGPUsPerNode) {
		return r.atMost(n, maxGPUsPerNode, "job.resources.pool.gpus_per_node.max")
	}
	gpus, ok := r.integer(n, "job.resources.pool.gpus_per_node.range", least, 1, want)
	p.GPUsPerNode = gpus
	return ok
}

// roles reads a map from role to pool. Unless every pool's name is known nothing can be said about the targets.
func (r *reader) roles(n node, pools bool) {
	m, ok := r.object(n, secFree, "job.resources.roles.object")
	if !ok || m.empty() {
		return
	}
	names := make(map[string]bool)
	for _, p := range r.spec.Resources.Pools {
		names[p.Name] = true
	}
	for _, it := range m.v.Items {
		target := r.text(m.child(it.Key.Text, it.Value))
		if pools && !names[target] {
			r.bad(m.child(it.Key.Text, it.Value).as(m), "job.resources.roles.target", "found %.100q, expected one of the pools (%.200s) for the role %.100q to run in", target, poolNames(r.spec.Resources.Pools), it.Key.Text)
			continue
		}
		r.spec.Resources.Roles = append(r.spec.Resources.Roles, Role{it.Key.Text, target})
	}
}

// poolNames lists the first pools, for a message.
func poolNames(pools []Pool) string {
	pools = pools[:min(len(pools), maxNamed)]
	names := make([]string, len(pools))
	for i, p := range pools {
		names[i] = p.Name
	}
	return strings.Join(names, ", ")
}

// leases reads spec.resources.leases.
func (r *reader) leases(n node) {
	list, _ := r.list(n, "job.resources.leases.array", "{tool, seats}")
	seen := make(map[string]bool)
	for i, v := range list {
		m, ok := r.object(n.item(i, v), secLease, "job.resources.lease.object")
		if !ok {
			continue
		}
		tool := m.get("tool")
		lease := Lease{Tool: r.loose(tool)}
		if lease.Tool == "" {
			r.expected(tool, "job.resources.lease.tool", "the name of a tool")
		}
		lease.Seats, ok = r.positive(m.get("seats"), "job.resources.lease.seats", 1)
		if !ok || lease.Tool == "" {
			continue
		}
		if seen[lease.Tool] {
			r.bad(n, "job.resources.leases.duplicate", "found the tool %.100q more than once, expected one lease of it", lease.Tool)
			continue
		}
		seen[lease.Tool] = true
		r.spec.Resources.Leases = append(r.spec.Resources.Leases, lease)
	}
}

var networkInterface = pattern.New(`^[A-Za-z0-9_.-]{0,15}$`)

// network reads spec.resources.network, where even null is a breach.
func (r *reader) network(n node) {
	if n.v.Kind != pyvalue.Map {
		r.expected(n, "job.resources.network.fields", "an object of transport, interface and isolation")
		return
	}
	out := Network{Transport: "tcp", Isolation: "fleet"}
	ok := true
	for _, it := range n.v.Items {
		c := n.child(it.Key.Text, it.Value)
		switch it.Key.Text {
		case "transport":
			out.Transport, ok = r.oneOf(n, c, ok, "tcp", "rdma")
		case "isolation":
			out.Isolation, ok = r.oneOf(n, c, ok, "fleet", "job")
		case "interface":
			if c.v.Kind != pyvalue.Str || !networkInterface.MatchString(c.v.Text) {
				r.expected(c, "job.resources.network.interface", "the name of one network interface, or \"\"")
				ok = false
			}
			out.Interface = c.v.Text
		default:
			r.bad(n, "job.resources.network.fields", "found the key %.100q, expected transport, interface and isolation only", it.Key.Text)
			ok = false
		}
	}
	if !ok {
		return
	}
	if out.Transport != "tcp" || out.Isolation != "fleet" {
		r.bad(n, "job.resources.network.supported", "found transport %s and isolation %s; only tcp and fleet can start", out.Transport, out.Isolation)
	}
	r.spec.Resources.Network = &out
}

// oneOf reads one of two exact texts. The clients report the network as a whole.
func (r *reader) oneOf(whole, n node, ok bool, first, second string) (string, bool) {
	if n.v.Kind == pyvalue.Str && (n.v.Text == first || n.v.Text == second) {
		return n.v.Text, ok
	}
	r.expected(n.as(whole), "job.resources.network.value", "\""+first+"\" or \""+second+"\"")
	return "", false
}

// exceeds reports whether v is an integer above most.
func exceeds(v *pyvalue.Value, most int64) bool {
	return v != nil && v.Kind == pyvalue.Int && v.Int.Cmp(big.NewInt(most)) > 0
}
