// Package api serves the REST that the real clients of StarForge and TunePlane speak (contracts/wire.md), the dry run
// of admission, and administration. Its handlers decode, call one use case of registry.Service, and render; they
// return errors, which registry/httperr turns into answers.
//
// Every field that a client of either dialect requires is always present, and no number, list or object is ever
// null: the clients crash on these (wire.md 4).
package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"reflect"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/digest/strictjson"
	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
)

// API holds the handlers.
type API struct {
	svc     *registry.Service
	version string // of this server
	address Addresses
	log     *slog.Logger
}

// New makes the handlers over a service. version is what GET /api/version answers; address is for what is handed out; log takes
// what fails when its answer has begun.
func New(svc *registry.Service, version string, address Addresses, log *slog.Logger) *API {
	return &API{svc: svc, version: version, address: address, log: log}
}

// Handler is a gin handler that returns its error.
type Handler func(*gin.Context) error

func caller(c *gin.Context) auth.Principal { return auth.PrincipalOf(c.Request.Context()) }

// decode reads a JSON body of at most limit.JSONBody bytes into v. Unknown members are ignored, as newer clients send
// them. Errors: TooLarge, Invalid.
func decode(c *gin.Context, v any) error { return decodeBody(c, v, false) }

// decodeStrict is decode for the bodies of our own routes that decide who may do what, or how much: a member that is not known
// is refused. Left out, a misspelled one would mean what is set when nothing is said: public, without a limit, for ever.
func decodeStrict(c *gin.Context, v any) error { return decodeBody(c, v, true) }

func decodeBody(c *gin.Context, v any, strict bool) error {
	body, err := readBody(c, limit.JSONBody)
	if err != nil {
		return err
	}
	if err := strictjson.Scan(body, strictjson.Options{MaxDepth: limit.JSONDepth}); err != nil {
		return registry.Errorf(registry.Invalid, "request body: %w", err)
	}
	d := json.NewDecoder(bytes.NewReader(body))
	if strict {
		d.DisallowUnknownFields()
	}
	if err := d.Decode(v); err != nil {
		return malformed("request body", err)
	}
	return nil
}

// malformed words a JSON document that holds another type than is read there, in words of JSON. Any other error passes.
func malformed(what string, err error) error {
	typed, ok := errors.AsType[*json.UnmarshalTypeError](err)
	if !ok {
		return registry.Errorf(registry.Invalid, "%s: %w", what, err)
	}
	want := "an object"
	switch typed.Type.Kind() {
	case reflect.String:
		want = "a text"
	case reflect.Bool:
		want = "true or false"
	case reflect.Slice:
		want = "a list"
	case reflect.Int, reflect.Int64:
		want = "a whole number"
	}
	if field := strings.Trim(typed.Field, "."); field != "" {
		what += ": " + field
	}
	return registry.Errorf(registry.Invalid, "%s: found %s, expected %s", what, typed.Value, want)
}

// readBody reads a whole body of at most max bytes. Errors: TooLarge.
func readBody(c *gin.Context, max int64) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(c.Writer, c.Request.Body, max))
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, registry.Errorf(registry.TooLarge, "the request body has more than %d bytes, the most that is allowed", tooLarge.Limit)
	}
	if err != nil {
		return nil, registry.Errorf(registry.Invalid, "request body: %w", err)
	}
	return body, nil
}
