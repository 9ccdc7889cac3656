package metastore

import (
	"encoding/json"
	"time"

	"github.com/gatehouse-registry/gatehouse/registry"
)

// deviceColumn scans what a client says of itself.
type deviceColumn struct{ to *registry.Device }

func (c deviceColumn) Scan(src any) error {
	text, _ := src.([]byte)
	return json.Unmarshal(text, c.to)
}

// stored is a device as a column holds it.
func stored(d registry.Device) []byte {
	text, err := json.Marshal(d)
	if err != nil {
		panic(err) // a struct of texts
	}
	return text
}

const sessionColumns = `id, account, kind, credential, device, remote, generation, created_at, rotated_at, used_at, expires_at, revoked_at`

func scanSession(r row) (s registry.Session, err error) {
	err = r.Scan(&s.ID, &s.Account, &s.Kind, &s.Credential, deviceColumn{&s.Device}, &s.Remote, &s.Generation,
		timeColumn{&s.CreatedAt}, timeColumn{&s.RotatedAt}, timeColumn{&s.UsedAt}, timeColumn{&s.ExpiresAt}, timeColumn{&s.RevokedAt})
	return s, err
}

func noSession(id string) *registry.Error {
	return registry.Errorf(registry.NotFound, "there is no session %.100q", id)
}

// InsertSession implements registry.SessionTx.
func (t *tx) InsertSession(s registry.Session) error {
	err := t.insert(conflict("session %.100q exists already", s.ID),
		`INSERT INTO sessions (`+sessionColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) ON CONFLICT DO NOTHING`,
		s.ID, s.Account, string(s.Kind), s.Credential, stored(s.Device), s.Remote, s.Generation,
		micros(s.CreatedAt), micros(s.RotatedAt), micros(s.UsedAt), micros(s.ExpiresAt), micros(s.RevokedAt))
	return t.named(err, noAccount(s.Account))
}

// Session implements registry.SessionTx.
func (t *tx) Session(id string) (registry.Session, error) {
	return one(t, noSession(id), scanSession, `SELECT `+sessionColumns+` FROM sessions WHERE id = $1`, id)
}

// Sessions implements registry.SessionTx.
func (t *tx) Sessions(account string, now time.Time) ([]registry.Session, error) {
	const live = `SELECT ` + sessionColumns + ` FROM sessions WHERE expires_at > $1 AND revoked_at = 0`
	if account == "" {
		return all(t, scanSession, live+` ORDER BY created_at, id`, micros(now))
	}
	return all(t, scanSession, live+` AND account = $2 ORDER BY created_at, id`, micros(now), account)
}

// UpdateSession implements registry.SessionTx.
func (t *tx) UpdateSession(s registry.Session) error {
	return t.change(noSession(s.ID), `UPDATE sessions SET credential = $2, generation = $3, rotated_at = $4, used_at = $5, expires_at = $6,
		revoked_at = $7 WHERE id = $1`,
		s.ID, s.Credential, s.Generation, micros(s.RotatedAt), micros(s.UsedAt), micros(s.ExpiresAt), micros(s.RevokedAt))
}

// RevokeSessions implements registry.SessionTx.
func (t *tx) RevokeSessions(account, except string, at time.Time) (int, error) {
	n, err := t.exec(`UPDATE sessions SET revoked_at = $3 WHERE account = $1 AND id <> $2 AND revoked_at = 0 AND expires_at > $3`, account, except, micros(at))
	return int(n), err
}

// DeleteEndedSessions implements registry.SessionTx.
func (t *tx) DeleteEndedSessions(before time.Time) error {
	if _, err := t.exec(`DELETE FROM sessions WHERE expires_at < $1`, micros(before)); err != nil {
		return err
	}
	_, err := t.exec(`DELETE FROM sessions WHERE revoked_at <> 0 AND revoked_at < $1`, micros(before))
	return err
}

const deviceCodeColumns = `hash, user_code, device, remote, network, state, account, credential, created_at, polled_at, expires_at`

func scanDeviceCode(r row) (c registry.DeviceCode, err error) {
	err = r.Scan(hashColumn{&c.Hash}, &c.UserCode, deviceColumn{&c.Device}, &c.Remote, &c.Network, &c.State, &c.Account, &c.Credential,
		timeColumn{&c.CreatedAt}, timeColumn{&c.PolledAt}, timeColumn{&c.ExpiresAt})
	return c, err
}

func noCode() *registry.Error { return registry.Errorf(registry.NotFound, "there is no such code") }

// InsertDeviceCode implements registry.SessionTx.
func (t *tx) InsertDeviceCode(c registry.DeviceCode) error {
	return t.insert(conflict("the code is taken"),
		`INSERT INTO device_codes (`+deviceCodeColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) ON CONFLICT DO NOTHING`,
		c.Hash[:], c.UserCode, stored(c.Device), c.Remote, c.Network, string(c.State), c.Account, c.Credential,
		micros(c.CreatedAt), micros(c.PolledAt), micros(c.ExpiresAt))
}

// DeviceCode implements registry.SessionTx.
func (t *tx) DeviceCode(hash [32]byte) (registry.DeviceCode, error) {
	return one(t, noCode(), scanDeviceCode, `SELECT `+deviceCodeColumns+` FROM device_codes WHERE hash = $1`, hash[:])
}

// DeviceCodeOf implements registry.SessionTx.
func (t *tx) DeviceCodeOf(userCode string) (registry.DeviceCode, error) {
	return one(t, noCode(), scanDeviceCode, `SELECT `+deviceCodeColumns+` FROM device_codes WHERE user_code = $1`, userCode)
}

// UpdateDeviceCode implements registry.SessionTx.
func (t *tx) UpdateDeviceCode(c registry.DeviceCode) error {
	return t.change(noCode(), `UPDATE device_codes SET state = $2, account = $3, credential = $4, polled_at = $5 WHERE hash = $1`,
		c.Hash[:], string(c.State), c.Account, c.Credential, micros(c.PolledAt))
}

// DeviceCodes implements registry.SessionTx.
func (t *tx) DeviceCodes(network string, now time.Time) (of, total int, err error) {
	if err := t.get(`SELECT COUNT(*) FROM device_codes WHERE state = 'pending' AND network = $1 AND expires_at > $2`, []any{network, micros(now)}, &of); err != nil {
		return 0, 0, err
	}
	return of, total, t.get(`SELECT COUNT(*) FROM device_codes WHERE state = 'pending' AND expires_at > $1`, []any{micros(now)}, &total)
}

const authorizationCodeColumns = `hash, account, credential, challenge, redirect_uri, device, session, expires_at`

func scanAuthorizationCode(r row) (c registry.AuthorizationCode, err error) {
	err = r.Scan(hashColumn{&c.Hash}, &c.Account, &c.Credential, &c.Challenge, &c.RedirectURI, deviceColumn{&c.Device}, &c.Session, timeColumn{&c.ExpiresAt})
	return c, err
}

// InsertAuthorizationCode implements registry.SessionTx.
func (t *tx) InsertAuthorizationCode(c registry.AuthorizationCode) error {
	return t.insert(conflict("the code is taken"),
		`INSERT INTO authorization_codes (`+authorizationCodeColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING`,
		c.Hash[:], c.Account, c.Credential, c.Challenge, c.RedirectURI, stored(c.Device), c.Session, micros(c.ExpiresAt))
}

// AuthorizationCode implements registry.SessionTx.
func (t *tx) AuthorizationCode(hash [32]byte) (registry.AuthorizationCode, error) {
	return one(t, noCode(), scanAuthorizationCode, `SELECT `+authorizationCodeColumns+` FROM authorization_codes WHERE hash = $1`, hash[:])
}

// UseAuthorizationCode implements registry.SessionTx.
func (t *tx) UseAuthorizationCode(hash [32]byte, session string) error {
	return t.change(noCode(), `UPDATE authorization_codes SET session = $2 WHERE hash = $1`, hash[:], session)
}

// DeleteExpiredCodes implements registry.SessionTx.
func (t *tx) DeleteExpiredCodes(before time.Time) error {
	if _, err := t.exec(`DELETE FROM device_codes WHERE expires_at < $1`, micros(before)); err != nil {
		return err
	}
	_, err := t.exec(`DELETE FROM authorization_codes WHERE expires_at < $1`, micros(before))
	return err
}
