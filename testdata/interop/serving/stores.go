package serving

import (
	"errors"
	"strings"

	"github.com/gatehouse-registry/gatehouse/internal/testservice"
)

// stores are the servers of a registry that keeps nothing itself.
type stores struct {
	args []string // of `sf serve`
	env  []string
	stop func() error
}

// startStores starts PostgreSQL and MinIO with nothing in them. With redirect clients fetch large blobs from MinIO itself.
func startStores(redirect bool) (s stores, err error) {
	database, err := testservice.StartPostgres()
	if err != nil {
		return s, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, database.Close())
		}
	}()
	address, err := database.NewDatabase()
	if err != nil {
		return s, err
	}
	minio, err := testservice.StartMinIO()
	if err != nil {
		return s, err
	}
	bucket, err := minio.NewBucket()
	if err != nil {
		return s, errors.Join(err, minio.Close())
	}
	args := []string{"--db", address, "--blobs", bucket.Address()}
	if redirect {
		// Clients must take the store for another host: to the host that they are signed in at they send their token, which a
		// store refuses beside an address that is signed.
		public := strings.Replace(bucket.Endpoint, "127.0.0.1", "localhost", 1)
		args = []string{"--db", address, "--blobs", bucket.Address() + "&public_endpoint=" + public, "--redirect-over", "100000"}
	}
	return stores{
		args: args,
		env:  bucket.Environment(),
		stop: func() error { return errors.Join(minio.Close(), database.Close()) },
	}, nil
}
