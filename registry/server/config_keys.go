package server

import (
	"fmt"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.yaml.in/yaml/v4"
)

// EnvPrefix begins the environment variable of every key.
const EnvPrefix = "GATEHOUSE_"

// Key is one thing that an administrator may set.
type Key struct {
	Name    string // as in the file, with a dot behind its group
	Doc     string
	Default string // in the form that a flag takes, "" for none
	Switch  bool   // a flag of it needs no value

	index  []int // its field in Config
	secret bool  // holds a password inside an address
}

// Flag is the key's name on a command line, without the dashes.
func (k Key) Flag() string { return strings.NewReplacer(".", "-", "_", "-").Replace(k.Name) }

// Env is the key's environment variable.
func (k Key) Env() string { return EnvPrefix + strings.ToUpper(strings.ReplaceAll(k.Name, ".", "_")) }

// Keys lists every key in the order of Config. The list is everybody's: nobody changes it.
func Keys() []Key { return allKeys() }

var allKeys = sync.OnceValue(func() []Key { return keysOf(reflect.TypeFor[Config](), "", nil, reflect.ValueOf(defaults())) })

func keysOf(t reflect.Type, group string, index []int, preset reflect.Value) []Key {
	var list []Key
	for i := range t.NumField() {
		f := t.Field(i)
		name, at := f.Tag.Get("yaml"), append(append([]int{}, index...), i)
		switch {
		case !f.IsExported():
		case f.Type.Kind() == reflect.Struct:
			list = append(list, keysOf(f.Type, group+name+".", at, preset)...)
		default:
			list = append(list, Key{
				Name: group + name, Doc: f.Tag.Get("doc"), Default: format(preset.FieldByIndex(at)), Switch: f.Type.Kind() == reflect.Bool,
				index: at, secret: f.Tag.Get("secret") == "url",
			})
		}
	}
	return list
}

// field is the key's field in a configuration.
func (k Key) field(c *Config) reflect.Value { return reflect.ValueOf(c).Elem().FieldByIndex(k.index) }

// set reads text into the key's field. The text means the same wherever it comes from. A list is written with commas, or as
// YAML is.
func (k Key) set(c *Config, text string) error {
	f := k.field(c)
	text = strings.TrimSpace(text)
	switch v := f.Addr().Interface().(type) {
	case *string:
		*v = text
	case *bool:
		b, err := strconv.ParseBool(text)
		if err != nil {
			return fmt.Errorf("%.40q is neither true nor false", text)
		}
		*v = b
	case *time.Duration:
		d, err := time.ParseDuration(text)
		if err != nil {
			return fmt.Errorf("%.40q is no length of time, such as 90s, 15m or 24h", text)
		}
		*v = d
	case *int, *int64:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return fmt.Errorf("%.40q is no whole number", text)
		}
		f.SetInt(n)
	case *float64:
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || n != n {
			return fmt.Errorf("%.40q is no number", text)
		}
		*v = n
	case *[]string:
		if !strings.HasPrefix(text, "[") {
			*v = splitList(text)
			return nil
		}
		return yaml.Load([]byte(text), v)
	default:
		return yaml.Load([]byte(text), v, yaml.WithKnownFields())
	}
	return nil
}

func splitList(text string) []string {
	list := []string{}
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			list = append(list, part)
		}
	}
	return list
}

// format writes a value as set reads it.
func format(v reflect.Value) string {
	switch x := v.Interface().(type) {
	case string:
		return x
	case time.Duration:
		return shortDuration(x)
	case []string:
		return strings.Join(x, ",")
	case bool, int, int64, float64:
		return fmt.Sprint(x)
	}
	if v.Kind() == reflect.Slice && v.Len() == 0 {
		return ""
	}
	text, err := yaml.Dump(v.Interface(), yaml.WithIndent(2))
	if err != nil {
		return err.Error()
	}
	var node yaml.Node
	if err := yaml.Load(text, &node); err != nil {
		return err.Error()
	}
	inOneLine(&node)
	text, err = yaml.Dump(&node, yaml.WithLineWidth(-1))
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(text))
}

func inOneLine(n *yaml.Node) {
	n.Style |= yaml.FlowStyle
	for _, child := range n.Content {
		inOneLine(child)
	}
}

// shortDuration leaves out the zeros at the end of 24h0m0s.
func shortDuration(d time.Duration) string {
	if d == 0 {
		return "0s"
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// shown is the key's value for people: without passwords.
func (k Key) shown(c *Config) string {
	if targets, ok := k.field(c).Interface().([]handoverTarget); ok && len(targets) > 0 {
		return format(reflect.ValueOf(shownTargets(targets)))
	}
	text := format(k.field(c))
	if !k.secret || text == "" {
		return text
	}
	return shownAddress(text)
}

// shownAddress is an address for people: without passwords.
func shownAddress(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "(an address that can't be read)"
	}
	q := u.Query()
	for name := range q {
		if isSecretName(name) {
			q.Set(name, "xxxxx")
		}
	}
	u.RawQuery = q.Encode()
	return u.Redacted()
}

// isSecretName reports whether a parameter of an address holds what nobody should see.
func isSecretName(name string) bool {
	name = strings.ToLower(name)
	for _, part := range []string{"pass", "secret", "token", "key"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}
