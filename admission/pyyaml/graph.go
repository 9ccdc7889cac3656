package pyyaml

import "github.com/gatehouse-registry/gatehouse/admission/limit"

// walkState is how far checkGraph has come with a node.
type walkState uint8

const (
	unvisited walkState = iota
	onPath
	visited
)

// checkGraph follows the aliases of a document before any value is made. It refuses cycles, aliases that stand for
// more values than the limit, and nesting that the clients can't follow. Each node is visited once.
func (l *loader) checkGraph(n *node, depth int) *fault {
	switch n.state {
	case onPath:
		return newFault("yaml.alias.cycle", n.start, "the value that begins here holds an alias to itself")
	case visited:
		if depth+n.height > limit.YAMLClientDepth {
			return newFault("yaml.recursion", n.start, "aliases nest deeper than %d levels", limit.YAMLClientDepth)
		}
		return nil
	}
	if n.kind == scalarNode {
		n.state, n.size = visited, 1
		return nil
	}
	if depth >= limit.YAMLClientDepth {
		return newFault("yaml.recursion", n.start, "aliases nest deeper than %d levels", limit.YAMLClientDepth)
	}
	n.state, n.size = onPath, 1
	visit := func(part *node) *fault {
		if err := l.checkGraph(part, depth+1); err != nil {
			return err
		}
		n.height = max(n.height, part.height+1)
		if n.size += part.size; n.size > l.opt.MaxNodes {
			return newFault("yaml.alias.bomb", n.start, "the aliases in the value that begins here stand for more than %d values", l.opt.MaxNodes)
		}
		return nil
	}
	for _, item := range n.items {
		if err := visit(item); err != nil {
			return err
		}
	}
	for _, p := range n.pairs {
		if err := visit(p.key); err != nil {
			return err
		}
		if err := visit(p.value); err != nil {
			return err
		}
	}
	n.state = visited
	return nil
}
