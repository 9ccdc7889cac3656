package nodecache

import (
	"encoding/json"
	"errors"
	"os"
	"path"
	"strings"

	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/admission/pack"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
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

// description is what a tree should be.
type description struct {
	content, tree, archive digest.Digest
	proven                 bool // by the manifest whose digest is the entry's name
}

// described says what the tree of a manifest should be: by the manifest when it lies in the cache, else by the record.
func (c *Cache) described(manifest digest.Digest) (description, error) {
	b, err := c.readFile(keyOf(blobs, manifest), limit.Manifest)
	if err == nil && manifest.Algorithm().FromBytes(b) == manifest {
		if a, report := pack.ParseArtifact(b, rule.Policy{}); a != nil && report.OK() {
			return description{a.Content, a.Tree, a.Layer.Digest, true}, nil
		}
	}
	r, err := c.record(keyOf(trees, manifest))
	return description{r.Content, r.Tree, r.Archive, false}, err
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
