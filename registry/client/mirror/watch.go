package mirror

import (
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"time"
)

// errStalled is why a request ends whose peer gave nothing, and took nothing, for Options.Stall.
var errStalled = errors.New("the other side sent and took nothing for too long")

// watch ends a request that stands still. Every byte that moves is a touch.
type watch struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
	stall  time.Duration
}

// watchOver begins to watch; stop ends it, and the context with it.
func watchOver(ctx context.Context, stall time.Duration) (*watch, context.Context) {
	ctx, cancel := context.WithCancelCause(ctx)
	w := &watch{ctx: ctx, cancel: cancel, stall: stall}
	w.timer = time.AfterFunc(stall, func() { cancel(errStalled) })
	return w, ctx
}

func (w *watch) touch() { w.timer.Reset(w.stall) }

func (w *watch) stop() {
	w.timer.Stop()
	w.cancel(nil)
}

// cause is err, or why the watch ended the request.
func (w *watch) cause(err error) error {
	if errors.Is(context.Cause(w.ctx), errStalled) {
		return errStalled
	}
	return err
}

// touching touches the watch with every read that gives something.
type touching struct {
	r     io.Reader
	watch *watch
}

func (t *touching) Read(p []byte) (int, error) {
	n, err := t.r.Read(p)
	if n > 0 {
		t.watch.touch()
	}
	return n, err
}

// isNetwork reports whether err is the connection's.
func isNetwork(err error) bool {
	if _, ok := errors.AsType[net.Error](err); ok {
		return true
	}
	_, ok := errors.AsType[*url.Error](err)
	return ok
}
