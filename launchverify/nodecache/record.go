package nodecache

import (
	"encoding/json"
	"errors"
	"os"
	"path"
	"strings"

	"github.com/gatehouse-registry/gatehouse/digest"
)

// record is what is written down about a tree. It is for people, for accounts, and to find the archive again; whatever
// it claims is verified where it matters.
type record struct {
	ID      string        `json:"id"`
	Version string        `json:"version"`
	Bytes   int64         `json:"bytes"` // on disk
	Content digest.Digest `json:"content"`
	Tree    digest.Digest `json:"tree"`
	Archive digest.Digest `json:"archive"`
}

// recordOf is where the record of an entry lies.
func recordOf(key string) string { return path.Join("records", strings.Replace(key, "/", "-", 1)) }

func (r record) encode() []byte {
	b, err := json.Marshal(r)
	if err != nil {
		panic(err) // texts and numbers always have a form
	}
	return append(b, '\n')
}

func (c *Cache) record(key string) (record, error) {
	b, err := c.readFile(recordOf(key), maxSmall)
	if err != nil {
		return record{}, err
	}
	var r record
	err = json.Unmarshal(b, &r)
	return r, err
}

// create writes a new file of ours below tmp.
func (c *Cache) create(name string, b []byte) error {
	f, err := c.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Sync(), f.Close())
}
