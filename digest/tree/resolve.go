package tree

import (
	"path"
	"strings"
)

// Node is what lies at a path of a tree, links not followed.
type Node uint8

// The nodes.
const (
	NoNode Node = iota
	FileNode
	FolderNode
	LinkNode
	SpecialNode
)

// The work that following one link may cost. Linux follows 40 links in one path; the elements are far above
// what any path that it accepts and a person wrote holds.
const (
	maxLinks    = 40
	maxElements = 256
)

// ResolveLink follows the link at path at, whose text is text, as a Linux kernel would if the tree's root were
// the root of a file system that ".." and absolute texts leave. look says what lies at a clean path, and the
// text where that is a link. The kind is Counted, with the path of the file that the link leads to; FolderLink;
// Dangling for a link that leads to nothing, to itself or over more than 40 links; Special; or Outside, which
// also stands for a link that can't be followed within a fixed amount of work.
func ResolveLink(at, text string, look func(path string) (Node, string)) (target string, kind Kind) {
	r := resolution{look: look}
	if dir := path.Dir(at); dir != "." {
		r.stack = strings.Split(dir, "/")
	}
	if !r.follow(text) {
		return "", r.kind
	}
	for len(r.rest) > 0 {
		if r.steps++; r.steps > maxElements {
			return "", Outside
		}
		if done := r.step(); done {
			if r.kind == Counted {
				target = strings.Join(r.stack, "/")
			}
			return target, r.kind
		}
	}
	return "", FolderLink
}

// resolution is a path being walked: stack is the folder reached, rest the elements still to go.
type resolution struct {
	look  func(path string) (Node, string)
	stack []string
	rest  []string
	links int
	steps int
	kind  Kind // the answer, once step or follow ended the walk
}

// follow puts a link's text before what is left to walk. It reports false, with kind set, where that ends the walk.
func (r *resolution) follow(text string) bool {
	switch {
	case strings.HasPrefix(text, "/"):
		r.kind = Outside
		return false
	case r.links == maxLinks || text == "":
		r.kind = Dangling
		return false
	}
	r.links++
	r.rest = append(strings.Split(text, "/"), r.rest...)
	return true
}

// step walks one element and reports whether the walk has ended, with kind set.
func (r *resolution) step() (done bool) {
	element := r.rest[0]
	r.rest = r.rest[1:]
	switch element {
	case "", ".":
		return false
	case "..":
		if len(r.stack) == 0 {
			r.kind = Outside
			return true
		}
		r.stack = r.stack[:len(r.stack)-1]
		return false
	}
	// Appending must not write into an array that an earlier stack shares.
	here := append(r.stack[:len(r.stack):len(r.stack)], element)
	node, text := r.look(strings.Join(here, "/"))
	switch node {
	case FolderNode:
		r.stack = here
		return false
	case LinkNode:
		return !r.follow(text)
	case FileNode, SpecialNode:
		r.stack = here
		r.kind = Counted
		if node == SpecialNode {
			r.kind = Special
		}
		if len(r.rest) > 0 { // a file is no folder
			r.kind = Dangling
		}
		return true
	}
	r.kind = Dangling
	return true
}
