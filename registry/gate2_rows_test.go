package registry_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/gatehouse-registry/gatehouse/admission"
	"github.com/gatehouse-registry/gatehouse/admission/catalogue"
	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
)

var bob = auth.Principal{Account: "bob", Role: auth.Operator}

// algorithmArchive is an algorithm pack of a dialect; requires is what its manifest says behind that key, in YAML's flow form.
func algorithmArchive(t testing.TB, d dialect.Dialect, name, version, requires string) []byte {
	t.Helper()
	key := "kind"
	if d == dialect.TunePlane {
		key = "capability"
	}
	manifest := fmt.Sprintf("schema: %s/plugin/v1\nname: %s\nversion: %q\n%s: algorithm\nentrypoint: main:install\nsummary: test\n", d, name, version, key)
	if requires != "" {
		manifest += "requires: " + requires + "\n"
	}
	var out bytes.Buffer
	zw := gzip.NewWriter(&out)
	tw := tar.NewWriter(zw)
	for _, f := range [][2]string{{"main.py", "def install():\n    return 1\n"}, {"plugin.yaml", manifest}} {
		err := tw.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: f[0], Size: int64(len(f[1])), Mode: 0o644})
		if err == nil {
			_, err = tw.Write([]byte(f[1]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if tw.Close() != nil || zw.Close() != nil {
		t.Fatal("the archive can't be closed")
	}
	return out.Bytes()
}

// shipped publishes an algorithm and gives the triple that a job names it by.
func (w *jobWorld) shipped(p auth.Principal, d dialect.Dialect, name, version, requires string) string {
	w.t.Helper()
	v, _, err := w.replicas[0].PublishArchive(context.Background(), p, "", bytes.NewReader(algorithmArchive(w.t, d, name, version, requires)))
	w.must("publish "+name, err)
	return fmt.Sprintf(`{"id":%q,"version":%q,"digest":%q}`, v.ID(), v.Version, v.Content)
}

// jobWith is a job of a recipe that ships in the client, with plugins.
func jobWith(d dialect.Dialect, plugins ...string) string {
	c, _ := catalogue.Builtin(d, catalogue.DefaultRelease(d))
	e, _ := c.Lookup("nemo-rl/grpo")
	v := e.Versions[0]
	return fmt.Sprintf(`{"apiVersion":%q,"kind":"TrainingJob","metadata":{"name":"demo"},"spec":{"recipe":{"name":%q,"version":%q,"digest":%q},`+
		`"source":{"exp":"experiments/demo"},"framework":{"kind":%q,"version":%q,"runtime_id":%q},`+
		`"resources":{"pools":[{"name":"all","nodes":1,"gpus_per_node":8}],"roles":{"actor":"all","reference":"all","rollout":"all"}},"plugins":[%s]},"provenance":{"core_version":%q}}`,
		d.Names().JobSpec, e.Name, e.Version, e.Digest, e.Framework, v.Version, v.RuntimeID, strings.Join(plugins, ","), c.Release())
}

// verdict is a dry run on the other replica than the one that publishes.
func (w *jobWorld) verdict(p auth.Principal, spec string) admission.Decision {
	w.t.Helper()
	d, err := w.replicas[1].DryRun(context.Background(), p, registry.Submission{Spec: []byte(spec)})
	w.must("dry run", err)
	return d
}

// wants asks that a job is refused by one rule alone, or admitted when that is "".
func (w *jobWorld) wants(what, rule string, p auth.Principal, spec string, says ...string) {
	w.t.Helper()
	d := w.verdict(p, spec)
	if rule == "" {
		if !d.Allowed {
			w.t.Errorf("%s: refused: %v", what, d.Violations)
		}
		return
	}
	if len(d.Violations) != 1 || string(d.Violations[0].Rule) != rule {
		w.t.Errorf("%s: %v, want one %s", what, d.Violations, rule)
		return
	}
	for _, word := range says {
		if !strings.Contains(d.Violations[0].Message, word) {
			w.t.Errorf("%s: %q does not name %q", what, d.Violations[0].Message, word)
		}
	}
}

// TestGateOverRows: what gate 2 finds of plugins in real stores, each rule kept and broken, and seen at once on the other
// replica when an administrator changes it.
func TestGateOverRows(t *testing.T) {
	t.Parallel()
	everyJobEngine(t, registry.DefaultSettings(), plainDeps, func(t *testing.T, w *jobWorld) {
		ctx := t.Context()
		for _, d := range dialect.All {
			leaf := "opsd-" + string(d)
			good := w.shipped(alice, d, leaf, "1.0.0", "")
			wants := func(what, rule string, plugins []string, says ...string) {
				t.Helper()
				w.wants(string(d)+", "+what, rule, bob, jobWith(d, plugins...), says...)
			}
			wants("published", "", []string{good})
			wants("another version", "job.plugins.record.unknown", []string{strings.Replace(good, "1.0.0", "1.0.1", 1)}, "alice/"+leaf+"@1.0.1", "the newest enabled version is 1.0.0, digest sha256:")
			wants("a misspelled name", "job.plugins.record.unknown", []string{strings.Replace(good, "opsd", "opds", 1)}, "did you mean alice/"+leaf+", of which the newest enabled version is 1.0.0")
			wants("the same version in other words", "job.plugins.record.unknown", []string{strings.Replace(good, "1.0.0", "1.0", 1)})
			wants("another digest", "job.plugins.record.digest", []string{good[:len(good)-10] + "00000000\"}"}, "sha256:")
			wants("nobody's", "job.plugins.record.unknown", []string{strings.Replace(good, "alice/", "carol/", 1)})
			_, err := w.replicas[0].SetEnabled(ctx, root, "alice", leaf, "1.0.0", false)
			w.must("disable", err)
			wants("disabled", "job.plugins.record.disabled", []string{good}, "disabled; no version for "+string(d)+" is enabled")
			_, err = w.replicas[0].SetEnabled(ctx, root, "alice", leaf, "1.0.0", true)
			w.must("enable", err)
			wants("enabled again", "", []string{good})

			first := w.shipped(alice, d, "several-"+string(d), "1.9.0", "")
			w.shipped(alice, d, "several-"+string(d), "1.10.0", "")
			sum := first[strings.Index(first, "sha256:") : len(first)-2]
			_, err = w.replicas[0].SetEnabled(ctx, root, "alice", "several-"+string(d), "1.9.0", false)
			w.must("disable", err)
			wants("disabled, with a newer one", "job.plugins.record.disabled", []string{first}, "the newest enabled version is 1.10.0, digest sha256:")
			newer := strings.Replace(first, "1.9.0", "1.10.0", 1)
			wants("an older version's digest", "job.plugins.record.digest", []string{newer}, sum, "is the digest of version 1.9.0")

			other := dialect.All[0]
			if other == d {
				other = dialect.All[1]
			}
			wants("of the other dialect", "job.plugins.record.compat", []string{w.shipped(alice, other, "for-"+string(other), "1", "")}, string(d), string(other))
			wants("a core that is too old", "job.plugins.record.core", []string{w.shipped(alice, d, "core-"+string(d), "1", `{core: ">=9"}`)}, ">=9", catalogue.DefaultRelease(d))
			wants("a core in range", "", []string{w.shipped(alice, d, "core-"+string(d), "2", `{core: ">=0.3,<1"}`)})
			wants("leaves equal but for case", "job.plugins.leaf_collision.fold", []string{good, w.shipped(bob, d, strings.ToUpper(leaf), "1", "")})
		}

		tune := func(name, requires string) []string {
			t.Helper()
			return []string{w.shipped(alice, dialect.TunePlane, name, "1", requires)}
		}
		for _, c := range []struct {
			name, requires, rule string
			says                 []string
		}{
			{"framework", `{frameworks: {nemo-rl: ">=0.5"}}`, "", nil},
			{"any-version", `{frameworks: {nemo-rl: ""}}`, "", nil},
			{"other-framework", `{frameworks: {trl: ">=0.1"}}`, "job.plugins.record.compat", []string{"trl", "nemo-rl"}},
			{"newer-framework", `{frameworks: {nemo-rl: ">=7"}}`, "job.plugins.record.compat", []string{">=7"}},
			{"method", `{methods: [nemo-rl/grpo]}`, "", nil},
			{"other-method", `{methods: [nemo-rl/dpo]}`, "job.plugins.record.compat", []string{"nemo-rl/dpo", "nemo-rl/grpo"}},
		} {
			w.wants(c.name, c.rule, bob, jobWith(dialect.TunePlane, tune(c.name, c.requires)...), c.says...)
		}
	})
}

// TestPrivatePluginsOfAJob: whose repository is private is not found by others, in the words for one that is not there.
func TestPrivatePluginsOfAJob(t *testing.T) {
	t.Parallel()
	everyJobEngine(t, registry.DefaultSettings(), plainDeps, func(t *testing.T, w *jobWorld) {
		triple := w.shipped(alice, dialect.Forge, "secret", "1", "")
		w.wants("before", "", bob, jobWith(dialect.Forge, triple))
		private := true
		_, err := w.replicas[0].SetAccess(t.Context(), root, "alice/secret", registry.AccessChange{Private: &private})
		w.must("make private", err)
		w.wants("its owner", "", alice, jobWith(dialect.Forge, triple))
		w.wants("another", "job.plugins.record.unknown", bob, jobWith(dialect.Forge, triple))
		said := func(spec string) string { return w.verdict(bob, spec).Violations[0].Message }
		if hidden, absent := said(jobWith(dialect.Forge, triple)), said(jobWith(dialect.Forge, strings.Replace(triple, "secret", "absent", 1))); strings.Replace(hidden, "secret", "absent", 1) != absent {
			t.Errorf("%q and %q tell a private plugin from none", hidden, absent)
		}
		if text := said(jobWith(dialect.Forge, strings.Replace(triple, "secret", "secrets", 1))); strings.Contains(text, "did you mean") {
			t.Errorf("%q tells of a private plugin", text)
		}
	})
}
