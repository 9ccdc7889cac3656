package web

import (
	"net/http"

	"github.com/gatehouse-registry/gatehouse/registry"
)

// What the buttons of forms are called.
const (
	doSignIn  = "signin"
	doSignOut = "signout"
	doFind    = "find"
	doApprove = "approve"
	doDeny    = "deny"
)

// signIn takes the form of a sign-in, and shows it again when that is refused. The page that asked for it is shown then.
func (v *visit) signIn(name string, data page) error {
	account, secret := v.field("account"), v.field("secret")
	cookie, ttl, err := v.pages.svc.SignInBrowser(v.Request.Context(), account, secret)
	switch registry.CodeOf(err) {
	case "":
		v.pages.setCookie(v.Context, sessionCookie, cookie, ttl)
		return v.again(v.Request.URL.RawQuery)
	case registry.Unauthorized:
		v.pages.svc.RefusedSignIn(v.Request.Context(), account, err)
		return v.refused(name, data, account, err)
	case registry.TooManyRequests, registry.Denied:
		return v.refused(name, data, account, err)
	}
	return err
}

// refused shows a page again with what was wrong.
func (v *visit) refused(name string, data page, typed string, err error) error {
	data.Fault, data.Typed = err.Error(), registry.Shown(typed)
	return show(v.Context, registry.CodeOf(err).Meaning().Status, name, data)
}

// signOut ends the browser's session.
func (v *visit) signOut() error {
	if err := v.pages.svc.SignOut(v.Request.Context(), v.who); err != nil {
		return err
	}
	v.pages.setCookie(v.Context, sessionCookie, "", -1)
	return v.again(v.Request.URL.RawQuery)
}

// unknown is the answer to a form that no page holds.
func unknown() error {
	return registry.Errorf(registry.Invalid, "the form says nothing that this page knows")
}

// ended tells how something ended.
func (v *visit) ended(state, title string, d device) error {
	data := v.page(title)
	data.State, data.Device = state, d
	return show(v.Context, http.StatusOK, "end.html", data)
}
