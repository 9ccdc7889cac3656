package serving

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
)

// OnlyBasic puts a proxy before a registry that serves TLS: clients that come through it hear of Basic alone, so that they send
// the password with every request instead of fetching a token. stop ends the proxy.
func (r *Registry) OnlyBasic() (proxy *Registry, stop func() error, err error) {
	target, err := url.Parse(r.URL)
	if err != nil {
		return nil, nil, err
	}
	authority, err := os.ReadFile(r.CAFile)
	if err != nil {
		return nil, nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authority) {
		return nil, nil, errors.New("the registry's authority can't be read")
	}
	forward := &httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(target)
			p.Out.Host = p.In.Host
		},
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}},
		ModifyResponse: func(res *http.Response) error {
			if res.StatusCode == http.StatusUnauthorized {
				res.Header.Set("WWW-Authenticate", `Basic realm="acceptance"`)
			}
			return nil
		},
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	server := &http.Server{Handler: forward}
	ended := make(chan error, 1)
	dir := filepath.Dir(r.CAFile)
	go func() {
		ended <- server.ServeTLS(listener, filepath.Join(dir, certificateFile), filepath.Join(dir, keyFile))
	}()
	stop = func() error {
		err := server.Close()
		if serving := <-ended; !errors.Is(serving, http.ErrServerClosed) {
			err = errors.Join(err, fmt.Errorf("the proxy: %w", serving))
		}
		return err
	}
	host := listener.Addr().String()
	return &Registry{URL: "https://" + host, Host: host, TokenFile: r.TokenFile, CAFile: r.CAFile, Basic: true}, stop, nil
}
