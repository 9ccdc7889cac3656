package registry

import (
	"context"
	"encoding/json"
	"time"
)

// A lease lets one of all replicas do a piece of upkeep at a time: a row of the settings that names its holder and when it
// ends. The clocks of replicas may differ by leaseMargin.
const (
	leaseTime   = 2 * time.Minute
	leaseMargin = 30 * time.Second
)

// leaseRow is what the setting holds.
type leaseRow struct {
	Service string    `json:"service"` // the running Service
	Holder  string    `json:"holder"`  // one piece of work of it
	Until   time.Time `json:"until"`
}

// lease is held by one piece of work. It is not safe for concurrent use.
type lease struct {
	s       *Service
	setting string
	row     leaseRow
}

// takeLease makes the caller the only one who does the named work. Errors: Conflict when another does. A lease of a Service
// that is known to be dead counts for nothing (Deps.Alone).
func (s *Service) takeLease(ctx context.Context, work string) (*lease, error) {
	l := &lease{s: s, setting: "lease-" + work, row: leaseRow{Service: s.upkeep.name(), Holder: randomHex(8)}}
	return l, s.meta.Update(ctx, func(tx Tx) error {
		held, err := l.read(tx)
		if err != nil {
			return err
		}
		dead := s.upkeep.alone && held.Service != l.row.Service
		if left := held.Until.Sub(s.now()); left > -leaseMargin && !dead {
			return Errorf(Conflict, "the %s runs already, here or on another replica; should that have died, try again in %s", work, (left + leaseMargin).Round(time.Second))
		}
		return l.write(tx)
	})
}

// hold renews the lease inside a transaction. Errors: Conflict when another took it meanwhile.
func (l *lease) hold(tx Tx) error {
	held, err := l.read(tx)
	if err != nil {
		return err
	}
	if held.Holder != l.row.Holder {
		return Errorf(Conflict, "%s was taken over by another replica", l.setting)
	}
	return l.write(tx)
}

// valid fails when the lease may have ended while its holder stood still: what it would do now, another may be doing.
func (l *lease) valid() error {
	if l.row.Until.Sub(l.s.now()) < leaseMargin {
		return Errorf(Conflict, "%s ended before it was renewed", l.setting)
	}
	return nil
}

// release ends the lease. A lease that can't be released ends by itself.
func (l *lease) release(ctx context.Context) {
	err := l.s.meta.Update(context.WithoutCancel(ctx), func(tx Tx) error {
		held, err := l.read(tx)
		if err != nil || held.Holder != l.row.Holder {
			return err
		}
		return tx.PutSetting(l.setting, "{}")
	})
	if err != nil {
		l.s.log.WarnContext(ctx, "a lease stays until it ends", "lease", l.setting, "err", err)
	}
}

func (l *lease) read(tx Tx) (leaseRow, error) {
	var held leaseRow
	text, err := setting(tx, l.setting)
	if err != nil || text == "" {
		return held, err
	}
	return held, json.Unmarshal([]byte(text), &held)
}

func (l *lease) write(tx Tx) error {
	l.row.Until = l.s.now().Add(leaseTime)
	text, err := json.Marshal(l.row)
	if err != nil {
		return err
	}
	return tx.PutSetting(l.setting, string(text))
}
