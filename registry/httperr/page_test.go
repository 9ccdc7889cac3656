package httperr_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/httperr"
)

// TestPages is an error as a page, and as plain text where nobody makes one.
func TestPages(t *testing.T) {
	refusal := registry.Errorf(registry.NotFound, "no such\nthing")
	for want, page := range map[string]func(httperr.Problem) []byte{
		"no such thing\n":          nil,
		"<p>404 no such thing</p>": func(p httperr.Problem) []byte { return []byte("<p>404 " + p.Message + "</p>") },
	} {
		r := httptest.NewRequest(http.MethodGet, "/cli/x", nil)
		media := "text/plain; charset=utf-8"
		if page != nil {
			media = "text/html; charset=utf-8"
			r = r.WithContext(httperr.WithPage(r.Context(), page))
		}
		w := httptest.NewRecorder()
		httperr.Write(w, r, slog.New(slog.DiscardHandler), httperr.Page, refusal)
		if h := w.Header(); w.Code != http.StatusNotFound || w.Body.String() != want || h.Get("Content-Type") != media || h.Get("Cache-Control") != "no-store" {
			t.Errorf("%d %v %q, want %q", w.Code, h, w.Body, want)
		}
	}
}
