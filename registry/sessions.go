package registry

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-registry/gatehouse/registry/auth"
	"github.com/gatehouse-registry/gatehouse/registry/auth/bearer"
)

// A session is begun by somebody who signed in at the pages, or whom an administrator vouches for. Its client holds an access
// token, which is good for what the account may do, and a refresh token, which is good for new ones. Both are signed and say
// which session they are of; whether that lives is looked at every time, so that both end with it at once.
const (
	accessTTL  = time.Hour      // of an access token
	browserTTL = 12 * time.Hour // of a browser's session at the pages
	// refreshGrace is how long a refresh token works on after it was exchanged, and how long one is handed back unchanged
	// after it was given out. Clients take no lock: parallel commands of one user exchange one token each (wire.md 3.4), all
	// within the start-up of a program, and must end with tokens that work.
	refreshGrace = time.Minute
	maxSessions  = 200 // of an account that live; the one that was not used for longest makes room
	// keepEndedSessions is how long a session that ended is kept, so that a refresh token of it is known.
	keepEndedSessions = 7 * 24 * time.Hour
)

// sessionCredential begins the name of a session among the credentials that tokens are made from.
const sessionCredential = "session:"

// errRefresh is the one answer to a refresh token that is none, or none any more.
var errRefresh = &Error{Code: Unauthorized, Message: "the session has ended: sign in again", Err: ErrInvalidToken}

// SessionSettings are how long sessions of clients live.
type SessionSettings struct {
	Idle time.Duration // without a refresh
	Life time.Duration // at most
}

// SessionTokens are what a client gets for its sign-in.
type SessionTokens struct {
	Access, Refresh string
	TTL             time.Duration // of Access
	Account         Account
	Session         Session
}

// begin makes a session inside a transaction that found out that the account may have one. Errors: Conflict when the account
// is disabled, Denied for a robot.
func (s *Service) begin(tx Tx, n Session) (Session, error) {
	a, err := tx.Account(n.Account)
	if err != nil {
		return n, notFound(err, "account %.100q does not exist", n.Account)
	}
	switch {
	case isMachine(n.Account):
		return n, Errorf(Denied, "a robot or a node has its secret and no sessions")
	case a.Disabled:
		return n, Errorf(Conflict, "account %s is disabled", n.Account)
	}
	now := s.now()
	n.ID, n.Generation = randomHex(8), 1
	n.CreatedAt, n.RotatedAt, n.UsedAt = now, now, now
	if n.ExpiresAt, err = s.sessionEnd(tx, n); err != nil {
		return n, err
	}
	if err := s.makeRoom(tx, n.Account); err != nil {
		return n, err
	}
	return n, tx.InsertSession(n)
}

// makeRoom ends the sessions of an account that were not used for longest, where it has as many as it may.
func (s *Service) makeRoom(tx Tx, account string) error {
	list, err := tx.Sessions(account, s.now())
	if err != nil || len(list) < maxSessions {
		return err
	}
	slices.SortStableFunc(list, func(a, b Session) int { return a.UsedAt.Compare(b.UsedAt) })
	for _, old := range list[:len(list)-maxSessions+1] {
		old.RevokedAt = s.now()
		if err := tx.UpdateSession(old); err != nil {
			return err
		}
	}
	return nil
}

// sessionEnd is until when a session lives that is used now: no longer than what it was made from. Errors: Unauthorized when
// that is out already.
func (s *Service) sessionEnd(tx Tx, n Session) (time.Time, error) {
	ends := []time.Time{n.CreatedAt.Add(browserTTL)}
	if n.Kind == ClientSession {
		ends = []time.Time{s.now().Add(s.set.Sessions.Idle), n.CreatedAt.Add(s.set.Sessions.Life)}
	}
	if n.Credential != "" {
		made, err := s.principal(tx, n.Account, n.Credential)
		if err != nil {
			return time.Time{}, unauthorized(err)
		}
		if !made.until.IsZero() {
			ends = append(ends, made.until)
		}
	}
	return slices.MinFunc(ends, time.Time.Compare), nil
}

// unauthorized words a credential that is out.
func unauthorized(err error) error {
	if errors.Is(err, ErrNotFound) {
		return errRefresh
	}
	return err
}

// sessionPrincipal makes the principal of a session: what its account is, as long as it lives and what it was made from does.
func (s *Service) sessionPrincipal(tx Tx, in signedIn, id string) (signedIn, error) {
	n, err := tx.Session(id)
	if err != nil {
		return in, err
	}
	if n.Account != in.principal.Account || !n.RevokedAt.IsZero() || s.past(n.ExpiresAt) {
		return in, ErrNotFound
	}
	if n.Credential != "" {
		if in, err = s.principal(tx, n.Account, n.Credential); err != nil {
			return in, err
		}
	}
	if in.until.IsZero() || n.ExpiresAt.Before(in.until) {
		in.until = n.ExpiresAt
	}
	in.principal.Credential = sessionCredential + n.ID
	in.principal.Session = &auth.Session{ID: n.ID}
	if c, ok := n.Device.Caller(); ok {
		in.principal.Session.Client, in.principal.Session.Release = c.Dialect.Names().Client, c.Release
	}
	return in, nil
}

// underlying is what a session is made from that a principal begins: what it signed in with itself, so that no session hangs on
// another one.
func (s *Service) underlying(tx Tx, p auth.Principal) (string, error) {
	switch {
	case p.Session != nil:
		n, err := tx.Session(p.Session.ID)
		return n.Credential, unauthorized(err)
	case p.Credential != "":
		return p.Credential, nil
	}
	return p.TokenID, nil
}

// tokens signs what the client of a session gets.
func (s *Service) tokens(n Session, a Account) (SessionTokens, error) {
	now := s.now()
	claims := bearer.Claims{Use: bearer.Session, Account: n.Account, Credential: sessionCredential + n.ID}
	out := SessionTokens{TTL: min(accessTTL, n.ExpiresAt.Sub(now)), Account: a, Session: n}
	var err error
	if out.Access, err = s.tokenKey.Sign(claims, s.set.RegistryID, now, out.TTL); err != nil {
		return out, err
	}
	claims.Use, claims.Generation = bearer.SessionRefresh, n.Generation
	out.Refresh, err = s.tokenKey.Sign(claims, s.set.RegistryID, now, n.ExpiresAt.Sub(now))
	return out, err
}

// RefreshSession exchanges a refresh token for an access token and the session's next refresh token. A token that was given out
// within refreshGrace is handed back; one that was exchanged within it works once more, and gives what its exchange gave. One
// that was exchanged before is somebody else's copy, or the user's own old one: nobody can tell which, and the session ends.
// Errors: Unauthorized.
func (s *Service) RefreshSession(ctx context.Context, token string) (SessionTokens, error) {
	claims, id, err := s.refreshClaims(token)
	if err != nil {
		return SessionTokens{}, err
	}
	var n Session
	var a Account
	var reused bool
	err = s.always.Update(ctx, func(tx Tx) error {
		reused = false
		if _, err := s.principal(tx, claims.Account, claims.Credential); err != nil {
			return unauthorized(err)
		}
		if n, err = tx.Session(id); err != nil {
			return err
		}
		if a, err = tx.Account(n.Account); err != nil {
			return err
		}
		young := s.now().Sub(n.RotatedAt) < refreshGrace
		switch {
		case claims.Generation == n.Generation && young:
			return nil
		case claims.Generation == n.Generation:
			n.Generation++
			n.RotatedAt, n.UsedAt = s.now(), s.now()
			if n.ExpiresAt, err = s.sessionEnd(tx, n); err != nil {
				return err
			}
		case claims.Generation == n.Generation-1 && young:
			return nil
		default:
			reused, n.RevokedAt = true, s.now()
			p := nobody(ctx)
			p.Account = n.Account
			if err := tx.InsertAudit(s.auditRow(p, "session.reuse", n.ID, string(Unauthorized), "an old refresh token was used again: the session was ended")); err != nil {
				return err
			}
		}
		return tx.UpdateSession(n)
	})
	switch {
	case err != nil:
		return SessionTokens{}, err
	case reused:
		return SessionTokens{}, errRefresh
	}
	out, err := s.tokens(n, a)
	if claims.Generation == n.Generation {
		out.Refresh = token
	}
	return out, err
}

// refreshClaims reads a session's refresh token.
func (s *Service) refreshClaims(token string) (claims bearer.Claims, id string, err error) {
	claims, err = s.tokenKey.Verify(token, s.set.RegistryID, s.now(), bearer.SessionRefresh)
	if err != nil || len(claims.Credential) <= len(sessionCredential) {
		return claims, "", errRefresh
	}
	return claims, claims.Credential[len(sessionCredential):], nil
}

// EndSession ends the session that a refresh token is of, whichever of its refresh tokens it is: who holds one may. One that is
// of no session that lives is no error.
func (s *Service) EndSession(ctx context.Context, token string) error {
	claims, id, err := s.refreshClaims(token)
	if err != nil {
		return nil
	}
	p := nobody(ctx)
	p.Account = claims.Account
	return s.endSession(ctx, p, id)
}

// SignOut ends the session that a principal signed in with, if it did with one.
func (s *Service) SignOut(ctx context.Context, p auth.Principal) error {
	if p.Session == nil {
		return nil
	}
	return s.endSession(ctx, p, p.Session.ID)
}

func (s *Service) endSession(ctx context.Context, p auth.Principal, id string) error {
	return s.always.Update(ctx, func(tx Tx) error {
		n, err := tx.Session(id)
		if errors.Is(err, ErrNotFound) || err == nil && !n.RevokedAt.IsZero() {
			return nil
		}
		if err != nil {
			return err
		}
		n.RevokedAt = s.now()
		if err := tx.UpdateSession(n); err != nil {
			return err
		}
		return s.audit(tx, p, "session.end", n.ID, n.Device.Name())
	})
}

// Sessions lists the sessions that live of an account; "" means of all accounts, for administrators. Errors: Denied.
func (s *Service) Sessions(ctx context.Context, p auth.Principal, account string) ([]Session, error) {
	action := auth.OwnTokens
	if account != p.Account {
		action = auth.ManageAccounts
	}
	if err := s.authorize(ctx, p, action, "", "sessions of "+account); err != nil {
		return nil, err
	}
	list := []Session{}
	err := s.meta.View(ctx, func(tx Tx) error {
		found, err := tx.Sessions(account, s.now())
		list = append(list[:0], found...)
		return err
	})
	return list, err
}

// RevokeSession ends a session by its id: one's own, or any for an administrator. Errors: NotFound, also for a session of
// another account.
func (s *Service) RevokeSession(ctx context.Context, p auth.Principal, id string) error {
	if err := s.authorize(ctx, p, auth.OwnTokens, "", "session "+id); err != nil {
		return err
	}
	return s.always.Update(ctx, func(tx Tx) error {
		n, err := tx.Session(id)
		if err == nil && (!n.RevokedAt.IsZero() || s.past(n.ExpiresAt) || n.Account != p.Account && !p.Can(auth.ManageAccounts)) {
			err = ErrNotFound
		}
		if err != nil {
			return notFound(err, "session %.40q does not exist", id)
		}
		n.RevokedAt = s.now()
		if err := tx.UpdateSession(n); err != nil {
			return err
		}
		return s.audit(tx, p, "session.revoke", id, n.Account+" on "+n.Device.Name())
	})
}

// SignInBrowser makes a session of the pages for whoever knows an account's password or has a token of it, and gives the text
// of its cookie. What a session holds makes no other one, which would live on after it. Errors: those of SignIn; Denied for a
// robot.
func (s *Service) SignInBrowser(ctx context.Context, account, secret string) (cookie string, ttl time.Duration, err error) {
	if bearer.LooksLike(secret) {
		return "", 0, errPassword
	}
	p, err := s.SignIn(ctx, account, secret)
	if err != nil {
		return "", 0, err
	}
	var n Session
	err = s.always.Update(ctx, func(tx Tx) error {
		credential, err := s.underlying(tx, p)
		if err != nil {
			return err
		}
		if n, err = s.begin(tx, Session{Account: p.Account, Kind: BrowserSession, Credential: credential, Remote: p.Remote}); err != nil {
			return err
		}
		return s.audit(tx, p, "session.begin", n.ID, "browser")
	})
	if err != nil {
		return "", 0, err
	}
	ttl = n.ExpiresAt.Sub(s.now())
	claims := bearer.Claims{Use: bearer.Browser, Account: n.Account, Credential: sessionCredential + n.ID}
	cookie, err = s.tokenKey.Sign(claims, s.set.RegistryID, s.now(), ttl)
	return cookie, ttl, err
}

// AuthenticateBrowser is the principal of a cookie that SignInBrowser made. Errors: Unauthorized.
func (s *Service) AuthenticateBrowser(ctx context.Context, cookie string) (auth.Principal, error) {
	claims, err := s.tokenKey.Verify(cookie, s.set.RegistryID, s.now(), bearer.Browser)
	if err != nil {
		return auth.Principal{}, errRefresh
	}
	p, err := s.claimed(ctx, claims)
	from := nobody(ctx)
	p.Remote, p.Request = from.Remote, from.Request
	return p, err
}

// beganSession audits a client's sign-in.
func (s *Service) beganSession(tx Tx, p auth.Principal, n Session) error {
	p.Account = n.Account
	return s.audit(tx, p, "session.begin", n.ID, strings.TrimSpace(n.Device.Name()+" "+n.Device.Source+" "+n.Device.CLIVersion))
}
