package registry

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-registry/gatehouse/registry/auth"
	"github.com/gatehouse-registry/gatehouse/registry/auth/bearer"
)

// How long the tokens of the token endpoint are good. A bearer token is checked against its account and its credential at
// every use, so a long life of either costs no safety; a short one bounds what a leaked one is worth.
const (
	bearerTTL  = 5 * time.Minute
	refreshTTL = 30 * 24 * time.Hour
)

// tokenKeySetting is where the store keeps the key of these tokens, which all replicas share.
const tokenKeySetting = "token-key"

// What one request to the token endpoint may ask for.
const (
	maxScopeRequests = 64
	maxScopeText     = 1024 // bytes
)

// BearerToken is an answer of the token endpoint.
type BearerToken struct {
	Token    string
	Refresh  string // "" unless it was asked for
	Scope    string // what the token is for, in the words of the request
	IssuedAt time.Time
	TTL      time.Duration
}

// IssueBearer makes a token for what is both asked for and allowed; that less is allowed is no error. A principal that is
// nobody gets what everybody may read. What is allowed is told from names alone: nobody learns what exists.
// Errors: Invalid for a request that is malformed or too large.
func (s *Service) IssueBearer(ctx context.Context, p auth.Principal, scopes []string, offline bool) (BearerToken, error) {
	claims := bearer.Claims{Use: bearer.Access, Account: p.Account, Credential: p.TokenID}
	if p.Credential != "" {
		claims.Credential = p.Credential
	}
	asked, catalogue, err := parseScopes(scopes)
	if err != nil {
		return BearerToken{}, err
	}
	var granted []string
	for _, want := range asked {
		verbs, err := s.allowedVerbs(ctx, p, want)
		if err != nil {
			return BearerToken{}, err
		}
		if len(verbs) > 0 {
			claims.Scopes = append(claims.Scopes, auth.Scope{Repository: want.Repository, Actions: verbs})
			granted = append(granted, RepositoryScope(want.Repository, verbs...))
		}
	}
	if catalogue && p.Can(auth.ReadContent) {
		claims.Catalogue = true
		granted = append(granted, CatalogueScope)
	}
	out := BearerToken{Scope: strings.Join(granted, " "), IssuedAt: s.now(), TTL: bearerTTL}
	if out.Token, err = s.tokenKey.Sign(claims, s.set.RegistryID, out.IssuedAt, out.TTL); err != nil {
		return out, err
	}
	if offline && !p.Anonymous() {
		refresh := bearer.Claims{Use: bearer.Refresh, Account: claims.Account, Credential: claims.Credential}
		out.Refresh, err = s.tokenKey.Sign(refresh, s.set.RegistryID, out.IssuedAt, refreshTTL)
	}
	return out, err
}

// Refresh turns a refresh token into the principal that it was made for. Errors: Unauthorized when it is none, or its
// account or credential is out.
func (s *Service) Refresh(ctx context.Context, token string) (auth.Principal, error) {
	claims, err := s.tokenKey.Verify(token, s.set.RegistryID, s.now(), bearer.Refresh)
	if err != nil || claims.Account == "" {
		return auth.Principal{}, &Error{Code: Unauthorized, Message: "the refresh token is not valid, or no more: sign in again", Err: ErrInvalidToken}
	}
	p, err := s.claimed(ctx, claims)
	if err != nil {
		return p, err
	}
	from := nobody(ctx)
	p.Remote, p.Request = from.Remote, from.Request
	if p.TokenID == "" {
		p.Credential = claims.Credential
	}
	return p, nil
}

// CatalogueScope is the scope of the list of repositories.
const CatalogueScope = "registry:catalog:*"

// RepositoryScope is a scope of a repository in the words of the distribution token specification.
func RepositoryScope(repository string, verbs ...auth.Verb) string {
	words := make([]string, len(verbs))
	for i, v := range verbs {
		words[i] = string(v)
	}
	return "repository:" + repository + ":" + strings.Join(words, ",")
}

// parseScopes reads what is asked for: several texts, each of several scopes with spaces between them. What no registry
// gives is left out. A repository that is named twice is asked for once, with the verbs of both.
func parseScopes(texts []string) (asked []auth.Scope, catalogue bool, err error) {
	var words []string
	for _, text := range texts {
		words = append(words, strings.Fields(text)...)
		if len(text) > maxScopeText*maxScopeRequests || len(words) > maxScopeRequests {
			return nil, false, Errorf(Invalid, "scope: more than %d are asked for at once", maxScopeRequests)
		}
	}
	for _, word := range words {
		if word == CatalogueScope {
			catalogue = true
			continue
		}
		kind, rest, _ := strings.Cut(word, ":")
		kind, _, _ = strings.Cut(kind, "(") // repository(plugin) is a repository
		i := strings.LastIndexByte(rest, ':')
		if kind != "repository" || i < 0 || len(word) > maxScopeText || CheckRepositoryName(rest[:i]) != nil {
			continue
		}
		at := slices.IndexFunc(asked, func(a auth.Scope) bool { return a.Repository == rest[:i] })
		if at < 0 {
			at, asked = len(asked), append(asked, auth.Scope{Repository: rest[:i]})
		}
		for _, v := range auth.Verbs {
			named := slices.ContainsFunc(strings.Split(rest[i+1:], ","), func(w string) bool { return w == "*" || w == string(v) })
			if named && !slices.Contains(asked[at].Actions, v) {
				asked[at].Actions = append(asked[at].Actions, v)
			}
		}
	}
	return asked, catalogue, nil
}
