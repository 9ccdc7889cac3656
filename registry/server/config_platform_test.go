package server

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gatehouse-registry/gatehouse/admission"
	"github.com/gatehouse-registry/gatehouse/admission/jobspec"
)

func TestUncheckedKey(t *testing.T) {
	for text, want := range map[string][]jobspec.RefKind{
		"": nil, "warn": nil, "refuse:dataset": {jobspec.RefDataset}, "refuse:dataset, hyperparams": {jobspec.RefDataset, "hyperparams"},
		"refuse:all": admission.UncheckedKinds,
	} {
		set, err := Config{Data: "x", Unchecked: text}.settings()
		if err != nil || !slices.Equal(set.RefuseUnchecked, want) {
			t.Errorf("%q: %v, %v", text, set.RefuseUnchecked, err)
		}
	}
	for text, says := range map[string]string{
		"refuse": "neither warn nor", "allow": "neither warn nor", "refuse:": "is no kind", "refuse:datasets": `"datasets" is no kind; there are algorithm`,
		"refuse:dataset,": "is no kind", "refuse:source": "is no kind", "refuse:all,dataset": "is no kind",
	} {
		if _, err := (Config{Data: "x", Unchecked: text}).settings(); err == nil || !strings.Contains(err.Error(), "unchecked: ") || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", text, err, says)
		}
	}
}

func TestResolverKeys(t *testing.T) {
	dir := t.TempDir()
	secret, short, long := filepath.Join(dir, "secret"), filepath.Join(dir, "short"), filepath.Join(dir, "long")
	for path, text := range map[string]string{secret: strings.Repeat("s", 32) + "\n", short: "s\n", long: strings.Repeat("s", maxSecretFile+1)} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		config Config
		says   string
	}{
		"https":              {Config{Resolver: "https://platform.example/resolve", ResolverSecretFile: secret}, ""},
		"this machine":       {Config{Resolver: "http://127.0.0.1:1/", ResolverSecretFile: secret}, ""},
		"no secret":          {Config{Resolver: "https://platform.example/resolve"}, "resolver_secret_file"},
		"plain HTTP":         {Config{Resolver: "http://platform.example/", ResolverSecretFile: secret}, "insecure_http"},
		"plain HTTP, wanted": {Config{Resolver: "http://platform.example/", ResolverSecretFile: secret, ResolverInsecureHTTP: true}, ""},
		"no address":         {Config{Resolver: "platform.example", ResolverSecretFile: secret}, "expected https"},
		"no such file":       {Config{Resolver: "https://platform.example/", ResolverSecretFile: filepath.Join(dir, "none")}, "resolver_secret_file"},
		"a short secret":     {Config{Resolver: "https://platform.example/", ResolverSecretFile: short}, "at least 16"},
		"a long file":        {Config{Resolver: "https://platform.example/", ResolverSecretFile: long}, "too long"},
		"no such authority":  {Config{Resolver: "https://platform.example/", ResolverSecretFile: secret, ResolverCAFile: filepath.Join(dir, "none")}, "ca_file"},
		"an unknown hub":     {Config{Hubs: []string{"tp", "github"}}, `hubs: [1]: "github" is none of tp, hf, ms`},
		"no hub":             {Config{}, ""},
	} {
		c.config.Data = dir
		_, err := c.config.settings()
		if err == nil {
			_, err = c.config.complete().resolver()
		}
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
}
