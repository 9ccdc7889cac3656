package api

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/api/wire"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
)

// Version serves GET /api/version, without a token. `api` is the dialect's, or the client warns (wire.md 3.5).
func (a *API) Version(c *gin.Context) error {
	d := registry.CallerOf(c.Request.Context()).Dialect
	c.JSON(http.StatusOK, gin.H{"server": a.version, "api": d.Names().JobSpec})
	return nil
}

func userOf(a registry.Account) wire.User {
	source := "token"
	if a.PasswordHash != "" {
		source = "password"
	}
	return wire.User{ID: a.Name, Username: a.Name, Role: a.Role, Email: a.Email, AuthSource: source, Disabled: a.Disabled, CreatedAt: stamp(a.CreatedAt)}
}

// Whoami serves GET /api/whoami.
func (a *API) Whoami(c *gin.Context) error {
	account, err := a.svc.Whoami(c.Request.Context(), caller(c))
	if err != nil {
		return err
	}
	c.JSON(http.StatusOK, wire.Whoami{User: userOf(account)})
	return nil
}

// ListUsers serves GET /api/admin/users.
func (a *API) ListUsers(c *gin.Context) error {
	accounts, err := a.svc.Accounts(c.Request.Context(), caller(c))
	if err != nil {
		return err
	}
	rows := make([]wire.User, len(accounts))
	for i, account := range accounts {
		rows[i] = userOf(account)
	}
	c.JSON(http.StatusOK, wire.UserList{Users: rows})
	return nil
}

// CreateUser serves POST /api/admin/users. The role is operator when none is named, as the client's help says.
func (a *API) CreateUser(c *gin.Context) error {
	var in wire.NewUser
	if err := decode(c, &in); err != nil {
		return err
	}
	if in.Role == "" {
		in.Role = auth.Operator
	}
	account, err := a.svc.CreateAccount(c.Request.Context(), caller(c), registry.NewAccount{Name: in.Username, Password: in.Password, Role: in.Role, Email: in.Email})
	if err != nil {
		return err
	}
	c.JSON(http.StatusCreated, userOf(account))
	return nil
}

// SetRole serves PATCH /api/admin/users/{name}/role?role=R.
func (a *API) SetRole(c *gin.Context) error {
	account, err := a.svc.SetRole(c.Request.Context(), caller(c), c.Param("name"), auth.Role(c.Query("role")))
	if err != nil {
		return err
	}
	c.JSON(http.StatusOK, userOf(account))
	return nil
}

// SetDisabled serves PATCH /api/admin/users/{name}/disabled?disabled=true|false.
func (a *API) SetDisabled(c *gin.Context) error {
	disabled, err := strconv.ParseBool(c.Query("disabled"))
	if err != nil {
		return registry.Errorf(registry.Invalid, "disabled: %.40q is neither true nor false", c.Query("disabled"))
	}
	account, err := a.svc.SetDisabled(c.Request.Context(), caller(c), c.Param("name"), disabled)
	if err != nil {
		return err
	}
	c.JSON(http.StatusOK, userOf(account))
	return nil
}

// SetQuota serves POST /api/admin/quotas. The document is kept whole; registry.JobQuota is what of it gate 2 enforces.
func (a *API) SetQuota(c *gin.Context) error {
	var document json.RawMessage
	if err := decode(c, &document); err != nil {
		return err
	}
	var in struct {
		Username string `json:"username"`
	}
	if err := json.Unmarshal(document, &in); err != nil {
		return malformed("request body", err)
	}
	if _, err := a.svc.SetQuota(c.Request.Context(), caller(c), in.Username, document); err != nil {
		return err
	}
	c.Data(http.StatusOK, "application/json", document)
	return nil
}

func tokenOf(t registry.Token) wire.Token {
	row := wire.Token{ID: t.ID, Account: t.Account, Label: t.Label, CreatedAt: stamp(t.CreatedAt), Revoked: !t.RevokedAt.IsZero()}
	if !t.ExpiresAt.IsZero() {
		row.ExpiresAt = stamp(t.ExpiresAt)
	}
	return row
}

// CreateToken serves POST /api/tokens {account, label, expires_in}: account defaults to the caller's, expires_in is in
// seconds and 0 means never. The secret is in this answer only.
func (a *API) CreateToken(c *gin.Context) error {
	var in wire.NewToken
	if err := decodeStrict(c, &in); err != nil {
		return err
	}
	if in.Account == "" {
		in.Account = caller(c).Account
	}
	const century = 100 * 365 * 24 * 3600
	if in.ExpiresIn < 0 || in.ExpiresIn > century {
		return registry.Errorf(registry.Invalid, "expires_in: %d is not between 0 and %d seconds", in.ExpiresIn, century)
	}
	secret, t, err := a.svc.CreateToken(c.Request.Context(), caller(c), in.Account, in.Label, time.Duration(in.ExpiresIn)*time.Second)
	if err != nil {
		return err
	}
	row := tokenOf(t)
	row.Secret = secret
	c.JSON(http.StatusCreated, row)
	return nil
}

// ListTokens serves GET /api/tokens[?account=A|all=true].
func (a *API) ListTokens(c *gin.Context) error {
	account := c.DefaultQuery("account", caller(c).Account)
	if c.Query("all") == "true" {
		account = ""
	}
	tokens, err := a.svc.Tokens(c.Request.Context(), caller(c), account)
	if err != nil {
		return err
	}
	rows := make([]wire.Token, len(tokens))
	for i, t := range tokens {
		rows[i] = tokenOf(t)
	}
	c.JSON(http.StatusOK, wire.TokenList{Tokens: rows})
	return nil
}

// RevokeToken serves DELETE /api/tokens/{id}.
func (a *API) RevokeToken(c *gin.Context) error {
	if err := a.svc.RevokeToken(c.Request.Context(), caller(c), c.Param("id")); err != nil {
		return err
	}
	c.Status(http.StatusNoContent)
	return nil
}
