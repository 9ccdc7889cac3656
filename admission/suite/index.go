package suite

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/admission/pyjson"
	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/digest"
)

// File is a file of a suite.
type File struct {
	Name   string
	Size   int64
	Digest digest.Digest // sha256
}

// Index is what an index.json says: every file of a version, sorted by name.
type Index []File

// Bytes is the sum of the sizes.
func (x Index) Bytes() int64 {
	n := int64(0)
	for _, f := range x {
		n += f.Size
	}
	return n
}

// Lookup finds a file by its name.
func (x Index) Lookup(name string) (File, bool) {
	i, ok := slices.BinarySearchFunc(x, name, func(f File, name string) int { return strings.Compare(f.Name, name) })
	if !ok {
		return File{}, false
	}
	return x[i], true
}

// Tree is the tree digest (design.md 2) of the files: sha256 over a line "<hex>  <path>" for each, sorted by path.
func (x Index) Tree() digest.Digest {
	h := sha256.New()
	for _, f := range x {
		fmt.Fprintf(h, "%s  %s\n", f.Digest.Hex(), f.Name)
	}
	return digest.FromHash(digest.SHA256, h)
}

// maxListedSize is the largest size that an index may say.
const maxListedSize = 1 << 50

// ParseIndex reads an index.json of at most limit.SuiteIndex bytes: {"files": [{"name", "size", "sha256"}…]}. The index is
// whole exactly when the report is OK.
func ParseIndex(src []byte, policy rule.Policy) (Index, rule.Report) {
	root, report := pyjson.Load(src, pyjson.Options{Policy: policy, File: IndexFile, MaxBytes: limit.SuiteIndex})
	r := &findings{file: IndexFile, report: report}
	if root == nil {
		return nil, r.finish()
	}
	list := root.Get("files")
	switch {
	case !isMap(root), !isList(list):
		r.fault("suite.index", "files", or(list, root), "found %s, expected {\"files\": [{name, size, sha256}…]}", found(or(list, root)))
		return nil, r.finish()
	case len(list.List) > limit.SuiteFiles:
		r.fault("suite.limit", "files", list, "the index names %d files, at most %d are allowed", len(list.List), limit.SuiteFiles)
		return nil, r.finish()
	}
	index := make(Index, 0, len(list.List))
	places := make(map[string]*pyvalue.Value, len(list.List))
	for i, row := range list.List {
		if f, ok := indexRow(r, i, row); ok {
			index, places[f.Name] = append(index, f), row
		}
	}
	slices.SortFunc(index, func(a, b File) int { return cmp.Compare(a.Name, b.Name) })
	names := make([]string, len(index))
	for i, f := range index {
		names[i] = f.Name
	}
	clashes(names, func(id rule.ID, name, format string, args ...any) {
		r.fault(id, "files", places[name], "the file %.100q: "+format, append([]any{name}, args...)...)
	})
	return index, r.finish()
}

// indexRow reads one entry of an index.
func indexRow(r *findings, i int, row *pyvalue.Value) (File, bool) {
	field := fmt.Sprintf("files[%d]", i)
	name, size, sum := row.Get("name"), row.Get("size"), row.Get("sha256")
	switch {
	case !isMap(row), name == nil || name.Kind != pyvalue.Str, size == nil || size.Kind != pyvalue.Int, sum == nil || sum.Kind != pyvalue.Str:
		r.fault("suite.index", field, row, "found %s, expected an object of name (a text), size (a whole number) and sha256 (a text)", found(row))
		return File{}, false
	case size.Int.Sign() < 0 || !size.Int.IsInt64() || size.Int.Int64() > maxListedSize:
		r.fault("suite.index", field+".size", size, "found the size %.40s", size.Int.String())
		return File{}, false
	case name.Text == IndexFile:
		r.fault("suite.index", field+".name", name, "the index lists itself")
		return File{}, false
	}
	d, err := digest.Parse("sha256:" + sum.Text)
	if err != nil {
		r.fault("suite.index", field+".sha256", sum, "found %.100q, expected 64 lower-case hex digits", sum.Text)
		return File{}, false
	}
	wrong := CheckFileName(name.Text)
	for _, v := range wrong {
		v.Field, v.File, v.Line, v.Column = field+".name", r.file, name.Line, name.Column
		r.add(v)
	}
	return File{Name: name.Text, Size: size.Int.Int64(), Digest: d}, len(wrong) == 0
}
