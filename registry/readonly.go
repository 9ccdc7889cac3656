package registry

import (
	"context"
	"time"

	"github.com/gatehouse-registry/gatehouse/registry/auth"
)

// ReadOnlySetting is the setting that holds why the registry takes no writes; "" or none means that it takes them.
const ReadOnlySetting = "read-only"

// readOnlyPatience is what a client is asked to wait for.
const readOnlyPatience = time.Minute

// writable is the MetaStore of every use case: it lets no change through while the registry is read-only. The setting is
// looked at inside the change's own transaction, so no interleaving lets a change commit after SetReadOnly has returned,
// whoever called that: this server, another replica, or a command that moves the registry.
type writable struct{ MetaStore }

// Update implements MetaStore. Errors: Unavailable while the registry is read-only.
func (w writable) Update(ctx context.Context, fn func(Tx) error) error {
	return w.MetaStore.Update(ctx, func(tx Tx) error {
		reason, err := readOnly(tx)
		if err != nil {
			return err
		}
		if reason != "" {
			return &Error{Code: Unavailable, Message: "the registry takes no changes now: " + reason, RetryAfter: readOnlyPatience}
		}
		return fn(tx)
	})
}

func readOnly(tx Tx) (reason string, err error) {
	return setting(tx, ReadOnlySetting)
}

// ReadOnly says why the registry takes no changes, "" when it takes them.
func ReadOnly(ctx context.Context, meta MetaStore) (reason string, err error) {
	err = meta.View(ctx, func(tx Tx) (err error) {
		reason, err = readOnly(tx)
		return err
	})
	return reason, err
}

// SetReadOnly makes the registry of a store read-only for a reason that clients are shown, or lets it take changes again with
// "". No change commits after it has returned.
func SetReadOnly(ctx context.Context, meta MetaStore, reason string) error {
	return meta.Update(ctx, func(tx Tx) error { return PutReadOnly(tx, reason) })
}

// PutReadOnly is SetReadOnly as a part of a change.
func PutReadOnly(tx Tx, reason string) error { return tx.PutSetting(ReadOnlySetting, reason) }

// ReadOnly is the function of this name for an administrator. Errors: Denied.
func (s *Service) ReadOnly(ctx context.Context, p auth.Principal) (string, error) {
	if err := s.authorize(ctx, p, auth.ManageAccounts, "", "read-only"); err != nil {
		return "", err
	}
	return ReadOnly(ctx, s.meta)
}

// maxReason bounds the text that clients are shown, in bytes.
const maxReason = 200

// SetReadOnly is the function of this name for an administrator. Errors: Denied, Invalid.
func (s *Service) SetReadOnly(ctx context.Context, p auth.Principal, reason string) error {
	if err := s.authorize(ctx, p, auth.ManageAccounts, "", "read-only"); err != nil {
		return err
	}
	if len(reason) > maxReason {
		return Errorf(Invalid, "reason: %d bytes, at most %d are allowed", len(reason), maxReason)
	}
	return s.always.Update(ctx, func(tx Tx) error {
		if err := PutReadOnly(tx, reason); err != nil {
			return err
		}
		return s.audit(tx, p, "registry.read-only", "registry", reason)
	})
}
