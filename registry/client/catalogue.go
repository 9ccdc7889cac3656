package client

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/gatehouse-registry/gatehouse/admission/catalogue"
	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/api/wire"
)

// For is the client as one of a dialect and client release: what the server shows and how it decides follows from it. ""
// leaves the release to the server.
func (c *Client) For(d dialect.Dialect, release string) *Client {
	other := *c
	other.opt.Client = d.Names().Client
	if release != "" {
		other.opt.Client += "@" + release
	}
	return &other
}

// Catalogue is what a client of the dialect (see For) can submit, with all facts. answer is the server's own document, which
// catalogue.ParseAnswer reads again.
func (c *Client) Catalogue(ctx context.Context, d dialect.Dialect) (all *catalogue.Catalogue, answer []byte, err error) {
	res, err := c.send(ctx, request{method: http.MethodGet, path: "/api/recipes", query: url.Values{"facts": {"1"}}})
	if err != nil {
		return nil, nil, err
	}
	defer res.Body.Close()
	if answer, err = io.ReadAll(io.LimitReader(res.Body, catalogue.MaxAnswer+1)); err != nil {
		return nil, nil, fmt.Errorf("GET /api/recipes: %w", err)
	}
	all, err = catalogue.ParseAnswer(answer, d)
	return all, answer, err
}

// ImportCatalogue replaces what the registry knows of a client release, the dialect's default one when release is "".
func (c *Client) ImportCatalogue(ctx context.Context, d dialect.Dialect, release string, snapshot []byte) (registry.Imported, error) {
	var out registry.Imported
	r := specRequest("/api/admin/catalog/"+d.Names().Client, snapshot)
	r.method = http.MethodPut
	if release != "" {
		r.query = url.Values{"release": {release}}
	}
	err := c.call(ctx, r, &out)
	return out, err
}

// CatalogueReleases lists the client releases whose catalogues the registry knows.
func (c *Client) CatalogueReleases(ctx context.Context) ([]wire.CatalogueRelease, error) {
	var out wire.CatalogueReleases
	err := c.call(ctx, request{method: http.MethodGet, path: "/api/admin/catalog"}, &out)
	return out.Releases, err
}

// CatalogueSnapshot is what the registry knows of a client release, as ImportCatalogue takes it.
func (c *Client) CatalogueSnapshot(ctx context.Context, d dialect.Dialect, release string) ([]byte, error) {
	res, err := c.send(ctx, request{method: http.MethodGet, path: "/api/admin/catalog/" + d.Names().Client, query: url.Values{"release": {release}}})
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	return io.ReadAll(io.LimitReader(res.Body, limit.JSONBody))
}
