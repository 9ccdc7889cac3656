package nodecache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gatehouse-registry/gatehouse/admission/archive"
	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/admission/receipt"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
)

// Source brings packs from a registry. It need not be safe for concurrent use.
type Source interface {
	// Fetch opens the archive, a tar+gzip stream, of the pack whose OCI manifest has the digest pin.Manifest. The
	// bytes must have been, or must be while they are read, verified against that manifest's layer.
	Fetch(ctx context.Context, pin receipt.Pin) (io.ReadCloser, error)
}

// Tree gives the unpacked pack's folder, and fetches the pack when it is not there. With a warm cache the source
// is not asked. The files are to be verified by whoever uses them: a folder that was damaged is Dropped and asked for again.
func (c *Cache) Tree(ctx context.Context, pin receipt.Pin, from Source) (*Entry, error) {
	if pin.Manifest.IsZero() {
		return nil, errors.New("the registry names no manifest")
	}
	entry := &Entry{c.place("trees", pin.Manifest)}
	if _, err := os.Stat(entry.path); err == nil {
		return entry, nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	tmp, err := c.temporary("tmp")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp)
	if err := c.fill(ctx, tmp, pin, from); err != nil {
		return nil, err
	}
	// Somebody else's entry is as good as ours.
	if err := os.Rename(filepath.Join(tmp, "tree"), entry.path); err != nil && !occupied(err) {
		return nil, err
	}
	return entry, syncFolder(filepath.Dir(entry.path))
}

func occupied(err error) bool {
	return errors.Is(err, fs.ErrExist) || errors.Is(err, errNotEmpty)
}

// fill fetches a pack's archive and unpacks it below tmp. Both digests must be those of the pin.
func (c *Cache) fill(ctx context.Context, tmp string, pin receipt.Pin, from Source) error {
	file := filepath.Join(tmp, "archive")
	if err := download(ctx, file, pin, from); err != nil {
		return err
	}
	src, err := archive.FromFile(file)
	if err != nil {
		return err
	}
	checked, report, err := archive.Check(src, archive.Options{Policy: c.opt.Policy, SpoolDir: tmp})
	if err != nil {
		return err
	}
	subject := rule.Subject{Name: pin.ID, Version: pin.Version}
	if checked == nil {
		return report.Decide(rule.Launch, subject, nil).Err()
	}
	defer checked.Close()
	found := checked.Listing()
	if found.Content != pin.Content || found.Tree != pin.Tree {
		var wrong rule.Report
		wrong.Add(rule.Violation{Rule: "launch.digest.copy", Message: fmt.Sprintf(
			"%s: the registry's archive has content %s and tree %s, expected %s and %s", pin, found.Content, found.Tree, pin.Content, pin.Tree)})
		return wrong.Decide(rule.Launch, subject, nil).Err()
	}
	dir := filepath.Join(tmp, "tree")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return archive.Unpack(checked, root, archive.UnpackOptions{ReadOnly: true, Sync: true})
}

func download(ctx context.Context, file string, pin receipt.Pin, from Source) error {
	in, err := from.Fetch(ctx, pin)
	if err != nil {
		return fmt.Errorf("fetch: %w", err)
	}
	defer in.Close()
	out, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	n, err := io.Copy(out, io.LimitReader(in, limit.Compressed+1))
	if err == nil && n > limit.Compressed {
		err = fmt.Errorf("the archive has more than %d bytes", limit.Compressed)
	}
	if err = errors.Join(err, out.Close()); err != nil {
		return fmt.Errorf("fetch: %w", err)
	}
	return nil
}
