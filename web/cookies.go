package web

import (
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
)

// Names of cookies.
const (
	sessionCookie = "gatehouse"      // who is signed in
	nonceCookie   = "gatehouse-form" // what the tokens of forms hang on
)

// maxNonce bounds what is taken of a cookie that this package made, in bytes.
const maxNonce = 64

func (p *Pages) cookieName(name string) string {
	if p.secure {
		return "__Host-" + name
	}
	return name
}

func (p *Pages) cookie(c *gin.Context, name string) string {
	k, err := c.Request.Cookie(p.cookieName(name))
	if err != nil {
		return ""
	}
	return k.Value
}

// setCookie sets a cookie for a while; ttl 0 lets it go with the browser, a negative one removes it.
func (p *Pages) setCookie(c *gin.Context, name, value string, ttl time.Duration) {
	http.SetCookie(c.Writer, &http.Cookie{
		Name: p.cookieName(name), Value: value, Path: "/", Secure: p.secure, HttpOnly: true, SameSite: http.SameSiteStrictMode, MaxAge: int(ttl / time.Second),
	})
}

// visit is a request for a page: who is signed in, and the token that its forms carry.
type visit struct {
	*gin.Context
	pages *Pages
	who   auth.Principal
	form  string
}

// visit reads the cookies. A cookie that is good no more is one of nobody. Errors: of a store that does not answer.
func (p *Pages) visit(c *gin.Context) (*visit, error) {
	v := &visit{Context: c, pages: p, who: auth.PrincipalOf(c.Request.Context())}
	if cookie := p.cookie(c, sessionCookie); cookie != "" {
		who, err := p.svc.AuthenticateBrowser(c.Request.Context(), cookie)
		switch {
		case err == nil:
			v.who = who
		case registry.CodeOf(err) != registry.Unauthorized:
			return v, err
		}
	}
	nonce := p.cookie(c, nonceCookie)
	if nonce == "" || len(nonce) > maxNonce {
		nonce = rand.Text()
		p.setCookie(c, nonceCookie, nonce, 0)
	}
	v.form = p.formToken(nonce, v.who)
	return v, nil
}

func (p *Pages) formToken(nonce string, who auth.Principal) string {
	session := ""
	if who.Session != nil {
		session = who.Session.ID
	}
	return p.svc.FormToken(nonce, session)
}

// readForm reads a form and holds it to its token. Errors: TooLarge, Invalid, Denied.
func (v *visit) readForm() error {
	r := v.Request
	if media, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); media != "application/x-www-form-urlencoded" {
		return registry.Errorf(registry.Invalid, "the form is not sent as forms are")
	}
	r.Body = http.MaxBytesReader(v.Writer, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return registry.Errorf(registry.TooLarge, "the form has more than %d bytes", maxForm)
		}
		return registry.Errorf(registry.Invalid, "the form can't be read: %w", err)
	}
	if subtle.ConstantTimeCompare([]byte(r.PostForm.Get("form")), []byte(v.form)) != 1 {
		return registry.Errorf(registry.Denied, "this form is out of date, or the browser takes no cookies: load the page again")
	}
	return nil
}

// field is a field of the form.
func (v *visit) field(name string) string { return v.Request.PostForm.Get(name) }

// page is the beginning of what a template is given.
func (v *visit) page(title string) page {
	return page{Title: title, Account: v.who.Account, Form: v.form}
}

// again sends the browser to the page that it is on, so that a reload sends no form again.
func (v *visit) again(query string) error {
	where := "?" + query
	if query == "" {
		where = v.Request.URL.Path[strings.LastIndexByte(v.Request.URL.Path, '/')+1:]
	}
	v.Header("Location", where)
	v.Status(http.StatusSeeOther)
	return nil
}
