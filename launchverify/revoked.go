package launchverify

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/gatehouse-registry/gatehouse/admission/denylist"
	"github.com/gatehouse-registry/gatehouse/admission/receipt"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/admission/runrecord"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/launchverify/nodecache"
)

// DenyListSource brings the envelope of a registry's list of revoked versions; nil when that is still the one of the tag
// (denylist.Tag), which is "" when the node has none.
type DenyListSource func(ctx context.Context, tag string) ([]byte, error)

const (
	// denyListTime bounds how long a launch waits for the list.
	denyListTime = 2 * time.Second
	// A registry that let a launch wait for slowAnswer and had no list is not asked again by this node for silentTime. A
	// launch that requires the list asks all the same.
	slowAnswer = denyListTime / 4
	silentTime = 30 * time.Second
)

// denyListProblem is why a list is not to be had, or not to be believed.
type denyListProblem struct {
	rule rule.ID
	text string
}

func problemOf(err error) *denyListProblem {
	if e, ok := errors.AsType[*receipt.Error](err); ok {
		return &denyListProblem{rule.ID("launch.denylist." + string(e.Problem)), oneLine(e.Error())}
	}
	return &denyListProblem{"launch.denylist.missing", oneLine(err.Error())}
}

// revoked refuses what the registry has revoked since it admitted the job. A list that denies does so even when it has expired
// or a newer one can't be had: a revocation is final. What is known of the list goes into the record.
func (l *launch) revoked(ctx context.Context, store *nodecache.Cache) error {
	known := denyLists{launch: l, store: store}
	if err := known.learn(ctx); err != nil {
		return err
	}
	l.rec.DenyList = known.told()
	var found rule.Report
	for _, pin := range slices.Concat(l.rcp.Plugins, l.rcp.Recipes) {
		for _, list := range known.denying() {
			if entry, denied := list.Denies(pin); denied {
				what := pin.String()
				if other := entry.String(); other != what { // the same files, or another spelling of the version
					what += ": " + other
				}
				found.Add(rule.Violation{Rule: "launch.revoked", Message: oneLine(fmt.Sprintf("%s was revoked at %s: %s (deny list %d)",
					what, entry.At.UTC().Format(time.RFC3339), entry.Reason, list.Number))})
				break
			}
		}
	}
	if !found.OK() {
		return found.Decide(rule.Launch, l.job.subject(), nil).Err()
	}
	if l.o.RequireDenyList && !known.fresh() {
		return refusal(known.problem.rule, l.job.subject(), "--deny-list require: %s", known.problem.text)
	}
	return nil
}

// denyLists is what a launch knows of revoked versions.
type denyLists struct {
	launch *launch
	store  *nodecache.Cache

	kept    *denylist.List // the cache's copy
	copied  []byte         // its envelope
	tag     string         // of the copy, when it has not expired
	lost    *denylist.List // one that was believed before the copy, and revokes what the copy does not
	fetched *denylist.List // the registry's
	current bool           // the registry has no other list than the copy
	problem *denyListProblem
}

// learn reads the cache's copy and asks the registry whether there is another list: what was revoked a moment ago counts. It
// fails only when ctx is over.
func (k *denyLists) learn(ctx context.Context) error {
	k.kept, k.copied, k.problem = k.copy(k.name())
	if k.kept != nil && k.problem == nil {
		k.tag = denylist.Tag(k.copied)
	}
	k.lost, _, _ = k.copy(k.lostName())
	if k.launch.o.DenyList == nil {
		if k.problem == nil && k.kept == nil {
			k.problem = &denyListProblem{"launch.denylist.missing", "the node has no deny list and knows no registry to ask"}
		}
		return nil
	}
	envelope, problem := k.ask(ctx)
	if err := ctx.Err(); err != nil {
		return err
	}
	switch {
	case problem != nil:
	case envelope == nil && k.tag != "":
		k.current = true
	default:
		problem = k.take(envelope)
	}
	k.problem = problem
	return nil
}

// copy is a list in the cache; nil when there is none to be believed. A copy that has expired comes with a problem.
func (k *denyLists) copy(name string) (*denylist.List, []byte, *denyListProblem) {
	envelope, err := k.store.Document(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, problemOf(err)
	}
	list, problem := k.verify(envelope)
	return list, envelope, problem
}

func (k *denyLists) verify(envelope []byte) (*denylist.List, *denyListProblem) {
	list, err := denylist.Verify(envelope, k.launch.o.Trust, k.launch.rcp.Audience, k.launch.o.Now)
	if err != nil {
		return list, problemOf(err)
	}
	return list, nil
}

// take believes a list that the registry sent, unless the node has seen a later one. What it revokes counts in any case.
func (k *denyLists) take(envelope []byte) *denyListProblem {
	list, problem := k.verify(envelope)
	if list == nil {
		return problem
	}
	k.fetched = list
	if k.kept != nil && list.Number < k.kept.Number {
		return &denyListProblem{"launch.denylist.older", fmt.Sprintf("the registry sent deny list %d, and this node has seen list %d", list.Number, k.kept.Number)}
	}
	if lost := k.keepLost(list); lost != nil {
		return lost
	}
	if err := k.store.SetDocument(k.name(), envelope); err != nil && problem == nil {
		return problemOf(fmt.Errorf("keep the deny list: %w", err))
	}
	return problem
}

// keepLost keeps what the copy revokes and the list that takes its place does not: a registry that was restored from an older
// backup reaches the number of the copy again with other revocations. There is room for one list that is remembered so; where
// another would have to be forgotten for it, the copy stays the latest that the node believes.
func (k *denyLists) keepLost(list *denylist.List) *denyListProblem {
	if k.kept == nil || list.Holds(k.kept) {
		return nil
	}
	if k.lost != nil && !list.Holds(k.lost) && !k.kept.Holds(k.lost) {
		return &denyListProblem{"launch.denylist.older", fmt.Sprintf("deny list %d of the registry revokes neither all that list %d revoked nor what list %d did", list.Number, k.kept.Number, k.lost.Number)}
	}
	if err := k.store.SetDocument(k.lostName(), k.copied); err != nil {
		return problemOf(fmt.Errorf("keep deny list %d: %w", k.kept.Number, err))
	}
	k.lost = k.kept
	return nil
}

// name is what the cache calls this registry's list, lostName one that revokes what that does not.
func (k *denyLists) name() string { return "denylist-" + shortID(k.launch.rcp.Audience) + ".json" }

func (k *denyLists) lostName() string {
	return "denylist-" + shortID(k.launch.rcp.Audience) + "-lost.json"
}

// ask brings the registry's envelope, within denyListTime whatever the source does.
func (k *denyLists) ask(ctx context.Context) ([]byte, *denyListProblem) {
	if since, silent := k.silentSince(); silent && !k.launch.o.RequireDenyList {
		return nil, &denyListProblem{"launch.denylist.missing", fmt.Sprintf("the registry did not answer at %s and was not asked again", since.UTC().Format(time.RFC3339))}
	}
	ctx, cancel := context.WithTimeout(ctx, denyListTime)
	defer cancel()
	type answer struct {
		envelope []byte
		err      error
	}
	answers := make(chan answer, 1)
	source, tag, begun := k.launch.o.DenyList, k.tag, time.Now()
	go func() {
		envelope, err := source(ctx, tag)
		answers <- answer{envelope, err}
	}()
	var got answer
	select {
	case got = <-answers:
	case <-ctx.Done():
		got.err = ctx.Err()
	}
	if got.err != nil {
		if time.Since(begun) >= slowAnswer {
			// Without a place to remember it the next launch asks again, which is all that is lost.
			_ = k.store.SetDocument(k.silence(), []byte(time.Now().UTC().Format(time.RFC3339Nano)))
		}
		return nil, &denyListProblem{"launch.denylist.missing", oneLine("the registry's deny list can't be had: " + got.err.Error())}
	}
	return got.envelope, nil
}

// silence is the name under which this node alone remembers, by its own clock, that the registry did not answer.
func (k *denyLists) silence() string {
	host, err := os.Hostname()
	if err != nil {
		host = ""
	}
	return "denylist-" + shortID(k.launch.rcp.Audience) + "-silent-" + shortID(host)
}

func (k *denyLists) silentSince() (time.Time, bool) {
	// Whoever else can write to the cache could keep the node from asking for the list with it.
	text, err := k.store.OwnDocument(k.silence())
	if err != nil {
		return time.Time{}, false
	}
	since, err := time.Parse(time.RFC3339Nano, string(text))
	age := time.Since(since)
	return since, err == nil && age >= 0 && age < silentTime
}

// shortID makes a file name of any text.
func shortID(text string) string { return digest.FromBytes([]byte(text)).Hex()[:32] }

// denying are all lists that deny, expired or not.
func (k *denyLists) denying() []*denylist.List {
	return slices.DeleteFunc([]*denylist.List{k.fetched, k.kept, k.lost}, func(l *denylist.List) bool { return l == nil })
}

// fresh reports whether a list that has not expired was looked at.
func (k *denyLists) fresh() bool {
	return slices.ContainsFunc([]*denylist.List{k.fetched, k.kept}, func(l *denylist.List) bool { return l != nil && k.launch.o.Now.Before(l.Expires) }) && !k.older()
}

func (k *denyLists) older() bool {
	return k.problem != nil && k.problem.rule == "launch.denylist.older"
}

// told is what the record says. A launch for which nobody knows a list says nothing.
func (k *denyLists) told() *runrecord.DenyList {
	if k.launch.o.DenyList == nil && k.kept == nil && !k.launch.o.RequireDenyList {
		return nil
	}
	d := &runrecord.DenyList{Required: k.launch.o.RequireDenyList}
	if k.problem != nil {
		d.Problem = plain(k.problem.text, runrecord.MaxText)
	}
	kept := runrecord.SourceCache
	if k.current {
		kept = runrecord.SourceRegistry
	}
	for _, known := range []struct {
		list   *denylist.List
		source string
	}{{k.kept, kept}, {k.fetched, runrecord.SourceRegistry}} {
		if known.list != nil && (known.list == k.kept || !k.older()) {
			d.Number, d.IssuedAt, d.Expires, d.Source = known.list.Number, known.list.IssuedAt.UTC(), known.list.Expires.UTC(), known.source
		}
	}
	return d
}
