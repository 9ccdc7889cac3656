package suite

import (
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
)

// DataPrep is a data preparation script that the clients offer by its name.
type DataPrep struct {
	Name    string `json:"name"`
	Script  string `json:"script"`  // its path in the project
	Summary string `json:"summary"` // the first line of its docstring
}

// The names of scripts: prepare_<name>.py.
const (
	scriptPrefix = "prepare_"
	scriptSuffix = ".py"
)

// DataPrepDirs are the folders in which the dialect's client looks for scripts, in its order: the project's own, then those of
// installed plugins. Folders that are not there are left out.
func DataPrepDirs(project fs.FS, d dialect.Dialect) ([]string, error) {
	dirs := []string{"common/data"}
	plugins := d.Names().PluginsDir
	owners, err := folders(project, plugins)
	if err != nil || d == dialect.Forge {
		for _, name := range owners {
			dirs = append(dirs, plugins+"/"+name)
		}
		return dirs, err
	}
	for _, owner := range owners {
		names, err := folders(project, plugins+"/"+owner)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if !strings.HasPrefix(name, ".") {
				dirs = append(dirs, plugins+"/"+owner+"/"+name)
			}
		}
	}
	return dirs, nil
}

// folders are the names of the folders in a folder, links to folders among them, sorted.
func folders(project fs.FS, dir string) ([]string, error) {
	entries, err := fs.ReadDir(project, dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var names []string
	for _, e := range entries {
		if info, err := fs.Stat(project, dir+"/"+e.Name()); err == nil && info.IsDir() {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, err
}

// DiscoverDataPrep finds the scripts in the folders, in their order: of two with one name the first wins (packs.md 9). A
// script is only read, never run. The error is of reading folders.
func DiscoverDataPrep(project fs.FS, dirs []string, policy rule.Policy) ([]DataPrep, rule.Report, error) {
	r := &findings{report: rule.Report{Policy: policy}}
	var list []DataPrep
	taken := map[string]bool{}
	for _, dir := range dirs {
		entries, err := fs.ReadDir(project, dir)
		if info, stat := fs.Stat(project, dir); stat != nil || !info.IsDir() {
			continue
		}
		if err != nil {
			return list, r.finish(), err
		}
		for _, e := range entries { // sorted by name
			name, ok := scriptName(e.Name())
			if !ok || taken[name] {
				continue
			}
			taken[name] = true
			script := path.Join(dir, e.Name())
			list = append(list, DataPrep{Name: name, Script: script, Summary: r.summary(project, script)})
		}
	}
	return list, r.finish(), nil
}

func scriptName(file string) (string, bool) {
	name, ok := strings.CutPrefix(file, scriptPrefix)
	if !ok {
		return "", false
	}
	name, ok = strings.CutSuffix(name, scriptSuffix)
	return name, ok && name != ""
}

// summary is the first line of a script's docstring. A script that can't be read, or is no Python, has none.
func (f *findings) summary(project fs.FS, script string) string {
	file, err := project.Open(script)
	if err != nil {
		return ""
	}
	defer file.Close()
	src, err := io.ReadAll(io.LimitReader(file, limit.Document+1))
	switch {
	case err != nil:
		return ""
	case len(src) > limit.Document:
		f.file = script
		f.fault("dataprep.limit", "", nil, "the script has more than %d bytes", limit.Document)
		return ""
	case !utf8.Valid(src):
		f.file = script
		f.fault("dataprep.encoding", "", nil, "the script is not UTF-8")
		return ""
	}
	doc := pyvalue.Strip(expandTabs(docstring(string(src))))
	if end := strings.IndexFunc(doc, endsLine); end >= 0 {
		doc = doc[:end]
	}
	return pyvalue.Strip(doc)
}

// endsLine is what Python's splitlines takes for the end of a line.
func endsLine(r rune) bool {
	return r >= '\n' && r <= '\r' || r >= 0x1C && r <= 0x1E || r == 0x85 || r == 0x2028 || r == 0x2029
}

// expandTabs is Python's str.expandtabs().
func expandTabs(s string) string {
	if !strings.Contains(s, "\t") {
		return s
	}
	var b strings.Builder
	column := 0
	for _, r := range s {
		switch r {
		case '\t':
			n := 8 - column%8
			b.WriteString(strings.Repeat(" ", n))
			column += n
		case '\n', '\r':
			b.WriteRune(r)
			column = 0
		default:
			b.WriteRune(r)
			column++
		}
	}
	return b.String()
}
