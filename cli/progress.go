package cli

import (
	"io"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// barDelay is how long a transfer may take before a bar is shown.
const barDelay = time.Second

// barWidth is the width of a bar in characters, its texts included.
const barWidth = 72

// transfer follows bytes on their way. On a terminal a bar appears once they have taken barDelay, and goes away at the
// end; elsewhere nothing is ever shown.
type transfer struct {
	env   *Env
	label string
	total int64 // bytes; 0 or less when it is not known

	mu       sync.Mutex
	n        int64
	ended    bool
	timer    *time.Timer // nil where no bar is wanted
	progress *mpb.Progress
	bar      *mpb.Bar
}

// transfer begins to follow total bytes. End it.
func (e *Env) transfer(label string, total int64) *transfer {
	t := &transfer{env: e, label: label, total: total}
	if e.Terminal {
		t.timer = time.AfterFunc(barDelay, t.show)
	}
	return t
}

// show puts up the bar.
func (t *transfer) show() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return
	}
	t.progress = mpb.New(mpb.WithOutput(t.env.Err), mpb.WithWidth(barWidth), mpb.WithAutoRefresh())
	t.bar = t.progress.AddBar(max(t.total, 0),
		mpb.PrependDecorators(decor.Name(t.label+" ")),
		mpb.AppendDecorators(decor.CountersKibiByte("% .1f / % .1f")),
		mpb.BarRemoveOnComplete(),
	)
	t.bar.SetCurrent(t.n)
}

// reader counts what is read through it. A second reader begins anew.
func (t *transfer) reader(r io.Reader) io.Reader {
	t.moved(0, true)
	return &countingReader{r, t}
}

func (t *transfer) moved(n int64, reset bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if reset {
		t.n = 0
	}
	t.n += n
	if t.bar != nil {
		t.bar.SetCurrent(t.n)
	}
}

// grow adds bytes that were found to be moved too.
func (t *transfer) grow(n int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.total += n
	if t.bar != nil {
		t.bar.SetTotal(t.total, false)
	}
}

// end takes the bar down. It may be called twice.
func (t *transfer) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return
	}
	t.ended = true
	if t.timer != nil {
		t.timer.Stop()
	}
	if t.bar != nil {
		t.bar.Abort(true)
		t.progress.Wait()
	}
}

type countingReader struct {
	r io.Reader
	t *transfer
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.t.moved(int64(n), false)
	return n, err
}
