package tree_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gatehouse-registry/gatehouse/digest/tree"
)

func TestResolveLink(t *testing.T) {
	// A name that ends in / is a folder, one that begins with | a special file; others are files or, with ->, links.
	nodes := map[string]string{
		"a": "", "d/": "", "d/x": "", "d/e/": "", "d/e/y": "", "pipe": "|",
		"toa": "->a", "tod": "->d", "d/up": "->../a", "loop1": "->loop2", "loop2": "->loop1", "self": "->self",
		"out": "->../../etc/passwd", "d/e/sideways": "->../x", "nowhere": "->gone",
	}
	long := "->a"
	for i := range 60 {
		nodes[fmt.Sprintf("chain%d", i)] = long
		long = fmt.Sprintf("->chain%d", i)
	}
	look := func(path string) (tree.Node, string) {
		if _, ok := nodes[path+"/"]; ok {
			return tree.FolderNode, ""
		}
		text, ok := nodes[path]
		switch {
		case !ok:
			return tree.NoNode, ""
		case text == "|":
			return tree.SpecialNode, ""
		case strings.HasPrefix(text, "->"):
			return tree.LinkNode, text[2:]
		}
		return tree.FileNode, ""
	}
	tests := []struct {
		at, text string
		target   string
		kind     tree.Kind
	}{
		{"l", "a", "a", tree.Counted},
		{"l", "./a", "a", tree.Counted},
		{"l", "d//./x", "d/x", tree.Counted},
		{"d/l", "x", "d/x", tree.Counted},
		{"d/l", "../a", "a", tree.Counted},
		{"d/e/l", "../../d/x", "d/x", tree.Counted},
		{"l", "tod/x", "d/x", tree.Counted},
		{"l", "tod/../a", "a", tree.Counted},
		{"l", "d/e/sideways", "d/x", tree.Counted},
		{"l", "tod/up", "a", tree.Counted},
		{"l", "toa", "a", tree.Counted},
		{"l", "chain38", "a", tree.Counted}, // 40 links
		{"l", "chain39", "", tree.Dangling}, // 41
		{"l", "d", "", tree.FolderLink},
		{"l", ".", "", tree.FolderLink},
		{"l", "d/", "", tree.FolderLink},
		{"d/l", "..", "", tree.FolderLink},
		{"l", "tod", "", tree.FolderLink},
		{"l", "gone", "", tree.Dangling},
		{"l", "", "", tree.Dangling},
		{"l", "gone/../a", "", tree.Dangling},
		{"l", "a/", "", tree.Dangling},
		{"l", "a/.", "", tree.Dangling},
		{"l", "a/../a", "", tree.Dangling},
		{"l", "nowhere", "", tree.Dangling},
		{"l", "loop1", "", tree.Dangling},
		{"l", "self", "", tree.Dangling},
		{"l", "pipe", "", tree.Special},
		{"l", "/etc/passwd", "", tree.Outside},
		{"l", "/", "", tree.Outside},
		{"l", "..", "", tree.Outside},
		{"l", "../pack/a", "", tree.Outside},
		{"d/l", "../../a", "", tree.Outside},
		{"l", "d/../../a", "", tree.Outside},
		{"l", "out", "", tree.Outside},
		{"l", strings.Repeat("d/../", 200) + "a", "", tree.Outside}, // too much work
	}
	for _, tt := range tests {
		target, kind := tree.ResolveLink(tt.at, tt.text, look)
		if target != tt.target || kind != tt.kind {
			t.Errorf("%s -> %.60q: %q, kind %d, want %q, kind %d", tt.at, tt.text, target, kind, tt.target, tt.kind)
		}
	}
}
