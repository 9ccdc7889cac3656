package registry_test

import (
	"encoding/base64"
	"net/url"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/gatehouse-registry/gatehouse/registry"
)

// FuzzAuthorization: whatever a page of authorization is opened with, a browser is sent nowhere but to a client on its own
// machine, and takes no other header or parameter along.
func FuzzAuthorization(f *testing.F) {
	challenge := strings.Repeat("A", 43)
	for _, seed := range []string{"http://127.0.0.1:1/callback", "http://localhost:65535/", "http://127.0.0.1:1@evil.example/", "http://127.0.0.1:1/\r\nx", "http://127.0.0.1:1/?a#b", "//evil"} {
		f.Add(seed, "state", "")
	}
	f.Add("http://127.0.0.1:1/", "a&code=x\r\n", "e30")
	f.Fuzz(func(t *testing.T, redirect, state, device string) {
		a, err := registry.CheckAuthorization(redirect, state, challenge, device)
		if err != nil {
			return
		}
		for _, address := range []string{a.Granted("the code"), a.Refused()} {
			u, err := url.Parse(address)
			if err != nil || u.Scheme != "http" || u.User != nil || u.Hostname() != "127.0.0.1" && u.Hostname() != "localhost" || u.Port() == "" || u.Fragment != "" {
				t.Fatalf("%q leads to %q (%v)", redirect, address, err)
			}
			if strings.ContainsFunc(address, func(r rune) bool { return r <= ' ' || r >= 0x7f }) || !strings.HasPrefix(address, a.Origin()+"/") {
				t.Fatalf("%q leads to %q", redirect, address)
			}
			if q := u.Query(); len(q["code"])+len(q["error"]) != 1 || q.Get("state") != state {
				t.Fatalf("%q with state %q has the parameters %v", redirect, state, q)
			}
		}
	})
}

// FuzzDevice: what a client says of itself is printable and short, or refused.
func FuzzDevice(f *testing.F) {
	for _, seed := range []string{`{}`, `{"hostname":"h","user":"u","cli_version":"1"}`, `{"hostname":"\u202e\u0000"}`, `{"hostname":1}`, `[]`, "\xff"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, document []byte) {
		d, err := registry.ParseDevice(base64.RawURLEncoding.EncodeToString(document))
		if err != nil {
			return
		}
		for _, text := range []string{d.Hostname, d.OS, d.OSRelease, d.Machine, d.Platform, d.User, d.Terminal, d.Shell, d.CLIVersion, d.Source, d.DeviceID} {
			if utf8.RuneCountInString(text) > 120 || !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return r != ' ' && !unicode.IsGraphic(r) }) {
				t.Fatalf("%q gives %q", document, text)
			}
		}
		if c, ok := d.Caller(); ok && strings.ContainsAny(c.Release, "/\\ \"<>%") {
			t.Fatalf("release %q", c.Release)
		}
	})
}
