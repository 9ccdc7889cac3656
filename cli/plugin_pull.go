package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gatehouse-registry/gatehouse/admission/archive"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry/client"
)

// pluginPull fetches a version into a folder.
func (a app) pluginPull() *cobra.Command {
	var warn []string
	cmd := &cobra.Command{
		Use: "pull OWNER/NAME[@VERSION] [DIR]", Short: "Fetch a version and unpack it", Args: cobra.RangeArgs(1, 2),
		ValidArgsFunction: a.completePlugins,
		Long: `Fetch a version by the digest of its manifest and unpack it into DIR (default NAME), which must not exist or be empty.
Both digests are compared with the unpacked files (exit 7 when one differs); then nothing is left behind.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			ref, err := parseRef(args[0])
			if err != nil {
				return err
			}
			opt, err := checkFlags{warn: warn}.options()
			if err != nil {
				return err
			}
			dir := ref.Name
			if len(args) == 2 {
				dir = args[1]
			}
			c, err := a.env.ociClient(cmd.Context())
			if err != nil {
				return err
			}
			p, err := find(cmd.Context(), c, ref)
			if err != nil {
				return err
			}
			stage, err := stageFor(dir)
			if err != nil {
				return err
			}
			defer os.RemoveAll(stage)
			if err := a.unpackInto(cmd.Context(), c, p, stage, opt.Policy); err != nil {
				return err
			}
			if err := moveNew(stage, dir); err != nil {
				return err
			}
			return a.printFetched(p, "pulled", dir)
		},
	}
	addWarnFlag(cmd, &warn)
	return cmd
}

// printFetched shows what was fetched and where it lies.
func (a app) printFetched(p published, did, dir string) error {
	if a.opt.json {
		return a.env.writeJSON(map[string]any{
			"id": p.ID, "version": p.Version, "kind": p.Kind, "content": p.content, "tree": p.tree, "manifest": p.manifest, "dir": dir,
		})
	}
	_, err := fmt.Fprintf(a.env.Out, "%s %s into %s\n   content  %s\n   tree     %s\n   manifest %s\n", did, p.ref(), dir, p.content, p.tree, p.manifest)
	return err
}

// unpackInto fetches a version by its manifest's digest and unpacks it into an empty folder. Whatever differs from what the
// registry named is a *digest.MismatchError, and then the folder holds nothing of it.
func (a app) unpackInto(ctx context.Context, c *client.Client, p published, dir string, policy rule.Policy) error {
	tmp, err := os.MkdirTemp("", "sf-pull-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	file := filepath.Join(tmp, "archive")
	if err := a.fetch(ctx, c, p, file); err != nil {
		return fmt.Errorf("%s: %w", p.ref(), err)
	}
	src, err := archive.FromFile(file)
	if err != nil {
		return err
	}
	checked, report, err := archive.Check(src, archive.Options{Policy: policy, SpoolDir: tmp})
	if err != nil {
		return err
	}
	if checked == nil {
		return report.Decide(rule.Publish, rule.Subject{Name: p.ID, Version: p.Version}, nil).Err()
	}
	defer checked.Close()
	if err := p.same("archive", checked.Listing().Content, checked.Listing().Tree); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return archive.Unpack(checked, root, archive.UnpackOptions{Sync: true})
}

// fetch brings the archive of a version into a new file, verified against its manifest.
func (a app) fetch(ctx context.Context, c *client.Client, p published, file string) error {
	got, err := c.FetchManifest(ctx, p.repository, p.manifest)
	if err != nil {
		return err
	}
	if err := p.same("manifest", got.Artifact.Content, got.Artifact.Tree); err != nil {
		return err
	}
	if err := p.same("config", got.Config.ContentDigest, got.Config.TreeDigest); err != nil {
		return err
	}
	if m := got.Config.Manifest; m.Version != p.Version || !strings.HasSuffix(p.ID, "/"+m.Name) {
		return fmt.Errorf("the config of %s is of %.200q version %.200q", p.ref(), m.Name, m.Version)
	}
	return a.download(ctx, c, p.repository, got.Artifact.Layer, p.ref(), file)
}

// same compares digests that some part of a pack claims or has with those that the registry named.
func (p published) same(part string, content, tree digest.Digest) error {
	for _, one := range []struct {
		name      string
		want, got digest.Digest
	}{{"content digest", p.content, content}, {"tree digest", p.tree, tree}} {
		if one.want != one.got {
			return fmt.Errorf("%s: %s of the %s: %w", p.ref(), one.name, part, &digest.MismatchError{Want: one.want, Got: one.got})
		}
	}
	return nil
}

// download copies a blob into a new file, with a bar when it takes long.
func (a app) download(ctx context.Context, c *client.Client, repository string, layer digest.Descriptor, label, file string) error {
	blob, err := c.Blob(ctx, repository, layer)
	if err != nil {
		return err
	}
	defer blob.Close()
	out, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	bar := a.env.transfer(label, layer.Size)
	defer bar.end()
	_, err = io.Copy(out, bar.reader(blob))
	return errors.Join(err, out.Close())
}
