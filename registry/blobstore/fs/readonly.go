package fs

import (
	"errors"
	"os"

	"github.com/gatehouse-registry/gatehouse/registry/blobstore"
)

// errReadOnly is what every write of a store that is open for reading fails with.
var errReadOnly = errors.New("the blob folder is open for reading alone")

// OpenReadOnly opens the store in dir for reading, without the lock: another process may have it open and write. A blob that
// is read stays readable to its end though the other removes it. It changes nothing in the folder.
func OpenReadOnly(dir string) (*blobstore.Store, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	refuse := func(string, string) error { return errReadOnly }
	return blobstore.New(&folder{root: root, disk: disk{root, refuse}, shards: map[string]bool{}}), nil
}
