package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/admission/receipt"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/internal/pattern"
	"github.com/gatehouse-registry/gatehouse/launchverify"
)

// maxTrust bounds a trust file; receipt.ParseTrust refuses more.
const maxTrust = 64 * limit.KiB

// runVariable names the job where the platforms start one (launch.md 2).
const runVariable = "NRL_RUN_ID"

// receiptTime bounds how long a launch waits for its receipt.
const receiptTime = 2 * time.Minute

// receiptFlags say where a launch's receipt comes from and whose word it is.
type receiptFlags struct {
	receipt, trust, job string
	fromServer          bool
}

func (f *receiptFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.receipt, "receipt", "", "the receipt (default JOB"+receipt.Suffix+")")
	flags.StringVar(&f.trust, "trust", "", "the keys whose receipts count (default $GATEHOUSE_TRUST)")
	flags.BoolVar(&f.fromServer, "receipt-from-server", false, "ask the registry for the receipt, over https; without --trust for its keys too")
	flags.StringVar(&f.job, "job", "", "the id of the job that the receipt must be of (with --receipt-from-server default $"+runVariable+")")
}

// jobForm is what the id of a job may be made of, as it goes into an address.
var jobForm = pattern.New(`^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$`)

// receipts turns flags and environment into the options of a launch.
func (a app) receipts(f receiptFlags, o *launchverify.Options) (err error) {
	if f.fromServer && f.receipt != "" {
		return usagef("--receipt and --receipt-from-server: one of them says where the receipt is")
	}
	o.Receipt, o.Job = f.receipt, f.job
	if f.fromServer {
		if o.Job == "" {
			o.Job = a.env.Vars[runVariable]
		}
		if o.Job == "" {
			return usagef("--receipt-from-server needs the job's id: --job ID, or %s", runVariable)
		}
		o.ReceiptFrom = func(ctx context.Context) ([]byte, receipt.TrustSet, error) {
			return a.receiptFromServer(ctx, o.Job, o.Trust.Empty())
		}
	}
	if o.Job != "" && !jobForm.MatchString(o.Job) {
		return usagef("%.200q is no job's id", o.Job)
	}
	o.Trust, err = a.env.trust(f.trust)
	return err
}

// receiptFromServer asks the registry for a job's receipt, and for its keys when none are pinned. Without pinned keys the
// connection is all that proves them, and with them the token still crosses it: https alone will do.
func (a app) receiptFromServer(ctx context.Context, job string, keysToo bool) (envelope []byte, keys receipt.TrustSet, err error) {
	ctx, cancel := context.WithTimeout(ctx, receiptTime)
	defer cancel()
	c, _, err := a.env.client()
	if err != nil {
		return nil, keys, err
	}
	if !strings.HasPrefix(c.Server(), "https://") {
		return nil, keys, launchRefusal("launch.receipt.transport", "the registry's address is %.200q, expected one with https", c.Server())
	}
	if envelope, err = c.Receipt(ctx, job); err != nil {
		return nil, keys, notFound(err)
	}
	if !keysToo {
		return envelope, keys, nil
	}
	text, err := c.Trust(ctx)
	if err != nil {
		return nil, keys, fmt.Errorf("its keys: %w", err)
	}
	if keys, err = receipt.ParseTrust(text); err != nil {
		return nil, keys, fmt.Errorf("its keys: %w", err)
	}
	return envelope, keys, nil
}

// launchRefusal is a refusal of what only a command line knows of a launch.
func launchRefusal(id rule.ID, format string, args ...any) error {
	var found rule.Report
	found.Add(rule.Violation{Rule: id, Message: fmt.Sprintf(format, args...)})
	return found.Decide(rule.Launch, rule.Subject{}, nil).Err()
}

// trust reads the keys whose receipts count: of the flag, else of GATEHOUSE_TRUST, else none.
func (e *Env) trust(flag string) (receipt.TrustSet, error) {
	path := flag
	if path == "" {
		path = e.Vars["GATEHOUSE_TRUST"]
	}
	if path == "" {
		return receipt.TrustSet{}, nil
	}
	const fix = "the registry's administrator writes it with sf admin key show > FILE"
	src, err := readFile(path, maxTrust+1)
	if err != nil {
		return receipt.TrustSet{}, fmt.Errorf("trust file: %w (--trust or GATEHOUSE_TRUST names it; %s)", err, fix)
	}
	set, err := receipt.ParseTrust(src)
	if err != nil {
		return set, fmt.Errorf("%s: %w (%s)", path, err, fix)
	}
	return set, nil
}
