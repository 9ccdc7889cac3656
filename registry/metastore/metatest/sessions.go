package metatest

import (
	"testing"
	"time"

	"github.com/gatehouse-registry/gatehouse/registry"
)

var sessionTests = map[string]func(*testing.T, registry.MetaStore){
	"Sessions":           testSessions,
	"EndedSessions":      testEndedSessions,
	"DeviceCodes":        testDeviceCodes,
	"AuthorizationCodes": testAuthorizationCodes,
}

// session is one that is told apart by its number, and lives for a minute.
func session(id, account string, n int) registry.Session {
	return registry.Session{
		ID: id, Account: account, Kind: registry.ClientSession, Credential: "password:1", Device: registry.Device{Hostname: "höst", CLIVersion: "0.3.56"},
		Remote: "192.0.2.1", Generation: int64(n), CreatedAt: at(n), RotatedAt: at(n), UsedAt: at(n), ExpiresAt: at(n + 60),
	}
}

func testSessions(t *testing.T, s registry.MetaStore) {
	withAccounts(t, s, "alice", "bob")
	one, two, other := session("1", "alice", 1), session("2", "alice", 2), session("3", "bob", 3)
	other.Kind, other.Device = registry.BrowserSession, registry.Device{}
	for _, n := range []registry.Session{two, one, other} {
		update(t, s, func(tx registry.Tx) error { return tx.InsertSession(n) })
	}
	find := func(id string) func(registry.Tx) (registry.Session, error) {
		return func(tx registry.Tx) (registry.Session, error) { return tx.Session(id) }
	}
	list := func(account string, now time.Time) []registry.Session {
		return view(t, s, func(tx registry.Tx) ([]registry.Session, error) { return tx.Sessions(account, now) })
	}
	same(t, "a session", view(t, s, find("3")), other)
	same(t, "alice's, by creation", list("alice", at(5)), []registry.Session{one, two})
	same(t, "everybody's", list("", at(5)), []registry.Session{one, two, other})
	same(t, "those that have not expired", list("", at(61)), []registry.Session{two, other})
	missing(t, s, "an unknown session", registry.NotFound, find("4"))
	fails(t, s, "a taken id", registry.Conflict, func(tx registry.Tx) error { return tx.InsertSession(session("1", "bob", 9)) })
	fails(t, s, "a session of nobody", registry.NotFound, func(tx registry.Tx) error { return tx.InsertSession(session("9", "carol", 9)) })

	one.Credential, one.Generation, one.RotatedAt, one.UsedAt, one.ExpiresAt, one.RevokedAt = "", 7, at(4), at(5), at(90), at(6)
	update(t, s, func(tx registry.Tx) error { return tx.UpdateSession(one) })
	same(t, "a changed session", view(t, s, find("1")), one)
	same(t, "alice's that live", list("alice", at(7)), []registry.Session{two})
	fails(t, s, "a change of an unknown session", registry.NotFound, func(tx registry.Tx) error { return tx.UpdateSession(session("9", "bob", 1)) })
}

func testEndedSessions(t *testing.T, s registry.MetaStore) {
	withAccounts(t, s, "alice", "bob")
	for i, account := range map[string]string{"1": "alice", "2": "alice", "3": "alice", "4": "bob"} {
		update(t, s, func(tx registry.Tx) error { return tx.InsertSession(session(i, account, 1)) })
	}
	revoke := func(account, except string, at time.Time, want int) {
		t.Helper()
		update(t, s, func(tx registry.Tx) error {
			n, err := tx.RevokeSessions(account, except, at)
			if n != want {
				t.Errorf("%d sessions of %s were revoked, want %d", n, account, want)
			}
			return err
		})
	}
	revoke("alice", "2", at(5), 2)
	revoke("alice", "", at(6), 1)
	revoke("alice", "", at(7), 0)
	revoke("bob", "", at(70), 0) // expired
	ids := func() (ids []string) {
		for _, id := range []string{"1", "2", "3", "4"} {
			err := s.View(t.Context(), func(tx registry.Tx) error {
				_, err := tx.Session(id)
				return err
			})
			if err == nil {
				ids = append(ids, id)
			}
		}
		return ids
	}
	update(t, s, func(tx registry.Tx) error { return tx.DeleteEndedSessions(at(6)) })
	same(t, "what ended since", ids(), []string{"2", "4"})
	update(t, s, func(tx registry.Tx) error { return tx.DeleteEndedSessions(at(62)) })
	same(t, "what has not expired", ids(), []string(nil))
}

func testDeviceCodes(t *testing.T, s registry.MetaStore) {
	code := func(n int, user, network string) registry.DeviceCode {
		return registry.DeviceCode{Hash: [32]byte{byte(n)}, UserCode: user, Device: registry.Device{Source: "forge-cli"}, Remote: "192.0.2.1", Network: network,
			State: registry.DevicePending, CreatedAt: at(n), ExpiresAt: at(n + 60)}
	}
	one := code(1, "BCDFGHJK", "192.0.2.0/24")
	for _, c := range []registry.DeviceCode{one, code(2, "BCDFGHJL", "192.0.2.0/24"), code(3, "BCDFGHJM", "unknown")} {
		update(t, s, func(tx registry.Tx) error { return tx.InsertDeviceCode(c) })
	}
	find := func(user string) func(registry.Tx) (registry.DeviceCode, error) {
		return func(tx registry.Tx) (registry.DeviceCode, error) { return tx.DeviceCodeOf(user) }
	}
	byHash := func(h byte) func(registry.Tx) (registry.DeviceCode, error) {
		return func(tx registry.Tx) (registry.DeviceCode, error) { return tx.DeviceCode([32]byte{h}) }
	}
	same(t, "by user code", view(t, s, find("BCDFGHJK")), one)
	same(t, "by hash", view(t, s, byHash(1)), one)
	missing(t, s, "an unknown user code", registry.NotFound, find("BCDFGHJX"))
	missing(t, s, "an unknown hash", registry.NotFound, byHash(9))
	fails(t, s, "a taken user code", registry.Conflict, func(tx registry.Tx) error { return tx.InsertDeviceCode(code(4, "BCDFGHJK", "n")) })
	fails(t, s, "a taken hash", registry.Conflict, func(tx registry.Tx) error { return tx.InsertDeviceCode(code(1, "BCDFGHJX", "n")) })

	one.State, one.Account, one.Credential, one.PolledAt = registry.DeviceApproved, "alice", "session:1", at(9)
	update(t, s, func(tx registry.Tx) error { return tx.UpdateDeviceCode(one) })
	same(t, "after a change", view(t, s, find("BCDFGHJK")), one)
	fails(t, s, "a change of an unknown code", registry.NotFound, func(tx registry.Tx) error { return tx.UpdateDeviceCode(code(9, "X", "n")) })

	count := func(now time.Time, wantOf, wantAll int) {
		t.Helper()
		of := view(t, s, func(tx registry.Tx) ([2]int, error) {
			of, all, err := tx.DeviceCodes("192.0.2.0/24", now)
			return [2]int{of, all}, err
		})
		same(t, "codes of a network and of all", of, [2]int{wantOf, wantAll})
	}
	count(at(5), 1, 2)
	count(at(62), 0, 1)
	update(t, s, func(tx registry.Tx) error { return tx.DeleteExpiredCodes(at(63)) })
	missing(t, s, "an expired code", registry.NotFound, byHash(2))
	view(t, s, byHash(3))
}

func testAuthorizationCodes(t *testing.T, s registry.MetaStore) {
	code := registry.AuthorizationCode{Hash: [32]byte{1}, Account: "alice", Credential: "password:1", Challenge: "c", RedirectURI: "http://127.0.0.1:1/callback",
		Device: registry.Device{User: "u"}, ExpiresAt: at(60)}
	find := func(h byte) func(registry.Tx) (registry.AuthorizationCode, error) {
		return func(tx registry.Tx) (registry.AuthorizationCode, error) { return tx.AuthorizationCode([32]byte{h}) }
	}
	insert := func(tx registry.Tx) error { return tx.InsertAuthorizationCode(code) }
	update(t, s, insert)
	same(t, "a code", view(t, s, find(1)), code)
	fails(t, s, "a taken hash", registry.Conflict, insert)
	missing(t, s, "an unknown code", registry.NotFound, find(2))
	code.Session = "7"
	update(t, s, func(tx registry.Tx) error { return tx.UseAuthorizationCode([32]byte{1}, "7") })
	same(t, "a used code", view(t, s, find(1)), code)
	fails(t, s, "use of an unknown code", registry.NotFound, func(tx registry.Tx) error { return tx.UseAuthorizationCode([32]byte{2}, "7") })
	update(t, s, func(tx registry.Tx) error { return tx.DeleteExpiredCodes(at(60)) })
	view(t, s, find(1))
	update(t, s, func(tx registry.Tx) error { return tx.DeleteExpiredCodes(at(61)) })
	missing(t, s, "an expired code", registry.NotFound, find(1))
}
