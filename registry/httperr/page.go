package httperr

import (
	"context"
	"net/http"
)

// Problem is an error as a page shows it.
type Problem struct {
	Status    int
	Message   string
	RequestID string
}

type pageKey struct{}

// WithPage puts into a request's context what makes a page of an error, in HTML.
func WithPage(ctx context.Context, page func(Problem) []byte) context.Context {
	return context.WithValue(ctx, pageKey{}, page)
}

// writePage writes an answer in the form Page. Pages are never cached.
func writePage(w http.ResponseWriter, r *http.Request, a answer) {
	text := a.message
	if a.decision != nil {
		text += violationsInLine(a.decision.Violations)
	}
	h, body := w.Header(), []byte(text+"\n")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Type", "text/plain; charset=utf-8")
	if page, ok := r.Context().Value(pageKey{}).(func(Problem) []byte); ok {
		h.Set("Content-Type", "text/html; charset=utf-8")
		body = page(Problem{Status: a.status, Message: text, RequestID: a.requestID})
	}
	w.WriteHeader(a.status)
	w.Write(body) // a client that is gone is no fault of ours
}
