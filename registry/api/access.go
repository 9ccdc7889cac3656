package api

import (
	"net/http"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/api/wire"
)

func robotOf(r registry.Robot) wire.Robot {
	return wire.Robot{
		Name: r.Name, Owner: r.Owner, Description: r.Description, Scopes: r.Scopes, CreatedBy: r.CreatedBy,
		CreatedAt: stamp(r.CreatedAt), ExpiresAt: stamp(r.ExpiresAt),
	}
}

// CreateRobot serves POST /api/robots. The secret is in this answer only.
func (a *API) CreateRobot(c *gin.Context) error {
	var in wire.NewRobot
	if err := decodeStrict(c, &in); err != nil {
		return err
	}
	const century = 100 * 365 * 24 * 3600
	if in.ExpiresIn < 0 || in.ExpiresIn > century {
		return registry.Errorf(registry.Invalid, "expires_in: %d is not between 1 and %d seconds", in.ExpiresIn, century)
	}
	secret, robot, err := a.svc.CreateRobot(c.Request.Context(), caller(c), registry.NewRobot{
		Owner: in.Owner, Name: in.Name, Description: in.Description, Scopes: in.Scopes, TTL: time.Duration(in.ExpiresIn) * time.Second,
	})
	if err != nil {
		return err
	}
	row := robotOf(robot)
	row.Secret = secret
	c.JSON(http.StatusCreated, row)
	return nil
}

// ListRobots serves GET /api/robots[?owner=A|all=true].
func (a *API) ListRobots(c *gin.Context) error {
	owner := c.DefaultQuery("owner", caller(c).Namespace())
	if c.Query("all") == "true" {
		owner = ""
	}
	robots, err := a.svc.Robots(c.Request.Context(), caller(c), owner)
	if err != nil {
		return err
	}
	rows := make([]wire.Robot, len(robots))
	for i, r := range robots {
		rows[i] = robotOf(r)
	}
	c.JSON(http.StatusOK, wire.RobotList{Robots: rows})
	return nil
}

// DeleteRobot serves DELETE /api/robots/{owner+name}.
func (a *API) DeleteRobot(c *gin.Context) error {
	if err := a.svc.DeleteRobot(c.Request.Context(), caller(c), c.Param("name")); err != nil {
		return err
	}
	c.Status(http.StatusNoContent)
	return nil
}

func accessOf(info registry.RepositoryInfo) wire.RepositoryAccess {
	readers := info.Readers
	if readers == nil {
		readers = []string{}
	}
	return wire.RepositoryAccess{Name: info.Name, Owner: info.Owner, Private: &info.Private, Readers: &readers}
}

// GetRepository serves GET /api/repositories/{name}, for whom the repository belongs to.
func (a *API) GetRepository(c *gin.Context) error {
	info, err := a.svc.Access(c.Request.Context(), caller(c), repositoryParam(c))
	if err != nil {
		return err
	}
	c.JSON(http.StatusOK, accessOf(info))
	return nil
}

// PatchRepository serves PATCH /api/repositories/{name} {private, readers}.
func (a *API) PatchRepository(c *gin.Context) error {
	var in wire.RepositoryAccess
	if err := decodeStrict(c, &in); err != nil {
		return err
	}
	info, err := a.svc.SetAccess(c.Request.Context(), caller(c), repositoryParam(c), registry.AccessChange{Private: in.Private, Readers: in.Readers})
	if err != nil {
		return err
	}
	c.JSON(http.StatusOK, accessOf(info))
	return nil
}

// repositoryParam is a repository's name, which has slashes, from the rest of the path.
func repositoryParam(c *gin.Context) string { return strings.TrimPrefix(c.Param("name"), "/") }

func namespaceOf(n registry.Namespace) wire.Namespace {
	return wire.Namespace{Pattern: n.Pattern, Owner: n.Owner, CreatedBy: n.CreatedBy, CreatedAt: stamp(n.CreatedAt)}
}

// ListNamespaces serves GET /api/admin/namespaces.
func (a *API) ListNamespaces(c *gin.Context) error {
	list, err := a.svc.Namespaces(c.Request.Context(), caller(c))
	if err != nil {
		return err
	}
	rows := make([]wire.Namespace, len(list))
	for i, n := range list {
		rows[i] = namespaceOf(n)
	}
	c.JSON(http.StatusOK, wire.NamespaceList{Namespaces: rows})
	return nil
}

// PutNamespace serves PUT /api/admin/namespaces {pattern, owner, take_from_account}.
func (a *API) PutNamespace(c *gin.Context) error {
	var in wire.Namespace
	if err := decodeStrict(c, &in); err != nil {
		return err
	}
	n, err := a.svc.SetNamespace(c.Request.Context(), caller(c), in.Pattern, in.Owner, in.TakeFromAccount)
	if err != nil {
		return err
	}
	c.JSON(http.StatusOK, namespaceOf(n))
	return nil
}

// DeleteNamespace serves DELETE /api/admin/namespaces?pattern=P.
func (a *API) DeleteNamespace(c *gin.Context) error {
	if err := a.svc.DeleteNamespace(c.Request.Context(), caller(c), c.Query("pattern")); err != nil {
		return err
	}
	c.Status(http.StatusNoContent)
	return nil
}
