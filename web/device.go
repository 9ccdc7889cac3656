package web

import (
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/gatehouse-registry/gatehouse/registry"
)

const deviceTitle = "Sign a device in"

// Device serves GET /cli/device[?user_code=CODE]. The code of the address is only filled in: whether there is such a one is
// told to who has signed in and sent it.
func (p *Pages) Device(c *gin.Context) error {
	v, err := p.visit(c)
	if err != nil {
		return err
	}
	return show(c, http.StatusOK, "device.html", v.device())
}

func (v *visit) device() page {
	data := v.page(deviceTitle)
	if code, err := registry.ParseUserCode(v.Query("user_code")); err == nil {
		data.Device.Code = registry.ShownUserCode(code)
	}
	return data
}

// PostDevice serves the forms of /cli/device.
func (p *Pages) PostDevice(c *gin.Context) error {
	v, err := p.visit(c)
	if err != nil {
		return err
	}
	if err := v.readForm(); err != nil {
		return err
	}
	switch do := v.field("do"); {
	case do == doSignIn:
		return v.signIn("device.html", v.device())
	case do == doSignOut:
		return v.signOut()
	case v.who.Anonymous(): // signed out meanwhile
		return v.again(v.Request.URL.RawQuery)
	case do == doFind:
		return v.found()
	case do == doApprove, do == doDeny:
		return v.decided(do == doApprove)
	}
	return unknown()
}

// found shows what client a code is of.
func (v *visit) found() error {
	code, err := v.pages.svc.FindDevice(v.Request.Context(), v.who, v.field("user_code"))
	if err != nil {
		return v.noCode(err)
	}
	data := v.page("Is this you?")
	data.Device = flow(code)
	return show(v.Context, http.StatusOK, "confirm.html", data)
}

// decided ends a device flow.
func (v *visit) decided(approve bool) error {
	code, err := v.pages.svc.DecideDevice(v.Request.Context(), v.who, v.field("user_code"), approve)
	switch {
	case err != nil:
		return v.noCode(err)
	case approve:
		return v.ended("approved", "Signed in", flow(code))
	}
	return v.ended("denied", "Not signed in", flow(code))
}

// noCode shows the form again to who sent a code that is none.
func (v *visit) noCode(err error) error {
	switch registry.CodeOf(err) {
	case registry.Invalid, registry.NotFound, registry.TooManyRequests:
		data := v.device()
		data.Device.Code = ""
		return v.refused("device.html", data, v.field("user_code"), err)
	case registry.Unauthorized:
		return v.again(v.Request.URL.RawQuery)
	}
	return err
}

func flow(c registry.DeviceCode) device {
	d := deviceOf(c.Device)
	d.Code, d.Remote, d.At = registry.ShownUserCode(c.UserCode), c.Remote, c.CreatedAt.UTC().Format(time.RFC1123)
	return d
}
