package registry

import (
	"context"

	"github.com/gatehouse-registry/gatehouse/registry/auth"
)

// Every use case on content asks one of these four first. They are the only place that knows who may do what in which
// repository.

// mayRead answers as authorize does for reading a repository's content.
func (s *Service) mayRead(ctx context.Context, p auth.Principal, repository string) error {
	return s.authorize(ctx, p, auth.ReadContent, Owner(repository), repository)
}

// mayDelete answers as authorize does for deleting content that is no pack's version.
func (s *Service) mayDelete(ctx context.Context, p auth.Principal, repository string) error {
	return s.authorize(ctx, p, auth.DeleteContent, Owner(repository), repository)
}

// mayWrite checks the repository's name and the right to push there. Errors: NameInvalid, Unauthorized, Denied.
func (s *Service) mayWrite(ctx context.Context, p auth.Principal, repository string) error {
	if err := CheckRepositoryName(repository); err != nil {
		return err
	}
	return s.authorize(ctx, p, auth.WriteContent, Owner(repository), repository)
}

// canRead reports what mayRead answers without recording a refusal, for what only looks whether it may.
func (s *Service) canRead(p auth.Principal, repository string) bool {
	return p.CanIn(auth.ReadContent, Owner(repository))
}

// MayPush reports, as an error, why the principal may not push to the repository, before a body is read.
// Errors: NameInvalid, Unauthorized, Denied.
func (s *Service) MayPush(ctx context.Context, p auth.Principal, repository string) error {
	return s.mayWrite(ctx, p, repository)
}
