package nodecache

import (
	"context"
	"sync/atomic"
	"testing"
)

// What other processes evict and make anew while everything is verified is no damage, and an eviction takes away no record but
// its own tree's.
func TestVerifyBesideEviction(t *testing.T) {
	s := &shelf{}
	pin := s.publish(t, "lab/alpha", small)
	dir := t.TempDir()
	busy := func(done *atomic.Bool, use func(c *Cache) error) <-chan struct{} {
		over := make(chan struct{})
		go func() {
			defer close(over)
			for !done.Load() {
				c := open(t, dir, Options{})
				if err := use(c); err != nil {
					t.Error(err)
				}
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			}
		}()
		return over
	}
	var done atomic.Bool
	making := busy(&done, func(c *Cache) error {
		e, err := c.Tree(context.Background(), pin, s)
		if err != nil {
			return err
		}
		e.Release()
		return nil
	})
	evicting := busy(&done, func(c *Cache) error {
		_, err := c.Collect(0, false)
		return err
	})
	c := open(t, dir, Options{})
	for i := range 3000 {
		if _, err := c.Verify(context.Background(), false, func(v Verdict) error {
			if v.Problem != "" {
				t.Errorf("round %d: %s %s: %s", i, v.Kind, v.Digest, v.Problem)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	done.Store(true)
	<-making
	<-evicting
	e, err := c.Tree(context.Background(), pin, s)
	if err != nil {
		t.Fatal(err)
	}
	e.Release()
	if _, err := c.record(e.key); err != nil {
		t.Errorf("the tree's record: %v", err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}
