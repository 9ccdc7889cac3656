package cli

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/gatehouse-registry/gatehouse/admission/runrecord"
	"github.com/gatehouse-registry/gatehouse/launchverify"
	"github.com/gatehouse-registry/gatehouse/launchverify/nodestate"
	"github.com/gatehouse-registry/gatehouse/launchverify/runspool"
	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/client"
)

const (
	// lastWords bounds how long a launch that is over waits for the registry. What it has to say is on disk by then.
	lastWords = 2 * time.Second
	// meanwhile bounds what is sent while the job runs.
	meanwhile = time.Minute
)

// recordFlags say whether and as whom a launch is told to the registry.
type recordFlags struct {
	nodeState string
	noReport  bool
}

func (f *recordFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.nodeState, "node-state", "", "the folder of the node's state, of which the launch is told to the registry (default $"+nodeVariable+")")
	flags.BoolVar(&f.noReport, "no-report", false, "do not tell the registry of this launch")
}

// reporter tells the registry of one launch. Whatever goes wrong with it, the job and its exit code are as they would have been.
// The nil reporter, of a machine that is no node, tells nobody.
type reporter struct {
	app   app
	node  *nodestate.State
	as    *client.Client // signed in as the node
	spool *runspool.Spool
	who   launchverify.Witness

	mu   sync.Mutex // held while a statement is spooled
	over bool
	stop context.CancelFunc // of what is sent while the job runs
}

// reporter is nil when this machine has not joined a registry, or is not to report. A state that can't be used is said.
func (a app) reporter(f recordFlags) *reporter {
	if f.noReport {
		return nil
	}
	n, err := a.env.node(f.nodeState)
	if err == nil {
		var r *reporter
		if r, err = newReporter(a, n); err == nil {
			return r
		}
	}
	if !notJoined(err) || f.nodeState != "" {
		a.warn("this launch is not told to the registry", err)
	}
	return nil
}

func newReporter(a app, n *nodestate.State) (*reporter, error) {
	spool, err := runspool.Open(n.Spool(), runspool.Limits{})
	if err != nil {
		return nil, err
	}
	as, err := nodeClient(n, 0)
	if err != nil {
		return nil, err
	}
	id := make([]byte, 16)
	if _, err := rand.Read(id); err != nil {
		return nil, err
	}
	r := &reporter{app: a, node: n, as: as, spool: spool, stop: func() {}}
	r.who = launchverify.Witness{Run: hex.EncodeToString(id), Agent: Version, Node: runrecord.Node{Name: n.Name, SelfAsserted: n.SelfAsserted}, Keys: n.Folder()}
	return r, nil
}

// run is the run's id, "" when nobody is told.
func (r *reporter) run() string {
	if r == nil {
		return ""
	}
	return r.who.Run
}

// warn says on stderr what went wrong beside a launch.
func (a app) warn(what string, err error) {
	fmt.Fprintf(a.env.Err, "sf launch: warning: %s: %s\n", what, printable(err.Error()))
}

// started is launchverify.Options.Started: it tells of the start, and sends what earlier launches left.
func (r *reporter) started(record launchverify.Record) {
	ctx, cancel := context.WithTimeout(context.Background(), meanwhile)
	defer cancel()
	if !r.tellStart(record, cancel) {
		return
	}
	// What can't be sent now is sent at the end, or by another launch.
	_, _ = r.spool.Send(ctx, false, r.send)
}

// tellStart spools the statement of a start unless the run is over already.
func (r *reporter) tellStart(record launchverify.Record, stop context.CancelFunc) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return false
	}
	r.stop = stop
	_, err := r.keep(launchverify.StartedStatement(record, r.who))
	if err != nil {
		r.app.warn("the start of the run was not recorded", err)
	}
	return true
}

// ended tells what became of a launch: the statement is on disk before anything is sent.
func (r *reporter) ended(record launchverify.Record, launchErr error, code int) {
	if r == nil {
		return
	}
	statement, ok := launchverify.EndedStatement(record, launchErr, code, time.Now(), r.who)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
	r.stop()
	if !ok {
		return
	}
	entry, err := r.keep(statement)
	if err != nil {
		r.app.warn("the run was not recorded", err)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), lastWords)
	defer cancel()
	err = r.spool.SendOne(ctx, entry, r.send)
	if errors.Is(err, runspool.ErrRejected) {
		r.app.warn("the run was recorded here alone", err)
	}
	if err == nil {
		_, _ = r.spool.Send(ctx, false, r.send) // what is left is another launch's
	}
}

// keep signs a statement and puts it on disk.
func (r *reporter) keep(s runrecord.Statement) (runspool.Entry, error) {
	envelope, err := runrecord.Sign(s, r.node.Key)
	if err != nil {
		return runspool.Entry{}, err
	}
	entry, dropped, err := r.spool.Put(s.Predicate.Run, s.Predicate.State, envelope)
	if dropped > 0 {
		r.app.warn("the spool was full", fmt.Errorf("%d of its oldest statements were dropped unsent", dropped))
	}
	return entry, err
}

// send brings one envelope to the node's registry.
func (r *reporter) send(ctx context.Context, envelope []byte) error {
	return sendRun(ctx, r.as, envelope)
}

func sendRun(ctx context.Context, c *client.Client, envelope []byte) error {
	_, err := c.SendRun(ctx, envelope)
	return delivered(err)
}

// delivered tells a statement that will never be taken from a registry that is away, or from a node that is locked out for now.
// That the job is not there, or that the key is another node's, is said of this one statement, which must not keep the others
// waiting: a registry that was restored from a backup lacks jobs. Only the registry itself says so: a proxy answers like that
// while the registry is away.
func delivered(err error) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*registry.Error](err); ok {
		switch e.Code.Meaning().Status {
		case http.StatusBadRequest, http.StatusConflict, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
			return fmt.Errorf("%w: %w", runspool.ErrRejected, err)
		case http.StatusForbidden, http.StatusNotFound:
			if !errors.Is(err, client.ErrForeign) {
				return fmt.Errorf("%w: %w", runspool.ErrRejected, err)
			}
		}
	}
	return err
}

// throughHangups gives a context that ends with the signals which would otherwise end the agent between the end of its job and
// the moment at which that is on disk; the job gets them all the same, and SIGUSR1 and SIGUSR2 are the job's alone. A signal that
// the agent was started to ignore stays ignored.
func throughHangups(ctx context.Context) (context.Context, context.CancelFunc) {
	heard := func(signals ...os.Signal) []os.Signal { return slices.DeleteFunc(signals, signal.Ignored) }
	if personal := heard(syscall.SIGUSR1, syscall.SIGUSR2); len(personal) > 0 {
		signal.Notify(make(chan os.Signal, 1), personal...) // until the process ends
	}
	if ending := heard(syscall.SIGHUP, syscall.SIGQUIT); len(ending) > 0 {
		return signal.NotifyContext(ctx, ending...)
	}
	return context.WithCancel(ctx)
}
