package tree

import "strings"

// IsExcluded reports whether the content digest leaves out the file at path, a relative slash-separated path
// (packs.md 1.2). It compares case-sensitively and looks at the path alone; path must not name a folder, for
// which IsExcludedFolder answers.
func IsExcluded(path string) bool {
	name := path
	for rest := path; rest != ""; {
		name, rest, _ = strings.Cut(rest, "/")
		if IsExcludedFolder(name) {
			return true
		}
	}
	if name == ".DS_Store" {
		return true
	}
	suffix := Suffix(name)
	return suffix == ".pyc" || suffix == ".pyo"
}

// IsExcludedFolder reports whether a path element of this name excludes itself and everything below it.
func IsExcludedFolder(name string) bool {
	switch name {
	case "__pycache__", ".git", ".venv", ".mypy_cache", ".ruff_cache":
		return true
	}
	return false
}

// Suffix is the suffix of a file name as the clients' Python (3.11 to 3.13) tells it: from the last dot, if
// that dot is neither the first nor the last character; else "".
func Suffix(name string) string {
	dot := strings.LastIndexByte(name, '.')
	if dot <= 0 || dot == len(name)-1 {
		return ""
	}
	return name[dot:]
}
