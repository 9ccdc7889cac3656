package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/api/wire"
)

// gc runs a garbage collection.
func (a app) gc() *cobra.Command {
	var in wire.Collect
	cmd := &cobra.Command{
		Use: "gc [--dry-run]", Short: "Remove what nothing names: blobs, manifests and tags that retention gives up, old uploads", Args: cobra.NoArgs,
		Long: `Run a garbage collection on the server, beside its clients. It prints a line for each thing that it removes, with the
reason. With --dry-run it removes nothing and prints what it would remove now. Versions of packs are never removed.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, _, err := a.env.client()
			if err != nil {
				return err
			}
			removals := []registry.Removal{}
			report, omitted, err := c.Collect(cmd.Context(), in, func(r registry.Removal) error {
				if a.opt.json {
					removals = append(removals, r)
					return nil
				}
				_, err := fmt.Fprintln(a.env.Out, removalLine(r))
				return err
			})
			if err != nil {
				return err
			}
			if a.opt.json {
				return a.env.writeJSON(struct {
					registry.CollectReport
					Removals []registry.Removal `json:"removals"`
					Omitted  int                `json:"omitted"`
				}{report, removals, omitted})
			}
			if omitted > 0 {
				fmt.Fprintf(a.env.Out, "and %d more\n", omitted)
			}
			verb := "removed"
			if report.DryRun {
				verb = "would remove"
			}
			_, err = fmt.Fprintf(a.env.Out, "%s %d tags, %d manifests, %d links, %d blobs, %d uploads; %d bytes\n",
				verb, report.Tags, report.Manifests, report.Links, report.Blobs, report.Uploads, report.Bytes)
			return err
		},
	}
	cmd.Flags().BoolVar(&in.DryRun, "dry-run", false, "remove nothing; print what would be removed, and why")
	return cmd
}

// removalLine shows what is removed: its kind, where it is, and why.
func removalLine(r registry.Removal) string {
	parts := []string{r.Kind}
	where := r.Repository
	switch {
	case r.Tag != "":
		where += ":" + r.Tag
	case !r.Digest.IsZero() && where != "":
		where += "@" + r.Digest.String()
	case !r.Digest.IsZero():
		where = r.Digest.String()
	}
	if where != "" {
		parts = append(parts, where)
	}
	if r.Bytes > 0 {
		parts = append(parts, fmt.Sprintf("(%d bytes)", r.Bytes))
	}
	return printable(strings.Join(parts, " ") + ": " + r.Reason)
}
