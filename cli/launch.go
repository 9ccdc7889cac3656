package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/admission/name"
	"github.com/gatehouse-registry/gatehouse/admission/receipt"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/internal/durable"
	"github.com/gatehouse-registry/gatehouse/launchverify"
	"github.com/gatehouse-registry/gatehouse/registry/client"
)

// launchFlags are the flags of a launch.
type launchFlags struct {
	jobSpec, receipt, trust, core, cache, record string
	allow, bind, keepEnv, warn                   []string
}

// privateCopy is the one thing that --allow allows.
const privateCopy = string(launchverify.ModePrivateCopy)

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

With --trust FILE, the keys that sf admin key show prints, the job must come with a signed receipt: JOB.receipt.json
beside the job directory, or --receipt FILE. Then a warm cache needs no server.

Where the node allows no namespaces the launch is refused, unless --allow private-copy accepts a copy that keeps out
accidents and other users only. --record FILE says afterwards what was checked, under which protection, and what ran.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.runLaunch(cmd.Context(), f, args) },
	}
	flags := cmd.Flags()
	flags.SetInterspersed(false) // what follows the command is the command's
	flags.StringVar(&f.jobSpec, "jobspec", "", "the spec in its job directory: JOB/.starforge/jobspec.json or JOB/.tuneplane/jobspec.json")
	flags.StringVar(&f.receipt, "receipt", "", "the receipt (default JOB"+receipt.Suffix+")")
	flags.StringVar(&f.trust, "trust", "", "the keys whose receipts count (default $GATEHOUSE_TRUST)")
	flags.StringSliceVar(&f.allow, "allow", nil, "private-copy: launch where the node has no namespaces")
	flags.StringSliceVar(&f.bind, "bind", nil, "a further name at the top of the job directory that the job may see")
	flags.StringSliceVar(&f.keepEnv, "keep-env", nil, "a variable to pass on although it steers what is loaded")
	flags.StringVar(&f.core, "core-version", "", "the version of the client that the command runs (default the spec's provenance)")
	flags.StringVar(&f.cache, "cache", "", "the node's cache (default $GATEHOUSE_CACHE)")
	flags.StringVar(&f.record, "record", "", "write what the launch did to this file, as JSON")
	addWarnFlag(cmd, &f.warn)
	completeFlag(cmd, "allow", []string{privateCopy})
	return cmd
}

func (a app) runLaunch(ctx context.Context, f launchFlags, command []string) error {
	o, err := a.launchOptions(f, command)
	if err != nil {
		return err
	}
	record, err := launchverify.Run(ctx, o)
	if slices.ContainsFunc(a.env.environ, isToken) && !slices.ContainsFunc(o.Env, isToken) {
		record.RemovedEnv = append(record.RemovedEnv, tokenVariable)
	}
	if f.record != "" {
		if saveErr := saveRecord(f.record, record); saveErr != nil {
			fmt.Fprintln(a.env.Err, "sf launch: the record was not written:", saveErr)
		}
	}
	if err == nil {
		a.warnOfProtection(record)
		return exitStatus{launchverify.ExitCode(record, nil)}
	}
	code := launchverify.ExitCode(record, err)
	if code == exitError {
		code = exitCode(err)
	}
	return launchFailure{err, code}
}

// launchOptions turns flags and environment into options.
func (a app) launchOptions(f launchFlags, command []string) (launchverify.Options, error) {
	o := launchverify.Options{
		JobSpec: f.jobSpec, Receipt: f.receipt, Command: command, KeepEnv: f.keepEnv, Binds: f.bind, CoreVersion: f.core, Fetcher: &fetcher{app: a},
	}
	if f.jobSpec == "" {
		return o, usagef("--jobspec is required: the spec in its job directory")
	}
	for _, what := range f.allow {
		if what != privateCopy {
			return o, usagef("--allow: %.40q is not %s", what, privateCopy)
		}
		o.AllowPrivateCopy = true
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
	o.Trust, err = a.env.trust(f.trust)
	return o, err
}

// maxTrust bounds a trust file; receipt.ParseTrust refuses more.
const maxTrust = 64 * limit.KiB

// trust reads the keys whose receipts count: of the flag, else of GATEHOUSE_TRUST, else none.
func (e *Env) trust(flag string) (receipt.TrustSet, error) {
	path := flag
	if path == "" {
		path = e.Vars["GATEHOUSE_TRUST"]
	}
	if path == "" {
		return receipt.TrustSet{}, nil
	}
	src, err := readFile(path, maxTrust+1)
	if err != nil {
		return receipt.TrustSet{}, err
	}
	set, err := receipt.ParseTrust(src)
	if err != nil {
		return set, fmt.Errorf("%s: %w", path, err)
	}
	return set, nil
}

// cacheDir is the node's cache: of the flag, else GATEHOUSE_CACHE, else the user's; root's is below /var.
func (e *Env) cacheDir(flag string) (string, error) {
	switch {
	case flag != "":
		return flag, nil
	case e.Vars["GATEHOUSE_CACHE"] != "":
		return e.Vars["GATEHOUSE_CACHE"], nil
	case os.Geteuid() == 0:
		return "/var/cache/gatehouse", nil
	case e.Vars["XDG_CACHE_HOME"] != "":
		return filepath.Join(e.Vars["XDG_CACHE_HOME"], "gatehouse"), nil
	case e.Vars["HOME"] != "":
		return filepath.Join(e.Vars["HOME"], ".cache", "gatehouse"), nil
	}
	return "", errors.New("no cache folder: set GATEHOUSE_CACHE or name one with --cache")
}

func saveRecord(path string, record launchverify.Record) error {
	text, err := json.MarshalIndent(record, "", "  ")
	if err != nil {
		return err
	}
	return durable.Replace(path, append(text, '\n'), 0o644)
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
	}
	return "refused: " + strings.Join(all, "; ")
}

// fetcher brings what a launch pins from the registry. It signs in with the first question, so a warm cache needs neither
// a server nor a session.
type fetcher struct {
	app    app
	client *client.Client
}

func (f *fetcher) open(ctx context.Context) (*client.Client, error) {
	if f.client != nil {
		return f.client, nil
	}
	c, err := f.app.env.ociClient(ctx)
	if err != nil {
		return nil, err
	}
	f.client = c
	return c, nil
}

// Resolve finds a version by its name.
func (f *fetcher) Resolve(ctx context.Context, id, version string) (receipt.Pin, error) {
	ref, err := name.VersionedRef(id+"@"+version, "plugin")
	if err != nil {
		return receipt.Pin{}, err
	}
	c, err := f.open(ctx)
	if err != nil {
		return receipt.Pin{}, err
	}
	p, err := find(ctx, c, ref)
	if err != nil {
		return receipt.Pin{}, notFound(err)
	}
	return receipt.Pin{ID: id, Version: version, Kind: p.Kind, Content: p.content, Tree: p.tree, Manifest: p.manifest}, nil
}

// Fetch opens a pack's archive; reading it fails unless it is the one that the pinned manifest names.
func (f *fetcher) Fetch(ctx context.Context, pin receipt.Pin) (io.ReadCloser, error) {
	owner, pack, _ := strings.Cut(pin.ID, "/")
	repository, err := name.RepositoryName(owner, pack)
	if err != nil {
		return nil, err
	}
	c, err := f.open(ctx)
	if err != nil {
		return nil, err
	}
	got, err := c.FetchManifest(ctx, repository, pin.Manifest)
	if err != nil {
		return nil, notFound(err)
	}
	blob, err := c.Blob(ctx, repository, got.Artifact.Layer)
	if err != nil {
		return nil, notFound(err)
	}
	bar := f.app.env.transfer(pin.String(), got.Artifact.Layer.Size)
	return followed{bar.reader(blob), blob, bar}, nil
}

// notFound marks what the registry does not have, as launchverify wants it.
func notFound(err error) error {
	if exitCode(err) == exitNotFound {
		return fmt.Errorf("%w: %w", launchverify.ErrNotFound, err)
	}
	return err
}

// followed takes its bar down when it is closed.
type followed struct {
	io.Reader
	blob io.Closer
	bar  *transfer
}

func (f followed) Close() error {
	f.bar.end()
	return f.blob.Close()
}
