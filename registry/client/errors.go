package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/registry"
)

// errorBody is the form of an error: below /api the fields beside Errors, in the OCI protocol Errors alone.
type errorBody struct {
	Code     registry.Code  `json:"code"`
	Detail   string         `json:"detail"`
	Decision *rule.Decision `json:"decision"`
	Errors   []struct {
		Code    registry.Code   `json:"code"`
		Message string          `json:"message"`
		Detail  json.RawMessage `json:"detail"`
	} `json:"errors"`
}

// ErrForeign is the cause of an error whose answer has neither form: somebody else answered in place of the registry, such as
// a proxy whose registry is away.
var ErrForeign = errors.New("the answer is none of a registry's")

// AnswerError turns an answer that is no success back into the *registry.Error that the server had, in the form of /api or
// of the OCI protocol. At most limit.Document bytes of the body are read; a body that is neither form is quoted.
func AnswerError(res *http.Response) error {
	body, err := io.ReadAll(io.LimitReader(res.Body, limit.Document))
	if err != nil {
		return err
	}
	out := &registry.Error{Code: codeOfStatus(res.StatusCode), RetryAfter: RetryAfter(res.Header, time.Now())}
	var e errorBody
	switch err := json.Unmarshal(body, &e); {
	case err == nil && len(e.Errors) > 0:
		first := e.Errors[0]
		if out.Message = first.Message; first.Code.Known() {
			out.Code = first.Code
		}
		if d := readDecision(first.Detail); d != nil {
			out.Detail = *d
		}
	case err == nil && e.Detail != "":
		if out.Message = e.Detail; e.Code != "" {
			out.Code = e.Code
		}
		if e.Decision != nil {
			out.Detail = *e.Decision
		}
	}
	if out.Message == "" {
		out.Err = ErrForeign
		out.Message = strings.TrimSpace(fmt.Sprintf("the server answered %s %.300q", res.Status, strings.TrimSpace(string(body))))
	}
	return out
}

// RetryAfter is what a Retry-After header asks to wait at the time now; 0 when there is none that can be read.
func RetryAfter(h http.Header, now time.Time) time.Duration {
	text := strings.TrimSpace(h.Get("Retry-After"))
	if seconds, err := strconv.ParseInt(text, 10, 32); err == nil {
		return max(0, time.Duration(seconds)*time.Second)
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}

// codeOfStatus is the code to assume when a server, or a proxy before it, names none.
func codeOfStatus(status int) registry.Code {
	switch status {
	case http.StatusUnauthorized:
		return registry.Unauthorized
	case http.StatusForbidden:
		return registry.Denied
	case http.StatusNotFound:
		return registry.NotFound
	case http.StatusMethodNotAllowed:
		return registry.Unsupported
	case http.StatusConflict:
		return registry.Conflict
	case http.StatusRequestEntityTooLarge:
		return registry.TooLarge
	case http.StatusTooManyRequests:
		return registry.TooManyRequests
	case http.StatusServiceUnavailable, http.StatusBadGateway, http.StatusGatewayTimeout:
		return registry.Unavailable
	}
	return registry.Internal
}

// ProtocolError turns an error of oras-go back into the one that the server had; others stay as they are, but for those of
// the connection, which become Unavailable.
func ProtocolError(err error) error {
	if errors.Is(err, errdef.ErrNotFound) { // oras-go's word for every 404
		return &registry.Error{Code: registry.NotFound, Message: err.Error(), Err: err}
	}
	if errors.Is(err, auth.ErrBasicCredentialNotFound) {
		return &registry.Error{Code: registry.Unauthorized, Message: "the registry asks for a sign-in", Err: err}
	}
	response, ok := errors.AsType[*errcode.ErrorResponse](err)
	if !ok {
		return unreachable(err)
	}
	if len(response.Errors) == 0 {
		return &registry.Error{Code: codeOfStatus(response.StatusCode), Err: err}
	}
	first := response.Errors[0]
	e := &registry.Error{Code: registry.Code(first.Code), Message: first.Message, Err: err}
	if !e.Code.Known() {
		e.Code = codeOfStatus(response.StatusCode)
	}
	if d := readDecision(first.Detail); d != nil {
		e.Detail = *d
	}
	return e
}

// readDecision reads the Decision that the server put into an error's detail, nil when it put none.
func readDecision(detail any) *rule.Decision {
	text, err := json.Marshal(detail)
	if err != nil {
		return nil
	}
	var d rule.Decision
	if json.Unmarshal(text, &d) != nil || d.Gate == "" {
		return nil
	}
	return &d
}

// unreachable words a failure of the connection; the cause stays in the chain.
func unreachable(err error) error {
	if ue, ok := errors.AsType[*url.Error](err); ok && !ue.Timeout() && !errors.Is(err, context.Canceled) {
		return &registry.Error{Code: registry.Unavailable, Message: fmt.Sprintf("can't reach the server: %v", ue.Err), Err: err}
	}
	return err
}
