package s3

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/gatehouse-registry/gatehouse/registry"
)

// Options say where the bucket is and who asks for it.
type Options struct {
	Bucket string
	Prefix string // what all keys begin with; "" is the whole bucket. Slashes at its ends don't count
	// Endpoint is the address of the store, "http://127.0.0.1:7070"; "" means AWS. Without a scheme it is https.
	Endpoint string
	// PublicEndpoint is the address of the same store as clients reach it, for presigned addresses; "" means Endpoint.
	PublicEndpoint string
	Region         string // "" asks the store
	PathStyle      bool   // the bucket stands in the path, not in the host name
	// AccessKey, SecretKey and SessionToken are the credentials. Without an access key they come from AWS_ACCESS_KEY_ID …,
	// MINIO_ROOT_USER …, the shared credentials file, or the machine's own role, in this order.
	AccessKey, SecretKey, SessionToken string
	CAFile                             string // PEM certificates to trust besides the system's
	// Timeout is how long the store may be silent in the middle of a request; 0 means one minute.
	Timeout time.Duration
	// Transport, when set, gives what requests go through in place of the given one. It is for tests and tracing.
	Transport func(http.RoundTripper) http.RoundTripper
}

// maxTries is how often a request is sent when the store does not answer, or says that it is busy.
const maxTries = 4

// defaultTimeout is what Options.Timeout means when it is 0.
const defaultTimeout = time.Minute

// settings are the query parameters of an address.
var settings = map[string]func(o *Options, v string) error{
	"endpoint":        func(o *Options, v string) error { o.Endpoint = v; return nil },
	"public_endpoint": func(o *Options, v string) error { o.PublicEndpoint = v; return nil },
	"region":          func(o *Options, v string) error { o.Region = v; return nil },
	"path_style":      func(o *Options, v string) (err error) { o.PathStyle, err = strconv.ParseBool(v); return err },
	"ca_file":         func(o *Options, v string) error { o.CAFile = v; return nil },
	"timeout":         func(o *Options, v string) (err error) { o.Timeout, err = time.ParseDuration(v); return err },
}

// ParseURL reads "s3://bucket/prefix?endpoint=…&region=…&path_style=true". The parameters are those of settings. Secrets
// have no place in an address, which ends up in logs and process lists. Errors: Invalid.
func ParseURL(address string) (Options, error) {
	u, err := url.Parse(address)
	if err != nil {
		return Options{}, registry.Errorf(registry.Invalid, "the address of the blob store: %w", err)
	}
	if u.Scheme != "s3" || u.Host == "" || u.User != nil || u.Fragment != "" {
		return Options{}, registry.Errorf(registry.Invalid, "the address of the blob store is %q: want s3://BUCKET/PREFIX?endpoint=…, without credentials", u.Redacted())
	}
	o := Options{Bucket: u.Host, Prefix: u.Path}
	for key, values := range u.Query() {
		set := settings[key]
		if set == nil || len(values) != 1 {
			return Options{}, registry.Errorf(registry.Invalid, "parameter %q of the blob store's address: want each of endpoint, public_endpoint, region, path_style, ca_file, timeout at most once", key)
		}
		if err := set(&o, values[0]); err != nil {
			return Options{}, registry.Errorf(registry.Invalid, "parameter %q of the blob store's address: %w", key, err)
		}
	}
	if o.Timeout < 0 {
		return Options{}, registry.Errorf(registry.Invalid, "parameter \"timeout\" of the blob store's address is negative")
	}
	return o, nil
}

// newBucket makes the clients and finds the credentials.
func newBucket(ctx context.Context, o Options) (*bucket, error) {
	if o.Endpoint == "" {
		o.Endpoint = "https://s3.amazonaws.com"
	}
	if o.PublicEndpoint == "" {
		o.PublicEndpoint = o.Endpoint
	}
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	transport, err := o.transport()
	if err != nil {
		return nil, err
	}
	creds, err := o.credentials(ctx)
	if err != nil {
		return nil, err
	}
	client, err := o.client(o.Endpoint, creds, transport)
	if err != nil {
		return nil, err
	}
	public, err := o.client(o.PublicEndpoint, creds, transport)
	if err != nil {
		return nil, err
	}
	prefix := strings.Trim(o.Prefix, "/")
	if prefix != "" {
		prefix += "/"
	}
	return &bucket{
		core: &minio.Core{Client: client}, public: public, name: o.Bucket, prefix: prefix,
		touchAfter: touchAfter, staleAfter: staleAfter, partSize: partSize,
	}, nil
}

func (o Options) client(endpoint string, creds *credentials.Credentials, transport http.RoundTripper) (*minio.Client, error) {
	if !strings.Contains(endpoint, "://") {
		endpoint = "https://" + endpoint
	}
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || strings.Trim(u.Path, "/") != "" {
		return nil, registry.Errorf(registry.Invalid, "the endpoint of the blob store is %q: want http://HOST:PORT or https://HOST:PORT", endpoint)
	}
	lookup := minio.BucketLookupAuto
	if o.PathStyle {
		lookup = minio.BucketLookupPath
	}
	client, err := minio.New(u.Host, &minio.Options{
		Creds: creds, Secure: u.Scheme == "https", Transport: transport, Region: o.Region, BucketLookup: lookup, MaxRetries: maxTries,
	})
	if err != nil {
		return nil, registry.Errorf(registry.Invalid, "the endpoint of the blob store: %w", err)
	}
	return client, nil
}

// credentials finds who we are.
func (o Options) credentials(ctx context.Context) (*credentials.Credentials, error) {
	if o.AccessKey != "" {
		return credentials.NewStaticV4(o.AccessKey, o.SecretKey, o.SessionToken), nil
	}
	// The machine's role is asked of an address that answers within the data centre or not at all.
	client := &http.Client{Timeout: 5 * time.Second}
	chain := credentials.NewChainCredentials([]credentials.Provider{
		&credentials.EnvAWS{}, &credentials.EnvMinio{}, &credentials.FileAWSCredentials{}, &credentials.IAM{},
	})
	value, err := chain.GetWithContext(&credentials.CredContext{Client: client})
	if err != nil || value.AccessKeyID == "" {
		return nil, registry.Errorf(registry.Invalid, "no credentials for the bucket %q: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or give the machine a role", o.Bucket)
	}
	return chain, ctx.Err()
}

// transport is what requests go through: a request ends when the store is silent for the timeout, at whatever point.
func (o Options) transport() (http.RoundTripper, error) {
	dialer := &net.Dialer{Timeout: min(o.Timeout, 10*time.Second), KeepAlive: 30 * time.Second}
	t := &http.Transport{
		Proxy: http.ProxyFromEnvironment,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return &patientConn{Conn: conn, patience: o.Timeout}, nil
		},
		MaxIdleConns: 256, MaxIdleConnsPerHost: 64, IdleConnTimeout: 45 * time.Second,
		TLSHandshakeTimeout: min(o.Timeout, 10*time.Second), ResponseHeaderTimeout: o.Timeout,
		DisableCompression: true, // blobs are bytes, whatever their encoding
		TLSClientConfig:    &tls.Config{MinVersion: tls.VersionTLS12},
	}
	if o.CAFile != "" {
		pem, err := os.ReadFile(o.CAFile)
		if err != nil {
			return nil, fmt.Errorf("certificates for the blob store: %w", err)
		}
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		if !pool.AppendCertsFromPEM(pem) {
			return nil, registry.Errorf(registry.Invalid, "%q holds no PEM certificate", o.CAFile)
		}
		t.TLSClientConfig.RootCAs = pool
	}
	if o.Transport != nil {
		return guard{o.Transport(t)}, nil
	}
	return guard{t}, nil
}

// patientConn is a connection that waits only so long for the other side, each time.
type patientConn struct {
	net.Conn
	patience time.Duration
}

func (c *patientConn) Read(p []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(c.patience)); err != nil {
		return 0, err
	}
	return c.Conn.Read(p)
}

func (c *patientConn) Write(p []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(c.patience)); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}
