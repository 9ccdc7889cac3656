package nodecache

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"strings"
	"time"
)

const (
	// claimBeat is how often a claim's heartbeat changes.
	claimBeat = 2 * time.Second
	// claimSilence is how long a claim's heartbeat must not change until others take it over.
	claimSilence = 20 * time.Second
	// patience is how long a process waits for others' claims of one entry before it goes on without.
	patience = 10 * time.Minute

	firstLook = 2 * time.Millisecond
	lastLook  = 80 * time.Millisecond
	farLook   = 500 * time.Millisecond // at what another node does, by way of a file server
)

// claim says that this process makes an entry. The nil claim says nothing.
type claim struct {
	c          *Cache
	name       string
	stop, done chan struct{}
}

// claim waits until the entry is there or is this process's to make. Without an error the claim may still be nil: the
// entry is there, or claims can't be had and the process goes on without.
func (c *Cache) claim(ctx context.Context, key string, there func() bool) (*claim, error) {
	name := path.Join("claims", strings.ReplaceAll(key, "/", "-"))
	var last []byte
	began, since := time.Now(), time.Now()
	for pause := firstLook; ; pause = min(2*pause, lastLook) {
		if there() {
			return nil, nil
		}
		if time.Since(began) > patience {
			return nil, nil
		}
		text, err := c.readFile(name, maxSmall) // what can't be read is silent
		if gone(err) {
			if cl, err := c.stake(name); !errors.Is(err, fs.ErrExist) {
				return cl, nil
			}
		}
		if !bytes.Equal(text, last) {
			last, since = text, time.Now()
		}
		o, known := claimant(text)
		near := known && o.node == c.me.node
		if near && o.dead() || time.Since(since) >= c.silence {
			if !c.lift(name, text) {
				return nil, nil
			}
			continue
		}
		if known && !near {
			pause = max(pause, farLook)
		}
		if err := sleep(ctx, pause/2+rand.N(pause)); err != nil {
			return nil, err
		}
	}
}

// sleep waits, or fails when ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// claimant reads whose a claim is.
func claimant(text []byte) (owner, bool) {
	_, line, _ := bytes.Cut(text, []byte("\n"))
	line, _, whole := bytes.Cut(line, []byte("\n"))
	o, _, ok := parseOwner(string(line))
	return o, ok && whole
}

// stake makes the claim's file. One that is there is an fs.ErrExist.
func (c *Cache) stake(name string) (*claim, error) {
	f, err := c.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, err
	}
	_, err = f.WriteString(beatText(1) + "\n" + c.me.String() + "\n")
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, errors.Join(err, c.root.Remove(name))
	}
	cl := &claim{c: c, name: name, stop: make(chan struct{}), done: make(chan struct{})}
	go cl.beat()
	return cl, nil
}

func (cl *claim) beat() {
	defer close(cl.done)
	tick := time.NewTicker(claimBeat)
	defer tick.Stop()
	for n := uint64(2); ; n++ {
		select {
		case <-cl.stop:
			return
		case <-tick.C:
			if f, err := cl.c.root.OpenFile(cl.name, os.O_WRONLY, 0); err == nil {
				_, _ = f.WriteAt([]byte(beatText(n)), 0) // silence costs a second fetch
				f.Close()
			}
		}
	}
}

// end takes the claim back, unless somebody took it over.
func (cl *claim) end() {
	if cl == nil {
		return
	}
	close(cl.stop)
	<-cl.done
	text, err := cl.c.readFile(cl.name, maxSmall)
	if o, ok := claimant(text); err == nil && ok && o == cl.c.me {
		_ = cl.c.root.Remove(cl.name) // somebody lifts it
	}
}

// lift takes away a claim whose owner is dead or silent, and reports whether it could. One that came in between is put back.
func (c *Cache) lift(name string, text []byte) bool {
	away := path.Join("claims", "."+c.ownName())
	if err := c.root.Rename(name, away); err != nil {
		return gone(err)
	}
	if got, _ := c.readFile(away, maxSmall); !bytes.Equal(got, text) {
		_ = c.root.Link(away, name) // another claim in its place is as good
	}
	_ = c.remove(away)
	return true
}
