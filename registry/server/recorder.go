package server

import (
	"io"
	"net/http"

	"github.com/gatehouse-registry/gatehouse/registry/httperr"
)

// statusRecorder notes what was answered. It keeps ReadFrom, so that files are still sent without copying.
type statusRecorder struct {
	http.ResponseWriter
	code  int
	bytes int64
}

func (r *statusRecorder) WriteHeader(code int) {
	if r.code == 0 {
		r.code = code
	}
	r.ResponseWriter.WriteHeader(code)
}

func (r *statusRecorder) Write(p []byte) (int, error) {
	n, err := r.ResponseWriter.Write(p)
	r.bytes += int64(n)
	return n, err
}

func (r *statusRecorder) ReadFrom(src io.Reader) (int64, error) {
	n, err := io.Copy(r.ResponseWriter, src)
	r.bytes += n
	return n, err
}

// Unwrap lets http.ResponseController reach the connection.
func (r *statusRecorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

func (r *statusRecorder) status() int {
	if r.code == 0 {
		return http.StatusOK
	}
	return r.code
}

// withRequestID gives every request an id, answers it in X-Request-Id and puts it into the context.
func withRequestID(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := httperr.NewRequestID()
		w.Header().Set(httperr.RequestIDHeader, id)
		next.ServeHTTP(w, r.WithContext(httperr.WithRequestID(r.Context(), id)))
	})
}
