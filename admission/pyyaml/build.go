package pyyaml

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
)

// builder makes Python's values of nodes. Collections are made empty and filled in turn, level by level, as the
// clients' reader does, so that the first fault is the same one.
type builder struct {
	load  *loader
	queue []*node
}

// build makes the value of a document's root.
func (b *builder) build(root *node) (*pyvalue.Value, *fault) {
	v, err := b.value(root)
	for err == nil && len(b.queue) > 0 {
		n := b.queue[0]
		b.queue = b.queue[1:]
		err = b.fill(n)
	}
	return v, err
}

// child is the value of a node that stands in a collection.
func (b *builder) child(n, in *node, name string, index int) (*pyvalue.Value, *fault) {
	if n.up == nil {
		n.up, n.name, n.index = in, name, index
	}
	return b.value(n)
}

// value is the value of a node; collections come back empty and are queued.
func (b *builder) value(n *node) (*pyvalue.Value, *fault) {
	if n.built != nil {
		return n.built, nil
	}
	v, known, err := n.scalarValue()
	if err != nil {
		return nil, err
	}
	if !known {
		kind, ok := map[string]pyvalue.Kind{
			tagSeq: pyvalue.List, tagMap: pyvalue.Map, tagSet: pyvalue.Set, tagOmap: pyvalue.List, tagPairs: pyvalue.List,
		}[n.tag]
		if !ok {
			return nil, n.unknownTag()
		}
		v = n.newValue(kind)
		b.queue = append(b.queue, n)
	}
	n.built = v
	return v, nil
}

// unknownTag is the fault of a node that the clients' reader has no type for.
func (n *node) unknownTag() *fault {
	if n.plain && (n.tag == tagValue || n.tag == tagMerge) {
		return n.noValue("YAML gives the scalar %s a meaning of its own; put it in quotes", n.value)
	}
	return newFault("yaml.tag.unknown", n.start, "the tag %.100q means nothing to the clients", shortTag(n.tag))
}

// fill fills a queued collection.
func (b *builder) fill(n *node) (err *fault) {
	switch n.tag {
	case tagSeq:
		return b.fillList(n)
	case tagMap:
		n.built.Items, err = b.items(n)
		return err
	case tagSet:
		items, err := b.items(n)
		for _, it := range items {
			n.built.List = append(n.built.List, it.Key)
		}
		return err
	}
	return b.fillPairs(n)
}

// isKind is nil when the node is of the kind that its tag needs.
func (n *node) isKind(want nodeKind) *fault {
	if n.kind == want {
		return nil
	}
	return n.noValue("the tag %s needs %s; found %s", shortTag(n.tag), want, n.kind)
}

func (b *builder) fillList(n *node) *fault {
	if err := n.isKind(sequenceNode); err != nil {
		return err
	}
	n.built.List = make([]*pyvalue.Value, 0, len(n.items))
	for i, item := range n.items {
		v, err := b.child(item, n, "", i)
		if err != nil {
			return err
		}
		n.built.List = append(n.built.List, v)
	}
	return nil
}

// fillPairs makes the tuples of !!omap and !!pairs.
func (b *builder) fillPairs(n *node) *fault {
	if err := n.isKind(sequenceNode); err != nil {
		return err
	}
	for i, item := range n.items {
		if item.kind != mappingNode || len(item.pairs) != 1 {
			return item.noValue("an entry of %s is a map of one pair", shortTag(n.tag))
		}
		tuple := item.newValue(pyvalue.Tuple)
		for _, part := range []*node{item.pairs[0].key, item.pairs[0].value} {
			v, err := b.child(part, n, "", i)
			if err != nil {
				return err
			}
			tuple.List = append(tuple.List, v)
		}
		n.built.List = append(n.built.List, tuple)
	}
	return nil
}

// items are the pairs of a mapping as Python's dict keeps them: each key once, at its first place, with its last
// value. Merged pairs come before the mapping's own.
func (b *builder) items(n *node) ([]pyvalue.Item, *fault) {
	if err := n.isKind(mappingNode); err != nil {
		return nil, err
	}
	if err := b.load.flatten(n); err != nil {
		return nil, err
	}
	items := make([]pyvalue.Item, 0, len(n.pairs))
	places := make(map[string]int, len(n.pairs))
	own := make(map[string]*node)
	for i, p := range n.pairs {
		name := p.key.shownKey()
		key, err := b.child(p.key, n, name, i)
		if err != nil {
			return nil, err
		}
		hash, ok := key.HashKey()
		if !ok {
			return nil, newFault("yaml.key", p.key.start, "a %s can't be a key; a key is a scalar", key.TypeName())
		}
		if key.Kind == pyvalue.Float && key.Float != key.Float && !strings.Contains(strings.ToLower(p.key.value), ".nan") {
			hash = fmt.Sprintf("nan %p", p.key) // Python makes a new object of each, and none equals another
		}
		if i >= n.merged {
			b.load.checkKey(n, p.key, key, own[hash])
			own[hash] = p.key
		}
		value, err := b.child(p.value, n, name, i)
		if err != nil {
			return nil, err
		}
		if at, dup := places[hash]; dup {
			items[at].Value = value
			continue
		}
		places[hash] = len(items)
		items = append(items, pyvalue.Item{Key: key, Value: value})
	}
	return items, nil
}

// flatten puts the pairs that merge keys name before the mapping's own.
func (l *loader) flatten(n *node) *fault {
	var merged, own []pair
	seen := make(map[any]bool)
	merge := func(from *node) *fault {
		if err := l.flatten(from); err != nil {
			return err
		}
		for _, p := range from.pairs {
			if id := p.key.identity(); !seen[id] {
				seen[id] = true
				merged = append(merged, p)
			}
		}
		return nil
	}
	for _, p := range n.pairs {
		if p.key.tag != tagMerge {
			if p.key.tag == tagValue {
				p.key.tag = tagStr
			}
			own = append(own, p)
			continue
		}
		l.alias(p.key.start, "the merge key <<")
		from, err := p.value.mergeSources(n)
		if err != nil {
			return err
		}
		for _, f := range from {
			if err := merge(f); err != nil {
				return err
			}
		}
	}
	if len(own) < len(n.pairs) {
		n.merged += len(merged)
		n.pairs = append(merged, own...)
	}
	return nil
}

// mergeSources are the mappings that the value of a merge key names.
func (n *node) mergeSources(into *node) ([]*node, *fault) {
	if n.kind == mappingNode {
		return []*node{n}, nil
	}
	if n.kind == sequenceNode {
		for _, item := range n.items {
			if item.kind != mappingNode {
				return nil, item.noValue("a merge key takes maps; found %s", item.kind)
			}
		}
		return n.items, nil
	}
	return nil, n.noValue("a merge key takes a map or a list of maps; found %s", n.kind)
}

// identity is what the clients' reader compares when it merges several maps: it takes the first of two keys only
// when their texts are one object in memory. That holds for a key that is reached twice through aliases, and for
// texts of no character or of one below U+0100, which Python keeps only once. For all other keys the last map wins.
func (n *node) identity() any {
	if n.kind == scalarNode {
		r, width := utf8.DecodeRuneInString(n.value)
		if n.value == "" || (width == len(n.value) && r < 0x100) {
			return n.value
		}
	}
	return n
}

// shownKey is a key as field paths show it.
func (n *node) shownKey() string {
	if n.kind != scalarNode {
		return "?"
	}
	if len(n.value) > 60 || strings.ContainsFunc(n.value, func(r rune) bool { return r <= ' ' || r == 0x7F || r == '.' || r > 0x7E }) || n.value == "" {
		return fmt.Sprintf("%.60q", n.value)
	}
	return n.value
}

// field is the path of a node, such as requires.frameworks.trl or keywords[0]. It is cut where it gets long.
func (n *node) field() string {
	var parts []string
	for at := n; at.up != nil && len(parts) < 32; at = at.up {
		if at.name == "" {
			parts = append(parts, fmt.Sprintf("[%d]", at.index))
		} else {
			parts = append(parts, "."+at.name)
		}
	}
	var b strings.Builder
	for i := len(parts) - 1; i >= 0; i-- {
		b.WriteString(parts[i])
	}
	return strings.TrimPrefix(b.String(), ".")
}
