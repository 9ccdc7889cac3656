package launchverify

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/gatehouse-registry/gatehouse/admission/archive"
	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/admission/receipt"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
)

// cache keeps unpacked packs on the node, by manifest digest:
//
//	trees/<algorithm>-<hex>/   one pack's files, as published
//	tmp/                       entries being made; each has a name of its own
//	roots/                     private copies of running jobs
//
// An entry is made below tmp, verified, synced and renamed; it is there whole or not at all, whoever else makes the
// same one. No locks are used. What lies in the cache is trusted by nobody: the job's copy of it is hashed anew at
// every launch.
type cache struct {
	dir    string
	policy rule.Policy // under which archives are checked
}

func openCache(dir string, policy rule.Policy) (*cache, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	for _, sub := range []string{"trees", "tmp", "roots"} {
		if err := os.MkdirAll(filepath.Join(abs, sub), 0o755); err != nil {
			return nil, err
		}
	}
	c := &cache{abs, policy}
	return c, c.sweep()
}

// entry is where the pack of a manifest lies.
func (c *cache) entry(pin receipt.Pin) string {
	return filepath.Join(c.dir, "trees", strings.Replace(pin.Manifest.String(), ":", "-", 1))
}

// tree gives the unpacked pack's folder, and fetches the pack when it is not there. With a warm cache the fetcher
// is not asked.
func (c *cache) tree(ctx context.Context, pin receipt.Pin, from Fetcher) (string, error) {
	if pin.Manifest.IsZero() {
		return "", errors.New("the registry names no manifest")
	}
	entry := c.entry(pin)
	if _, err := os.Stat(entry); err == nil {
		return entry, nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	tmp, err := c.temporary("tmp")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(tmp)
	if err := c.fill(ctx, tmp, pin, from); err != nil {
		return "", err
	}
	// Somebody else's entry is as good as ours.
	if err := os.Rename(filepath.Join(tmp, "tree"), entry); err != nil && !occupied(err) {
		return "", err
	}
	return entry, syncFolder(filepath.Dir(entry))
}

func occupied(err error) bool {
	return errors.Is(err, fs.ErrExist) || errors.Is(err, errNotEmpty)
}

// fill fetches a pack's archive and unpacks it below tmp. Both digests must be those of the pin.
func (c *cache) fill(ctx context.Context, tmp string, pin receipt.Pin, from Fetcher) error {
	file := filepath.Join(tmp, "archive")
	if err := download(ctx, file, pin, from); err != nil {
		return err
	}
	src, err := archive.FromFile(file)
	if err != nil {
		return err
	}
	checked, report, err := archive.Check(src, archive.Options{Policy: c.policy, SpoolDir: tmp})
	if err != nil {
		return err
	}
	if checked == nil {
		return report.Decide(rule.Launch, rule.Subject{Name: pin.ID, Version: pin.Version}, nil).Err()
	}
	defer checked.Close()
	found := checked.Listing()
	if found.Content != pin.Content || found.Tree != pin.Tree {
		return refusal("launch.digest.copy", rule.Subject{Name: pin.ID, Version: pin.Version}, "%s: the registry's archive has content %s and tree %s, expected %s and %s",
			pin, found.Content, found.Tree, pin.Content, pin.Tree)
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

func download(ctx context.Context, file string, pin receipt.Pin, from Fetcher) error {
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

// drop removes the entries of a plan, so that they are fetched again.
func (c *cache) drop(p *plan) error {
	var errs []error
	for _, set := range [][]pinned{p.Plugins, p.Recipes} {
		for _, one := range set {
			if one.Tree == "" {
				continue
			}
			// By way of tmp, so that nobody sees half an entry.
			away, err := c.temporary("tmp")
			if err == nil {
				err = os.Rename(one.Tree, filepath.Join(away, "tree"))
			}
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				errs = append(errs, err)
			}
			errs = append(errs, os.RemoveAll(away))
		}
	}
	return errors.Join(errs...)
}

// privateFolder makes the folder of a private copy. Nobody but the agent's user can list where it lies.
func (c *cache) privateFolder(who identity) (string, error) {
	outer, err := c.temporary("roots")
	if err != nil || !who.other {
		return outer, err
	}
	return outer, os.Chmod(outer, 0o755)
}

// temporary makes a folder whose name says which process of which node made it.
func (c *cache) temporary(sub string) (string, error) {
	node, err := nodeName()
	if err != nil {
		return "", err
	}
	return os.MkdirTemp(filepath.Join(c.dir, sub), fmt.Sprintf("%s.%d.*", node, os.Getpid()))
}

// nodeName tells apart the places in which a process id means one process.
func nodeName() (string, error) {
	host, err := os.Hostname()
	return strings.Map(func(r rune) rune {
		if r == '/' || r == '.' || r == '*' {
			return '-'
		}
		return r
	}, host) + "-" + processSpace(), err
}

// sweep removes what processes of this node left behind when they were killed.
func (c *cache) sweep() error {
	node, err := nodeName()
	if err != nil {
		return err
	}
	for _, sub := range []string{"tmp", "roots"} {
		entries, err := os.ReadDir(filepath.Join(c.dir, sub))
		if err != nil {
			return err
		}
		for _, e := range entries {
			rest, mine := strings.CutPrefix(e.Name(), node+".")
			pid, _, _ := strings.Cut(rest, ".")
			if mine && !alive(pid) {
				if err := removeTree(filepath.Join(c.dir, sub, e.Name())); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
