package registry

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/gatehouse-registry/gatehouse/admission/name"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
)

// AdminAccount is the account that a new registry begins with.
const AdminAccount = "admin"

// What an account may hold, in bytes: it is read at every request, and accounts and tokens are listed whole.
const (
	maxOwnerName = 64
	maxText      = 254      // an e-mail address, the label of a token
	maxQuota     = 64 << 10 // the platform's quota document
)

// keepExpiredTokens is how long a token that has expired is still listed. Programs get new ones all the time.
const keepExpiredTokens = 7 * 24 * time.Hour

// CheckOwnerName refuses what can't be an account's name, with Invalid: an account owns the repositories that begin with
// its name. "admin" is an account, the first administrator's, but nobody else can be given it.
func CheckOwnerName(account string) error {
	switch {
	case len(account) > maxOwnerName || !name.IsComponent(account):
		return Errorf(Invalid, "username: %.100q is no account name: lower-case letters and digits with single . _ - between them, at most %d", account, maxOwnerName)
	case name.IsReservedOwner(account), account == AdminAccount:
		return Errorf(Invalid, "username: %q is reserved", account)
	}
	return nil
}

// Bootstrap makes the administrator's account with one token when the registry has no account yet. save is called
// with the token's secret before the account exists, so that a crash between the two can't lose the secret; it may
// return another secret, one that an interrupted first start saved. created reports whether this was the first start.
func (s *Service) Bootstrap(ctx context.Context, save func(secret string) (string, error)) (created bool, err error) {
	var accounts []Account
	err = s.meta.View(ctx, func(tx Tx) (err error) {
		accounts, err = tx.Accounts()
		return err
	})
	if err != nil || len(accounts) > 0 {
		return false, err
	}
	secret, err := save(auth.NewSecret())
	if err != nil {
		return false, err
	}
	err = s.meta.Update(ctx, func(tx Tx) error {
		if err := tx.InsertAccount(Account{Name: AdminAccount, Role: auth.Admin, CreatedAt: s.now()}); err != nil {
			return err
		}
		_, err := s.insertToken(tx, AdminAccount, "first start", secret, 0)
		return err
	})
	return err == nil, err
}

// NewAccount is what CreateAccount needs.
type NewAccount struct {
	Name, Email, Password string // Email and Password may be empty; a token signs every account in
	Role                  auth.Role
}

// CreateAccount adds an account. Errors: Denied, Invalid, Conflict when the name is taken.
func (s *Service) CreateAccount(ctx context.Context, p auth.Principal, in NewAccount) (Account, error) {
	if err := s.authorize(ctx, p, auth.ManageAccounts, "", "account "+in.Name); err != nil {
		return Account{}, err
	}
	if err := CheckOwnerName(in.Name); err != nil {
		return Account{}, err
	}
	if !in.Role.Valid() {
		return Account{}, Errorf(Invalid, "role: unknown role %.40q (one of admin, operator, auditor, viewer)", in.Role)
	}
	if len(in.Email) > maxText {
		return Account{}, Errorf(Invalid, "email: %d bytes, at most %d are allowed", len(in.Email), maxText)
	}
	a := Account{Name: in.Name, Role: in.Role, Email: in.Email, CreatedAt: s.now()}
	if in.Password != "" {
		hash, err := passwordHash(in.Password)
		if err != nil {
			return a, err
		}
		a.PasswordHash = hash
	}
	err := s.meta.Update(ctx, func(tx Tx) error {
		if err := tx.InsertAccount(a); err != nil {
			if errors.Is(err, ErrConflict) {
				return Errorf(Conflict, "account %s exists", a.Name)
			}
			return err
		}
		return s.audit(tx, p, "account.create", a.Name, string(a.Role))
	})
	return a, err
}

// Accounts lists all accounts by name, without those of robots (Robots) and nodes (Nodes).
func (s *Service) Accounts(ctx context.Context, p auth.Principal) ([]Account, error) {
	if err := s.authorize(ctx, p, auth.ManageAccounts, "", "accounts"); err != nil {
		return nil, err
	}
	var list []Account
	err := s.meta.View(ctx, func(tx Tx) (err error) {
		list, err = tx.Accounts()
		list = slices.DeleteFunc(list, func(a Account) bool { return isMachine(a.Name) })
		return err
	})
	return list, err
}

// Whoami is the caller's own account.
func (s *Service) Whoami(ctx context.Context, p auth.Principal) (Account, error) {
	if p.Anonymous() {
		return Account{}, &Error{Code: Unauthorized}
	}
	var a Account
	err := s.meta.View(ctx, func(tx Tx) (err error) {
		a, err = tx.Account(p.Account)
		return err
	})
	a.Role = p.Role // a robot's account has none of its own
	return a, err
}

// changeAccount applies change to an account and audits it.
func (s *Service) changeAccount(ctx context.Context, p auth.Principal, name, action, detail string, change func(*Account) error) (Account, error) {
	var a Account
	if err := s.authorize(ctx, p, auth.ManageAccounts, "", "account "+name); err != nil {
		return a, err
	}
	err := s.meta.Update(ctx, func(tx Tx) (err error) {
		if isMachine(name) {
			return Errorf(Invalid, "%.140q is a robot or a node: it has no role and no quota of its own; delete it to lock it out", name)
		}
		if a, err = tx.Account(name); err != nil {
			return notFound(err, "account %.100q does not exist", name)
		}
		before := a
		if err := change(&a); err != nil {
			return err
		}
		if administers(before) && !administers(a) {
			if err := checkOtherAdministrator(tx, name); err != nil {
				return err
			}
		}
		if err := tx.UpdateAccount(a); err != nil {
			return err
		}
		if a.Disabled && !before.Disabled { // let in again, somebody signs in again
			if _, err := tx.RevokeSessions(name, "", s.now()); err != nil {
				return err
			}
		}
		return s.audit(tx, p, action, name, detail)
	})
	return a, err
}

// administers reports whether an account may administer the registry.
func administers(a Account) bool { return a.Role == auth.Admin && !a.Disabled && !isMachine(a.Name) }

// checkOtherAdministrator keeps the registry one: two administrators may be at each other's account at the same time.
func checkOtherAdministrator(tx Tx, name string) error {
	accounts, err := tx.Accounts()
	if err == nil && !slices.ContainsFunc(accounts, func(a Account) bool { return a.Name != name && administers(a) }) {
		err = Errorf(Conflict, "account %s is the last administrator; make another one first", name)
	}
	return err
}

// SetRole changes an account's role. Errors: Denied, NotFound, Invalid, Conflict for one's own account and for the last
// administrator.
func (s *Service) SetRole(ctx context.Context, p auth.Principal, name string, role auth.Role) (Account, error) {
	return s.changeAccount(ctx, p, name, "account.role", string(role), func(a *Account) error {
		if !role.Valid() {
			return Errorf(Invalid, "role: unknown role %.40q (one of admin, operator, auditor, viewer)", role)
		}
		if name == p.Account {
			return Errorf(Conflict, "nobody changes their own role; another administrator can")
		}
		a.Role = role
		return nil
	})
}

// SetDisabled locks an account out, or lets it in again. Errors: Denied, NotFound, Conflict for one's own account and for the
// last administrator.
func (s *Service) SetDisabled(ctx context.Context, p auth.Principal, name string, disabled bool) (Account, error) {
	action := "account.enable"
	if disabled {
		action = "account.disable"
	}
	return s.changeAccount(ctx, p, name, action, "", func(a *Account) error {
		if name == p.Account {
			return Errorf(Conflict, "nobody disables their own account; another administrator can")
		}
		a.Disabled = disabled
		return nil
	})
}

// SetQuota keeps the quota document of an account, of which gate 2 enforces what JobQuota holds. Errors: Denied, NotFound,
// Invalid, TooLarge.
func (s *Service) SetQuota(ctx context.Context, p auth.Principal, name string, document json.RawMessage) (Account, error) {
	return s.changeAccount(ctx, p, name, "account.quota", string(document), func(a *Account) error {
		if len(document) > maxQuota {
			return Errorf(TooLarge, "the quota has %d bytes, at most %d are allowed", len(document), maxQuota)
		}
		q, err := ParseJobQuota(document)
		if err == nil {
			err = s.checkJobQuota(q)
		}
		a.MaxGPUs, a.Quota = int(q.MaxGPUs), document
		return err
	})
}

// CreateToken makes a token for an account: one's own, or any for an administrator. ttl 0 never expires. The secret
// is returned once and not kept.
func (s *Service) CreateToken(ctx context.Context, p auth.Principal, account, label string, ttl time.Duration) (secret string, t Token, err error) {
	action := auth.OwnTokens
	if account != p.Account {
		action = auth.ManageAccounts
	}
	if err := s.authorize(ctx, p, action, "", "token of "+account); err != nil {
		return "", t, err
	}
	switch {
	case ttl < 0:
		return "", t, Errorf(Invalid, "expires_in: %s is negative", ttl)
	case len(label) > maxText:
		return "", t, Errorf(Invalid, "label: %d bytes, at most %d are allowed", len(label), maxText)
	case isRobot(account):
		return "", t, Errorf(Invalid, "account: a robot has the one secret that it was made with; make another robot")
	case isNode(account):
		return "", t, Errorf(Invalid, "account: a node gets its secret when it is made, and another by sf admin node rotate")
	}
	err = s.meta.Update(ctx, func(tx Tx) error {
		if ttl, err = s.boundedTTL(tx, p, ttl); err != nil {
			return err
		}
		a, err := tx.Account(account)
		if err != nil {
			return notFound(err, "account %.100q does not exist", account)
		}
		if a.Disabled {
			return Errorf(Conflict, "account %s is disabled", account)
		}
		secret = auth.NewSecret()
		if t, err = s.insertToken(tx, account, label, secret, ttl); err != nil {
			return err
		}
		return s.audit(tx, p, "token.create", account, t.ID)
	})
	return secret, t, err
}

// boundedTTL is how long a token lives that a principal may make: a token that expires makes none that outlives it.
func (s *Service) boundedTTL(tx Tx, p auth.Principal, ttl time.Duration) (time.Duration, error) {
	if p.TokenID == "" {
		return ttl, nil
	}
	own, err := tx.TokenByID(p.TokenID)
	if err != nil || own.ExpiresAt.IsZero() {
		return ttl, notFound(err, "the token that asks is gone")
	}
	left := own.ExpiresAt.Sub(s.now())
	if ttl == 0 || ttl > left {
		return 0, Errorf(Denied, "expires_in: the token that asks expires at %s and makes none that lives longer; ask for %d seconds or less, or sign in with another token",
			own.ExpiresAt.UTC().Format(time.RFC3339), max(int64(left/time.Second), 0))
	}
	return ttl, nil
}

func (s *Service) insertToken(tx Tx, account, label, secret string, ttl time.Duration) (Token, error) {
	t := Token{ID: randomHex(8), Account: account, Hash: auth.HashSecret(secret), Label: label, CreatedAt: s.now()}
	if ttl > 0 {
		t.ExpiresAt = s.now().Add(ttl)
	}
	return t, tx.InsertToken(t)
}

// Tokens lists the tokens of an account; "" means of all accounts, for administrators.
func (s *Service) Tokens(ctx context.Context, p auth.Principal, account string) ([]Token, error) {
	action := auth.OwnTokens
	if account != p.Account {
		action = auth.ManageAccounts
	}
	if err := s.authorize(ctx, p, action, "", "tokens of "+account); err != nil {
		return nil, err
	}
	var list []Token
	err := s.meta.View(ctx, func(tx Tx) (err error) {
		list, err = tx.Tokens(account)
		return err
	})
	return list, err
}

// RevokeToken ends a token by its id. Errors: NotFound, also for a token of another account.
func (s *Service) RevokeToken(ctx context.Context, p auth.Principal, id string) error {
	if err := s.authorize(ctx, p, auth.OwnTokens, "", "token "+id); err != nil {
		return err
	}
	scope := p.Account
	if p.Can(auth.ManageAccounts) {
		scope = ""
	}
	return s.meta.Update(ctx, func(tx Tx) error {
		own, err := tx.Tokens(scope)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(own, func(t Token) bool { return t.ID == id }) {
			return Errorf(NotFound, "token %.40q does not exist", id)
		}
		if err := tx.RevokeToken(id, s.now()); err != nil {
			return err
		}
		return s.audit(tx, p, "token.revoke", id, "")
	})
}

// notFound words a lookup's ErrNotFound; any other error passes.
func notFound(err error, format string, args ...any) error {
	if errors.Is(err, ErrNotFound) {
		return Errorf(NotFound, format, args...)
	}
	return err
}
