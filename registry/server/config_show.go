package server

import (
	"fmt"
	"io"
	"reflect"
	"strings"
)

// Show writes the configuration in force as YAML, with the place that each value comes from and without passwords.
func (c Config) Show(w io.Writer) error {
	sources := c.sources
	c = c.complete()
	group := ""
	for _, k := range Keys() {
		name, indent := k.Name, ""
		if g, key, nested := strings.Cut(name, "."); nested {
			if g != group {
				group = g
				if _, err := fmt.Fprintf(w, "%s:\n", g); err != nil {
					return err
				}
			}
			name, indent = key, "  "
		}
		source := sources[k.Name]
		if source == "" {
			source = "default"
		}
		if _, err := fmt.Fprintf(w, "%s%s: %s # %s\n", indent, name, k.yamlValue(&c), source); err != nil {
			return err
		}
	}
	return nil
}

// yamlValue is the shown value as it stands in a file.
func (k Key) yamlValue(c *Config) string {
	text := k.shown(c)
	switch f := k.field(c); {
	case f.Kind() == reflect.String:
		return yamlString(text)
	case f.Kind() == reflect.Slice && f.Type().Elem().Kind() == reflect.String:
		parts := make([]string, f.Len())
		for i := range parts {
			parts[i] = yamlString(f.Index(i).String())
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case f.Kind() == reflect.Slice && f.Len() == 0:
		return "[]"
	}
	return text
}

// yamlString quotes text as YAML and JSON both read it.
func yamlString(text string) string { return fmt.Sprintf("%q", text) }
