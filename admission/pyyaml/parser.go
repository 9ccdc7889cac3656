package pyyaml

import (
	"maps"
	"strings"
)

// parser turns tokens into the nodes of one document.
type parser struct {
	scan    *scanner
	load    *loader
	handles map[string]string // tag handles of the document
	anchors map[string]*node
	depth   int // open collections
	nodes   int
}

var defaultHandles = map[string]string{"!": "!", "!!": tagPrefix}

func newParser(text []rune, l *loader) *parser {
	return &parser{scan: newScanner(text), load: l, handles: defaultHandles, anchors: make(map[string]*node)}
}

// document parses the whole text, which holds at most one document; nil stands for none.
func (p *parser) document() (*node, *fault) {
	t, err := p.peek()
	if err != nil {
		return nil, err
	}
	var root *node
	switch t.kind {
	case tokStreamEnd:
		return nil, nil
	case tokDirective, tokDocumentStart:
		root, err = p.explicitDocument()
	default:
		root, err = p.node(true, false)
	}
	if err != nil {
		return nil, err
	}
	return root, p.end()
}

// peek is the next token, without taking it.
func (p *parser) peek() (*token, *fault) { return p.scan.token() }

// take takes the next token.
func (p *parser) take() (token, *fault) {
	if _, err := p.peek(); err != nil {
		return token{}, err
	}
	return p.scan.next(), nil
}

// at reports whether the next token is of one of the kinds.
func (p *parser) at(kinds ...tokenKind) (bool, *fault) {
	t, err := p.peek()
	if err != nil {
		return false, err
	}
	for _, k := range kinds {
		if t.kind == k {
			return true, nil
		}
	}
	return false, nil
}

// skip takes the next token if it is of the kind.
func (p *parser) skip(kind tokenKind) (token, bool, *fault) {
	is, err := p.at(kind)
	if err != nil || !is {
		return token{}, false, err
	}
	t, err := p.take()
	return t, true, err
}

// explicitDocument parses directives, "---" and what follows.
func (p *parser) explicitDocument() (*node, *fault) {
	if err := p.directives(); err != nil {
		return nil, err
	}
	_, ok, err := p.skip(tokDocumentStart)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, p.unexpected("'---' was expected after the directives")
	}
	t, err := p.peek()
	if err != nil {
		return nil, err
	}
	return p.nodeOr(t.start, true, false, tokDirective, tokDocumentStart, tokDocumentEnd, tokStreamEnd)
}

// directives takes the directives of a document.
func (p *parser) directives() *fault {
	handles, version := make(map[string]string), false
	for {
		t, ok, err := p.skip(tokDirective)
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		switch t.handle {
		case "YAML":
			if version {
				return newFault("yaml.syntax", t.start, "the directive %%YAML stands twice")
			}
			if len(t.value) > maxDigits || strings.TrimLeft(t.value, "0") != "1" {
				return newFault("yaml.syntax", t.start, "the document is YAML %.20s; the clients read YAML 1", t.value)
			}
			version = true
		case "TAG":
			if _, dup := handles[t.value]; dup {
				return newFault("yaml.syntax", t.start, "the tag handle %.60q is declared twice", t.value)
			}
			handles[t.value] = t.prefix
		}
	}
	p.handles = maps.Clone(defaultHandles)
	maps.Copy(p.handles, handles)
	return nil
}

// end takes what may follow the document: nothing but marks of its end.
func (p *parser) end() *fault {
	for {
		_, ok, err := p.skip(tokDocumentEnd)
		if err != nil {
			return err
		}
		if !ok {
			break
		}
	}
	done, err := p.at(tokStreamEnd)
	if err != nil || done {
		return err
	}
	t, err := p.peek()
	if err != nil {
		return err
	}
	if begins := t.start; t.kind == tokDirective || t.kind == tokDocumentStart {
		if err := p.secondDocument(); err != nil {
			return err
		}
		return newFault("yaml.syntax", begins, "a second document begins here; the file may hold one")
	}
	return p.unexpected("the end of the document was expected")
}

// secondDocument finds the faults in the head of another document, which the clients report first.
func (p *parser) secondDocument() *fault {
	if err := p.directives(); err != nil {
		return err
	}
	is, err := p.at(tokDocumentStart)
	if err != nil || is {
		return err
	}
	return p.unexpected("'---' was expected after the directives")
}

// unexpected is the fault of the next token.
func (p *parser) unexpected(expected string) *fault {
	t, err := p.peek()
	if err != nil {
		return err
	}
	return newFault("yaml.syntax", t.start, "%s; found %s", expected, t.kind)
}

// properties are an anchor and a tag before a node, in either order.
type properties struct {
	anchor   string
	anchored bool
	tag      string
	tagged   bool
	start    mark
}

func (p *parser) properties() (properties, *fault) {
	var pr properties
	var tag token
	for range 2 {
		t, err := p.peek()
		if err != nil {
			return pr, err
		}
		if !pr.anchored && !pr.tagged {
			pr.start = t.start
		}
		switch {
		case t.kind == tokAnchor && !pr.anchored:
			pr.anchor, pr.anchored = t.value, true
			p.load.alias(t.start, "the anchor &"+t.value)
		case t.kind == tokTag && !pr.tagged:
			tag, pr.tagged = *t, true
		default:
			continue
		}
		p.scan.next()
	}
	if !pr.tagged {
		return pr, nil
	}
	pr.tag = tag.value
	if tag.short {
		prefix, ok := p.handles[tag.handle]
		if !ok {
			return pr, newFault("yaml.syntax", tag.start, "the tag handle %.60q is not declared", tag.handle)
		}
		pr.tag = prefix + tag.value
	}
	p.load.tagged(tag.start, pr.tag)
	return pr, nil
}

// node parses a node: block says that a block collection may stand here, entries that a list may stand here without
// further indentation.
func (p *parser) node(block, entries bool) (*node, *fault) {
	if t, ok, err := p.skip(tokAlias); err != nil || ok {
		if err != nil {
			return nil, err
		}
		return p.alias(t)
	}
	pr, err := p.properties()
	if err != nil {
		return nil, err
	}
	t, err := p.peek()
	if err != nil {
		return nil, err
	}
	switch {
	case entries && t.kind == tokBlockEntry:
		return p.collection(pr, sequenceNode, p.entriesWithoutIndent)
	case t.kind == tokScalar:
		return p.scalar(pr, p.scan.next())
	case t.kind == tokFlowSequence:
		return p.collection(pr, sequenceNode, p.flowSequence)
	case t.kind == tokFlowMapping:
		return p.collection(pr, mappingNode, p.flowMapping)
	case block && t.kind == tokBlockSequence:
		return p.collection(pr, sequenceNode, p.blockSequence)
	case block && t.kind == tokBlockMapping:
		return p.collection(pr, mappingNode, p.blockMapping)
	case pr.anchored || pr.tagged:
		return p.scalar(pr, token{kind: tokScalar, plain: !pr.tagged, start: pr.start})
	}
	return nil, p.unexpected("a value was expected")
}

// alias finds the node that an alias names.
func (p *parser) alias(t token) (*node, *fault) {
	p.load.alias(t.start, "the alias *"+t.value)
	n, ok := p.anchors[t.value]
	if !ok {
		return nil, newFault("yaml.syntax", t.start, "the alias *%.60s names no anchor before it", t.value)
	}
	return n, nil
}

// scalar makes the node of a scalar.
func (p *parser) scalar(pr properties, t token) (*node, *fault) {
	n, err := p.begin(pr, scalarNode)
	if err != nil {
		return nil, err
	}
	n.value, n.plain = t.value, t.plain
	switch {
	case pr.tagged && pr.tag != "!":
	case t.plain || pr.tagged:
		n.tag = resolve(t.value)
	default:
		n.tag = tagStr
	}
	return n, nil
}

// emptyAt is the node that stands for nothing.
func (p *parser) emptyAt(at mark) (*node, *fault) {
	return p.scalar(properties{start: at}, token{plain: true})
}

// begin makes a node, counts it and names its anchor.
func (p *parser) begin(pr properties, kind nodeKind) (*node, *fault) {
	if pr.anchored {
		if first, dup := p.anchors[pr.anchor]; dup {
			return nil, newFault("yaml.syntax", pr.start, "the anchor &%.60s stands twice, first in line %d", pr.anchor, first.start.line+1)
		}
	}
	if p.nodes++; p.nodes > p.load.opt.MaxNodes {
		return nil, newFault("yaml.limit", pr.start, "the document has more than %d values", p.load.opt.MaxNodes)
	}
	n := &node{kind: kind, tag: pr.tag, start: pr.start}
	if pr.anchored {
		p.anchors[pr.anchor] = n
	}
	return n, nil
}

// collection makes the node of a collection and fills it.
func (p *parser) collection(pr properties, kind nodeKind, fill func(*node) *fault) (*node, *fault) {
	n, err := p.begin(pr, kind)
	if err != nil {
		return nil, err
	}
	if n.tag == "" || n.tag == "!" {
		n.tag = tagSeq
		if kind == mappingNode {
			n.tag = tagMap
		}
	}
	p.depth++
	defer func() { p.depth-- }()
	if err := p.load.depth(p.depth, n.start); err != nil {
		return nil, err
	}
	return n, fill(n)
}
