package launchverify

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/gatehouse-registry/gatehouse/admission/receipt"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/digest"
)

// ReceiptSource brings a receipt's envelope from a registry. keys are those that the registry says are its own: they
// count only in a launch that trusts none by itself, and are worth what the connection is worth. A registry that has no
// receipt of the job is an error that wraps ErrNotFound.
type ReceiptSource func(ctx context.Context) (envelope []byte, keys receipt.TrustSet, err error)

// Where a receipt and the keys that verified it came from.
const (
	FromFile     = "file"
	FromRegistry = "registry"
)

// receive reads the receipt, verifies it, and keeps in the record whose word it is. There is no launch without one.
func (l *launch) receive(ctx context.Context) error {
	o := &l.o
	envelope, origin, err := l.envelope(ctx)
	if err != nil {
		return err
	}
	l.rec.Receipt, l.rec.ReceiptFrom, l.rec.KeysFrom = digest.FromBytes(envelope), origin, FromFile
	if l.keysFromRegistry {
		l.rec.KeysFrom = FromRegistry
	}
	if o.Trust.Empty() {
		return refusal("launch.receipt.untrusted", l.job.subject(), "there is a receipt (%s) and no key to verify it with", origin)
	}
	r, err := receipt.Verify(envelope, o.Trust, o.Audience, o.Now)
	if problem, ok := errors.AsType[*receipt.Error](err); ok {
		return refusal(rule.ID("launch.receipt."+string(problem.Problem)), l.job.subject(), "%s: %v", l.receiptName(), problem)
	}
	if err != nil {
		return err
	}
	l.rec.Job, l.rec.Audience = r.Job, r.Audience
	if o.Job != "" && r.Job != o.Job {
		return refusal("launch.receipt.job", l.job.subject(), "%s is of job %.200q, expected %.200q", l.receiptName(), r.Job, o.Job)
	}
	if l.rcp = r; o.Verified != nil {
		o.Verified(envelope)
	}
	return nil
}

// receiptName says for messages where the receipt came from.
func (l *launch) receiptName() string {
	if l.o.ReceiptFrom != nil {
		return "the registry's receipt"
	}
	return fmt.Sprintf("%q", l.receiptPath())
}

func (l *launch) receiptPath() string {
	if l.o.Receipt != "" {
		return l.o.Receipt
	}
	return l.job.dir + receipt.Suffix
}

// envelope fetches the receipt, or reads it as the job's user from the file that is named or lies beside the job directory.
func (l *launch) envelope(ctx context.Context) (envelope []byte, origin string, err error) {
	if l.o.ReceiptFrom != nil {
		envelope, err = l.fetchReceipt(ctx)
		return envelope, FromRegistry, err
	}
	path := l.receiptPath()
	err = patiently(func() error {
		return l.who.do(func() (err error) {
			envelope, err = readRegular(path, receipt.MaxEnvelope)
			return err
		})
	})
	switch {
	case err == errSlow:
		return nil, "", refusal("launch.slow", l.job.subject(), "%v: %q", err, path)
	case errors.Is(err, fs.ErrNotExist):
		err = refusal("launch.receipt.missing", l.job.subject(), "there is no receipt at %q", path)
	case err != nil:
		err = refusal("launch.receipt.malformed", l.job.subject(), "%v", err)
	}
	return envelope, FromFile, err
}

func (l *launch) fetchReceipt(ctx context.Context) ([]byte, error) {
	envelope, keys, err := l.o.ReceiptFrom(ctx)
	if errors.Is(err, ErrNotFound) {
		return nil, refusal("launch.receipt.missing", l.job.subject(), "the registry has no receipt: %v", err)
	}
	if err != nil {
		return nil, fmt.Errorf("fetch the receipt: %w", err)
	}
	if len(envelope) > receipt.MaxEnvelope {
		return nil, refusal("launch.receipt.malformed", l.job.subject(), "the registry's receipt has %d bytes, at most %d allowed", len(envelope), receipt.MaxEnvelope)
	}
	if l.o.Trust.Empty() {
		l.o.Trust, l.keysFromRegistry = keys, true
	}
	return envelope, nil
}
