package cli

import (
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/gatehouse-registry/gatehouse/registry"
)

// quota shows and sets what owners may hold.
func (a app) quota() *cobra.Command {
	cmd := &cobra.Command{Use: "quota", Short: "What owners hold and may hold", Args: cobra.NoArgs}
	cmd.AddCommand(a.quotaList(), a.quotaShow(), a.quotaSet())
	return cmd
}

func (a app) quotaList() *cobra.Command {
	return &cobra.Command{
		Use: "ls", Short: "List owners with what they hold and may hold", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, _, err := a.env.client()
			if err != nil {
				return err
			}
			all := []registry.OwnerLimit{}
			for after := ""; ; after = all[len(all)-1].Owner {
				page, err := c.Owners(cmd.Context(), after)
				if err != nil {
					return err
				}
				if all = append(all, page...); len(page) == 0 {
					break
				}
			}
			return a.showQuotas(all, all)
		},
	}
}

func (a app) quotaShow() *cobra.Command {
	return &cobra.Command{
		Use: "show OWNER", Short: "Show what an owner holds and may hold", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, _, err := a.env.client()
			if err != nil {
				return err
			}
			l, err := c.OwnerQuota(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return a.showQuotas([]registry.OwnerLimit{l}, l)
		},
	}
}

func (a app) quotaSet() *cobra.Command {
	var bytes string
	var q registry.Quota
	var standard bool
	cmd := &cobra.Command{
		Use: "set OWNER [--bytes N] [--versions N] [--manifests N] | --default", Short: "Give an owner a limit of its own, or take it away", Args: cobra.ExactArgs(1),
		Long: `Give an owner a limit of its own in place of the registry's. What is not named has no limit. The owner need not exist yet. An
owner that holds more than its new limit keeps everything, and may add nothing until it holds less.`,
		Example: "  sf admin quota set team-a --bytes 500GiB --versions 1000",
		RunE: func(cmd *cobra.Command, args []string) error {
			set := cmd.Flags().Changed("bytes") || cmd.Flags().Changed("versions") || cmd.Flags().Changed("manifests")
			if set == standard {
				return usagef("give --bytes, --versions or --manifests, or else --default")
			}
			var err error
			if q.Bytes, err = parseBytes(bytes); err != nil {
				return usagef("--bytes: %w", err)
			}
			c, _, err := a.env.client()
			if err != nil {
				return err
			}
			own := &q
			if standard {
				own = nil
			}
			l, err := c.SetOwnerQuota(cmd.Context(), args[0], own)
			if err != nil {
				return err
			}
			return a.showQuotas([]registry.OwnerLimit{l}, l)
		},
	}
	cmd.Flags().StringVar(&bytes, "bytes", "0", "bytes, such as 500GiB")
	cmd.Flags().Int64Var(&q.Versions, "versions", 0, "versions of packs")
	cmd.Flags().Int64Var(&q.Manifests, "manifests", 0, "manifests in all repositories")
	cmd.Flags().BoolVar(&standard, "default", false, "the registry's limit counts again")
	return cmd
}

// showQuotas prints a table to people and asJSON to programs.
func (a app) showQuotas(list []registry.OwnerLimit, asJSON any) error {
	if a.opt.json {
		return a.env.writeJSON(asJSON)
	}
	t := tabwriter.NewWriter(a.env.Out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, "OWNER\tBYTES\tVERSIONS\tMANIFESTS\tLIMIT")
	for _, l := range list {
		source := "own"
		if l.Default {
			source = "default"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", printable(l.Owner), share(l.Bytes, l.Limit.Bytes), share(l.Versions, l.Limit.Versions), share(l.Manifests, l.Limit.Manifests), source)
	}
	return t.Flush()
}

// share is what is used of a limit, where there is one.
func share(used, limit int64) string {
	if limit == 0 {
		return strconv.FormatInt(used, 10)
	}
	return fmt.Sprintf("%d of %d", used, limit)
}

// parseBytes reads a number of bytes with an optional unit: KiB, MiB, GiB or TiB.
func parseBytes(text string) (int64, error) {
	number, shift := text, 0
	for i, unit := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if rest, ok := strings.CutSuffix(text, unit); ok {
			number, shift = strings.TrimSpace(rest), 10*(i+1)
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 0 || n > 1<<62>>shift {
		return 0, fmt.Errorf("%q is no number of bytes (such as 1000000, 500GiB)", text)
	}
	return n << shift, nil
}
