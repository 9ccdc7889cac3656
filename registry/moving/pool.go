package moving

import (
	"context"
	"sync"
)

// pool runs functions, at most so many at a time, until one fails.
type pool struct {
	ctx   context.Context
	slots chan struct{}
	all   sync.WaitGroup

	mu  sync.Mutex
	err error
}

func newPool(ctx context.Context, n int) *pool { return &pool{ctx: ctx, slots: make(chan struct{}, n)} }

// run runs f as soon as there is room. It reports whether to go on: nothing failed so far.
func (p *pool) run(f func() error) bool {
	if p.failed() != nil {
		return false
	}
	p.slots <- struct{}{}
	p.all.Go(func() {
		defer func() { <-p.slots }()
		if err := f(); err != nil {
			p.mu.Lock()
			defer p.mu.Unlock()
			if p.err == nil {
				p.err = err
			}
		}
	})
	return true
}

func (p *pool) failed() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		p.err = p.ctx.Err()
	}
	return p.err
}

// wait waits for all and gives the first error.
func (p *pool) wait() error {
	p.all.Wait()
	return p.failed()
}
