package pyyaml

// blockSequence parses "- " entries up to the end of their indentation.
func (p *parser) blockSequence(n *node) *fault {
	if _, err := p.take(); err != nil {
		return err
	}
	for {
		entry, ok, err := p.skip(tokBlockEntry)
		if err != nil {
			return err
		}
		if !ok {
			return p.blockEnd("the end of the list or '- '")
		}
		if err := p.item(n, entry, tokBlockEntry, tokBlockEnd); err != nil {
			return err
		}
	}
}

// entriesWithoutIndent parses "- " entries that stand as deep as the key before them.
func (p *parser) entriesWithoutIndent(n *node) *fault {
	for {
		entry, ok, err := p.skip(tokBlockEntry)
		if err != nil || !ok {
			return err
		}
		if err := p.item(n, entry, tokBlockEntry, tokKey, tokValue, tokBlockEnd); err != nil {
			return err
		}
	}
}

// item parses an entry of a block list; one of the kinds next means that it is empty.
func (p *parser) item(n *node, entry token, empty ...tokenKind) *fault {
	item, err := p.nodeOr(entry.end, true, false, empty...)
	if err != nil {
		return err
	}
	n.items = append(n.items, item)
	return nil
}

// nodeOr parses a node, or makes the empty one when the next token is of one of the kinds.
func (p *parser) nodeOr(at mark, block, entries bool, empty ...tokenKind) (*node, *fault) {
	is, err := p.at(empty...)
	if err != nil {
		return nil, err
	}
	if is {
		return p.emptyAt(at)
	}
	return p.node(block, entries)
}

// blockEnd takes the end of a block collection.
func (p *parser) blockEnd(expected string) *fault {
	_, ok, err := p.skip(tokBlockEnd)
	if err != nil || ok {
		return err
	}
	return p.unexpected(expected + " was expected")
}

// blockMapping parses keys and values up to the end of their indentation.
func (p *parser) blockMapping(n *node) *fault {
	if _, err := p.take(); err != nil {
		return err
	}
	for {
		key, ok, err := p.skip(tokKey)
		if err != nil {
			return err
		}
		if !ok {
			return p.blockEnd("a key or the end of the map")
		}
		k, err := p.nodeOr(key.end, true, true, tokKey, tokValue, tokBlockEnd)
		if err != nil {
			return err
		}
		v, err := p.valueOf(true, true, tokKey, tokValue, tokBlockEnd)
		if err != nil {
			return err
		}
		n.pairs = append(n.pairs, pair{k, v})
	}
}

// valueOf parses ":" and the value after it; both may be missing.
func (p *parser) valueOf(block, entries bool, empty ...tokenKind) (*node, *fault) {
	colon, ok, err := p.skip(tokValue)
	if err != nil {
		return nil, err
	}
	if ok {
		return p.nodeOr(colon.end, block, entries, empty...)
	}
	t, err := p.peek()
	if err != nil {
		return nil, err
	}
	return p.emptyAt(t.start)
}

// flowSequence parses [a, b: c].
func (p *parser) flowSequence(n *node) *fault {
	open, err := p.take()
	if err != nil {
		return err
	}
	for {
		done, err := p.flowNext(len(n.items) == 0, open, tokFlowSequenceEnd, "']'")
		if err != nil || done {
			return err
		}
		isPair, err := p.at(tokKey)
		if err != nil {
			return err
		}
		var item *node
		if isPair {
			item, err = p.flowPair()
		} else {
			item, err = p.node(false, false)
		}
		if err != nil {
			return err
		}
		n.items = append(n.items, item)
	}
}

// flowNext takes the end of a flow collection, or the comma before its next entry.
func (p *parser) flowNext(first bool, open token, end tokenKind, what string) (done bool, err *fault) {
	if _, done, err = p.skip(end); err != nil || done {
		return done, err
	}
	if first {
		return false, nil
	}
	_, ok, err := p.skip(tokFlowEntry)
	if err != nil {
		return false, err
	}
	if !ok {
		t, err := p.peek()
		if err != nil {
			return false, err
		}
		return false, newFault("yaml.syntax", t.start, "',' or %s was expected, for the %s in line %d; found %s",
			what, open.kind, open.start.line+1, t.kind)
	}
	_, done, err = p.skip(end)
	return done, err
}

// flowPair parses the map of one pair that [a: b] holds.
func (p *parser) flowPair() (*node, *fault) {
	t, err := p.peek()
	if err != nil {
		return nil, err
	}
	return p.collection(properties{start: t.start}, mappingNode, func(n *node) *fault {
		return p.flowKeyAndValue(n, tokFlowSequenceEnd)
	})
}

// flowMapping parses {a: b, c}.
func (p *parser) flowMapping(n *node) *fault {
	open, err := p.take()
	if err != nil {
		return err
	}
	for {
		done, err := p.flowNext(len(n.pairs) == 0, open, tokFlowMappingEnd, "'}'")
		if err != nil || done {
			return err
		}
		keyed, err := p.at(tokKey)
		if err != nil {
			return err
		}
		if keyed {
			err = p.flowKeyAndValue(n, tokFlowMappingEnd)
		} else {
			err = p.flowKeyAlone(n)
		}
		if err != nil {
			return err
		}
	}
}

// flowKeyAndValue parses a key and, if there is one, its value, before "," or the end of the collection.
func (p *parser) flowKeyAndValue(n *node, end tokenKind) *fault {
	key, err := p.take()
	if err != nil {
		return err
	}
	k, err := p.nodeOr(key.end, false, false, tokValue, tokFlowEntry, end)
	if err != nil {
		return err
	}
	v, err := p.valueOf(false, false, tokFlowEntry, end)
	if err != nil {
		return err
	}
	n.pairs = append(n.pairs, pair{k, v})
	return nil
}

// flowKeyAlone parses a key without a value.
func (p *parser) flowKeyAlone(n *node) *fault {
	k, err := p.node(false, false)
	if err != nil {
		return err
	}
	t, err := p.peek()
	if err != nil {
		return err
	}
	v, err := p.emptyAt(t.start)
	if err != nil {
		return err
	}
	n.pairs = append(n.pairs, pair{k, v})
	return nil
}
