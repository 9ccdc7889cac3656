package registry

import (
	"github.com/gatehouse-registry/gatehouse/admission/dialect"
)

// moment is MetaStore.AccessGeneration before a View. A transaction that writes has none: what it sees of others may never be
// committed, so it remembers nothing.
type moment struct {
	generation uint64
	exact      bool
}

// thisMoment is to be called before the View begins whose reads are remembered.
func (s *Service) thisMoment() moment {
	g, exact := s.meta.AccessGeneration()
	return moment{g, exact}
}

// rememberingTx is a Tx whose look-ups of what every submission asks are remembered as the rows of the cache are (cache.go). In a
// transaction that writes it uses what others remembered: that was committed, and nothing has been committed since.
type rememberingTx struct {
	Tx
	s     *Service
	since moment // zero in a transaction that writes
}

// CatalogueStamp implements Tx.
func (t rememberingTx) CatalogueStamp(d dialect.Dialect, part CataloguePart) (string, error) {
	return remembered(t, rowKey{stampRow, string(d), string(part)}, func(string) int { return 0 }, func() (string, error) {
		return t.Tx.CatalogueStamp(d, part)
	})
}

// Account implements Tx.
func (t rememberingTx) Account(name string) (Account, error) {
	return remembered(t, rowKey{accountRow, name, ""}, func(a Account) int { return len(a.Quota) + len(a.Email) + len(a.PasswordHash) }, func() (Account, error) {
		return t.Tx.Account(name)
	})
}

// remembered gives what read finds, or found before while that is still true.
func remembered[T any](t rememberingTx, key rowKey, size func(T) int, read func() (T, error)) (T, error) {
	generation, exact := t.s.meta.AccessGeneration()
	if exact {
		if r, ok := t.s.rows.get(key); ok && r.generation == generation {
			return r.value.(T), nil
		}
	}
	value, err := read()
	if err == nil && t.since.exact {
		t.s.rows.put(key, row{t.since.generation, value}, size(value)+len(key.a)+len(key.b))
	}
	return value, err
}
