package nodecache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/digest/tree"
)

// Verdict is what Verify found of one entry.
type Verdict struct {
	Info
	Problem string `json:"problem,omitempty"` // "" says that the bytes are what they should be
	Dropped bool   `json:"dropped,omitempty"`
}

// Verify hashes every entry and tells each verdict. A blob must have its own digest; a tree both digests that its
// manifest names, when that lies in the cache, else those of its record, which finds damage and not malice. With repair what is
// damaged is dropped.
func (c *Cache) Verify(ctx context.Context, repair bool, each func(Verdict) error) (damaged int, err error) {
	if c.root == nil {
		return 0, c.shut
	}
	for _, e := range c.List() {
		if err := ctx.Err(); err != nil {
			return damaged, err
		}
		v := Verdict{Info: e}
		there, problem := c.judge(ctx, e)
		if ctx.Err() != nil {
			return damaged, ctx.Err()
		}
		if !there {
			continue // another process removed it
		}
		if problem != nil {
			damaged++
			v.Problem = problem.Error()
			if repair {
				if err := c.take(e.key); err != nil {
					return damaged, fmt.Errorf("drop %s: %w", e.key, err)
				}
				v.Dropped = true
			}
		}
		if err := each(v); err != nil {
			return damaged, err
		}
	}
	return damaged, nil
}

var errNoRecord = errors.New("neither manifest nor record says what its files should be")

// judge checks an entry. What another process removed or made anew meanwhile is no damage: then it is looked at again, and one
// that is not there any more has no verdict.
func (c *Cache) judge(ctx context.Context, e Info) (there bool, problem error) {
	for range 10 {
		before, err := c.root.Lstat(e.key)
		if gone(err) {
			return false, nil
		}
		if problem = c.check(ctx, e); problem == nil || err != nil || ctx.Err() != nil {
			return true, problem
		}
		after, err := c.root.Lstat(e.key)
		if gone(err) {
			return false, nil
		}
		if err == nil && os.SameFile(before, after) && !gone(problem) && !errors.Is(problem, errNoRecord) {
			return true, problem
		}
		if sleep(ctx, firstLook) != nil {
			break
		}
	}
	return true, problem
}

func (c *Cache) check(ctx context.Context, e Info) error {
	if e.Kind == "blob" {
		return c.checkBlob(ctx, e)
	}
	want, err := c.described(e.Digest)
	if gone(err) {
		return errNoRecord
	}
	if err != nil {
		return fmt.Errorf("its record: %w", err)
	}
	root, err := c.root.OpenRoot(e.key)
	if err != nil {
		return err
	}
	defer root.Close()
	found, err := tree.OpenDirWithin(root, tree.Limits{Files: limit.Files, Bytes: limit.Unpacked, Path: limit.Path})
	if err != nil {
		return err
	}
	for _, one := range found.Listing().Entries {
		if one.Kind != tree.Folder && (one.Kind != tree.Counted || one.Link != "") {
			return fmt.Errorf("%.200q is no file of a pack", one.Path)
		}
	}
	if l := found.Listing(); l.Tree != want.tree || l.Content != want.content {
		return fmt.Errorf("its files have content %s and tree %s, expected %s and %s", l.Content, l.Tree, want.content, want.tree)
	}
	return nil
}

func (c *Cache) checkBlob(ctx context.Context, e Info) error {
	entry := &Entry{c: c, key: e.key, want: digest.Descriptor{Digest: e.Digest, Size: max(limit.JobPackage, limit.Compressed)}}
	r, err := entry.Open()
	if err != nil {
		return err
	}
	defer r.Close()
	_, err = io.Copy(io.Discard, cancelled{ctx, r})
	return err
}

// cancelled reads until ctx ends.
type cancelled struct {
	ctx context.Context
	r   io.Reader
}

func (c cancelled) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}
