// Package web serves the pages at which people sign clients in (contracts/wire.md 3.2, 3.3): /cli/device, /cli/authorize,
// /cli/success, and what they need. They work without a script, in any browser, and below any base path: every address in
// them is relative.
//
// What a browser is trusted with, and why:
//   - The session's cookie is sent by no other site's pages (SameSite=Strict), read by no script (HttpOnly), and goes over TLS
//     alone where the server's own address is https (the __Host- prefix). It is good for these pages and nothing else.
//   - A form is taken only from the same origin (Sec-Fetch-Site, Origin) and only with the token that the page that holds it was
//     made with, which hangs on a cookie and on who is signed in. So nobody signs somebody in, out, or a client in, behind
//     their back.
//   - Nothing is decided by a GET. A page that names a client shows what the client says of itself and from where it asks; the
//     user then says yes or no.
//   - No page may be framed, none loads or sends anything elsewhere (Content-Security-Policy), none is kept in a cache.
//   - What came from outside stands in html/template's escaping, always.
package web

import (
	"embed"
	"html/template"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/gin-gonic/gin"

	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/httperr"
)

//go:embed pages
var files embed.FS

// Prefix begins the path of every page.
const Prefix = "/cli/"

// maxForm bounds the body of a form, in bytes.
const maxForm = 16 << 10

// Pages holds the handlers.
type Pages struct {
	svc    *registry.Service
	secure bool
	cross  *http.CrossOriginProtection
}

// New makes the handlers over a service. public is the address under which browsers reach the server, as far as it is known
// when it starts; "" where nobody configured one. secure says that browsers come over TLS.
func New(svc *registry.Service, public string, secure bool) (*Pages, error) {
	p := &Pages{svc: svc, secure: secure, cross: http.NewCrossOriginProtection()}
	if u, err := url.Parse(public); err == nil && u.Host != "" { // a proxy may have another name for this server than browsers
		return p, p.cross.AddTrustedOrigin(u.Scheme + "://" + u.Host)
	}
	return p, nil
}

// Is reports whether a path is one of the pages.
func Is(path string) bool { return strings.HasPrefix(path, Prefix) }

// policy is what every page may do. form is where forms may lead beside this server: browsers hold the whole way of a
// redirect to it.
func policy(form string) string {
	return "default-src 'none'; style-src 'self'; img-src 'self'; form-action " + strings.TrimSpace("'self' "+form) + "; frame-ancestors 'none'; base-uri 'none'"
}

// Guard sets the headers of a page, makes errors pages too, and refuses forms of other origins. It stands before whatever may
// fail. Errors: Denied.
func (p *Pages) Guard(c *gin.Context) error {
	h := c.Writer.Header()
	h.Set("Content-Security-Policy", policy(""))
	h.Set("X-Frame-Options", "DENY")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin") // an address may hold a code; Origin is still told to this server
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	root := strings.Repeat("../", strings.Count(strings.TrimPrefix(c.Request.URL.Path, Prefix), "/"))
	c.Request = c.Request.WithContext(httperr.WithPage(c.Request.Context(), func(e httperr.Problem) []byte { return problem(root, e) }))
	if err := p.cross.Check(c.Request); err != nil {
		return registry.Errorf(registry.Denied, "this form was sent by another site's page")
	}
	return nil
}

// page is what every template is given.
type page struct {
	Root    string // leads from the page to the folder of all pages
	Title   string
	Account string // who is signed in, "" for nobody
	Form    string // the token of the page's forms
	Fault   string // why what was asked for did not happen
	Typed   string // the account that a sign-in was tried for, or the code
	Device  device
	State   string // of a page that tells an end: approved, denied, success
	Request string // the id of a request that failed
}

// device is a client as its user knows it.
type device struct {
	Code     string // as people read it, of the device flow
	Name     string
	Client   string
	Platform string
	Remote   string
	At       string
}

// clients are the names of clients as they name themselves.
var clients = map[string]string{"forge-cli": "StarForge sf", "tuneplane-cli": "TunePlane tp", "gatehouse-cli": "Gatehouse sf"}

func deviceOf(d registry.Device) device {
	out := device{Name: d.Name(), Client: d.Source, Platform: d.Platform}
	if known := clients[d.Source]; known != "" {
		out.Client = known
	}
	out.Client = strings.TrimSpace(out.Client + " " + d.CLIVersion)
	if out.Platform == "" {
		out.Platform = strings.TrimSpace(d.OS + " " + d.OSRelease + " " + d.Machine)
	}
	return out
}

var templates = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").ParseFS(files, "pages/*.html"))
})

// show answers with a page.
func show(c *gin.Context, status int, name string, data page) error {
	var b strings.Builder
	if err := templates().ExecuteTemplate(&b, name, data); err != nil {
		return err
	}
	c.Data(status, "text/html; charset=utf-8", []byte(b.String()))
	return nil
}

// problem is the page of an error.
func problem(root string, e httperr.Problem) []byte {
	var b strings.Builder
	data := page{Root: root, Title: http.StatusText(e.Status), Fault: e.Message, Request: e.RequestID}
	if err := templates().ExecuteTemplate(&b, "error.html", data); err != nil {
		return []byte(http.StatusText(e.Status))
	}
	return []byte(b.String())
}

// Style serves GET /cli/style.css.
func (p *Pages) Style(c *gin.Context) error {
	return asset(c, "pages/style.css", "text/css; charset=utf-8")
}

// Icon serves GET /cli/icon.svg.
func (p *Pages) Icon(c *gin.Context) error { return asset(c, "pages/icon.svg", "image/svg+xml") }

func asset(c *gin.Context, name, mediaType string) error {
	content, err := files.ReadFile(name)
	if err != nil {
		return err
	}
	c.Header("Cache-Control", "public, max-age=300")
	c.Data(http.StatusOK, mediaType, content)
	return nil
}

// Success serves GET /cli/success, where the client's callback sends the browser.
func (p *Pages) Success(c *gin.Context) error {
	return show(c, http.StatusOK, "end.html", page{Title: "Signed in", State: "success"})
}
