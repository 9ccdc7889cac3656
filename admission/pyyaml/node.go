package pyyaml

import "github.com/gatehouse-registry/gatehouse/admission/pyvalue"

// nodeKind is one of YAML's three kinds of nodes.
type nodeKind uint8

const (
	scalarNode nodeKind = iota
	sequenceNode
	mappingNode
)

// String names the kind in messages.
func (k nodeKind) String() string { return [...]string{"a scalar", "a list", "a map"}[k] }

// node is one node of a document. Aliases share nodes, so nodes may form a cycle until checkGraph has refused it.
type node struct {
	kind  nodeKind
	plain bool   // a scalar without quotes
	tag   string // as resolved
	value string // of a scalar
	items []*node
	pairs []pair
	start mark

	built  *pyvalue.Value
	up     *node  // the collection it stands in first
	name   string // its key there; "" in a list
	index  int    // its place there
	merged int    // how many of the pairs, the first ones, came from merge keys

	// What checkGraph knows.
	state  walkState
	size   int // nodes below and including this one, aliases followed
	height int // levels of collections, aliases followed
}

// pair is a key and its value in a mapping.
type pair struct{ key, value *node }

// The tags of YAML 1.1 that have a meaning here.
const (
	tagPrefix    = "tag:yaml.org,2002:"
	tagNull      = tagPrefix + "null"
	tagBool      = tagPrefix + "bool"
	tagInt       = tagPrefix + "int"
	tagFloat     = tagPrefix + "float"
	tagBinary    = tagPrefix + "binary"
	tagTimestamp = tagPrefix + "timestamp"
	tagOmap      = tagPrefix + "omap"
	tagPairs     = tagPrefix + "pairs"
	tagSet       = tagPrefix + "set"
	tagStr       = tagPrefix + "str"
	tagSeq       = tagPrefix + "seq"
	tagMap       = tagPrefix + "map"
	tagMerge     = tagPrefix + "merge"
	tagValue     = tagPrefix + "value"
)
