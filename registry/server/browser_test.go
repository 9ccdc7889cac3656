package server_test

import (
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

// browser is one that runs no scripts: it keeps cookies, reads forms out of pages, and sends them.
type browser struct {
	*gatehouse
	jar  *cookiejar.Jar
	http *http.Client
}

func newBrowser(tb testing.TB, g *gatehouse) *browser {
	tb.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		tb.Fatal(err)
	}
	return &browser{g.in(tb), jar, &http.Client{Jar: jar, CheckRedirect: noRedirect}}
}

// isPage reports whether a path is one of the pages, below whatever base path.
func isPage(path string) bool {
	return strings.HasPrefix(path, "/cli/") || strings.HasPrefix(path, "/sf/cli/") || strings.HasPrefix(path, "/tp/cli/")
}

var fault = regexp.MustCompile(`(?s)role="alert"[^>]*>(.*?)</p>`)

// pageRefusal reads an error that is a page.
func pageRefusal(r reply) (refusal, error) {
	said := fault.FindSubmatch(r.body)
	if got := r.header.Get("Content-Type"); got != "text/html; charset=utf-8" || said == nil {
		return refusal{}, fmt.Errorf("no page that says what is wrong, of type %q: %.300q", got, r.body)
	}
	return refusal{Detail: html.UnescapeString(string(said[1]))}, nil
}

func (b *browser) send(r *http.Request) reply {
	b.tb.Helper()
	res, err := b.http.Do(r)
	if err != nil {
		b.tb.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		b.tb.Fatal(err)
	}
	out := reply{res.StatusCode, res.Header, body}
	if err := checkPage(out); err != nil {
		b.tb.Errorf("%s %s: %v", r.Method, r.URL.Path, err)
	}
	return out
}

// checkPage holds every page to what keeps it safe.
func checkPage(r reply) error {
	csp := r.header.Get("Content-Security-Policy")
	var errs []error
	for _, part := range []string{"default-src 'none'", "style-src 'self'", "form-action 'self'", "frame-ancestors 'none'", "base-uri 'none'"} {
		if !strings.Contains(csp, part) {
			errs = append(errs, fmt.Errorf("the policy lacks %s: %s", part, csp))
		}
	}
	for _, unsafe := range []string{"unsafe", "script-src", "*"} {
		if strings.Contains(csp, unsafe) {
			errs = append(errs, fmt.Errorf("the policy has %s: %s", unsafe, csp))
		}
	}
	for name, want := range map[string]string{"X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin"} {
		if got := r.header.Get(name); got != want {
			errs = append(errs, fmt.Errorf("%s: %q, want %q", name, got, want))
		}
	}
	if got := r.header.Get("Cache-Control"); got != "no-store" {
		errs = append(errs, fmt.Errorf("Cache-Control: %q", got))
	}
	for _, bad := range []string{"<script", "javascript:", " style=", " onclick=", "onerror="} {
		if strings.Contains(strings.ToLower(string(r.body)), bad) && !strings.Contains(string(r.body), html.EscapeString(bad)) {
			errs = append(errs, fmt.Errorf("the page has %s", bad))
		}
	}
	for _, c := range (&http.Response{Header: r.header}).Cookies() {
		if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Domain != "" {
			errs = append(errs, fmt.Errorf("cookie %s: %v", c.Name, c.Raw))
		}
	}
	return errors.Join(errs...)
}

func (b *browser) open(path string) reply {
	b.tb.Helper()
	r, err := http.NewRequest(http.MethodGet, b.url+path, nil)
	if err != nil {
		b.tb.Fatal(err)
	}
	return b.send(r)
}

var formField = regexp.MustCompile(`name="form" value="([^"]*)"`)

// formOf is the token of the page's forms.
func (b *browser) formOf(page reply) string {
	b.tb.Helper()
	m := formField.FindSubmatch(page.body)
	if m == nil {
		b.tb.Fatalf("the page has no form: %.400s", page.body)
	}
	return html.UnescapeString(string(m[1]))
}

// submit sends a form of a page as a browser does.
func (b *browser) submit(path string, page reply, do string, fields ...string) reply {
	b.tb.Helper()
	form := url.Values{"form": {b.formOf(page)}, "do": {do}}
	for i := 0; i+1 < len(fields); i += 2 {
		form.Set(fields[i], fields[i+1])
	}
	return b.post(path, form, map[string]string{"Origin": b.url, "Sec-Fetch-Site": "same-origin"})
}

func (b *browser) post(path string, form url.Values, header map[string]string) reply {
	b.tb.Helper()
	r, err := http.NewRequest(http.MethodPost, b.url+path, strings.NewReader(form.Encode()))
	if err != nil {
		b.tb.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for k, v := range header {
		r.Header.Set(k, v)
	}
	return b.send(r)
}

// signIn signs in at a page and gives it as it is then.
func (b *browser) signIn(path, account, secret string) reply {
	b.tb.Helper()
	page := b.open(path).want(b.tb, http.StatusOK)
	b.submit(path, page, "signin", "account", account, "secret", secret).want(b.tb, http.StatusSeeOther)
	return b.open(path).want(b.tb, http.StatusOK)
}

// signedIn reports whether the page sees somebody.
func (b *browser) signedIn(path string) bool {
	b.tb.Helper()
	return strings.Contains(string(b.open(path).want(b.tb, http.StatusOK).body), "Signed in as <strong>")
}

// approveDevice goes through the page of a device flow.
func (b *browser) approveDevice(userCode string) {
	b.tb.Helper()
	const path = "/cli/device"
	found := b.submit(path, b.open(path), "find", "user_code", userCode).want(b.tb, http.StatusOK)
	b.submit(path, found, "approve", "user_code", userCode).want(b.tb, http.StatusOK)
}
