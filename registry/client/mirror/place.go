package mirror

import (
	"crypto/x509"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/gatehouse-registry/gatehouse/registry"
)

// Place is a side of a copy: a registry, one of its repositories, or an OCI layout folder.
type Place struct {
	Base       *url.URL // the registry; nil for a folder
	Repository string   // "" means all
	Dir        string   // the folder

	Credential auth.CredentialFunc // nil: nobody
	CAs        *x509.CertPool      // nil: the system's
	UserAgent  string
}

// layoutPrefix begins the address of a folder.
const layoutPrefix = "oci:"

// dockerHub is the name by which people know the registry, and dockerHubHost where it answers.
const (
	dockerHub     = "docker.io"
	dockerHubHost = "registry-1.docker.io"
)

// ParsePlace reads "oci:DIR", "http(s)://HOST[:PORT][/REPOSITORY]" or "HOST[:PORT][/REPOSITORY]". Without a scheme it is
// https, unless plain says otherwise or the host is this machine. Errors: Invalid, NameInvalid.
func ParsePlace(s string, plain bool) (Place, error) {
	if dir, ok := strings.CutPrefix(s, layoutPrefix); ok {
		if dir == "" {
			return Place{}, registry.Errorf(registry.Invalid, "%q names no folder: oci:DIR", s)
		}
		return Place{Dir: filepath.Clean(dir)}, nil
	}
	scheme, rest, ok := strings.Cut(s, "://")
	if !ok {
		scheme, rest = "", s
	}
	host, repository, _ := strings.Cut(rest, "/")
	if scheme == "" {
		scheme = "https"
		if plain || isLoopback(host) {
			scheme = "http"
		}
	}
	if host == dockerHub {
		host = dockerHubHost
	}
	u, err := url.Parse(scheme + "://" + host)
	if err != nil || u.Hostname() == "" || u.Host != host || (scheme != "http" && scheme != "https") {
		return Place{}, registry.Errorf(registry.Invalid, "%.200q is no place: HOST[:PORT][/REPOSITORY], http(s)://HOST[:PORT][/REPOSITORY] or oci:DIR", s)
	}
	p := Place{Base: u, Repository: strings.TrimSuffix(repository, "/")}
	if p.Repository == "" {
		return p, nil
	}
	return p, registry.CheckRepositoryName(p.Repository)
}

func isLoopback(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	ip := net.ParseIP(strings.Trim(name, "[]"))
	return name == "localhost" || (ip != nil && ip.IsLoopback())
}

// String is the place as a person writes it.
func (p Place) String() string {
	if p.Base == nil {
		return layoutPrefix + p.Dir
	}
	if p.Repository == "" {
		return p.Base.String()
	}
	return p.Base.Host + "/" + p.Repository
}

// oneLayout reports whether the place is a folder that is a layout itself, and so one repository without a name.
func (p Place) oneLayout() bool {
	if p.Base != nil {
		return false
	}
	_, err := os.Stat(filepath.Join(p.Dir, ocispec.ImageLayoutFile))
	return err == nil
}

// open makes the place ready.
func (p Place) open(opt Options, write bool) (place, error) {
	if p.Base == nil {
		return openLayouts(p.Dir, write && !opt.DryRun)
	}
	return newRemote(p, opt, write), nil
}
