package registry

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/gatehouse-registry/gatehouse/registry/auth"
	"github.com/gatehouse-registry/gatehouse/registry/auth/bearer"
)

// Passwords are guessed, so attempts are counted in the database: per account and per network, over all replicas. An
// attempt counts before it is looked at, so that a thousand at a time are a thousand; a right one clears the account's
// count. Tokens have 256 random bits and are never counted here: nobody is locked out of theirs by a stranger.
const (
	freeAccountFailures = 10               // of one account, before it must wait
	freeNetworkFailures = 50               // of one network, which many people may share
	firstLock           = time.Second      // doubles with each further attempt
	longestLock         = 15 * time.Minute // the most that anybody waits
	forgetFailures      = 24 * time.Hour   // without any attempt
	maxPassword         = 1024             // bytes
)

// errPassword is the one answer to a sign-in that is none: whether there is such an account is not told.
var errPassword = Errorf(Unauthorized, "the account or its password is wrong")

// SignIn turns an account's name and a secret into a principal, for the token endpoint: the secret is a token of the
// account or of a robot, a session's access token, a refresh token, or the account's password. Errors: Unauthorized; TooManyRequests, with the time
// to wait, for too many wrong passwords.
func (s *Service) SignIn(ctx context.Context, account, secret string) (auth.Principal, error) {
	switch {
	case bearer.LooksLike(secret):
		p, err := s.Authenticate(ctx, secret)
		if err != nil || p.Grant != nil { // no session's, and a bearer token makes no other
			p, err = s.Refresh(ctx, secret)
		}
		return s.mustBe(p, account, err)
	case auth.IsSecret(secret):
		p, err := s.Authenticate(ctx, secret)
		return s.mustBe(p, account, err)
	}
	return s.signInWithPassword(ctx, account, secret)
}

func (s *Service) mustBe(p auth.Principal, account string, err error) (auth.Principal, error) {
	if err == nil && p.Account != account {
		return auth.Principal{}, Errorf(Unauthorized, "the token is not one of account %.100q", account)
	}
	return p, err
}

func (s *Service) signInWithPassword(ctx context.Context, account, password string) (auth.Principal, error) {
	from := nobody(ctx)
	subject := subjectOf("account:", account)
	network := "network:" + networkOf(from.Remote)
	if err := s.countAttempt(ctx, subject, network); err != nil {
		return auth.Principal{}, err
	}
	var a Account
	err := s.meta.View(ctx, func(tx Tx) (err error) {
		a, err = tx.Account(account)
		return err
	})
	if err != nil && !errors.Is(err, ErrNotFound) {
		return auth.Principal{}, err
	}
	usable := err == nil && !a.Disabled && a.PasswordHash != ""
	stored := a.PasswordHash
	if !usable {
		stored = auth.DummyHash()
	}
	err = auth.CheckPassword(ctx, stored, password)
	switch {
	case errors.Is(err, auth.ErrPassword), err == nil && !usable:
		return auth.Principal{}, errPassword
	case err != nil:
		return auth.Principal{}, err
	}
	err = s.clearAttempt(ctx, subject, network)
	return auth.Principal{Account: a.Name, Role: a.Role, Credential: credentialOf(a), Remote: from.Remote, Request: from.Request}, err
}

// subjectOf is what attempts at an account are counted under.
func subjectOf(kind, account string) string {
	if len(account) > maxOwnerName {
		return kind + "?"
	}
	return kind + account
}

// countAttempt counts an attempt for both subjects, unless one of them must wait. A registry that is read-only is read all
// the same, so people sign in there too. Errors: TooManyRequests.
func (s *Service) countAttempt(ctx context.Context, account, network string) error {
	return s.always.Update(ctx, func(tx Tx) error {
		byAccount, err := s.mayAttempt(tx, account)
		if err != nil {
			return err
		}
		byNetwork, err := s.mayAttempt(tx, network)
		if err != nil {
			return err
		}
		if err := tx.PutSignInFailures(s.counted(byAccount, freeAccountFailures)); err != nil {
			return err
		}
		return tx.PutSignInFailures(s.counted(byNetwork, freeNetworkFailures))
	})
}

func (s *Service) mayAttempt(tx Tx, subject string) (SignInFailures, error) {
	f, err := tx.SignInFailures(subject)
	if err != nil {
		return f, err
	}
	if s.now().Sub(f.LastAt) > forgetFailures {
		f.Failures, f.LockedUntil = 0, time.Time{}
	}
	if wait := f.LockedUntil.Sub(s.now()); wait > 0 {
		return f, &Error{Code: TooManyRequests, RetryAfter: wait, Message: "too many attempts that were wrong; wait, or use a token"}
	}
	return f, nil
}

// clearAttempt takes back what countAttempt counted: of the account all, of the network the one.
func (s *Service) clearAttempt(ctx context.Context, account, network string) error {
	return s.always.Update(ctx, func(tx Tx) error {
		if err := tx.PutSignInFailures(SignInFailures{Subject: account, LastAt: s.now()}); err != nil {
			return err
		}
		f, err := tx.SignInFailures(network)
		if err != nil {
			return err
		}
		if f.Failures = max(f.Failures-1, 0); f.Failures < freeNetworkFailures {
			f.LockedUntil = time.Time{}
		}
		return tx.PutSignInFailures(f)
	})
}

// uncount takes back one attempt of both subjects, that was right: others stay counted.
func (s *Service) uncount(ctx context.Context, subjects ...string) error {
	return s.always.Update(ctx, func(tx Tx) error {
		for _, subject := range subjects {
			f, err := tx.SignInFailures(subject)
			if err != nil {
				return err
			}
			if f.Failures = max(f.Failures-1, 0); f.Failures < freeAccountFailures {
				f.LockedUntil = time.Time{}
			}
			if err := tx.PutSignInFailures(f); err != nil {
				return err
			}
		}
		return nil
	})
}

// counted is a subject after one more attempt.
func (s *Service) counted(f SignInFailures, free int) SignInFailures {
	f.Failures++
	f.LastAt = s.now()
	if over := f.Failures - free; over >= 0 {
		lock := longestLock
		if over < 20 { // else the shift overflows
			lock = min(firstLock<<over, longestLock)
		}
		f.LockedUntil = f.LastAt.Add(lock)
	}
	return f
}

// ChangePassword gives an account another password: one's own, with the present one where there is one, or anybody's for an
// administrator. The other sessions of the account end, and what was made from the old password. Errors: Unauthorized for a
// wrong present password; Denied, Invalid, NotFound, TooManyRequests.
func (s *Service) ChangePassword(ctx context.Context, p auth.Principal, account, present, password string) error {
	own := account == p.Account
	action := auth.OwnTokens
	if !own {
		action = auth.ManageAccounts
	}
	if err := s.authorize(ctx, p, action, "", "password of "+account); err != nil {
		return err
	}
	if isMachine(account) {
		return Errorf(Invalid, "username: %.140q is a robot or a node, which has a secret and no password", account)
	}
	if own {
		if err := s.checkPresent(ctx, p, present); err != nil {
			return err
		}
	}
	hash, err := passwordHash(password)
	if err != nil {
		return err
	}
	return s.meta.Update(ctx, func(tx Tx) error {
		a, err := tx.Account(account)
		if err != nil {
			return notFound(err, "account %.100q does not exist", account)
		}
		a.PasswordHash = hash
		if err := tx.UpdateAccount(a); err != nil {
			return err
		}
		kept := ""
		if own && p.Session != nil {
			kept = p.Session.ID
			if err := s.rebind(tx, kept, a); err != nil {
				return err
			}
		}
		if _, err := tx.RevokeSessions(account, kept, s.now()); err != nil {
			return err
		}
		return s.audit(tx, p, "account.password", account, "")
	})
}

// rebind makes a session one of the account's new password.
func (s *Service) rebind(tx Tx, id string, a Account) error {
	n, err := tx.Session(id)
	if err != nil {
		return err
	}
	if strings.HasPrefix(n.Credential, passwordCredential) {
		n.Credential = credentialOf(a)
	}
	return tx.UpdateSession(n)
}

// checkPresent has somebody who changes their own password show the present one. Who has none yet and signed in with a token
// that expires would get more than the token allows.
func (s *Service) checkPresent(ctx context.Context, p auth.Principal, present string) error {
	var has bool
	err := s.meta.View(ctx, func(tx Tx) error {
		a, err := tx.Account(p.Account)
		if err != nil {
			return err
		}
		has = a.PasswordHash != ""
		if !has {
			_, err = s.boundedTTL(tx, p, 0)
		}
		return err
	})
	if err != nil || !has {
		return err
	}
	if present == "" {
		return Errorf(Invalid, "old: the present password is needed")
	}
	_, err = s.signInWithPassword(ctx, p.Account, present)
	if errors.Is(err, errPassword) {
		return Errorf(Denied, "old: that is not the present password")
	}
	return err
}

// passwordHash makes the stored form of a new password. Errors: Invalid.
func passwordHash(password string) (string, error) {
	switch {
	case auth.IsSecret(password) || bearer.LooksLike(password):
		return "", Errorf(Invalid, "password: it has the form of a token, and would be taken for one: choose another")
	case len(password) > maxPassword:
		return "", Errorf(Invalid, "password: %d bytes, at most %d are allowed", len(password), maxPassword)
	}
	hash, err := auth.HashPassword(password)
	if err != nil {
		return "", Errorf(Invalid, "password: %w", err)
	}
	return hash, nil
}
