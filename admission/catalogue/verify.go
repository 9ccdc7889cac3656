package catalogue

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
)

// HandshakeError says why a client does not submit to the server that gave an answer. Step is what was compared, one of
// the Step constants.
type HandshakeError struct {
	Step    string
	Message string
}

func (e *HandshakeError) Error() string { return e.Message }

// What a client compares, in its order (recipes-and-locks.md 3).
const (
	StepAPIVersion = "apiVersion"
	StepContract   = "contract"
	StepCore       = "core"
	StepRecipes    = "recipes"
	StepDigest     = "catalog_digest"
	StepRecipe     = "recipe"
	StepExact      = "exact contract"
	StepVersion    = "framework version"
	StepVariant    = "runtime variant"
	StepRuntimeID  = "runtime_id"
	StepRequires   = "core_requires"
)

// VerifyAnswer is the handshake as a client makes it before it sends anything: it compares what the job says, which the
// client took from its own catalogue, with an answer of GET /api/recipes from any server. Core is the client's version;
// the claim's CoreVersion is not compared. It stops at the first difference, as the clients do; the error is then a
// *HandshakeError.
func VerifyAnswer(answer *pyvalue.Value, d dialect.Dialect, core string, claim Claim) error {
	v := verification{answer: answer, dialect: d, core: core, claim: claim}
	for _, check := range []func() error{v.envelope, v.handshake, v.rows, v.recipe, v.runtime, v.requires} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// verification carries one handshake.
type verification struct {
	answer  *pyvalue.Value
	dialect dialect.Dialect
	core    string
	claim   Claim
	row     *pyvalue.Value // of the recipe
}

func differs(step, format string, args ...any) error {
	return &HandshakeError{step, fmt.Sprintf(format, args...)}
}

// exactCatalogue is the older form of a forge answer, which names one client version instead of a range.
const exactCatalogue = "forge/recipe-catalog/v1"

func (v *verification) exact() bool {
	return v.dialect == dialect.Forge && isText(v.answer.Get("apiVersion"), exactCatalogue)
}

func (v *verification) envelope() error {
	names := v.dialect.Names()
	if !isText(v.answer.Get("apiVersion"), names.Catalogue) && !v.exact() {
		return differs(StepAPIVersion, "the server's catalogue has the apiVersion %s, expected %s: it is no server of %s", show(v.answer.Get("apiVersion")), names.Catalogue, v.dialect)
	}
	versions := v.answer.Get("contract").Get("versions")
	if versions == nil || versions.Kind != pyvalue.List || len(versions.List) != 1 || !isText(versions.List[0], names.JobSpec) {
		return differs(StepContract, "the server takes jobs of %s, this client makes %s", show(versions), names.JobSpec)
	}
	return nil
}

// handshake compares the client's version and the server's with the range that the server states.
func (v *verification) handshake() error {
	core := v.answer.Get("core")
	version, requirement := core.Get("version").TextOf(), core.Get("requirement").TextOf()
	if v.exact() {
		if version != v.core || requirement != "=="+v.core {
			return differs(StepCore, "the server serves version %.100q (%.100q) alone, this client is %s", version, requirement, v.core)
		}
		return nil
	}
	if version == "" || requirement == "" {
		return differs(StepCore, "the server's catalogue does not say which versions it serves (core.version %.100q, core.requirement %.100q)", version, requirement)
	}
	for _, each := range []struct{ whose, version string }{{"this client", v.core}, {"the server itself", version}} {
		in, err := InRange(each.version, requirement)
		if err != nil {
			return differs(StepCore, "the server's range of versions can't be read: %v", err)
		}
		if !in {
			return differs(StepCore, "the server serves the versions %.100q, %s is %.100q", requirement, each.whose, each.version)
		}
	}
	return nil
}

// rows checks that the answer is whole, and finds the recipe: the first row of its name counts.
func (v *verification) rows() error {
	recipes := v.answer.Get("recipes")
	if recipes == nil || recipes.Kind != pyvalue.List {
		return differs(StepRecipes, "the server's catalogue has no list of recipes")
	}
	for i, row := range recipes.List {
		if row.Kind != pyvalue.Map {
			return differs(StepRecipes, "the server's catalogue: recipes[%d] is %s, expected an object", i, row.TypeName())
		}
		if v.row == nil && isText(row.Get("name"), v.claim.Recipe) {
			v.row = row
		}
	}
	sum, _, err := DigestOf(recipes)
	if err != nil || !isText(v.answer.Get("catalog_digest"), sum.String()) {
		return differs(StepDigest, "the digest of the server's catalogue is %s, its rows have %s", show(v.answer.Get("catalog_digest")), sum)
	}
	return nil
}

func (v *verification) recipe() error {
	c := v.claim
	if v.row == nil {
		return differs(StepRecipe, "the server does not offer the recipe %.100q: it was never published there, or is disabled", c.Recipe)
	}
	var found []string
	for _, part := range []struct{ key, ours string }{{"version", c.Version}, {"digest", c.Digest}, {"framework", c.Kind}, {"adapter", c.Kind}} {
		if theirs := v.row.Get(part.key); !isText(theirs, part.ours) {
			found = append(found, fmt.Sprintf("%s: the server has %s, this client %.100q", part.key, show(theirs), part.ours))
		}
	}
	if found != nil {
		return differs(StepExact, "the recipe %s is another one on the server:\n- %s", c.Recipe, strings.Join(found, "\n- "))
	}
	return nil
}

func (v *verification) runtime() error {
	c := v.claim
	supported := v.row.Get("supported_framework_versions")
	offers := func(it *pyvalue.Value) bool { return isText(it, c.FrameworkVersion) }
	if supported == nil || supported.Kind != pyvalue.List || !slices.ContainsFunc(supported.List, offers) {
		return differs(StepVersion, "the server does not offer %s %.100q for %s, it has %s", c.Kind, c.FrameworkVersion, c.Recipe, show(supported))
	}
	variant := v.row.Get("runtime").Get("versions").Get(c.FrameworkVersion)
	if variant == nil || variant.Kind != pyvalue.Map {
		return differs(StepVariant, "the server's catalogue says nothing of the runtime of %s %.100q", c.Kind, c.FrameworkVersion)
	}
	if id := variant.Get("runtime_id").TextOf(); id != pyvalue.Strip(c.RuntimeID) {
		return differs(StepRuntimeID, "the runtime of %s %s is %.100q on the server, this client has %.100q", c.Kind, c.FrameworkVersion, id, c.RuntimeID)
	}
	return nil
}

func (v *verification) requires() error {
	requirement := v.row.Get("core_requires").TextOf()
	if requirement == "" {
		return nil
	}
	in, err := InRange(v.core, requirement)
	if err != nil {
		return differs(StepRequires, "the versions that the recipe %s requires can't be read: %v", v.claim.Recipe, err)
	}
	if !in {
		return differs(StepRequires, "the recipe %s requires the versions %.100q, this client is %s", v.claim.Recipe, requirement, v.core)
	}
	return nil
}

func isText(v *pyvalue.Value, want string) bool {
	return v != nil && v.Kind == pyvalue.Str && v.Text == want
}

// show is a value in a message.
func show(v *pyvalue.Value) string {
	if v == nil {
		return "nothing"
	}
	return fmt.Sprintf("%.200s", v.PyRepr())
}
