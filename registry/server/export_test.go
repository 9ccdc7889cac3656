package server

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/api"
	"github.com/gatehouse-registry/gatehouse/web"
)

// OpenWith is Open over the stores and the clock that change makes of the real ones.
func OpenWith(ctx context.Context, c Config, log *slog.Logger, change func(*registry.Deps)) (*Server, error) {
	return openWith(ctx, c, "test", log, change)
}

// Handler is what the server serves.
func (s *Server) Handler() http.Handler { return s }

// Service is what it works through.
func (s *Server) Service() *registry.Service { return s.svc }

// Route is a line of the route list.
type Route struct{ Method, Path string }

// Routes is the route list.
func Routes() []Route {
	var list []Route
	for _, r := range routes(new(api.API), new(web.Pages)) {
		list = append(list, Route{r.method, r.path})
	}
	return list
}

// Update says to write what tests compare with.
var Update = update
