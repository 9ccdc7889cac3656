package server_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/gatehouse-registry/gatehouse/admission/receipt"
	"github.com/gatehouse-registry/gatehouse/admission/runrecord"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry/api/wire"
)

// node makes a node, whose token is then that of the account node/<name>.
func (g *gatehouse) node(name string) wire.Node {
	g.tb.Helper()
	var n wire.Node
	g.send("admin", http.MethodPost, "/api/nodes", wire.NewNode{Name: name}).want(g.tb, http.StatusCreated).into(g.tb, &n)
	g.tokens[n.Account] = n.Secret
	return n
}

// newKey is a public key that nobody has, in PEM.
func newKey(tb testing.TB) string {
	tb.Helper()
	public, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	return keyText(tb, public)
}

func keyText(tb testing.TB, public ed25519.PublicKey) string {
	tb.Helper()
	text, err := receipt.EncodeKey(public)
	if err != nil {
		tb.Fatal(err)
	}
	return string(text)
}

// joined makes a key and registers it with a node.
func (g *gatehouse) joined(node string) ed25519.PrivateKey {
	g.tb.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		g.tb.Fatal(err)
	}
	g.send(node, http.MethodPut, "/api/node/key", wire.NewNodeKey{PublicKey: keyText(g.tb, public)}).want(g.tb, http.StatusOK)
	return private
}

// granted is the token that a node gets for the receipt of a job.
func (g *gatehouse) granted(node, job string) string {
	g.tb.Helper()
	var out wire.NodeGrant
	g.do(call{as: node, method: http.MethodPost, path: "/api/node/grants", body: g.receipt(job)}).want(g.tb, http.StatusOK).into(g.tb, &out)
	return out.Token
}

// receipt is the receipt of a job.
func (g *gatehouse) receipt(job string) []byte {
	g.tb.Helper()
	return g.get("admin", "/api/jobs/"+job+"/receipt").want(g.tb, http.StatusOK).body
}

// predicate is what a launch of a job says once its command has ended well.
func (g *gatehouse) predicate(job string) runrecord.Predicate {
	g.tb.Helper()
	envelope := g.receipt(job)
	payload, err := receipt.Peek(envelope, receipt.PayloadType, receipt.MaxEnvelope)
	if err != nil {
		g.tb.Fatal(err)
	}
	r, err := receipt.Parse(payload)
	if err != nil {
		g.tb.Fatal(err)
	}
	id := make([]byte, 16)
	rand.Read(id)
	began := time.Now().UTC().Truncate(time.Second)
	return runrecord.Predicate{
		Run: hex.EncodeToString(id), State: runrecord.StateEnded, Agent: "test", Node: runrecord.Node{Name: "box"},
		Registry: r.Audience, Job: r.Job, Dialect: r.Dialect, SpecBytes: r.SpecBytes, Receipt: digest.FromBytes(envelope),
		Plugins: r.Plugins, Recipes: r.Recipes, Protection: runrecord.Protection{Mode: "root"},
		Decision: &runrecord.Decision{Allowed: true, Rules: "1"}, Command: []string{"forge-launch", "--secret"},
		StartedAt: began, EndedAt: began.Add(time.Second), ExitCode: new(0), Training: runrecord.Training{Seen: true, How: runrecord.HowChild},
	}
}

// begun is the first of the two statements of a run.
func begun(p runrecord.Predicate) runrecord.Predicate {
	p.State, p.EndedAt, p.ExitCode, p.Training = runrecord.StateStarted, time.Time{}, nil, runrecord.Training{}
	return p
}

// signed is the statement of a predicate, signed with a key.
func signed(tb testing.TB, p runrecord.Predicate, key ed25519.PrivateKey) []byte {
	tb.Helper()
	envelope, err := runrecord.Sign(runrecord.New(p), key)
	if err != nil {
		tb.Fatal(err)
	}
	return envelope
}

// statement is one about a new run of a job, signed by nobody in particular.
func (g *gatehouse) statement(_, job string) []byte {
	g.tb.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		g.tb.Fatal(err)
	}
	p := g.predicate(job)
	p.Node.SelfAsserted = true
	return signed(g.tb, p, key)
}

// record sends a statement.
func (g *gatehouse) record(as string, envelope []byte) reply {
	g.tb.Helper()
	return g.do(call{as: as, method: http.MethodPost, path: "/api/runs", body: envelope})
}

// recorded sends a statement about a new run, and gives the run's id.
func (g *gatehouse) recorded(as, job string) string {
	g.tb.Helper()
	var out wire.RunReceived
	g.record(as, g.statement(as, job)).want(g.tb, http.StatusOK).into(g.tb, &out)
	return out.ID
}

// stateOf is the status of a job.
func (g *gatehouse) stateOf(job string) string {
	g.tb.Helper()
	var out wire.Job
	g.get("admin", "/api/jobs/"+job).want(g.tb, http.StatusOK).into(g.tb, &out)
	return out.Status
}

// jsonText is v as JSON.
func jsonText(tb testing.TB, v any) string {
	tb.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		tb.Fatal(err)
	}
	return string(text)
}
