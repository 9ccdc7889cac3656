package launchverify

import (
	"context"
	"errors"
	"time"
)

// A file system may never answer: a FUSE server of the job's user, a file server that is gone. What a launch reads of it is
// given these times; then it is refused, and the process that still waits is left to end with us.
var readTime = time.Minute // for the spec, and for the receipt

// prepareTime is how long a stage has from its start to the start of the command.
const prepareTime = 15 * time.Minute

var errSlow = errors.New("what the launch reads did not come in time")

// patiently runs f, which reads little, and gives up on it after readTime. Then f may still run, in the rights it took: only
// refusing the launch may follow.
func patiently(f func() error) error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	timer := time.NewTimer(readTime)
	defer timer.Stop()
	select {
	case err := <-done:
		return err
	case <-timer.C:
		return errSlow
	}
}

// patience is ctx, for the time that a stage has until its command starts.
func (l *launch) patience(ctx context.Context) (context.Context, context.CancelFunc) {
	after := prepareTime
	if l.o.hurry {
		after = 0
	}
	return context.WithTimeoutCause(ctx, after, errSlow)
}

// slow words the failure of what took too long; other errors pass.
func (l *launch) slow(ctx context.Context, err error) error {
	if err != nil && (errors.Is(err, errSlow) || context.Cause(ctx) == errSlow && errors.Is(err, context.DeadlineExceeded)) {
		return refusal("launch.slow", l.job.subject(), "%v: is the file server of %q there?", errSlow, l.job.dir)
	}
	return err
}
