package metastore

import (
	"time"

	"github.com/gatehouse-registry/gatehouse/registry"
)

const accountColumns = `name, role, email, password_hash, disabled, max_gpus, created_at, quota`

func scanAccount(r row) (a registry.Account, err error) {
	err = r.Scan(&a.Name, &a.Role, &a.Email, &a.PasswordHash, &a.Disabled, &a.MaxGPUs, timeColumn{&a.CreatedAt}, (*[]byte)(&a.Quota))
	return a, err
}

func noAccount(name string) *registry.Error {
	return registry.Errorf(registry.NotFound, "there is no account %.100q", name)
}

// InsertAccount implements registry.AccountTx.
func (t *tx) InsertAccount(a registry.Account) error {
	return t.insert(conflict("account %.100q exists already", a.Name),
		`INSERT INTO accounts (`+accountColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING`,
		a.Name, string(a.Role), a.Email, a.PasswordHash, a.Disabled, a.MaxGPUs, micros(a.CreatedAt), []byte(a.Quota))
}

// Account implements registry.AccountTx.
func (t *tx) Account(name string) (registry.Account, error) {
	return one(t, noAccount(name), scanAccount, `SELECT `+accountColumns+` FROM accounts WHERE name = $1`, name)
}

// Accounts implements registry.AccountTx.
func (t *tx) Accounts() ([]registry.Account, error) {
	return all(t, scanAccount, `SELECT `+accountColumns+` FROM accounts ORDER BY name`)
}

// UpdateAccount implements registry.AccountTx. The time of creation stays.
func (t *tx) UpdateAccount(a registry.Account) error {
	return t.change(noAccount(a.Name),
		`UPDATE accounts SET role = $2, email = $3, password_hash = $4, disabled = $5, max_gpus = $6, quota = $7 WHERE name = $1`,
		a.Name, string(a.Role), a.Email, a.PasswordHash, a.Disabled, a.MaxGPUs, []byte(a.Quota))
}

const tokenColumns = `id, account, hash, label, created_at, expires_at, revoked_at`

func scanToken(r row) (k registry.Token, err error) {
	err = r.Scan(&k.ID, &k.Account, hashColumn{&k.Hash}, &k.Label, timeColumn{&k.CreatedAt}, timeColumn{&k.ExpiresAt}, timeColumn{&k.RevokedAt})
	return k, err
}

// InsertToken implements registry.AccountTx. Errors: Conflict when the id or the hash is taken, ErrNotFound when the
// account does not exist.
func (t *tx) InsertToken(k registry.Token) error {
	err := t.insert(conflict("token %.100q exists already", k.ID),
		`INSERT INTO tokens (`+tokenColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING`,
		k.ID, k.Account, k.Hash[:], k.Label, micros(k.CreatedAt), micros(k.ExpiresAt), micros(k.RevokedAt))
	return t.named(err, noAccount(k.Account))
}

// TokenByHash implements registry.AccountTx.
func (t *tx) TokenByHash(hash [32]byte) (registry.Token, error) {
	return one(t, registry.Errorf(registry.NotFound, "there is no such token"), scanToken,
		`SELECT `+tokenColumns+` FROM tokens WHERE hash = $1`, hash[:])
}

// Tokens implements registry.AccountTx.
func (t *tx) Tokens(account string) ([]registry.Token, error) {
	if account == "" {
		return all(t, scanToken, `SELECT `+tokenColumns+` FROM tokens ORDER BY created_at, id`)
	}
	return all(t, scanToken, `SELECT `+tokenColumns+` FROM tokens WHERE account = $1 ORDER BY created_at, id`, account)
}

// RevokeToken implements registry.AccountTx.
func (t *tx) RevokeToken(id string, at time.Time) error {
	return t.change(registry.Errorf(registry.NotFound, "there is no token %.100q", id),
		`UPDATE tokens SET revoked_at = CASE WHEN revoked_at = 0 THEN $2 ELSE revoked_at END WHERE id = $1`, id, micros(at))
}
