// Package bearer makes and reads signed tokens: those of the token endpoint (the distribution token specification) and those
// of sessions. A token names an account, the credential that it was made from, and what it is for; whoever accepts one still
// asks whether account and credential live. All replicas of a registry share one Key.
package bearer

import (
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/gatehouse-registry/gatehouse/registry/auth"
)

// maxToken is the longest token that is looked at, in bytes.
const maxToken = 16 << 10

// Use is what a token is good for.
type Use string

// The uses.
const (
	Access  Use = "access"  // sent with requests
	Refresh Use = "refresh" // sent to the token endpoint, for new tokens

	Session        Use = "session"         // sent with requests: all that the session's account may do
	SessionRefresh Use = "session-refresh" // for new tokens of a session
	Browser        Use = "browser"         // the cookie of the pages, and good for nothing else

	Launch Use = "launch" // sent with requests: what the receipt of a job names
)

// Claims are what a token says.
type Claims struct {
	Use        Use          `json:"use"`
	Account    string       `json:"account,omitempty"`    // "" for nobody
	Credential string       `json:"credential,omitempty"` // what the token was made from
	Scopes     []auth.Scope `json:"scopes,omitempty"`
	Catalogue  bool         `json:"catalogue,omitempty"`
	Generation int64        `json:"generation,omitempty"` // of a session's refresh token
	Job        string       `json:"job,omitempty"`        // whose receipt a Launch token is for
	Expires    time.Time    `json:"-"`                    // set by Verify
}

// ErrToken says that a text is no token of this registry, or none that is still good.
var ErrToken = errors.New("the bearer token is not valid")

// ErrExpired is the ErrToken of one that is genuine, and was good before.
var ErrExpired = fmt.Errorf("%w: it has expired", ErrToken)

// Key signs tokens and checks them: 32 random bytes.
type Key []byte

// LooksLike reports whether a secret has the form of a token of this package, and so is no opaque one.
func LooksLike(secret string) bool {
	return strings.HasPrefix(secret, "eyJ") && strings.Count(secret, ".") == 2
}

// payload is where a token holds its Claims, beside the registered ones of RFC 7519.
type payload struct {
	Gatehouse Claims `json:"gatehouse"`
}

// Sign makes a token for an audience that is good from now for ttl.
func (k Key) Sign(c Claims, audience string, now time.Time, ttl time.Duration) (string, error) {
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.HS256, Key: []byte(k)}, (&jose.SignerOptions{}).WithType("JWT"))
	if err != nil {
		return "", err
	}
	return jwt.Signed(signer).Claims(jwt.Claims{
		Issuer: audience, Audience: jwt.Audience{audience}, Subject: c.Account,
		IssuedAt: jwt.NewNumericDate(now), NotBefore: jwt.NewNumericDate(now), Expiry: jwt.NewNumericDate(now.Add(ttl)),
		ID: rand.Text(),
	}).Claims(payload{c}).Serialize()
}

// Verify reads a token that is for the audience and one of the uses, and good now. Replicas' clocks may differ by a minute.
// Errors: ErrToken, of which ErrExpired is one.
func (k Key) Verify(token, audience string, now time.Time, uses ...Use) (Claims, error) {
	if len(token) > maxToken {
		return Claims{}, ErrToken
	}
	parsed, err := jwt.ParseSigned(token, []jose.SignatureAlgorithm{jose.HS256})
	if err != nil {
		return Claims{}, fmt.Errorf("%w: %w", ErrToken, err)
	}
	var standard jwt.Claims
	var ours payload
	if err := parsed.Claims([]byte(k), &standard, &ours); err != nil {
		return Claims{}, fmt.Errorf("%w: %w", ErrToken, err)
	}
	if standard.Expiry == nil || standard.NotBefore == nil {
		return Claims{}, ErrToken
	}
	expected := jwt.Expected{Issuer: audience, AnyAudience: jwt.Audience{audience}, Subject: ours.Gatehouse.Account, Time: now}
	expired := !now.Before(standard.Expiry.Time())
	if expired {
		expected.Time = standard.Expiry.Time() // all else must be right then
	}
	switch err := standard.ValidateWithLeeway(expected, skew); {
	case err != nil || !slices.Contains(uses, ours.Gatehouse.Use):
		return Claims{}, ErrToken
	case expired:
		return Claims{}, ErrExpired
	}
	ours.Gatehouse.Expires = standard.Expiry.Time()
	return ours.Gatehouse, nil
}

// skew is how far the clocks of two replicas may be apart.
const skew = time.Minute
