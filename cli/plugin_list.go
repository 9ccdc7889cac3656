package cli

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/gatehouse-registry/gatehouse/registry/api/wire"
)

// pluginList lists packs.
func (a app) pluginList() *cobra.Command {
	var kind, owner string
	cmd := &cobra.Command{
		Use: "ls [--kind KIND] [--owner OWNER]", Short: "List packs with their latest version", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, _, err := a.env.client()
			if err != nil {
				return err
			}
			all, err := c.Plugins(cmd.Context())
			if err != nil {
				return err
			}
			rows := make([]wire.PluginRow, 0, len(all))
			for _, row := range all {
				if (kind == "" || row.Kind == kind) && (owner == "" || strings.HasPrefix(row.ID, owner+"/")) {
					rows = append(rows, row)
				}
			}
			if a.opt.json {
				return a.env.writeJSON(rows)
			}
			return printPlugins(a.env.Out, rows)
		},
	}
	cmd.Flags().StringVar(&kind, "kind", "", "only of this kind")
	cmd.Flags().StringVar(&owner, "owner", "", "only of this owner")
	completeFlag(cmd, "kind", kindList())
	return cmd
}

func printPlugins(w io.Writer, rows []wire.PluginRow) error {
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, "PACK\tLATEST\tKIND\tDIALECT\tSTATE\tSUMMARY")
	for _, r := range rows {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", printable(r.ID), printable(r.LatestVersion), printable(r.Kind), printable(string(r.Dialect)), stateOf(r.Enabled, "", ""), printable(r.Summary))
	}
	return t.Flush()
}

// stateOf says whether jobs may use a version, and why not.
func stateOf(enabled bool, reason, revokedAt string) string {
	switch {
	case enabled:
		return "enabled"
	case revokedAt != "":
		return "revoked at " + revokedAt + because(reason)
	}
	return "disabled" + because(reason)
}

// because is a reason behind a colon, "" when nobody gave one.
func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + printable(reason)
}

// pluginInfo shows one version.
func (a app) pluginInfo() *cobra.Command {
	return &cobra.Command{
		Use: "info OWNER/NAME[@VERSION]", Short: "Show a version of a pack and what versions there are", Args: cobra.ExactArgs(1),
		ValidArgsFunction: a.completePlugins,
		RunE: func(cmd *cobra.Command, args []string) error {
			ref, err := parseRef(args[0])
			if err != nil {
				return err
			}
			c, _, err := a.env.client()
			if err != nil {
				return err
			}
			p, err := find(cmd.Context(), c, ref)
			if err != nil {
				return err
			}
			if a.opt.json {
				return a.env.writeJSON(p.Plugin)
			}
			return printPlugin(a.env.Out, p.Plugin, c.Host())
		},
	}
}

func printPlugin(w io.Writer, p wire.Plugin, host string) error {
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	for _, row := range [][2]string{
		{"pack", p.ID}, {"version", p.Version}, {"kind", p.Kind + " (" + string(p.Dialect) + ")"}, {"state", stateOf(p.Enabled, p.Reason, p.RevokedAt)},
		{"summary", p.Summary}, {"recipe", recipeNames(p)}, {"content", p.Digest}, {"tree", p.TreeDigest}, {"manifest", p.ManifestDigest},
		{"ref", host + "/" + p.Reference}, {"size", fmt.Sprintf("%d bytes packed, %d files", p.SizeBytes, p.Files)},
		{"published", p.CreatedAt + " by " + p.CreatedBy},
	} {
		if row[0] == "recipe" && row[1] == "" {
			continue // a pack of another kind
		}
		fmt.Fprintf(t, "%s\t%s\n", row[0], printable(row[1]))
	}
	fmt.Fprintln(t, "versions\t")
	for _, v := range p.Versions {
		fmt.Fprintf(t, "  %s\t%s  %s  %s\n", printable(v.Version), printable(stateOf(v.Enabled, v.Reason, v.RevokedAt)), printable(v.CreatedAt), printable(v.Digest))
	}
	return t.Flush()
}

// recipeNames is how jobs name the recipe of a recipe pack.
func recipeNames(p wire.Plugin) string {
	if p.RecipeAlias == "" {
		return p.Recipe
	}
	return p.Recipe + " (also " + p.RecipeAlias + ")"
}
