package launchverify

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/receipt"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/admission/runrecord"
)

// plan is all that the stage needs to know. The agent writes it into the stage's first pipe and keeps that pipe open:
// its end tells the stage that the agent is gone.
type plan struct {
	Mode         Mode
	PIDNamespace bool
	Root         string // where the job will see its directory: a mount point, or the private copy's own folder
	User         identityPlan

	JobDir   string
	Dialect  dialect.Dialect
	Spec     []byte
	Recipe   string // spec.recipe.name
	Exp      string // spec.source.exp
	Receipt  *receipt.Receipt
	Core     string
	Softened []rule.ID

	Package *packagePlan // nil when the job directory is the user's
	Plugins []pinned
	Recipes []pinned
	Binds   []string
	Hidden  []string

	RootBytes  int64 // of the root's file system; 0 is what it needs
	Probe      bool  // nothing is launched: the mode is tried
	CheckOnly  bool
	Command    []string
	Env        []string
	Terminal   int    // descriptor of the terminal that controls the agent's session; -1 without one
	Foreground bool   // the agent has the terminal and lends it to the command
	Cgroup     cgroup // of the job alone; "" without one
	Grace      time.Duration
}

// cgroup is the folder of a control group (cgroups(7), version 2) that holds the job's processes and nothing else; "" is
// none. A process leaves such a group only where it may write to another one, and the kernel kills a group whole.
type cgroup string

// identityPlan is an identity in transit.
type identityPlan struct {
	User
	Other bool
}

func (p identityPlan) identity() identity { return identity{p.User, p.Other} }

// pinned is a pin and the unpacked tree in the node's cache that should have its digests; "" for packages that the
// runtime supplies.
type pinned struct {
	receipt.Pin
	Tree string
}

// wirePlan is a plan in transit as JSON. Paths, arguments and variables may hold any bytes, which JSON texts can't.
type wirePlan struct {
	Plan         plan
	Root, JobDir []byte
	Trees        [][]byte // of Plugins, then of Recipes
	Binds        [][]byte
	Hidden       [][]byte
	Command, Env [][]byte
}

func (p *plan) send(w io.Writer) error {
	wire := wirePlan{
		Plan: *p, Root: []byte(p.Root), JobDir: []byte(p.JobDir),
		Binds: rawTexts(p.Binds), Hidden: rawTexts(p.Hidden), Command: rawTexts(p.Command), Env: rawTexts(p.Env),
	}
	for _, one := range slices.Concat(p.Plugins, p.Recipes) {
		wire.Trees = append(wire.Trees, []byte(one.Tree))
	}
	return json.NewEncoder(w).Encode(wire)
}

// receivePlan reads a plan. What the agent says afterwards are resumptions.
func receivePlan(dec *json.Decoder) (plan, error) {
	var wire wirePlan
	if err := dec.Decode(&wire); err != nil {
		return plan{}, fmt.Errorf("read the plan: %w", err)
	}
	p := wire.Plan
	if len(wire.Trees) != len(p.Plugins)+len(p.Recipes) {
		return plan{}, fmt.Errorf("read the plan: %d trees of %d packs", len(wire.Trees), len(p.Plugins)+len(p.Recipes))
	}
	for i := range p.Plugins {
		p.Plugins[i].Tree = string(wire.Trees[i])
	}
	for i := range p.Recipes {
		p.Recipes[i].Tree = string(wire.Trees[len(p.Plugins)+i])
	}
	p.Root, p.JobDir = string(wire.Root), string(wire.JobDir)
	p.Binds, p.Hidden = goTexts(wire.Binds), goTexts(wire.Hidden)
	p.Command, p.Env = goTexts(wire.Command), goTexts(wire.Env)
	return p, nil
}

func rawTexts(texts []string) [][]byte {
	raw := make([][]byte, len(texts))
	for i, t := range texts {
		raw[i] = []byte(t)
	}
	return raw
}

func goTexts(raw [][]byte) []string {
	texts := make([]string, len(raw))
	for i, r := range raw {
		texts[i] = string(r)
	}
	return texts
}

// resumption is the agent's word to the stage that a command which the terminal had stopped goes on.
type resumption struct {
	Foreground bool // the command gets the terminal
}

// report is one message of the stage to the agent. But for Stopped each comes at most once, in this order, as far as the
// launch goes.
type report struct {
	// Unavailable: the node does not allow this protection; nothing was done yet.
	Unavailable string `json:",omitempty"`
	// Prepared says what the root was made of.
	Prepared *prepared `json:",omitempty"`
	// Decision is gate 3's.
	Decision *rule.Decision `json:",omitempty"`
	// Interrupted: a signal that asks the job to end came before the command was started.
	Interrupted bool `json:",omitempty"`
	// Starting: the command is executed next. When nothing else comes it may have been.
	Starting bool `json:",omitempty"`
	// Exec is how executing the command went.
	Exec *execution `json:",omitempty"`
	// Stopped is the signal that stopped the command. It goes on with a resumption, or when somebody else wants it to.
	Stopped int `json:",omitempty"`
	// Exit is how the command ended.
	Exit *exit `json:",omitempty"`
	// Error is why the stage gave up.
	Error string `json:",omitempty"`
}

type prepared struct {
	Binds   []string
	Hidden  []string
	Recipes []receipt.Pin // recipe packs that no receipt pins, as the job directory has them
}

type execution struct {
	Error    string // "" when the command runs
	Code     int    // the exit code that stands for Error
	Tracking Tracking
}

type exit struct {
	Code, Signal int
	Killed       int
	Training     runrecord.Training
	Changed      bool
}

// reports reads the stage's messages until its end.
func reports(r io.Reader, each func(report)) error {
	dec := json.NewDecoder(r)
	for {
		var m report
		if err := dec.Decode(&m); err == io.EOF {
			return nil
		} else if err != nil {
			return fmt.Errorf("read the stage's report: %w", err)
		}
		each(m)
	}
}

// softened lists the rules that a policy turns into warnings, so that it can travel.
func softened(p rule.Policy) []rule.ID { return p.Soft() }
