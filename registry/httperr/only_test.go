package httperr_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// successes are the statuses that a handler may write by itself.
var successes = []string{
	"StatusOK", "StatusCreated", "StatusAccepted", "StatusNoContent", "StatusPartialContent", "StatusNotModified",
	"StatusMovedPermanently", "StatusFound", "StatusSeeOther", "StatusTemporaryRedirect", "StatusPermanentRedirect",
}

// TestNobodyElseWritesErrors reads the source of every package below registry: outside this one, no call passes the
// status of an error on, and http.Error is not called. blobfault plays a store that fails.
func TestNobodyElseWritesErrors(t *testing.T) {
	files := 0
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (path == filepath.Join("..", "httperr") || path == filepath.Join("..", "internal") || path == filepath.Join("..", "blobstore", "blobfault")):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		files++
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				if name := errorStatus(call); name != "" {
					t.Errorf("%s: http.%s: return a *registry.Error; httperr answers it", set.Position(call.Pos()), name)
				}
			}
			return true
		})
		return nil
	})
	if err != nil || files < 20 {
		t.Errorf("%d files read, %v", files, err)
	}
}

// errorStatus is the status of an error that a call passes on, or Error for http.Error, "" for neither.
func errorStatus(call *ast.CallExpr) string {
	if name := fromHTTP(call.Fun); name == "Error" {
		return name
	}
	for _, arg := range call.Args {
		if name := fromHTTP(arg); strings.HasPrefix(name, "Status") && name != "StatusText" && !slices.Contains(successes, name) {
			return name
		}
	}
	return ""
}

// fromHTTP is the name of what an expression takes from package http, "" when it takes nothing.
func fromHTTP(e ast.Expr) string {
	if s, ok := e.(*ast.SelectorExpr); ok {
		if pkg, ok := s.X.(*ast.Ident); ok && pkg.Name == "http" {
			return s.Sel.Name
		}
	}
	return ""
}
