package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/launchverify"
)

// launchFlags are the flags of a launch.
type launchFlags struct {
	receiptFlags
	rootFlags
	recordFlags
	denyListFlags
	cacheFlags
	jobSpec, core, record string
	keepEnv, warn         []string
	verifyOnly            bool
	grace                 time.Duration
}

// tokenVariable is not passed on to a job: its plugins are others' code.
const tokenVariable = "GATEHOUSE_TOKEN"

func isToken(variable string) bool { return strings.HasPrefix(variable, tokenVariable+"=") }

// launch is gate 3 and the launch agent.
func (a app) launch() *cobra.Command {
	var f launchFlags
	cmd := &cobra.Command{
		Use:   "launch --jobspec FILE [flags] -- COMMAND [ARG...]",
		Short: "Prove a job's plugins and start its command with exactly those",
		Long: `Start a command in front of which gate 3 stands. The plugins that the job pins are fetched by digest, or taken from the
node's cache, copied into a root of the job's own, made read-only, hashed there, and compared with what the receipt pins.
When anything differs one line says what, and the command is not started (exit 7 for digests, signatures and receipts,
3 for rules). Otherwise the exit code is the command's.

A job comes with the receipt that the registry signed for it: JOB.receipt.json beside the job directory, or --receipt FILE.
It is verified with the keys of --trust FILE, which sf admin key show prints; then a warm cache needs no server. While a
registry changes its key the file holds the old and the new one. --receipt-from-server asks the registry that one is signed
in at for the receipt of --job ID, over https, and without --trust for its keys: what that proves, the connection proves.

With --from-package the job's directory is made of the job package that the receipt pins: of the user's job directory
it has the folder of the outputs alone (*_OUT_DIR, else EXPERIMENT/outputs), and the rest can't be written to. Plugins and
recipe packs need not lie there, and without --jobspec the spec is the one that the receipt pins.

An agent that is root runs the command with --user as somebody else, whose rights alone then open the job directory; HOME,
USER and LOGNAME become that account's. Without --user the command runs as root, and a warning says when the job directory
is not root's.

--probe launches nothing and says what this node can do, and why it can't do better: every mode is tried. It ends with exit
code 3 where a launch would be refused.

Where the node allows no namespaces the launch is refused, unless --allow private-copy accepts a copy that keeps out
accidents and other users only. --record FILE says afterwards what was checked, under which protection, and what ran.

On a machine that has joined a registry (sf node join) every launch is told to it in a signed statement, which waits on disk
while the registry is away. What an administrator revoked is not launched; --deny-list require refuses a launch that can't
know.`,
		Args: func(_ *cobra.Command, args []string) error { return commandArgs(f.verifyOnly || f.probe, args) },
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.probe {
				return a.probe(cmd.Context(), f)
			}
			return a.runLaunch(cmd.Context(), f, args)
		},
	}
	flags := cmd.Flags()
	flags.SetInterspersed(false) // what follows the command is the command's
	flags.StringVar(&f.jobSpec, "jobspec", "", "the spec in its job directory: JOB/.starforge/jobspec.json or JOB/.tuneplane/jobspec.json")
	f.receiptFlags.add(flags)
	f.rootFlags.add(flags)
	f.recordFlags.add(flags)
	f.denyListFlags.add(flags)
	flags.StringSliceVar(&f.keepEnv, "keep-env", nil, "a variable to pass on although it steers what is loaded")
	flags.StringVar(&f.core, "core-version", "", "the version of the client that the command runs (default the spec's provenance)")
	f.cacheFlags.add(flags)
	flags.StringVar(&f.record, "record", "", "write what the launch did to this file, as JSON")
	flags.DurationVar(&f.grace, "grace", launchverify.DefaultGrace, "how long the command has to end after a signal that ends it; then all of it is killed")
	addVerifyOnlyFlag(flags, &f.verifyOnly)
	addWarnFlag(cmd, &f.warn)
	completeFlag(cmd, "allow", []string{privateCopy})
	return cmd
}

func (a app) runLaunch(ctx context.Context, f launchFlags, command []string) error {
	o, err := a.launchOptions(f, command)
	if err != nil {
		return err
	}
	if err := recordFile(f.record).check(); err != nil {
		return err
	}
	tell := a.reporter(f.recordFlags)
	if err := a.denyList(f.denyListFlags, tell, &o); err != nil {
		return err
	}
	if tell != nil {
		o.Started, o.Hidden = tell.started, []string{tell.node.Folder()}
	}
	ctx, stop := throughHangups(ctx)
	defer stop()
	record, err := launchverify.Run(ctx, o)
	record.Run = tell.run()
	if slices.ContainsFunc(a.env.environ, isToken) && !slices.ContainsFunc(o.Env, isToken) {
		record.RemovedEnv = append(record.RemovedEnv, tokenVariable)
	}
	if f.record != "" {
		if err := recordFile(f.record).save(record); err != nil {
			a.warn("the record was not written", err)
		}
	}
	code := launchverify.ExitCode(record, err)
	if err != nil && code == exitError {
		code = exitCode(err)
	}
	tell.ended(record, err, code)
	switch {
	case err != nil:
		return launchFailure{err, code}
	case f.verifyOnly:
		return a.printVerified(record)
	}
	a.warnOfProtection(record)
	a.warnOfRoot(f.rootFlags, record)
	return exitStatus{code}
}

// launchOptions turns flags and environment into options.
func (a app) launchOptions(f launchFlags, command []string) (launchverify.Options, error) {
	in := &launchSignIn{app: a, nodeState: f.nodeState}
	o := launchverify.Options{
		JobSpec: f.jobSpec, Command: command, CheckOnly: f.verifyOnly, Grace: f.grace, KeepEnv: f.keepEnv, CoreVersion: f.core, Fetcher: &fetcher{app: a, signIn: in}, Verified: in.verified,
	}
	if err := f.root(&o); err != nil {
		return o, err
	}
	if f.jobSpec == "" && !o.FromPackage {
		return o, usagef("--jobspec is required: the spec in its job directory")
	}
	if f.grace <= 0 {
		return o, usagef("--grace: %v is no time", f.grace)
	}
	opt, err := checkFlags{warn: f.warn}.options()
	if err != nil {
		return o, err
	}
	o.Policy = opt.Policy
	o.Env = append([]string{}, a.env.environ...)
	if !slices.Contains(f.keepEnv, tokenVariable) {
		o.Env = slices.DeleteFunc(o.Env, isToken)
	}
	if o.CacheDir, err = a.env.cacheDir(f.cache); err != nil {
		return o, err
	}
	if o.CacheBytes, err = a.env.cacheBytes(f.cacheSize); err != nil {
		return o, err
	}
	err = a.receipts(f.receiptFlags, &o)
	return o, err
}

// warnOfProtection says when a launch had less protection than the agent hoped for.
func (a app) warnOfProtection(r launchverify.Record) {
	if r.Mode != launchverify.ModePrivateCopy {
		return
	}
	fmt.Fprintln(a.env.Err, "sf launch: the job ran from a private copy, which does not keep out processes of the same user")
	if r.Changed {
		fmt.Fprintln(a.env.Err, "sf launch: warning: when the job ended the copy was no longer what was checked")
	}
}

// launchFailure is why a launch did not come to the end of its command.
type launchFailure struct {
	err  error
	code int
}

func (f launchFailure) Unwrap() error { return f.err }

// Error is one line, whatever was refused: it ends up in a scheduler's log.
func (f launchFailure) Error() string {
	denied, ok := errors.AsType[*rule.Denied](f.err)
	if !ok {
		return printable(f.err.Error())
	}
	all := make([]string, len(denied.Decision.Violations))
	for i, v := range denied.Decision.Violations {
		all[i] = printable(v.String())
		if v.Hint != "" {
			all[i] += " (" + printable(v.Hint) + ")"
		}
	}
	return "refused: " + strings.Join(all, "; ")
}

// launchMemory is the heap of a launch from which on garbage is collected.
const launchMemory = 64 << 20

// collectLate has garbage collected when it is worth it: a launch with a warm cache makes a few megabytes in all. What the
// environment says of collections counts.
func collectLate() {
	if os.Getenv("GOGC") == "" && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetGCPercent(-1)
		debug.SetMemoryLimit(launchMemory)
	}
}
