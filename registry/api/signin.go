package api

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/api/wire"
)

// Addresses gives the address under which clients reach a path of this server, "" where nobody can tell: the configured
// public one, and never what a request says.
type Addresses func(path string) string

// noStore keeps what signs somebody in out of caches.
func noStore(c *gin.Context) { c.Header("Cache-Control", "no-store") }

// StartDevice serves POST /api/cli/device/code. The clients take nothing but 200 (wire.md 3.2).
func (a *API) StartDevice(c *gin.Context) error {
	var in wire.StartDevice
	if err := decode(c, &in); err != nil {
		return err
	}
	device, err := registry.ParseDevice(in.Device)
	if err != nil {
		return err
	}
	g, err := a.svc.StartDevice(c.Request.Context(), device)
	if err != nil {
		return err
	}
	out := wire.DeviceCode{DeviceCode: g.DeviceCode, UserCode: g.UserCode, Interval: seconds(g.Interval), ExpiresIn: seconds(g.TTL)}
	if page := a.address("/cli/device"); page != "" {
		out.Verification, out.VerificationAll = page, page+"?user_code="+url.QueryEscape(g.UserCode)
	}
	noStore(c)
	c.JSON(http.StatusOK, out)
	return nil
}

// PollDevice serves POST /api/cli/device/token: 200 with the tokens once, else 400 whose detail the clients act upon.
func (a *API) PollDevice(c *gin.Context) error {
	var in wire.PollDevice
	if err := decode(c, &in); err != nil {
		return err
	}
	t, err := a.svc.PollDevice(c.Request.Context(), in.DeviceCode)
	if err != nil {
		return err
	}
	signedIn(c, t)
	return nil
}

// RedeemCode serves POST /api/cli/token. What the body says of the device counts for nothing: the user approved another text.
func (a *API) RedeemCode(c *gin.Context) error {
	var in wire.RedeemCode
	if err := decode(c, &in); err != nil {
		return err
	}
	t, err := a.svc.RedeemCode(c.Request.Context(), in.Code, in.Verifier, in.RedirectURI)
	if err != nil {
		return err
	}
	signedIn(c, t)
	return nil
}

// Refresh serves POST /api/auth/refresh.
func (a *API) Refresh(c *gin.Context) error {
	var in wire.RefreshToken
	if err := decode(c, &in); err != nil {
		return err
	}
	t, err := a.svc.RefreshSession(c.Request.Context(), in.RefreshToken)
	if err != nil {
		return err
	}
	signedIn(c, t)
	return nil
}

// Logout serves POST /api/auth/logout: 200 for whatever is no session's token too.
func (a *API) Logout(c *gin.Context) error {
	var in wire.RefreshToken
	if err := decode(c, &in); err != nil {
		return err
	}
	if err := a.svc.EndSession(c.Request.Context(), in.RefreshToken); err != nil {
		return err
	}
	c.JSON(http.StatusOK, gin.H{})
	return nil
}

func signedIn(c *gin.Context, t registry.SessionTokens) {
	noStore(c)
	c.JSON(http.StatusOK, wire.SignedIn{
		AccessToken: t.Access, RefreshToken: t.Refresh, TokenType: "Bearer", ExpiresIn: seconds(t.TTL), Session: t.Session.ID, User: userOf(t.Account),
	})
}

func seconds(d time.Duration) int64 { return int64(d / time.Second) }

// ApproveDevice serves POST /api/admin/device/approve.
func (a *API) ApproveDevice(c *gin.Context) error {
	var in wire.ApproveDevice
	if err := decodeStrict(c, &in); err != nil {
		return err
	}
	code, err := a.svc.ApproveDevice(c.Request.Context(), caller(c), in.Code, in.Account)
	if err != nil {
		return err
	}
	c.JSON(http.StatusOK, wire.Approved{Account: code.Account, Device: deviceOf(code.Device), Remote: code.Remote})
	return nil
}

func deviceOf(d registry.Device) wire.Device {
	platform := d.Platform
	if platform == "" {
		platform = strings.TrimSpace(d.OS + " " + d.OSRelease + " " + d.Machine)
	}
	return wire.Device{Name: d.Name(), Platform: platform, Client: d.Source, Version: d.CLIVersion}
}

// ListSessions serves GET /api/sessions[?account=A|all=true].
func (a *API) ListSessions(c *gin.Context) error {
	p := caller(c)
	account := c.DefaultQuery("account", p.Account)
	if c.Query("all") == "true" {
		account = ""
	}
	list, err := a.svc.Sessions(c.Request.Context(), p, account)
	if err != nil {
		return err
	}
	rows := make([]wire.Session, len(list))
	for i, n := range list {
		rows[i] = wire.Session{
			ID: n.ID, Account: n.Account, Kind: string(n.Kind), Device: deviceOf(n.Device), Remote: n.Remote,
			CreatedAt: stamp(n.CreatedAt), UsedAt: stamp(n.UsedAt), ExpiresAt: stamp(n.ExpiresAt), Current: p.Session != nil && p.Session.ID == n.ID,
		}
	}
	c.JSON(http.StatusOK, wire.SessionList{Sessions: rows})
	return nil
}

// RevokeSession serves DELETE /api/sessions/{id}.
func (a *API) RevokeSession(c *gin.Context) error {
	if err := a.svc.RevokeSession(c.Request.Context(), caller(c), c.Param("id")); err != nil {
		return err
	}
	c.Status(http.StatusNoContent)
	return nil
}

// ChangePassword serves POST /api/password.
func (a *API) ChangePassword(c *gin.Context) error {
	var in wire.NewPassword
	if err := decodeStrict(c, &in); err != nil {
		return err
	}
	p := caller(c)
	if in.Username == "" {
		in.Username = p.Account
	}
	if err := a.svc.ChangePassword(c.Request.Context(), p, in.Username, in.Old, in.New); err != nil {
		return err
	}
	c.Status(http.StatusNoContent)
	return nil
}
