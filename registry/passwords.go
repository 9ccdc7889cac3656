package registry

import (
	"context"
	"errors"
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
)

// errPassword is the one answer to a sign-in that is none: whether there is such an account is not told.
var errPassword = Errorf(Unauthorized, "the account or its password is wrong")

// SignIn turns an account's name and a secret into a principal, for the token endpoint: the secret is a token of the
// account or of a robot, a refresh token, or the account's password. Errors: Unauthorized; TooManyRequests, with the time
// to wait, for too many wrong passwords.
func (s *Service) SignIn(ctx context.Context, account, secret string) (auth.Principal, error) {
	switch {
	case bearer.LooksLike(secret):
		p, err := s.Refresh(ctx, secret)
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
	subject := "account:" + account
	if len(account) > maxOwnerName {
		subject = "account:?"
	}
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
		return f, &Error{Code: TooManyRequests, RetryAfter: wait, Message: "too many sign-ins with a wrong password; wait, or use a token"}
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
