package registry

import (
	"context"

	"github.com/gatehouse-registry/gatehouse/admission/catalogue"
)

// A collection that stands still, as the tests of its claims let it, is in the way for ever: they don't wait long.
func init() { anchorAttempts = 3 }

// SubmissionCatalogue is the catalogue that a submission of the recipe is held to.
func (s *Service) SubmissionCatalogue(ctx context.Context, caller Caller, recipe string) (c *catalogue.Catalogue, err error) {
	err = s.meta.View(ctx, func(tx Tx) error {
		c, err = s.catalogue(tx, caller, recipe)
		return err
	})
	return c, err
}

// Reshelve is what every change of a pack's versions ends with.
func (s *Service) Reshelve(tx Tx, repository string) error { return s.reshelve(tx, repository) }
