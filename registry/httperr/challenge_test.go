package httperr_test

import (
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/httperr"
)

// TestChallenges is the header of a 401 for each form and cause.
func TestChallenges(t *testing.T) {
	known := httperr.Challenge{Realm: "https://x/v2/token", Service: "gatehouse-1", Scope: "repository:a/b:pull"}
	const bearer = `Bearer realm="https://x/v2/token",service="gatehouse-1"`
	plain := &registry.Error{Code: registry.Unauthorized}
	for _, tt := range []struct {
		what      string
		form      httperr.Form
		challenge *httperr.Challenge
		err       error
		want      string
	}{
		{"no token endpoint", httperr.OCI, nil, plain, `Basic realm="Gatehouse"`},
		{"the API", httperr.API, &known, plain, `Bearer realm="Gatehouse"`},
		{"nobody", httperr.OCI, &known, plain, bearer + `,scope="repository:a/b:pull"`},
		{"no scope", httperr.OCI, &httperr.Challenge{Realm: known.Realm, Service: known.Service}, plain, bearer},
		{"too little", httperr.OCI, &known, &registry.Error{Code: registry.Unauthorized, Err: registry.ErrInsufficientScope}, bearer + `,scope="repository:a/b:pull",error="insufficient_scope"`},
		{"no good", httperr.OCI, &known, &registry.Error{Code: registry.Unauthorized, Err: registry.ErrInvalidToken}, bearer + `,scope="repository:a/b:pull",error="invalid_token"`},
		{"a quote", httperr.OCI, &httperr.Challenge{Realm: "https://x/v2/token", Service: "gatehouse-1", Scope: "a\"\\\r\n,b"}, plain, bearer + `,scope="a,b"`},
	} {
		r := httptest.NewRequest(http.MethodGet, "/v2/", nil)
		if tt.challenge != nil {
			r = r.WithContext(httperr.WithChallenge(r.Context(), func() httperr.Challenge { return *tt.challenge }))
		}
		w := httptest.NewRecorder()
		httperr.Write(w, r, slog.New(slog.DiscardHandler), tt.form, tt.err)
		if got := w.Header().Get("WWW-Authenticate"); w.Code != http.StatusUnauthorized || got != tt.want {
			t.Errorf("%s: %d %s, want %s", tt.what, w.Code, got, tt.want)
		}
	}
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, "/v2/", nil)
	httperr.Write(w, r.WithContext(httperr.WithChallenge(r.Context(), func() httperr.Challenge { return known })), slog.New(slog.DiscardHandler), httperr.OCI, errors.New("x"))
	if w.Header().Get("WWW-Authenticate") != "" {
		t.Error("an error that is no 401 has a challenge")
	}
}
