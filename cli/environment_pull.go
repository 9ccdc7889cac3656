package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/admission/suite"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry/api/wire"
	"github.com/gatehouse-registry/gatehouse/registry/client"
)

// suitePull fetches a version into a folder.
func (a app) suitePull(kind suite.Kind) *cobra.Command {
	return &cobra.Command{
		Use: "pull OWNER/NAME[@VERSION] [DIR]", Short: "Fetch a version into a folder", Args: cobra.RangeArgs(1, 2),
		Long: `Fetch every file of a version into DIR (default NAME), which must not exist or be empty. Each file is compared with its
digest, and all of them with the tree digest of the version (exit 7 when one differs); then nothing is left behind.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			ref, err := suiteRef(kind, args[0])
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
			s, err := c.Suite(cmd.Context(), kind, id(ref), ref.Version)
			if err != nil {
				return fmt.Errorf("%s: %w", ref, err)
			}
			index, err := indexIn(s)
			if err != nil {
				return fmt.Errorf("%s: %w", ref, err)
			}
			stage, err := stageFor(dir)
			if err != nil {
				return err
			}
			defer os.RemoveAll(stage)
			if err := a.fetchFiles(cmd.Context(), c, s, index, stage); err != nil {
				return fmt.Errorf("%s: %w", ref, err)
			}
			if err := moveNew(stage, dir); err != nil {
				return err
			}
			if a.opt.json {
				return a.env.writeJSON(map[string]any{"id": s.ID, "version": s.Version, "tree": s.Digest, "manifest": s.ManifestDigest, "files": len(index), "dir": dir})
			}
			_, err = fmt.Fprintf(a.env.Out, "pulled %s@%s into %s (%d files)\n   tree     %s\n   manifest %s\n", printable(s.ID), printable(s.Version), dir, len(index), printable(s.Digest), printable(s.ManifestDigest))
			return err
		},
	}
}

// indexIn reads the files of an answer, whose names become paths, and holds them to the digest that it names.
func indexIn(s wire.Suite) (suite.Index, error) {
	text, err := json.Marshal(map[string]any{"files": s.Files})
	if err != nil {
		return nil, err
	}
	index, report := suite.ParseIndex(text, rule.Policy{})
	if !report.OK() {
		return nil, fmt.Errorf("the server's answer: %s", report.Violations[0])
	}
	want, err := digest.Parse(s.Digest)
	if err != nil {
		return nil, fmt.Errorf("the server's answer: %w", err)
	}
	if got := index.Tree(); got != want {
		return nil, fmt.Errorf("tree digest: %w", &digest.MismatchError{Want: want, Got: got})
	}
	return index, nil
}

// fetchFiles brings the files of a version into an empty folder.
func (a app) fetchFiles(ctx context.Context, c *client.Client, s wire.Suite, index suite.Index, dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	repository, _, _ := strings.Cut(s.Reference, ":")
	bar := a.env.transfer("pull", index.Bytes())
	defer bar.end()
	for _, f := range index {
		if err := fetchFile(ctx, c, repository, f, root, bar); err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
	}
	return nil
}

func fetchFile(ctx context.Context, c *client.Client, repository string, f suite.File, root *os.Root, bar *transfer) error {
	if folder := path.Dir(f.Name); folder != "." {
		if err := root.MkdirAll(folder, 0o777); err != nil {
			return err
		}
	}
	out, err := root.OpenFile(f.Name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	blob, err := c.Blob(ctx, repository, digest.Descriptor{MediaType: "application/octet-stream", Digest: f.Digest, Size: f.Size})
	if err != nil {
		return errors.Join(err, out.Close())
	}
	defer blob.Close()
	_, err = io.Copy(out, &countingReader{blob, bar})
	return errors.Join(err, out.Close())
}
