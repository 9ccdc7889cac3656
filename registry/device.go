package registry

import (
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/digest/strictjson"
)

// Device is what a client says of itself when it signs in (wire.md 3.2). Nothing of it is proof of anything: it is shown to
// the user who approves, and names the client's release. Every text is printable and of at most maxDeviceText characters.
type Device struct {
	Hostname   string `json:"hostname,omitempty"`
	OS         string `json:"os,omitempty"`
	OSRelease  string `json:"os_release,omitempty"`
	Machine    string `json:"machine,omitempty"`
	Platform   string `json:"platform,omitempty"`
	User       string `json:"user,omitempty"`
	Terminal   string `json:"terminal,omitempty"`
	Shell      string `json:"shell,omitempty"`
	CLIVersion string `json:"cli_version,omitempty"`
	Source     string `json:"source,omitempty"`
	DeviceID   string `json:"device_id,omitempty"`
}

// What a device may say of itself.
const (
	maxDevice     = 8 << 10 // bytes as it is sent
	maxDeviceText = 120     // characters of one text
	maxRelease    = 40      // characters of a release that catalogues are looked up by
)

// sources are the clients of the dialects, as devices name them.
var sources = map[string]dialect.Dialect{"forge-cli": dialect.Forge, "tuneplane-cli": dialect.TunePlane}

// ParseDevice reads the unpadded base64url of a JSON object that clients send; "" is a device that says nothing. Errors:
// Invalid.
func ParseDevice(text string) (Device, error) {
	var d Device
	if text == "" {
		return d, nil
	}
	if len(text) > maxDevice {
		return d, Errorf(Invalid, "device: %d bytes, at most %d are allowed", len(text), maxDevice)
	}
	document, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(text, "="))
	if err != nil {
		return d, Errorf(Invalid, "device: it is no base64url: %w", err)
	}
	if err := strictjson.Scan(document, strictjson.Options{MaxDepth: 4}); err != nil {
		return d, Errorf(Invalid, "device: %w", err)
	}
	if err := json.Unmarshal(document, &d); err != nil {
		return Device{}, Errorf(Invalid, "device: %w", err)
	}
	for _, field := range []*string{&d.Hostname, &d.OS, &d.OSRelease, &d.Machine, &d.Platform, &d.User, &d.Terminal, &d.Shell, &d.CLIVersion, &d.Source, &d.DeviceID} {
		*field = plainText(*field)
	}
	return d, nil
}

// plainText is a text with spaces in the place of what can't be printed or would turn the text around it, cut.
func plainText(s string) string {
	n := 0
	s = strings.Map(func(r rune) rune {
		n++
		switch {
		case n > maxDeviceText:
			return -1
		case r == utf8.RuneError || !strconv.IsPrint(r):
			return ' '
		}
		return r
	}, s)
	return strings.TrimSpace(s)
}

// Caller is the client that the device says it is; ok is false where it is none that is known. Its release is "" unless it has
// the form of one.
func (d Device) Caller() (c Caller, ok bool) {
	c.Dialect, ok = sources[d.Source]
	plain := func(r rune) bool {
		return r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || strings.ContainsRune(".+!-_", r)
	}
	if ok && len(d.CLIVersion) <= maxRelease && !strings.ContainsFunc(d.CLIVersion, func(r rune) bool { return !plain(r) }) {
		c.Release = d.CLIVersion
	}
	return c, ok
}

// Name is what a person knows the device by.
func (d Device) Name() string {
	switch {
	case d.Hostname == "":
		return "an unnamed device"
	case d.User == "":
		return d.Hostname
	}
	return d.User + "@" + d.Hostname
}
