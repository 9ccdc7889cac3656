package serving

import (
	"context"
	"errors"
	"fmt"
)

// Form says where a registry keeps what it has.
type Form string

// The forms.
const (
	Embedded   Form = "embedded"    // everything in one folder
	PostgresS3 Form = "postgres-s3" // metadata in PostgreSQL, bytes in MinIO
)

// FormUsage explains the flag that takes a form.
const FormUsage = "embedded, or postgres-s3 for stores that are started for it"

// ParseForm reads a form's name.
func ParseForm(text string) (Form, error) {
	switch f := Form(text); f {
	case Embedded, PostgresS3:
		return f, nil
	}
	return "", fmt.Errorf("-form: %q is no form of a registry: %s", text, FormUsage)
}

// StartForm is Start on the stores of a form, which end with it. stop ends all of it.
func StartForm(ctx context.Context, form Form, o Options) (r *Registry, stop func() error, err error) {
	own := stores{stop: func() error { return nil }}
	if form == PostgresS3 {
		// MinIO speaks plain HTTP here, and clients follow no redirect from HTTPS to that.
		if own, err = startStores(!o.TLS); err != nil {
			return nil, nil, err
		}
		o.Args, o.Env = append(o.Args, own.args...), append(o.Env, own.env...)
	}
	r, err = Start(ctx, o)
	if err != nil {
		return nil, nil, errors.Join(err, own.stop())
	}
	return r, func() error { return errors.Join(r.Stop(), own.stop()) }, nil
}
