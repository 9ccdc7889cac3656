package cli

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/admission/receipt"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/launchverify/nodecache"
)

// warmFlags say what is put into the cache.
type warmFlags struct {
	cacheFlags
	receipt, trust, jobSpec, nodeState string
	jobPackage                         bool
	warn                               []string
}

// cacheWarm fetches packs before a launch needs them.
func (a app) cacheWarm() *cobra.Command {
	var f warmFlags
	cmd := &cobra.Command{
		Use:   "warm OWNER/NAME@VERSION... | warm --receipt FILE | warm --jobspec FILE",
		Short: "Fetch packs into the cache, so that launches need no server",
		Long: `Fetch packs into the node's cache before launches need them. Packs are named, or they are those that a receipt pins:
--receipt FILE, or with --jobspec JOB/.starforge/jobspec.json the one beside the job directory. A receipt is verified with
the keys of --trust FILE; --job-package fetches its job's spec and package as well.`,
		RunE: func(cmd *cobra.Command, args []string) error { return a.runWarm(cmd.Context(), f, args) },
	}
	flags := cmd.Flags()
	f.add(flags)
	flags.StringVar(&f.receipt, "receipt", "", "fetch what this receipt pins")
	flags.StringVar(&f.jobSpec, "jobspec", "", "fetch what the receipt beside the job directory of this spec pins")
	flags.StringVar(&f.trust, "trust", "", "the keys whose receipts count (default $GATEHOUSE_TRUST)")
	flags.StringVar(&f.nodeState, "node-state", "", "the folder of the node's identity (default $GATEHOUSE_NODE)")
	flags.BoolVar(&f.jobPackage, "job-package", false, "fetch the spec and the package of the receipt's job too")
	addWarnFlag(cmd, &f.warn)
	return cmd
}

// warmed is one line of the result.
type warmed struct {
	Name    string        `json:"name"`
	Digest  digest.Digest `json:"digest"` // of a pack's manifest, or of the bytes
	Fetched bool          `json:"fetched"`
}

func (a app) runWarm(ctx context.Context, f warmFlags, args []string) error {
	if f.receipt == "" && f.jobSpec != "" {
		abs, err := filepath.Abs(f.jobSpec)
		if err != nil {
			return err
		}
		f.receipt = filepath.Dir(filepath.Dir(abs)) + receipt.Suffix
	}
	if (f.receipt == "") == (len(args) == 0) {
		return usagef("name packs as OWNER/NAME@VERSION, or a receipt with --receipt or --jobspec")
	}
	opt, err := checkFlags{warn: f.warn}.options()
	if err != nil {
		return err
	}
	in := &launchSignIn{app: a, nodeState: f.nodeState}
	var r *receipt.Receipt
	var pins []receipt.Pin
	if f.receipt != "" {
		if r, err = a.warmReceipt(f, in); err != nil {
			return err
		}
		pins = append(append(pins, r.Plugins...), r.Recipes...)
	} else if pins, err = a.namedPins(ctx, args); err != nil {
		return err
	}
	c, err := a.env.openCache(f.cacheFlags, nodecache.Options{Policy: opt.Policy})
	if err != nil {
		return err
	}
	defer c.Close()
	w := warming{cache: c, from: &fetcher{app: a, signIn: in}}
	for _, pin := range pins {
		if err := w.pack(ctx, pin); err != nil {
			return err
		}
	}
	if r != nil && f.jobPackage {
		if err := w.job(ctx, r); err != nil {
			return err
		}
	}
	return a.printWarmed(w.done)
}

// warmReceipt reads and verifies the receipt.
func (a app) warmReceipt(f warmFlags, in *launchSignIn) (*receipt.Receipt, error) {
	envelope, err := readFile(f.receipt, receipt.MaxEnvelope)
	if err != nil {
		return nil, err
	}
	trust, err := a.env.trust(f.trust)
	if err != nil {
		return nil, err
	}
	if trust.Empty() {
		return nil, usagef("--receipt and --jobspec need --trust FILE, the keys whose receipts count")
	}
	r, err := receipt.Verify(envelope, trust, "", time.Now())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.receipt, err)
	}
	in.verified(envelope)
	return r, nil
}

// namedPins asks the registry what the names stand for.
func (a app) namedPins(ctx context.Context, args []string) ([]receipt.Pin, error) {
	var pins []receipt.Pin
	c, err := a.env.ociClient(ctx)
	if err != nil {
		return nil, err
	}
	for _, arg := range args {
		ref, err := parseRef(arg)
		if err != nil {
			return nil, err
		}
		if ref.Version == "" {
			return nil, usagef("%.200q has no version: expected OWNER/NAME@VERSION", arg)
		}
		p, err := find(ctx, c, ref)
		if err != nil {
			return nil, err
		}
		pins = append(pins, receipt.Pin{ID: p.ID, Version: p.Version, Kind: p.Kind, Content: p.content, Tree: p.tree, Manifest: p.manifest})
	}
	return pins, nil
}

// warming fills the cache and keeps what it did. It is its cache's source, so that it sees what is fetched.
type warming struct {
	cache   *nodecache.Cache
	from    *fetcher
	fetched bool
	done    []warmed
}

// Fetch implements nodecache.Source.
func (w *warming) Fetch(ctx context.Context, pin receipt.Pin) (io.ReadCloser, error) {
	w.fetched = true
	return w.from.Fetch(ctx, pin)
}

func (w *warming) pack(ctx context.Context, pin receipt.Pin) error {
	if pin.RuntimeSupplied {
		return nil // it has no bytes in the registry
	}
	w.fetched = false
	if _, err := w.cache.Tree(ctx, pin, w); err != nil {
		return fmt.Errorf("%s: %w", pin, err)
	}
	w.done = append(w.done, warmed{pin.String(), pin.Manifest, w.fetched})
	return nil
}

// job fetches the spec and the package of a receipt's job.
func (w *warming) job(ctx context.Context, r *receipt.Receipt) error {
	fetch := func(name string, d digest.Descriptor, open func(context.Context, *receipt.Receipt) (io.ReadCloser, error)) error {
		w.fetched = false
		_, err := w.cache.Blob(ctx, d, func(ctx context.Context) (io.ReadCloser, error) {
			w.fetched = true
			return open(ctx, r)
		})
		if err != nil {
			return fmt.Errorf("%s of job %.200s: %w", name, r.Job, err)
		}
		w.done = append(w.done, warmed{name + " of " + r.Job, d.Digest, w.fetched})
		return nil
	}
	if err := fetch("spec", digest.Descriptor{Digest: r.SpecBytes, Size: limit.Document}, w.from.FetchSpec); err != nil || r.JobPackage.IsZero() {
		return err
	}
	return fetch("package", digest.Descriptor{Digest: r.JobPackage, Size: limit.JobPackage}, w.from.FetchPackage)
}

func (a app) printWarmed(done []warmed) error {
	if a.opt.json {
		return a.env.writeJSON(append([]warmed{}, done...))
	}
	for _, one := range done {
		did := "there already"
		if one.Fetched {
			did = "fetched"
		}
		if _, err := fmt.Fprintf(a.env.Out, "%s %s: %s\n", printable(one.Name), one.Digest, did); err != nil {
			return err
		}
	}
	return nil
}
