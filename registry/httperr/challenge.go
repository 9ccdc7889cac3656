package httperr

import (
	"context"
	"errors"
	"strings"

	"github.com/gatehouse-registry/gatehouse/registry"
)

// challenges say how to sign in. OCI clients send a token as the password of Basic where no token endpoint is known.
var challenges = map[Form]string{OCI: `Basic realm="Gatehouse"`, API: `Bearer realm="Gatehouse"`}

// Challenge says where the clients of the distribution protocol get bearer tokens, and for what.
type Challenge struct {
	Realm   string // the address of the token endpoint
	Service string // whom the tokens are for
	Scope   string // what the request needs, "" when it needs no more than a sign-in
}

type challengeKey struct{}

// WithChallenge puts the challenge of a request into its context, to be made if it turns out that nobody signed in for it.
// One without a realm is none.
func WithChallenge(ctx context.Context, c func() Challenge) context.Context {
	return context.WithValue(ctx, challengeKey{}, c)
}

// challenge is the WWW-Authenticate header of an Unauthorized error.
func challenge(ctx context.Context, form Form, err error) string {
	made, ok := ctx.Value(challengeKey{}).(func() Challenge)
	if !ok || form != OCI {
		return challenges[form]
	}
	c := made()
	if c.Realm == "" {
		return challenges[form]
	}
	var b strings.Builder
	b.WriteString(`Bearer realm="` + quotable(c.Realm) + `",service="` + quotable(c.Service) + `"`)
	if c.Scope != "" {
		b.WriteString(`,scope="` + quotable(c.Scope) + `"`)
	}
	switch {
	case errors.Is(err, registry.ErrInsufficientScope):
		b.WriteString(`,error="insufficient_scope"`)
	case errors.Is(err, registry.ErrInvalidToken):
		b.WriteString(`,error="invalid_token"`)
	}
	return b.String()
}

// quotable is a text without what would end the quotes around it.
func quotable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == '"' || r == '\\' || r == 0x7f {
			return -1
		}
		return r
	}, s)
}
