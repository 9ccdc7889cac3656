package web

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/gatehouse-registry/gatehouse/registry"
)

// authorization reads the address of the page of authorization. What it refuses is never redirected to.
func (v *visit) authorization() (registry.Authorization, page, error) {
	data := v.page("Sign a client in")
	q := v.Request.URL.Query()
	for _, name := range []string{"redirect_uri", "state", "challenge", "device"} {
		if len(q[name]) > 1 {
			return registry.Authorization{}, data, registry.Errorf(registry.Invalid, "%s: it is there %d times", name, len(q[name]))
		}
	}
	a, err := registry.CheckAuthorization(q.Get("redirect_uri"), q.Get("state"), q.Get("challenge"), q.Get("device"))
	if err != nil {
		return a, data, err
	}
	data.Device = deviceOf(a.Device)
	data.Device.Remote = a.Origin()
	v.Header("Content-Security-Policy", policy(a.Origin()))
	return a, data, nil
}

// Authorize serves GET /cli/authorize?redirect_uri&state&challenge&device.
func (p *Pages) Authorize(c *gin.Context) error {
	v, err := p.visit(c)
	if err != nil {
		return err
	}
	_, data, err := v.authorization()
	if err != nil {
		return err
	}
	return show(c, http.StatusOK, "authorize.html", data)
}

// PostAuthorize serves the forms of /cli/authorize. Its end is a redirect to the client, on the browser's own machine.
func (p *Pages) PostAuthorize(c *gin.Context) error {
	v, err := p.visit(c)
	if err != nil {
		return err
	}
	a, data, err := v.authorization()
	if err != nil {
		return err
	}
	if err := v.readForm(); err != nil {
		return err
	}
	switch do := v.field("do"); {
	case do == doSignIn:
		return v.signIn("authorize.html", data)
	case do == doSignOut:
		return v.signOut()
	case do == doDeny:
		return v.leave(a.Refused())
	case v.who.Anonymous(): // signed out meanwhile
		return v.again(v.Request.URL.RawQuery)
	case do == doApprove:
		code, err := p.svc.Authorize(c.Request.Context(), v.who, a)
		if err != nil {
			return err
		}
		return v.leave(a.Granted(code))
	}
	return unknown()
}

// leave sends the browser to the client.
func (v *visit) leave(address string) error {
	v.Header("Location", address)
	v.Status(http.StatusSeeOther)
	return nil
}
