package testservice

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// versity is the S3 server that tests build and run.
const versity = "github.com/versity/versitygw/cmd/versitygw@v1.8.0"

// MinIOVariable names the environment variable that holds the path of a MinIO server's program, when S3 tests shall run
// on that one too.
const MinIOVariable = "GATEHOUSE_TEST_MINIO"

// The credentials of every S3 server for tests, and its region.
const (
	s3AccessKey = "gatehouse-tests"
	s3SecretKey = "for-tests-only"
	s3Region    = "us-east-1"
)

// S3Bucket is an empty bucket of a real S3 server, addressed in the path.
type S3Bucket struct {
	Server               string // versitygw or minio
	Endpoint             string // http://127.0.0.1:<port>
	Region, Name         string
	AccessKey, SecretKey string
}

// Address is the bucket as `sf serve --blobs` takes it. The credentials are not part of it.
func (b S3Bucket) Address() string {
	return fmt.Sprintf("s3://%s?endpoint=%s&region=%s&path_style=true", b.Name, b.Endpoint, b.Region)
}

// Environment are the variables that hold the credentials.
func (b S3Bucket) Environment() []string {
	return []string{"AWS_ACCESS_KEY_ID=" + b.AccessKey, "AWS_SECRET_ACCESS_KEY=" + b.SecretKey}
}

// S3Servers are the servers that S3 tests run on: versitygw always, MinIO when MinIOVariable names its program.
func S3Servers() []string {
	if os.Getenv(MinIOVariable) != "" {
		return []string{"versitygw", "minio"}
	}
	return []string{"versitygw"}
}

// S3 gives an empty bucket of versitygw. Tests of one process share the server.
func S3(tb testing.TB) S3Bucket {
	tb.Helper()
	return S3On(tb, "versitygw")
}

// S3On gives an empty bucket of one of S3Servers.
func S3On(tb testing.TB, server string) S3Bucket {
	tb.Helper()
	start := s3Servers[server]
	if start == nil {
		tb.Fatalf("there is no S3 server %q", server)
	}
	s, err := start()
	if err != nil {
		tb.Fatalf("start %s: %v", server, err)
	}
	b, err := s.NewBucket()
	if err != nil {
		tb.Fatalf("make a bucket: %v", err)
	}
	return b
}

// OwnS3 starts a versitygw for one test, which may stop and start it, and gives an empty bucket of it.
func OwnS3(tb testing.TB) (*S3Server, S3Bucket) {
	tb.Helper()
	s, err := StartVersity()
	if err != nil {
		tb.Fatalf("start versitygw: %v", err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Errorf("end versitygw: %v", err)
		}
	})
	b, err := s.NewBucket()
	if err != nil {
		tb.Fatalf("make a bucket: %v", err)
	}
	return s, b
}

// s3Servers start the shared server of each kind, once.
var s3Servers = map[string]func() (*S3Server, error){
	"versitygw": sync.OnceValues(StartVersity),
	"minio":     sync.OnceValues(StartMinIO),
}

// S3Server is a real S3 server.
type S3Server struct {
	instance
	kind    string
	program string
	args    func(s *S3Server) []string
	made    atomic.Int64 // buckets
}

// StartVersity starts a versitygw for a program that is no test. Close ends it, and so does the end of this process.
func StartVersity() (*S3Server, error) {
	program, err := built("versitygw", versity)
	if err != nil {
		return nil, err
	}
	return startS3("versitygw", program, func(s *S3Server) []string {
		args := []string{"--port", "127.0.0.1:" + s.port, "--region", s3Region, "--quiet", "posix"}
		if !keepsAttributes(s.data()) {
			args = append(args, "--sidecar", filepath.Join(s.folder.path, "attributes"))
		}
		return append(args, s.data())
	})
}

// StartMinIO starts the MinIO server whose program MinIOVariable names. The caller closes it.
func StartMinIO() (*S3Server, error) {
	program := os.Getenv(MinIOVariable)
	if program == "" {
		return nil, errors.New(MinIOVariable + " names no program")
	}
	return startS3("minio", program, func(s *S3Server) []string {
		return []string{"server", "--quiet", "--address", "127.0.0.1:" + s.port, s.data()}
	})
}

func startS3(kind, program string, args func(*S3Server) []string) (*S3Server, error) {
	f, err := newFolder(kind, nil)
	if err != nil {
		return nil, err
	}
	s := &S3Server{instance: instance{folder: f}, kind: kind, program: program, args: args}
	s.launch, s.ask = s.start, s.answers
	if err := errors.Join(os.Mkdir(s.data(), 0o700), os.Mkdir(filepath.Join(f.path, "attributes"), 0o700)); err != nil {
		return nil, err
	}
	return s, s.Start()
}

func (s *S3Server) data() string { return filepath.Join(s.folder.path, "data") }

func (s *S3Server) endpoint() string { return "http://127.0.0.1:" + s.port }

func (s *S3Server) start() (*server, error) {
	return s.folder.start("KILL", s.program, s.args(s),
		"ROOT_ACCESS_KEY_ID="+s3AccessKey, "ROOT_SECRET_ACCESS_KEY="+s3SecretKey, "MINIO_ROOT_USER="+s3AccessKey, "MINIO_ROOT_PASSWORD="+s3SecretKey)
}

func (s *S3Server) answers(ctx context.Context) error {
	client, err := s.client()
	if err == nil {
		_, err = client.ListBuckets(ctx)
	}
	return err
}

func (s *S3Server) client() (*minio.Client, error) {
	return minio.New("127.0.0.1:"+s.port, &minio.Options{
		Creds: credentials.NewStaticV4(s3AccessKey, s3SecretKey, ""), Region: s3Region, BucketLookup: minio.BucketLookupPath, MaxRetries: 1,
		Transport: &http.Transport{DisableKeepAlives: true},
	})
}

// NewBucket makes an empty bucket.
func (s *S3Server) NewBucket() (S3Bucket, error) {
	b := S3Bucket{
		Server: s.kind, Endpoint: s.endpoint(), Region: s3Region, Name: fmt.Sprintf("test-%d", s.made.Add(1)),
		AccessKey: s3AccessKey, SecretKey: s3SecretKey,
	}
	client, err := s.client()
	if err != nil {
		return b, err
	}
	return b, client.MakeBucket(context.Background(), b.Name, minio.MakeBucketOptions{Region: s3Region})
}

// built is the path of a Go program that is built once for this user, whatever version of it that is.
func built(name, version string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	folder := filepath.Join(cache, "gatehouse", "bin")
	program := filepath.Join(folder, filepath.Base(version))
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	lock, err := os.OpenFile(program+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil { // one process builds, the others wait
		return "", err
	}
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	fresh, err := os.MkdirTemp(folder, "build-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(fresh)
	cmd := exec.Command("go", "install", version)
	cmd.Dir, cmd.Env = fresh, append(os.Environ(), "GOBIN="+fresh, "GOFLAGS=", "GOOS=", "GOARCH=", "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go install %s: %w\n%s", version, err, out)
	}
	return program, os.Rename(filepath.Join(fresh, name), program)
}
