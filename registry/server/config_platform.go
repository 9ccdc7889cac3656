package server

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/gatehouse-registry/gatehouse/admission"
	"github.com/gatehouse-registry/gatehouse/admission/jobspec"
	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/webhook"
)

// What the key unchecked may say.
const (
	uncheckedWarn   = "warn"
	uncheckedRefuse = "refuse:"
	uncheckedAll    = "all"
)

// maxSecretFile bounds a file that holds a secret, in bytes.
const maxSecretFile = 4096

// hubs checks the hubs that jobs may use.
func (k *checker) hubs() []string {
	for i, hub := range k.c.Hubs {
		if !slices.Contains(jobspec.Hubs, hub) {
			k.fault("hubs", "[%d]: %.20q is none of %s", i, hub, strings.Join(jobspec.Hubs, ", "))
		}
	}
	return k.c.Hubs
}

// resolver checks who is asked about what the registry does not hold, and gives the kinds that are refused when nobody
// could check them.
func (k *checker) resolver() []jobspec.RefKind {
	switch c := k.c; {
	case c.Resolver == "":
	case c.ResolverSecretFile == "":
		k.fault("resolver_secret_file", "required with resolver: the platform must be able to tell who asks")
	case c.ResolverTimeout == 0:
		k.fault("resolver_timeout", "it can't be 0")
	default:
		t := c.resolverTarget()
		t.Secret = strings.Repeat("x", 16) // the file's is read, and checked, when the server starts
		if err := t.Check(); err != nil {
			k.fault("resolver", "%w", err)
		}
	}
	kinds, err := parseUnchecked(k.c.Unchecked)
	if err != nil {
		k.fault("unchecked", "%w", err)
	}
	return kinds
}

// parseUnchecked reads the kinds of the key unchecked.
func parseUnchecked(text string) ([]jobspec.RefKind, error) {
	list, refuse := strings.CutPrefix(text, uncheckedRefuse)
	switch {
	case text == uncheckedWarn:
		return nil, nil
	case !refuse:
		return nil, fmt.Errorf("%.60q is neither warn nor refuse:KIND[,KIND]", text)
	case list == uncheckedAll:
		return admission.UncheckedKinds, nil
	}
	var kinds []jobspec.RefKind
	for word := range strings.SplitSeq(list, ",") {
		kind := jobspec.RefKind(strings.TrimSpace(word))
		if !slices.Contains(admission.UncheckedKinds, kind) {
			return nil, fmt.Errorf("%.40q is no kind; there are %s, and all", kind, kindList(admission.UncheckedKinds))
		}
		kinds = append(kinds, kind)
	}
	return kinds, nil
}

func kindList(kinds []jobspec.RefKind) string {
	words := make([]string, len(kinds))
	for i, k := range kinds {
		words[i] = string(k)
	}
	return strings.Join(words, ", ")
}

func (c Config) resolverTarget() webhook.Target {
	return webhook.Target{URL: c.Resolver, CAFile: c.ResolverCAFile, Timeout: c.ResolverTimeout, InsecureHTTP: c.ResolverInsecureHTTP}
}

// resolver makes who is asked about what the registry does not hold; nil where nobody is.
func (c Config) resolver() (registry.Resolver, error) {
	if c.Resolver == "" {
		return nil, nil
	}
	t := c.resolverTarget()
	var err error
	if t.Secret, err = readSecret(c.ResolverSecretFile); err != nil {
		return nil, fmt.Errorf("resolver_secret_file: %w", err)
	}
	r, err := webhook.NewResolver(t)
	if err != nil {
		return nil, fmt.Errorf("resolver: %w", err)
	}
	return r, nil
}

// readSecret is the text of a small file without white space round it.
func readSecret(path string) (string, error) {
	text, err := os.ReadFile(path)
	switch {
	case err != nil:
		return "", err
	case len(text) > maxSecretFile:
		return "", errors.New("the file is too long for a secret")
	}
	return strings.TrimSpace(string(text)), nil
}
