package cli

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/gatehouse-registry/gatehouse/admission"
	"github.com/gatehouse-registry/gatehouse/admission/archive"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/digest/tree"
)

// digest prints the two digests of a directory or archive.
func (a app) digest() *cobra.Command {
	return &cobra.Command{
		Use:   "digest DIR|ARCHIVE",
		Short: "Print the content digest and the tree digest of a pack",
		Long: `Print the content digest, by which clients, locks and JobSpecs name a pack, and the tree digest, which proves its
bytes, with the number of files and of bytes that count. What the archive rules refuse has no digest (exit 3).`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return withTree(args[0], rule.Policy{}, func(t tree.Tree, found rule.Report) error {
				if t == nil || !found.OK() {
					return found.Decide(admission.Publish, rule.Subject{Name: args[0]}, nil).Err()
				}
				return a.printDigests(t.Listing())
			})
		},
	}
}

func (a app) printDigests(l *tree.Listing) error {
	if a.opt.json {
		return a.env.writeJSON(struct {
			Content digest.Digest `json:"content"`
			Tree    digest.Digest `json:"tree"`
			Files   int           `json:"files"`
			Bytes   int64         `json:"bytes"`
		}{l.Content, l.Tree, l.Files, l.Bytes})
	}
	_, err := fmt.Fprintf(a.env.Out, "content %s\ntree    %s\nfiles   %d\nbytes   %d\n", l.Content, l.Tree, l.Files, l.Bytes)
	return err
}

// withTree opens a directory or an archive, plain or gzipped, and hands on its tree with what the archive rules found.
// The tree is nil when they refuse to read it.
func withTree(path string, policy rule.Policy, use func(tree.Tree, rule.Report) error) (err error) {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.IsDir() {
		root, err := os.OpenRoot(path)
		if err != nil {
			return err
		}
		defer root.Close()
		dir, report, err := archive.OpenDir(root, archive.Options{Policy: policy})
		if err != nil {
			return err
		}
		if dir == nil {
			return use(nil, report)
		}
		return use(dir, report)
	}
	src, err := archive.FromFile(path)
	if err != nil {
		return err
	}
	checked, report, err := archive.Check(src, archive.Options{Policy: policy, Plain: true})
	if err != nil {
		return err
	}
	if checked == nil {
		return use(nil, report)
	}
	defer func() { err = errors.Join(err, checked.Close()) }()
	return use(checked, report)
}
