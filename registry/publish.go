package registry

import (
	"context"

	"github.com/gatehouse-registry/gatehouse/registry/auth"
)

func isPack(artifactType, configType string) bool { return false }

func (s *Service) putPack(ctx context.Context, p auth.Principal, m Manifest, ref Reference, content []byte) (Manifest, error) {
	return m, Errorf(Unsupported, "packs")
}
