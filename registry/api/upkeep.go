package api

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/api/wire"
	"github.com/gatehouse-registry/gatehouse/registry/httperr"
)

const (
	maxRemovals  = 100_000         // lines that a collection tells
	streamSilent = 5 * time.Second // after so long without a line the stream says that it is alive
)

// Collect serves POST /api/gc {dry_run}: a line of JSON for each removal, then one with the sums.
func (a *API) Collect(c *gin.Context) error {
	var in wire.Collect
	if err := decodeStrict(c, &in); err != nil {
		return err
	}
	told := 0
	return a.stream(c, func(ctx context.Context, s *lines) (wire.UpkeepLine, error) {
		all := 0
		report, err := a.svc.Collect(ctx, caller(c), registry.CollectOptions{DryRun: in.DryRun, Each: func(r registry.Removal) error {
			if all++; all > maxRemovals {
				return nil
			}
			told++
			return s.write(wire.UpkeepLine{Removal: &r})
		}})
		return wire.UpkeepLine{Collected: &report, Omitted: all - told}, err
	})
}

// Fsck serves POST /api/admin/fsck {from}: a line for each finding, then one with the sums.
func (a *API) Fsck(c *gin.Context) error {
	var in wire.Fsck
	if err := decodeStrict(c, &in); err != nil {
		return err
	}
	return a.stream(c, func(ctx context.Context, s *lines) (wire.UpkeepLine, error) {
		report, err := a.svc.FsckFrom(ctx, caller(c), in.From, registry.FsckOptions{
			Each:     func(f registry.Finding) error { return s.write(wire.UpkeepLine{Finding: &f}) },
			Progress: func(r registry.FsckReport) { s.alive(wire.UpkeepLine{Progress: &r}) },
		})
		return wire.UpkeepLine{Checked: &report}, err
	})
}

// GetScrub serves GET /api/admin/scrub.
func (a *API) GetScrub(c *gin.Context) error {
	state, err := a.svc.Scrub(c.Request.Context(), caller(c))
	if err != nil {
		return err
	}
	c.JSON(http.StatusOK, state)
	return nil
}

// ListOwners serves GET /api/admin/owners?after=.
func (a *API) ListOwners(c *gin.Context) error {
	list, err := a.svc.OwnerQuotas(c.Request.Context(), caller(c), c.Query("after"))
	if err != nil {
		return err
	}
	c.JSON(http.StatusOK, wire.Owners{Owners: list})
	return nil
}

// GetOwnerQuota serves GET /api/admin/owners/:owner/quota.
func (a *API) GetOwnerQuota(c *gin.Context) error {
	return answerQuota(c)(a.svc.OwnerQuota(c.Request.Context(), caller(c), c.Param("owner")))
}

// PutOwnerQuota serves PUT /api/admin/owners/:owner/quota {bytes, versions, manifests}.
func (a *API) PutOwnerQuota(c *gin.Context) error {
	var q registry.Quota
	if err := decodeStrict(c, &q); err != nil {
		return err
	}
	return answerQuota(c)(a.svc.SetOwnerQuota(c.Request.Context(), caller(c), c.Param("owner"), &q))
}

// DeleteOwnerQuota serves DELETE /api/admin/owners/:owner/quota: the default counts again.
func (a *API) DeleteOwnerQuota(c *gin.Context) error {
	return answerQuota(c)(a.svc.SetOwnerQuota(c.Request.Context(), caller(c), c.Param("owner"), nil))
}

func answerQuota(c *gin.Context) func(registry.OwnerLimit, error) error {
	return func(l registry.OwnerLimit, err error) error {
		if err == nil {
			c.JSON(http.StatusOK, l)
		}
		return err
	}
}

// lines writes an answer of JSON lines. An answer that stands still is taken for a dead one by servers and proxies, so alive
// lines come in between.
type lines struct {
	mu      sync.Mutex
	c       *gin.Context
	last    time.Time // when a line was written; zero before the first
	pending *wire.UpkeepLine
}

func (s *lines) write(l wire.UpkeepLine) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.put(l)
}

func (s *lines) put(l wire.UpkeepLine) error {
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	if s.last.IsZero() {
		s.c.Header("Content-Type", "application/x-ndjson")
		s.c.Status(http.StatusOK)
	}
	s.last = time.Now()
	if _, err := s.c.Writer.Write(append(text, '\n')); err != nil {
		return err
	}
	s.c.Writer.Flush()
	return nil
}

// alive is what the next line says that comes because nothing else did.
func (s *lines) alive(l wire.UpkeepLine) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending = &l
}

// beat writes a line when none came for a while.
func (s *lines) beat() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.last) < streamSilent {
		return nil
	}
	l := wire.UpkeepLine{Waiting: true}
	if s.pending != nil {
		l = *s.pending
	}
	return s.put(l)
}

// stream answers with the lines that work writes and the one that it ends with. Who stops listening ends the work. An error
// before the first line is an ordinary answer; a later one is the last line.
func (a *API) stream(c *gin.Context, work func(context.Context, *lines) (wire.UpkeepLine, error)) error {
	ctx, cancel := context.WithCancel(c.Request.Context())
	defer cancel()
	s := &lines{c: c}
	stopped := make(chan struct{})
	begun := time.Now()
	go func() {
		defer close(stopped)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if time.Since(begun) < streamSilent {
				continue
			}
			if s.beat() != nil {
				cancel()
				return
			}
		}
	}()
	last, err := work(ctx, s)
	cancel()
	<-stopped // nobody else writes from here on
	if err != nil {
		if s.last.IsZero() {
			return err
		}
		code, message := httperr.Late(c.Request, a.log, err)
		last = wire.UpkeepLine{Error: &wire.UpkeepError{Code: code, Message: message}}
	}
	return s.write(last)
}
