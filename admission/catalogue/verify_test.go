package catalogue

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/pyjson"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
)

// stepOf says at which step the real client stopped, by what it says.
func stepOf(t *testing.T, text string) string {
	t.Helper()
	for _, s := range []struct{ prefix, step string }{
		{"The Console recipe catalog apiVersion", StepAPIVersion}, {"The Console JobSpec contract", StepContract},
		{"The core handshake", StepCore}, {"The core version is incompatible: server=", StepCore},
		{"The core version is incompatible: catalog.core", StepCore}, {"Invalid core compatibility declaration catalog.core", StepCore},
		{"The core version is incompatible: recipe.", StepRequires}, {"Invalid core compatibility declaration recipe.", StepRequires},
		{"The Console recipe catalog has no recipes", StepRecipes}, {"The Console recipe catalog holds", StepRecipes},
		{"The Console recipe catalog digest", StepDigest}, {"The Console has not enabled", StepRecipe}, {"The exact contract", StepExact},
		{"The Console has not published", StepVersion}, {"The Console catalog has no runtime", StepVariant}, {"The Console runtime_id", StepRuntimeID},
	} {
		if strings.HasPrefix(text, s.prefix) {
			return s.step
		}
	}
	t.Fatalf("no step says %q", text)
	return ""
}

// handshakeVector is one of testdata/vectors/handshake-vectors.json.
type handshakeVector struct {
	ID    string
	Input struct {
		Dialect     string
		CoreVersion string `json:"core_version"`
		Spec        struct {
			Spec struct {
				Recipe    struct{ Name, Version, Digest string }
				Framework struct {
					Kind, Version string
					RuntimeID     string `json:"runtime_id"`
				}
			}
		}
		Catalogue json.RawMessage
	}
	Expect struct {
		OK    bool
		Error struct{ Text string }
		Crash string
	}
}

func (v handshakeVector) dialect() dialect.Dialect {
	if v.Input.Dialect == "tuneplane" {
		return dialect.TunePlane
	}
	return dialect.Forge
}

func (v handshakeVector) claim() Claim {
	spec := v.Input.Spec.Spec
	return Claim{
		Recipe: spec.Recipe.Name, Version: spec.Recipe.Version, Digest: spec.Recipe.Digest,
		Kind: spec.Framework.Kind, FrameworkVersion: spec.Framework.Version, RuntimeID: spec.Framework.RuntimeID,
	}
}

func handshakeVectors(t *testing.T) []handshakeVector {
	t.Helper()
	var file struct{ Vectors []handshakeVector }
	readFacts(t, "handshake-vectors.json", &file)
	return file.Vectors
}

// Our own client makes the handshake of the real ones: the same verdict, at the same step.
func TestHandshakeVectors(t *testing.T) {
	vectors := handshakeVectors(t)
	for _, v := range vectors {
		answer, report := pyjson.Load(v.Input.Catalogue, pyjson.Options{})
		if !report.OK() {
			t.Fatal(report.Violations)
		}
		err := VerifyAnswer(answer, v.dialect(), v.Input.CoreVersion, v.claim())
		refused, _ := errors.AsType[*HandshakeError](err)
		switch {
		case v.Expect.OK && err != nil:
			t.Errorf("%s: %v; the client accepts", v.ID, err)
		case !v.Expect.OK && refused == nil:
			t.Errorf("%s: accepted (%v); the client says %q", v.ID, err, v.Expect.Error.Text)
		case !v.Expect.OK && v.Expect.Crash == "" && refused.Step != stepOf(t, v.Expect.Error.Text):
			t.Errorf("%s: stopped at %s, %v; the client says %q", v.ID, refused.Step, err, v.Expect.Error.Text)
		}
	}
	t.Logf("handshake: %d agree, 0 differ on purpose", len(vectors))
}

// Gate 2 comes to the verdict that the client would have come to, where the catalogue is one that a registry can have.
func TestHandshakeVectorsAtTheServer(t *testing.T) {
	rules := map[string]rule.ID{
		StepRecipe: "job.handshake.recipe.name", StepVersion: "job.handshake.framework.version", StepRuntimeID: "job.handshake.runtime_id",
		StepRequires: "job.core_version.range", StepExact: "job.handshake.recipe.",
	}
	held := 0
	for _, v := range handshakeVectors(t) {
		c, report := ParseSnapshot(v.Input.Catalogue, v.dialect(), v.Input.CoreVersion)
		step := ""
		if !v.Expect.OK {
			step = stepOf(t, v.Expect.Error.Text)
		}
		if !report.OK() || !v.Expect.OK && rules[step] == "" {
			continue // no catalogue of ours, or a fault of an answer that ours never has
		}
		held++
		claim := v.claim()
		claim.CoreVersion = v.Input.CoreVersion
		_, found, _ := c.Handshake(claim)
		named := slices.ContainsFunc(found, func(f rule.Violation) bool {
			return strings.HasPrefix(string(f.Rule), string(rules[step])) || step == StepExact && f.Rule == "job.handshake.framework.kind"
		})
		if v.Expect.OK != (len(found) == 0) || !v.Expect.OK && !named {
			t.Errorf("%s: %v; the client: %q", v.ID, found, v.Expect.Error.Text)
		}
	}
	if held < 20 {
		t.Errorf("only %d vectors were held against gate 2", held)
	}
}

// What Gatehouse answers passes the handshake of a client of each known release, for every recipe and framework version,
// with packs in the catalogue or without.
func TestOwnAnswersPassTheHandshake(t *testing.T) {
	for file, c := range releases(t) {
		all, _ := c.WithPacks([]Entry{packed("verl/alpha", "alice"), packed("trl/zeta", "bob")})
		for _, facts := range []bool{false, true} {
			src := must(json.Marshal(all.Answer(facts)))
			answer, report := pyjson.Load(src, pyjson.Options{})
			if !report.OK() {
				t.Fatal(report.Violations)
			}
			for _, e := range all.Entries() {
				for _, v := range e.Versions {
					claim := Claim{Recipe: e.Name, Version: e.Version, Digest: e.Digest, Kind: e.Framework, FrameworkVersion: v.Version, RuntimeID: v.RuntimeID}
					if err := VerifyAnswer(answer, c.Dialect(), c.Release(), claim); err != nil {
						t.Errorf("%s %s %s: %v", file, e.Name, v.Version, err)
					}
				}
			}
		}
	}
}
