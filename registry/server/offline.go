package server

import (
	"context"
	"errors"
	"log/slog"

	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
	"github.com/gatehouse-registry/gatehouse/registry/client"
	"github.com/gatehouse-registry/gatehouse/registry/metastore"
)

// Fsck checks a registry whose server does not run, and repairs it from what client.OpenSource makes of from, unless that
// is "". Errors: as registry.Service.Fsck; NotFound when there is no registry. A data directory that a server has is an error.
func Fsck(ctx context.Context, c Config, from string, opt registry.FsckOptions, log *slog.Logger) (report registry.FsckReport, err error) {
	c = c.complete()
	there, err := OpenSource(ctx, c)
	if err != nil {
		return report, err
	}
	if err := there.Close(); err != nil {
		return report, err
	}
	set, err := c.settings()
	if err != nil {
		return report, err
	}
	stores, err := OpenTarget(ctx, c)
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, stores.Close()) }()
	ledger, err := metastore.OpenLedger(c.Parts().Ledger)
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, ledger.Close()) }()
	svc, err := registry.New(ctx, registry.Deps{Blobs: stores.Blobs, Meta: stores.Meta, Ledger: ledger, Log: log, Source: client.OpenSource}, set)
	if err != nil {
		return report, err
	}
	return svc.FsckFrom(ctx, auth.Principal{Account: "fsck", Role: auth.Admin}, from, opt)
}
