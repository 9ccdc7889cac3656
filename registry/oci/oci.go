// Package oci serves the OCI distribution protocol 1.1 over registry.Service, as a plain net/http handler.
//
// Parse takes a request apart; the table of handlers has one entry a kind; an entry calls one use case and renders
// what it gives, or returns its error, which registry/httperr answers. No bytes of a blob pass through memory: bodies
// go from the connection to the store and from the store's file to the connection in pieces.
//
// What the specification leaves open: manifests are given as they were pushed, whatever Accept says. A blob, and a
// manifest by digest, never change, so their ETag is the digest. Every Location and Link is a path on this host: the
// Host header is not looked at. Lists come in pages of at most maxPage. The codes of errors are those of the
// specification where one fits, else those of package registry.
package oci

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
	"github.com/gatehouse-registry/gatehouse/registry/httpbody"
	"github.com/gatehouse-registry/gatehouse/registry/httperr"
)

// Options are what a handler works with.
type Options struct {
	Service *registry.Service
	// Principal says who makes a request: nobody when there are no credentials. Errors: Unauthorized, or why it
	// can't be told now.
	Principal func(*http.Request) (auth.Principal, error)
	Log       *slog.Logger // nil discards
	// IdleTimeout ends a transfer when no piece of it moves for so long; 0 is DefaultIdleTimeout.
	IdleTimeout time.Duration
}

// DefaultIdleTimeout is the IdleTimeout of Options that name none.
const DefaultIdleTimeout = time.Minute

// New makes the handler. It serves every path below /v2/.
func New(o Options) http.Handler {
	h := &handler{service: o.Service, principal: o.Principal, log: o.Log, idle: o.IdleTimeout}
	if h.log == nil {
		h.log = slog.New(slog.DiscardHandler)
	}
	if h.idle <= 0 {
		h.idle = DefaultIdleTimeout
	}
	return h
}

type handler struct {
	service   *registry.Service
	principal func(*http.Request) (auth.Principal, error)
	log       *slog.Logger
	idle      time.Duration
}

// exchange is one request, taken apart, and its answer.
type exchange struct {
	*Request
	ctx context.Context
	p   auth.Principal
	w   http.ResponseWriter
	r   *http.Request
}

// handlers is indexed by Kind. An entry that returns an error has written nothing but headers that the error needs.
var handlers = [kinds]func(*handler, *exchange) error{
	Ping:           (*handler).ping,
	BlobGet:        (*handler).getBlob,
	BlobHead:       (*handler).headBlob,
	BlobDelete:     (*handler).deleteBlob,
	BlobPut:        (*handler).putBlob,
	BlobMount:      (*handler).mountBlob,
	UploadStart:    (*handler).startUpload,
	UploadStatus:   (*handler).uploadStatus,
	UploadAppend:   (*handler).appendUpload,
	UploadFinish:   (*handler).finishUpload,
	UploadCancel:   (*handler).cancelUpload,
	ManifestGet:    (*handler).getManifest,
	ManifestHead:   (*handler).headManifest,
	ManifestPut:    (*handler).putManifest,
	ManifestDelete: (*handler).deleteManifest,
	TagsList:       (*handler).listTags,
	ReferrersList:  (*handler).listReferrers,
	CatalogueList:  (*handler).listCatalogue,
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Docker-Distribution-Api-Version", "registry/2.0")
	// A pushed manifest says its own media type: no browser may take one for a page of this host.
	w.Header().Set("Content-Security-Policy", "default-src 'none'; sandbox")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	httpbody.Bound(w, r, h.idle)
	if err := h.serve(w, r); err != nil {
		if wrongMethod, ok := errors.AsType[*MethodError](err); ok {
			w.Header().Set("Allow", strings.Join(wrongMethod.Allowed, ", "))
		}
		httperr.Write(w, r, h.log, httperr.OCI, err)
	}
}

// serve finds who asks before it looks at what: a stranger learns nothing about paths.
func (h *handler) serve(w http.ResponseWriter, r *http.Request) error {
	p, err := h.principal(r)
	if err != nil {
		return err
	}
	q, err := Parse(r.Method, r.URL)
	if err != nil {
		if p.Anonymous() {
			return &registry.Error{Code: registry.Unauthorized}
		}
		return err
	}
	err = handlers[q.Kind](h, &exchange{Request: q, ctx: r.Context(), p: p, w: w, r: r})
	if r.Method == http.MethodHead && registry.CodeOf(err) == registry.Denied {
		return unseen(q.Repository, err)
	}
	return err
}

// unseen is the answer to HEAD where GET says that the caller may not read. Clients push by asking with HEAD first, and such
// an answer has no body: at 403 they give up with nothing to show, at 404 they go on and show why they may not write.
func unseen(repository string, denied error) error {
	return &registry.Error{Code: registry.NameUnknown, Message: "there is nothing in " + registry.Shown(repository) + " that you may read", Err: denied}
}

// ping tells a client that it is signed in.
func (h *handler) ping(x *exchange) error {
	if x.p.Anonymous() {
		return &registry.Error{Code: registry.Unauthorized}
	}
	return x.writeJSON("application/json", struct{}{})
}
