package registry

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"time"

	"github.com/gatehouse-registry/gatehouse/registry/auth"
	"github.com/gatehouse-registry/gatehouse/registry/auth/bearer"
)

// nobody is the principal of a request that nobody signed in for, with where it comes from.
func nobody(ctx context.Context) auth.Principal {
	asked := auth.PrincipalOf(ctx)
	return auth.Principal{Remote: asked.Remote, Request: asked.Request}
}

// errSecret is the one answer to a token that is none.
var errSecret = &Error{Code: Unauthorized, Message: "the token is not valid: it is unknown, expired or revoked, or its account is disabled", Err: ErrInvalidToken}

// Authenticate turns the secret of a request into a principal: that of a token, a session's access token, or a bearer token of
// the token endpoint.
// Errors: Unauthorized for a secret that is unknown, revoked or expired, or whose account is disabled.
func (s *Service) Authenticate(ctx context.Context, secret string) (auth.Principal, error) {
	var p auth.Principal
	var err error
	if bearer.LooksLike(secret) {
		p, err = s.authenticateBearer(ctx, secret)
	} else {
		p, err = s.authenticateToken(ctx, secret)
	}
	if err != nil {
		return auth.Principal{}, err
	}
	from := nobody(ctx)
	p.Remote, p.Request = from.Remote, from.Request
	return p, nil
}

func (s *Service) authenticateToken(ctx context.Context, secret string) (auth.Principal, error) {
	hash := auth.HashSecret(secret)
	return s.signedIn(ctx, rowKey{kind: tokenRow, a: string(hash[:])}, func(tx Tx) (signedIn, error) {
		t, err := tx.TokenByHash(hash)
		if err != nil {
			return signedIn{}, err
		}
		return s.principal(tx, t.Account, t.ID)
	})
}

// signedIn is a principal and until when its credential lives; zero is for ever.
type signedIn struct {
	principal auth.Principal
	until     time.Time
}

// bytes is about what it takes in memory.
func (in signedIn) bytes() int {
	n := 256
	for _, scope := range in.principal.Scopes {
		n += 128 + len(scope.Repository)
	}
	return n
}

// signedIn finds a principal, or remembers it from another request (cache.go). Errors: Unauthorized.
func (s *Service) signedIn(ctx context.Context, key rowKey, read func(Tx) (signedIn, error)) (auth.Principal, error) {
	in, err := cached(ctx, s, key, signedIn.bytes, read)
	if err == nil && s.past(in.until) {
		err = ErrNotFound
	}
	if errors.Is(err, ErrNotFound) {
		return auth.Principal{}, errSecret
	}
	return in.principal, err
}

func (s *Service) authenticateBearer(ctx context.Context, token string) (auth.Principal, error) {
	claims, err := s.verifyBearer(token)
	if err != nil {
		cause := ErrInvalidToken
		if errors.Is(err, bearer.ErrExpired) {
			cause = ErrExpiredToken
		}
		return auth.Principal{}, &Error{Code: Unauthorized, Message: "the bearer token is not valid, or no more", Err: cause}
	}
	p, err := s.claimed(ctx, claims)
	switch {
	case err != nil:
	case claims.Use == bearer.Access:
		p.Grant = &auth.Grant{Scopes: claims.Scopes, Catalogue: claims.Catalogue}
	case claims.Use == bearer.Launch:
		var l *auth.Launch
		l, err = s.launch(ctx, claims.Job)
		p.Grant = &auth.Grant{Launch: l}
	}
	return p, err
}

// What is remembered of bearer tokens: a client sends the same one with many requests, and a signature that was right stays
// right until the token expires. Whether its account and credential live is looked at every time.
const (
	maxVerified   = 1 << 20 // bytes
	verifiedClaim = 512     // about what the claims of a token take, beside their scopes
)

func (s *Service) verifyBearer(token string) (bearer.Claims, error) {
	key := auth.HashSecret(token)
	if claims, ok := s.verified.get(key); ok && s.now().Before(claims.Expires) {
		return claims, nil
	}
	claims, err := s.tokenKey.Verify(token, s.set.RegistryID, s.now(), bearer.Access, bearer.Session, bearer.Launch)
	if err == nil {
		s.verified.put(key, claims, verifiedClaim*(1+len(claims.Scopes)))
	}
	return claims, err
}

// claimed is whom the claims of a token of the token endpoint name, if account and credential still live.
func (s *Service) claimed(ctx context.Context, c bearer.Claims) (auth.Principal, error) {
	if c.Account == "" {
		return auth.Principal{}, nil
	}
	return s.signedIn(ctx, rowKey{credentialRow, c.Account, c.Credential}, func(tx Tx) (signedIn, error) {
		return s.principal(tx, c.Account, c.Credential)
	})
}

// passwordCredential begins the name of an account's password among the credentials that tokens are made from.
const passwordCredential = "password:"

// credentialOf names an account's present password, without telling anything of it. Another password has another name.
func credentialOf(a Account) string {
	sum := sha256.Sum256([]byte(a.PasswordHash))
	return passwordCredential + hex.EncodeToString(sum[:8])
}

// principal is an account as it is now, signed in with a credential. Errors: ErrNotFound when the account is disabled, the
// credential is not its own, or was revoked or expired; for a robot also when it or its owner is out.
func (s *Service) principal(tx Tx, account, credential string) (signedIn, error) {
	a, err := tx.Account(account)
	if err == nil && a.Disabled && !isNode(account) { // whether a node may sign in says its own row
		err = ErrNotFound
	}
	if err != nil {
		return signedIn{}, err
	}
	in := signedIn{principal: auth.Principal{Account: a.Name, Role: a.Role}}
	if id, ok := strings.CutPrefix(credential, sessionCredential); ok && !isNode(account) {
		return s.sessionPrincipal(tx, in, id)
	}
	if strings.HasPrefix(credential, passwordCredential) && !isNode(account) {
		if a.PasswordHash == "" || credential != credentialOf(a) {
			return in, ErrNotFound
		}
		return in, nil
	}
	t, err := tx.TokenByID(credential)
	if err != nil {
		return in, err
	}
	if t.Account != account || !t.RevokedAt.IsZero() || s.past(t.ExpiresAt) {
		return in, ErrNotFound
	}
	in.principal.TokenID, in.until = t.ID, t.ExpiresAt
	switch {
	case isRobot(account):
		return s.robotPrincipal(tx, in)
	case isNode(account):
		return s.nodePrincipal(tx, in)
	}
	return in, nil
}

// lockedOut reports whether an account does nothing here any more: it is gone or disabled, and of a robot, its owner is or its
// time is over.
func (s *Service) lockedOut(tx Tx, account string) (bool, error) {
	a, err := tx.Account(account)
	if err == nil && a.Disabled {
		err = ErrNotFound
	}
	if err == nil && isRobot(account) {
		_, err = s.robotPrincipal(tx, signedIn{principal: auth.Principal{Account: account}})
	}
	if errors.Is(err, ErrNotFound) {
		return true, nil
	}
	return false, err
}

// past reports whether a time of expiry is over; the zero time never is.
func (s *Service) past(t time.Time) bool { return !t.IsZero() && s.now().After(t) }

// robotPrincipal makes the principal of a robot: what its owner is, within its scopes.
func (s *Service) robotPrincipal(tx Tx, in signedIn) (signedIn, error) {
	robot, err := tx.Robot(in.principal.Account)
	if err != nil {
		return in, err
	}
	owner, err := tx.Account(robot.Owner)
	if err != nil {
		return in, err
	}
	if owner.Disabled || s.past(robot.ExpiresAt) {
		return in, ErrNotFound
	}
	if in.until.IsZero() || !robot.ExpiresAt.IsZero() && robot.ExpiresAt.Before(in.until) {
		in.until = robot.ExpiresAt
	}
	p := &in.principal
	p.Role, p.Owner, p.OwnerRole, p.Scopes = auth.Robot, owner.Name, owner.Role, robot.Scopes
	return in, nil
}

// RefusedSignIn records a credential that was refused. account is what the request claimed, if anything.
func (s *Service) RefusedSignIn(ctx context.Context, account string, cause error) {
	s.auditRefusal(ctx, nobody(ctx), "sign-in", account, cause)
}
