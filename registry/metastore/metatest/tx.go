package metatest

import (
	"context"
	"errors"
	"testing"

	"github.com/gatehouse-registry/gatehouse/registry"
)

var txTests = map[string]func(*testing.T, registry.MetaStore){
	"UpdateRollsBack":       testUpdateRollsBack,
	"UpdateOfPanic":         testUpdateOfPanic,
	"UpdateOfEndedRoutine":  testUpdateOfEndedRoutine,
	"UpdateReadsItsWrites":  testUpdateReadsItsWrites,
	"ViewCannotWrite":       testViewCannotWrite,
	"ViewSeesCommittedOnly": testViewSeesCommittedOnly,
	"ViewIsOneMoment":       testViewIsOneMoment,
	"Cancelled":             testCancelled,
	"ErrorsPass":            testErrorsPass,
}

// put sets a setting, the simplest of writes.
func put(key, value string) func(registry.Tx) error {
	return func(tx registry.Tx) error { return tx.PutSetting(key, value) }
}

// absent checks that no setting has the key.
func absent(t *testing.T, s registry.MetaStore, what, key string) {
	t.Helper()
	missing(t, s, what, registry.NotFound, func(tx registry.Tx) (string, error) { return tx.Setting(key) })
}

// present checks that a setting has the value.
func present(t *testing.T, s registry.MetaStore, key, want string) {
	t.Helper()
	if got := view(t, s, func(tx registry.Tx) (string, error) { return tx.Setting(key) }); got != want {
		t.Errorf("setting %q: got %q, want %q", key, got, want)
	}
}

func testUpdateRollsBack(t *testing.T, s registry.MetaStore) {
	update(t, s, put("kept", "old"))
	err := s.Update(context.Background(), func(tx registry.Tx) error {
		if err := tx.PutSetting("kept", "new"); err != nil {
			return err
		}
		if err := tx.InsertAccount(account("alice")); err != nil {
			return err
		}
		return errOwn
	})
	if !errors.Is(err, errOwn) {
		t.Errorf("got error %v, want the function's", err)
	}
	present(t, s, "kept", "old")
	missing(t, s, "account of a failed update", registry.NotFound, func(tx registry.Tx) (registry.Account, error) { return tx.Account("alice") })
}

func testUpdateOfPanic(t *testing.T, s registry.MetaStore) {
	func() {
		defer func() {
			if got := recover(); got != "own panic" {
				t.Errorf("recovered %v, want the function's panic", got)
			}
		}()
		s.Update(context.Background(), func(tx registry.Tx) error {
			if err := tx.PutSetting("key", "value"); err != nil {
				return err
			}
			panic("own panic")
		})
	}()
	absent(t, s, "setting of an update that panicked", "key")
	update(t, s, put("key", "later"))
	present(t, s, "key", "later")
}

// testUpdateOfEndedRoutine checks a function that ends its goroutine, as a test's FailNow does.
func testUpdateOfEndedRoutine(t *testing.T, s registry.MetaStore) {
	t.Run("inner", func(t *testing.T) {
		s.Update(context.Background(), func(tx registry.Tx) error {
			if err := tx.PutSetting("key", "value"); err != nil {
				return err
			}
			t.SkipNow()
			return nil
		})
	})
	absent(t, s, "setting of an update whose goroutine ended", "key")
	update(t, s, put("key", "later"))
	present(t, s, "key", "later")
}

func testUpdateReadsItsWrites(t *testing.T, s registry.MetaStore) {
	update(t, s, func(tx registry.Tx) error {
		if err := tx.PutSetting("key", "value"); err != nil {
			return err
		}
		got, err := tx.Setting("key")
		if got != "value" {
			t.Errorf("inside the update: got %q, want its own write", got)
		}
		return err
	})
}

func testViewCannotWrite(t *testing.T, s registry.MetaStore) {
	for range 3 {
		if err := s.View(context.Background(), put("key", "value")); err == nil {
			t.Error("a write in a View succeeded")
		}
		err := s.View(context.Background(), func(tx registry.Tx) error {
			tx.PutSetting("key", "value")
			return nil
		})
		if err == nil {
			t.Error("a View whose function hides a failed write succeeded")
		}
	}
	absent(t, s, "setting that a View wrote", "key")
	update(t, s, put("key", "value"))
}

func testViewSeesCommittedOnly(t *testing.T, s registry.MetaStore) {
	update(t, s, put("key", "old"))
	update(t, s, func(tx registry.Tx) error {
		if err := tx.PutSetting("key", "new"); err != nil {
			return err
		}
		present(t, s, "key", "old")
		return nil
	})
	present(t, s, "key", "new")
}

func testViewIsOneMoment(t *testing.T, s registry.MetaStore) {
	update(t, s, put("key", "old"))
	err := s.View(context.Background(), func(tx registry.Tx) error {
		for range 2 {
			got, err := tx.Setting("key")
			if err != nil || got != "old" {
				t.Errorf("inside the View: got %q, error %v, want what its first look saw", got, err)
			}
			update(t, s, put("key", "new"))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	present(t, s, "key", "new")
}

func testCancelled(t *testing.T, s registry.MetaStore) {
	ctx, cancel := context.WithCancel(context.Background())
	err := s.Update(ctx, func(tx registry.Tx) error {
		if err := tx.PutSetting("key", "value"); err != nil {
			return err
		}
		cancel()
		return tx.PutSetting("key2", "value")
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("update that is cancelled: got error %v, want context.Canceled", err)
	}
	absent(t, s, "setting of a cancelled update", "key")
	never := func(registry.Tx) error {
		t.Error("the function ran though its context had ended")
		return nil
	}
	if err := s.Update(ctx, never); !errors.Is(err, context.Canceled) {
		t.Errorf("update with a cancelled context: got error %v, want context.Canceled", err)
	}
	if err := s.View(ctx, never); !errors.Is(err, context.Canceled) {
		t.Errorf("view with a cancelled context: got error %v, want context.Canceled", err)
	}
	ctx, cancel = context.WithCancel(context.Background())
	err = s.View(ctx, func(tx registry.Tx) error {
		cancel()
		_, err := tx.Setting("key")
		return err
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("view that is cancelled: got error %v, want context.Canceled", err)
	}
	update(t, s, put("key", "later"))
}

// testErrorsPass checks that errors of the domain leave the store as they are.
func testErrorsPass(t *testing.T, s registry.MetaStore) {
	own := &registry.Error{Code: registry.AdmissionDenied, Message: "own", Detail: 7}
	for name, run := range map[string]func(context.Context, func(registry.Tx) error) error{"Update": s.Update, "View": s.View} {
		if err := run(context.Background(), func(registry.Tx) error { return own }); err != error(own) {
			t.Errorf("%s: got error %v, want the very one that its function returned", name, err)
		}
	}
}
