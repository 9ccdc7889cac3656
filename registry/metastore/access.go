package metastore

import (
	"encoding/json"
	"time"

	"github.com/gatehouse-registry/gatehouse/registry"
)

// number is how a boolean is stored.
func number(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// RepositoryAccess implements registry.AccessTx: one row, one query.
func (t *tx) RepositoryAccess(name, account string) (registry.RepositoryAccess, error) {
	return one(t, noRepository(name), func(r row) (a registry.RepositoryAccess, err error) {
		var private, listed int64
		err = r.Scan(&a.Owner, &private, &listed)
		a.Private, a.Listed = private != 0, listed != 0
		return a, err
	}, `SELECT owner, private, (SELECT COUNT(*) FROM repository_readers WHERE repository = $1 AND account = $2)
		FROM repositories WHERE name = $1`, name, account)
}

// SetRepositoryAccess implements registry.AccessTx.
func (t *tx) SetRepositoryAccess(name string, private bool, readers []string) error {
	if err := t.change(noRepository(name), `UPDATE repositories SET private = $2 WHERE name = $1`, name, number(private)); err != nil {
		return err
	}
	if _, err := t.exec(`DELETE FROM repository_readers WHERE repository = $1`, name); err != nil {
		return err
	}
	for _, account := range readers {
		if _, err := t.Account(account); err != nil {
			return err
		}
		if _, err := t.exec(`INSERT INTO repository_readers (repository, account) VALUES ($1, $2) ON CONFLICT DO NOTHING`, name, account); err != nil {
			return err
		}
	}
	return nil
}

// RepositoryReaders implements registry.AccessTx.
func (t *tx) RepositoryReaders(name string) ([]string, error) {
	return all(t, text, `SELECT account FROM repository_readers WHERE repository = $1 ORDER BY account`, name)
}

// hiddenFrom is the condition that the repository r is private and account $1 may not read it.
const hiddenFrom = `(r.private <> 0 AND r.owner <> $1 AND NOT EXISTS
	(SELECT 1 FROM repository_readers x WHERE x.repository = r.name AND x.account = $1))`

// ReadableRepositories implements registry.AccessTx.
func (t *tx) ReadableRepositories(account, after string, limit int) ([]string, error) {
	return all(t, text, `SELECT name FROM repositories r WHERE name > $2 AND `+hasManifest+` AND NOT `+hiddenFrom+` ORDER BY name LIMIT $3`,
		account, after, atMost(limit))
}

// HiddenPacks implements registry.AccessTx.
func (t *tx) HiddenPacks(account string) ([]string, error) {
	return all(t, text, `SELECT name FROM repositories r WHERE pack_kind <> '' AND `+hiddenFrom+` ORDER BY name`, account)
}

const robotColumns = `name, owner, description, scopes, created_by, created_at, expires_at`

func scanRobot(r row) (b registry.Robot, err error) {
	var scopes []byte
	if err := r.Scan(&b.Name, &b.Owner, &b.Description, &scopes, &b.CreatedBy, timeColumn{&b.CreatedAt}, timeColumn{&b.ExpiresAt}); err != nil {
		return b, err
	}
	return b, json.Unmarshal(scopes, &b.Scopes)
}

func noRobot(name string) *registry.Error {
	return registry.Errorf(registry.NotFound, "there is no robot %.140q", name)
}

// InsertRobot implements registry.AccessTx.
func (t *tx) InsertRobot(b registry.Robot) error {
	scopes, err := json.Marshal(b.Scopes)
	if err != nil {
		return err
	}
	for _, account := range []string{b.Name, b.Owner} {
		if _, err := t.Account(account); err != nil {
			return err
		}
	}
	return t.insert(conflict("robot %.140q exists already", b.Name),
		`INSERT INTO robots (`+robotColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING`,
		b.Name, b.Owner, b.Description, scopes, b.CreatedBy, micros(b.CreatedAt), micros(b.ExpiresAt))
}

// Robot implements registry.AccessTx.
func (t *tx) Robot(name string) (registry.Robot, error) {
	return one(t, noRobot(name), scanRobot, `SELECT `+robotColumns+` FROM robots WHERE name = $1`, name)
}

// Robots implements registry.AccessTx.
func (t *tx) Robots(owner string) ([]registry.Robot, error) {
	if owner == "" {
		return all(t, scanRobot, `SELECT `+robotColumns+` FROM robots ORDER BY name`)
	}
	return all(t, scanRobot, `SELECT `+robotColumns+` FROM robots WHERE owner = $1 ORDER BY name`, owner)
}

// DeleteRobot implements registry.AccessTx.
func (t *tx) DeleteRobot(name string) error {
	if err := t.change(noRobot(name), `DELETE FROM robots WHERE name = $1`, name); err != nil {
		return err
	}
	if _, err := t.exec(`DELETE FROM tokens WHERE account = $1`, name); err != nil {
		return err
	}
	return t.change(noAccount(name), `DELETE FROM accounts WHERE name = $1`, name)
}

const namespaceColumns = `pattern, owner, created_by, created_at`

func scanNamespace(r row) (n registry.Namespace, err error) {
	err = r.Scan(&n.Pattern, &n.Owner, &n.CreatedBy, timeColumn{&n.CreatedAt})
	return n, err
}

func noNamespace(pattern string) *registry.Error {
	return registry.Errorf(registry.NotFound, "no owner is set for %.300q", pattern)
}

// PutNamespace implements registry.AccessTx.
func (t *tx) PutNamespace(n registry.Namespace) error {
	if _, err := t.Account(n.Owner); err != nil {
		return err
	}
	_, err := t.exec(`INSERT INTO namespaces (`+namespaceColumns+`) VALUES ($1, $2, $3, $4)
		ON CONFLICT (pattern) DO UPDATE SET owner = excluded.owner, created_by = excluded.created_by, created_at = excluded.created_at`,
		n.Pattern, n.Owner, n.CreatedBy, micros(n.CreatedAt))
	return err
}

// NamespaceOf implements registry.AccessTx.
func (t *tx) NamespaceOf(patterns []string) (registry.Namespace, error) {
	for _, pattern := range patterns {
		n, err := one(t, noNamespace(pattern), scanNamespace, `SELECT `+namespaceColumns+` FROM namespaces WHERE pattern = $1`, pattern)
		if err == nil || registry.CodeOf(err) != registry.NotFound {
			return n, err
		}
	}
	return registry.Namespace{}, registry.ErrNotFound
}

// Namespaces implements registry.AccessTx.
func (t *tx) Namespaces() ([]registry.Namespace, error) {
	return all(t, scanNamespace, `SELECT `+namespaceColumns+` FROM namespaces ORDER BY pattern`)
}

// DeleteNamespace implements registry.AccessTx.
func (t *tx) DeleteNamespace(pattern string) error {
	return t.change(noNamespace(pattern), `DELETE FROM namespaces WHERE pattern = $1`, pattern)
}

// TokenByID implements registry.AccessTx.
func (t *tx) TokenByID(id string) (registry.Token, error) {
	return one(t, registry.Errorf(registry.NotFound, "there is no token %.100q", id), scanToken,
		`SELECT `+tokenColumns+` FROM tokens WHERE id = $1`, id)
}

// DeleteExpiredTokens implements registry.AccessTx.
func (t *tx) DeleteExpiredTokens(before time.Time) error {
	_, err := t.exec(`DELETE FROM tokens WHERE expires_at <> 0 AND expires_at < $1`, micros(before))
	return err
}

// SignInFailures implements registry.AccessTx.
func (t *tx) SignInFailures(subject string) (registry.SignInFailures, error) {
	f, err := one(t, registry.ErrNotFound, func(r row) (f registry.SignInFailures, err error) {
		err = r.Scan(&f.Failures, timeColumn{&f.LastAt}, timeColumn{&f.LockedUntil})
		return f, err
	}, `SELECT failures, last_at, locked_until FROM signin_failures WHERE subject = $1`, subject)
	f.Subject = subject
	if err == error(registry.ErrNotFound) {
		err = nil
	}
	return f, err
}

// PutSignInFailures implements registry.AccessTx.
func (t *tx) PutSignInFailures(f registry.SignInFailures) error {
	_, err := t.exec(`INSERT INTO signin_failures (subject, failures, last_at, locked_until) VALUES ($1, $2, $3, $4)
		ON CONFLICT (subject) DO UPDATE SET failures = excluded.failures, last_at = excluded.last_at, locked_until = excluded.locked_until`,
		f.Subject, int64(f.Failures), micros(f.LastAt), micros(f.LockedUntil))
	return err
}

// DeleteSignInFailures implements registry.AccessTx.
func (t *tx) DeleteSignInFailures(before time.Time) error {
	_, err := t.exec(`DELETE FROM signin_failures WHERE last_at < $1`, micros(before))
	return err
}
