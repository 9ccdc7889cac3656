package tree_test

import (
	"testing"

	"github.com/gatehouse-registry/gatehouse/digest/tree"
)

func TestIsExcluded(t *testing.T) {
	tests := []struct {
		path string
		want bool
	}{
		{"plugin.yaml", false},
		{"__pycache__/x", true},
		{"a/__pycache__/b/c.py", true},
		{"a/__pycache__", true},
		{".git", true},
		{"sub/.git", true},
		{".venv/x", true},
		{".mypy_cache/x", true},
		{".ruff_cache/x", true},
		{".git/x", true},
		{"__pycache__x/x", false},
		{"__PyCache__/x", false},
		{".GIT/x", false},
		{".github/x", false},
		{".pytest_cache/x", false},
		{"node_modules/x", false},
		{".DS_Store", true},
		{"a/.DS_Store", true},
		{".DS_Store/x", false},
		{".ds_store", false},
		{"a.pyc", true},
		{"a.pyo", true},
		{"s/a.b.pyc", true},
		{"a.PYC", false},
		{"a.pyd", false},
		{"lib.pyc/x", false},
		{".pyc", false},
		{".pyo", false},
		{"a.pyc.", false},
		{"a.pyc ", false},
		{"a.pyc.bak", false},
		{"..pyc", true},
		{"...pyc", true},
		{".a.pyc", true},
		{"a..pyc", true},
		{"pyc", false},
		{".", false},
		{"", false},
		{"a\x00/.git", true},
	}
	for _, tt := range tests {
		if got := tree.IsExcluded(tt.path); got != tt.want {
			t.Errorf("IsExcluded(%q) = %v, want %v", tt.path, got, tt.want)
		}
	}
}
