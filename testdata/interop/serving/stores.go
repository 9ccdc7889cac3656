package serving

import (
	"errors"

	"github.com/gatehouse-registry/gatehouse/internal/testservice"
)

// stores are the servers of a registry that keeps nothing itself.
type stores struct {
	args []string // of `sf serve`
	env  []string
	stop func() error
}

// startStores starts PostgreSQL and MinIO with nothing in them.
func startStores() (s stores, err error) {
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
	return stores{
		args: []string{"--db", address, "--blobs", bucket.Address()},
		env:  bucket.Environment(),
		stop: func() error { return errors.Join(minio.Close(), database.Close()) },
	}, nil
}
