package oci

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
	"github.com/gatehouse-registry/gatehouse/registry/httperr"
)

// TokenPath is where bearer tokens are got. No repository's path is like it.
const TokenPath = "/v2/token"

// What a request to the token endpoint may be.
const (
	maxTokenForm = 64 << 10 // bytes of a form; an identity document has a few KiB
	tokenTime    = 15 * time.Second
)

// Grant types of the OAuth 2 form, and the type of token that an exchange gives.
const (
	grantPassword = "password"
	grantRefresh  = "refresh_token"
	grantExchange = "urn:ietf:params:oauth:grant-type:token-exchange"
	accessToken   = "urn:ietf:params:oauth:token-type:access_token"
)

// NewToken makes the token endpoint of the distribution specifications: GET with Basic, and the OAuth 2 form by POST. A
// program exchanges its identity document there for a token of its robot, which is good as a password too.
func NewToken(service *registry.Service, log *slog.Logger) http.Handler {
	return &tokenEndpoint{service, log}
}

type tokenEndpoint struct {
	service *registry.Service
	log     *slog.Logger
}

// tokenAnswer is what clients read: some the one name of the token, some the other.
type tokenAnswer struct {
	Token     string `json:"token"`
	Access    string `json:"access_token"`
	Type      string `json:"token_type"`
	Issued    string `json:"issued_token_type,omitempty"`
	ExpiresIn int64  `json:"expires_in"` // seconds
	IssuedAt  string `json:"issued_at"`  // RFC 3339
	Refresh   string `json:"refresh_token,omitempty"`
	Scope     string `json:"scope,omitempty"`
	RobotName string `json:"account,omitempty"` // of an exchange: the user name that goes with the token as a password
}

// ServeHTTP implements http.Handler.
func (t *tokenEndpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer, err := t.serve(w, r)
	if err == nil {
		w.Header().Set("Cache-Control", "no-store")
		err = writeJSON(w, "application/json", answer)
	}
	if err != nil {
		httperr.Write(w, r, t.log, httperr.OCI, err)
	}
}

func (t *tokenEndpoint) serve(w http.ResponseWriter, r *http.Request) (tokenAnswer, error) {
	switch r.Method {
	case http.MethodGet:
		return t.get(r)
	case http.MethodPost:
		http.NewResponseController(w).SetReadDeadline(time.Now().Add(tokenTime))
		r.Body = http.MaxBytesReader(w, r.Body, maxTokenForm)
		if err := r.ParseForm(); err != nil {
			return tokenAnswer{}, registry.Errorf(registry.Invalid, "the form can't be read: %w", err)
		}
		return t.post(r)
	}
	w.Header().Set("Allow", "GET, POST")
	return tokenAnswer{}, registry.Errorf(registry.Unsupported, "method %.20q is not supported here; allowed: GET, POST", r.Method)
}

// get answers the older form: scopes in the query, whoever asks in Basic. Nobody gets what everybody may read.
func (t *tokenEndpoint) get(r *http.Request) (tokenAnswer, error) {
	var p auth.Principal
	if r.Header.Get("Authorization") != "" {
		account, secret, ok := r.BasicAuth()
		if !ok {
			return tokenAnswer{}, registry.Errorf(registry.Unauthorized, "the token endpoint takes Basic, with an account and its token or password")
		}
		var err error
		if p, err = t.signIn(r, account, secret); err != nil {
			return tokenAnswer{}, err
		}
	}
	query := r.URL.Query()
	return t.issue(r, p, query["scope"], query.Get("offline_token") == "true")
}

// post answers the OAuth 2 form.
func (t *tokenEndpoint) post(r *http.Request) (tokenAnswer, error) {
	form := r.PostForm
	switch grant := form.Get("grant_type"); grant {
	case grantPassword:
		p, err := t.signIn(r, form.Get("username"), form.Get("password"))
		if err != nil {
			return tokenAnswer{}, err
		}
		return t.issue(r, p, form["scope"], form.Get("access_type") == "offline")
	case grantRefresh:
		p, err := t.service.Refresh(r.Context(), form.Get("refresh_token"))
		if err != nil {
			return tokenAnswer{}, t.refused(r, "", err)
		}
		a, err := t.issue(r, p, form["scope"], false)
		a.Refresh = form.Get("refresh_token")
		return a, err
	case grantExchange:
		return t.exchange(r)
	default:
		return tokenAnswer{}, registry.Errorf(registry.Invalid, "grant_type: %.80q is none of %s, %s, %s", grant, grantPassword, grantRefresh, grantExchange)
	}
}

func (t *tokenEndpoint) signIn(r *http.Request, account, secret string) (auth.Principal, error) {
	p, err := t.service.SignIn(r.Context(), account, secret)
	if err != nil {
		return p, t.refused(r, account, err)
	}
	return p, nil
}

// refused records a credential that was refused, and passes its error on.
func (t *tokenEndpoint) refused(r *http.Request, account string, err error) error {
	if code := registry.CodeOf(err); code == registry.Unauthorized || code == registry.TooManyRequests {
		t.service.RefusedSignIn(r.Context(), account, err)
	}
	return err
}

func (t *tokenEndpoint) issue(r *http.Request, p auth.Principal, scopes []string, offline bool) (tokenAnswer, error) {
	b, err := t.service.IssueBearer(r.Context(), p, scopes, offline)
	return tokenAnswer{
		Token: b.Token, Access: b.Token, Type: "Bearer", ExpiresIn: int64(b.TTL / time.Second), IssuedAt: b.IssuedAt.UTC().Format(time.RFC3339),
		Refresh: b.Refresh, Scope: b.Scope,
	}, err
}

// exchange turns a program's identity document into a token of its robot.
func (t *tokenEndpoint) exchange(r *http.Request) (tokenAnswer, error) {
	secret, token, err := t.service.ExchangeWorkload(r.Context(), r.PostForm.Get("subject_token"))
	if err != nil {
		return tokenAnswer{}, err
	}
	return tokenAnswer{
		Token: secret, Access: secret, Type: "Bearer", Issued: accessToken, IssuedAt: token.CreatedAt.UTC().Format(time.RFC3339),
		ExpiresIn: int64(token.ExpiresAt.Sub(token.CreatedAt) / time.Second), RobotName: token.Account,
	}, nil
}
