package cli

import (
	"io"
	"strings"
	"testing"

	"github.com/gatehouse-registry/gatehouse/admission/catalogue"
	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/cli/project"
	"github.com/gatehouse-registry/gatehouse/registry"
)

// Without an installed client the template of a method that ships in it is refused, with every way to name one.
func TestTemplateWithoutClient(t *testing.T) {
	for _, d := range dialect.All {
		a := app{env: newEnv([]string{"PATH=" + t.TempDir(), "GATEHOUSE_HOME=" + t.TempDir()}, strings.NewReader(""), io.Discard, io.Discard), opt: &rootOptions{}}
		client, err := packageFlag{}.find(a.env, d)
		if client != nil || err != nil {
			t.Fatalf("found %+v, %v", client, err)
		}
		c, ok := catalogue.Builtin(d, catalogue.DefaultRelease(d))
		if !ok {
			t.Fatal("no built-in catalogue")
		}
		entry, ok := c.Lookup("nemo-rl/grpo")
		if !ok {
			t.Fatal("no recipe")
		}
		_, err = a.template(&project.Project{Dialect: d}, client, entry)
		if registry.CodeOf(err) != registry.NotFound {
			t.Fatalf("%s: %v", d, err)
		}
		for _, want := range []string{d.Names().PyPackage, "PATH", "--client-package DIR", clientPackageVar} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q does not name %s", d, err, want)
			}
		}
	}
}
