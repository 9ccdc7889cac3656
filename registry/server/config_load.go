package server

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"go.yaml.in/yaml/v4"

	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/admission/nearest"
)

// configKey names the file itself: it stands in no file.
const configKey = "config"

// Input is what a configuration is made of. A flag wins over the environment, that over the file, and that over the
// defaults.
type Input struct {
	Flags  map[string]string // values of the flags that were given, by Key.Name; "config" names the file
	Env    map[string]string // every variable of the process; those that name no key are not looked at
	Prefix string            // what stands before a flag in a message, such as "--"
}

// LoadConfig reads the configuration. The file is the one that the flag or variable config names; else ConfigFile in the data
// directory, which need not be there. All faults are reported together, each with the place that it comes from.
func LoadConfig(in Input) (Config, error) {
	c := Config{sources: map[string]string{}}
	keys := Keys()
	var faults []error
	take := func(k Key, text, source string) {
		if err := k.set(&c, text); err != nil {
			faults = append(faults, fmt.Errorf("%s: %s: %w", source, k.Name, err))
		}
		c.sources[k.Name] = source
	}
	fromOutside := func() {
		for _, k := range keys {
			if text := in.Env[k.Env()]; text != "" {
				take(k, text, k.Env())
			}
			if text, given := in.Flags[k.Name]; given {
				take(k, text, in.Prefix+k.Flag())
			}
		}
	}
	fromOutside() // the data directory says where the file lies
	path, optional := in.Flags[configKey], false
	if path == "" {
		path = in.Env[EnvPrefix+strings.ToUpper(configKey)]
	}
	if path == "" && c.Data != "" {
		path, optional = c.path(ConfigFile), true
	}
	faults = nil // they come again
	if path != "" {
		broken := readConfigFile(path, optional, keys, take)
		faults = append(faults, broken...)
	}
	fromOutside()
	if c.Data == "" {
		faults = append(faults, fmt.Errorf("data: required: the directory that the server keeps its files in (%sdata DIR or %sDATA)", in.Prefix, EnvPrefix))
	}
	_, err := c.settings()
	return c, errors.Join(errors.Join(faults...), err)
}

// readConfigFile gives take what stands in the file, and all that is wrong with it.
func readConfigFile(path string, optional bool, keys []Key, take func(Key, string, string)) []error {
	src, err := readSmallFile(path, limit.Document)
	if errors.Is(err, fs.ErrNotExist) && optional {
		return nil
	}
	if err != nil {
		return []error{err}
	}
	r := configFile{path: path, keys: map[string]Key{}, take: take}
	for _, k := range keys {
		r.keys[k.Name] = k
		if group, _, nested := strings.Cut(k.Name, "."); nested {
			r.groups = append(r.groups, group)
		}
		r.known = append(r.known, k.Name)
	}
	var doc yaml.Node
	if len(bytes.TrimSpace(src)) == 0 {
		return nil
	}
	if err := yaml.Load(src, &doc); err != nil {
		return []error{fmt.Errorf("%s: %w", path, err)}
	}
	if len(doc.Content) == 1 {
		r.read(doc.Content[0], "")
	}
	return r.faults
}

// readSmallFile reads a regular file of at most max bytes. It does not wait for the other end of a pipe.
func readSmallFile(path string, max int64) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s: it is no regular file", path)
	}
	src, err := io.ReadAll(io.LimitReader(f, max+1))
	if err == nil && int64(len(src)) > max {
		err = fmt.Errorf("%s: it has more than %d bytes, the most that is read", filepath.Clean(path), max)
	}
	return src, err
}

// configFile is a file being read.
type configFile struct {
	path   string
	keys   map[string]Key
	groups []string
	known  []string
	take   func(k Key, text, source string)
	faults []error
}

func (r *configFile) fault(n *yaml.Node, format string, args ...any) {
	r.faults = append(r.faults, fmt.Errorf("%s:%d: %w", r.path, n.Line, fmt.Errorf(format, args...)))
}

// read reads a mapping: the file's or a group's.
func (r *configFile) read(n *yaml.Node, group string) {
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		return
	}
	if n.Kind != yaml.MappingNode {
		r.fault(n, "%sexpected keys with values", where(group))
		return
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		at, value := n.Content[i], n.Content[i+1]
		name := group + at.Value
		if line, twice := seen[name]; twice {
			r.fault(at, "%.100s: it stands on line %d too", name, line)
			continue
		}
		seen[name] = at.Line
		switch k, known := r.keys[name]; {
		case known:
			r.value(k, value)
		case group == "" && r.isGroup(name):
			r.read(value, name+".")
		default:
			hint := ""
			if near := nearest.Word(name, r.known); near != "" {
				hint = fmt.Sprintf(" (did you mean %s?)", near)
			}
			r.fault(at, "%.100s: unknown key%s", name, hint)
		}
	}
}

func (r *configFile) isGroup(name string) bool {
	for _, g := range r.groups {
		if g == name {
			return true
		}
	}
	return false
}

func where(group string) string {
	if group == "" {
		return ""
	}
	return strings.TrimSuffix(group, ".") + ": "
}

// value hands one value over, in the form that a flag takes.
func (r *configFile) value(k Key, n *yaml.Node) {
	source := fmt.Sprintf("%s:%d", r.path, n.Line)
	switch {
	case hasAlias(n):
		r.fault(n, "%s: aliases (*name) are not read here", k.Name)
	case n.Kind == yaml.ScalarNode && n.Tag == "!!null":
	case n.Kind == yaml.ScalarNode:
		r.take(k, n.Value, source)
	default:
		inOneLine(n)
		text, err := yaml.Dump(n, yaml.WithLineWidth(-1))
		if err != nil {
			r.fault(n, "%s: %w", k.Name, err)
			return
		}
		if !r.isList(k) {
			r.fault(n, "%s: expected one value", k.Name)
			return
		}
		r.take(k, string(text), source)
	}
}

// isList reports whether the key takes more than one value.
func (r *configFile) isList(k Key) bool {
	var c Config
	return k.field(&c).Kind().String() == "slice"
}

func hasAlias(n *yaml.Node) bool {
	if n.Kind == yaml.AliasNode {
		return true
	}
	for _, child := range n.Content {
		if hasAlias(child) {
			return true
		}
	}
	return false
}
