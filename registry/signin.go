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

// Origin is where a request comes from.
type Origin struct {
	Remote  string // the address, "" when nobody knows
	Request string // the id of the request
}

type originKey struct{}

// WithOrigin puts where a request comes from into its context.
func WithOrigin(ctx context.Context, o Origin) context.Context {
	return context.WithValue(ctx, originKey{}, o)
}

// OriginOf is where a request comes from; zero when the context does not say.
func OriginOf(ctx context.Context) Origin {
	o, _ := ctx.Value(originKey{}).(Origin)
	return o
}

// errSecret is the one answer to a token that is none.
var errSecret = &Error{Code: Unauthorized, Message: "the token is not valid: it is unknown, expired or revoked, or its account is disabled", Err: ErrInvalidToken}

// Authenticate turns the secret of a request into a principal: that of a token, or a bearer token of the token endpoint.
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
	o := OriginOf(ctx)
	p.Remote, p.Request = o.Remote, o.Request
	return p, nil
}

func (s *Service) authenticateToken(ctx context.Context, secret string) (auth.Principal, error) {
	var p auth.Principal
	err := s.meta.View(ctx, func(tx Tx) error {
		t, err := tx.TokenByHash(auth.HashSecret(secret))
		if err != nil {
			return err
		}
		p, err = s.principal(tx, t.Account, t.ID)
		return err
	})
	if errors.Is(err, ErrNotFound) {
		return p, errSecret
	}
	return p, err
}

func (s *Service) authenticateBearer(ctx context.Context, token string) (auth.Principal, error) {
	claims, err := s.tokenKey.Verify(token, s.set.RegistryID, bearer.Access, s.now())
	if err != nil {
		return auth.Principal{}, &Error{Code: Unauthorized, Message: "the bearer token is not valid, or no more", Err: ErrInvalidToken}
	}
	p, err := s.claimed(ctx, claims)
	p.Grant = &auth.Grant{Scopes: claims.Scopes, Catalogue: claims.Catalogue}
	return p, err
}

// claimed is whom the claims of a token of the token endpoint name, if account and credential still live.
func (s *Service) claimed(ctx context.Context, c bearer.Claims) (auth.Principal, error) {
	if c.Account == "" {
		return auth.Principal{}, nil
	}
	var p auth.Principal
	err := s.meta.View(ctx, func(tx Tx) (err error) {
		p, err = s.principal(tx, c.Account, c.Credential)
		return err
	})
	if errors.Is(err, ErrNotFound) {
		return p, errSecret
	}
	return p, err
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
func (s *Service) principal(tx Tx, account, credential string) (auth.Principal, error) {
	a, err := tx.Account(account)
	if err != nil || a.Disabled {
		return auth.Principal{}, errors.Join(err, ErrNotFound)
	}
	p := auth.Principal{Account: a.Name, Role: a.Role}
	if strings.HasPrefix(credential, passwordCredential) {
		if a.PasswordHash == "" || credential != credentialOf(a) {
			return p, ErrNotFound
		}
		return p, nil
	}
	t, err := tx.TokenByID(credential)
	if err != nil {
		return p, err
	}
	if t.Account != account || !t.RevokedAt.IsZero() || s.past(t.ExpiresAt) {
		return p, ErrNotFound
	}
	p.TokenID = t.ID
	if !isRobot(account) {
		return p, nil
	}
	return s.robotPrincipal(tx, p)
}

// past reports whether a time of expiry is over; the zero time never is.
func (s *Service) past(t time.Time) bool { return !t.IsZero() && s.now().After(t) }

func (s *Service) robotPrincipal(tx Tx, p auth.Principal) (auth.Principal, error) {
	robot, err := tx.Robot(p.Account)
	if err != nil {
		return p, err
	}
	owner, err := tx.Account(robot.Owner)
	if err != nil {
		return p, err
	}
	if owner.Disabled || s.past(robot.ExpiresAt) {
		return p, ErrNotFound
	}
	p.Role, p.Owner, p.OwnerRole, p.Scopes = auth.Robot, owner.Name, owner.Role, robot.Scopes
	return p, nil
}

// RefusedSignIn records a credential that was refused. account is what the request claimed, if anything.
func (s *Service) RefusedSignIn(ctx context.Context, account string, cause error) {
	o := OriginOf(ctx)
	s.auditRefusal(ctx, auth.Principal{Remote: o.Remote, Request: o.Request}, "sign-in", account, cause)
}
