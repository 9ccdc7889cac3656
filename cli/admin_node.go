package cli

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/gatehouse-registry/gatehouse/registry/api/wire"
)

// adminNode makes, lists and removes nodes.
func (a app) adminNode() *cobra.Command {
	cmd := &cobra.Command{Use: "node", Short: "Nodes: machines whose launch agent says what it launched", Args: cobra.NoArgs}
	cmd.AddCommand(a.adminNodeAdd(), a.adminNodeList(), a.adminNodeRotate(), a.adminNodeRemove())
	return cmd
}

func (a app) adminNodeAdd() *cobra.Command {
	return &cobra.Command{
		Use: "add NAME", Aliases: []string{"create"}, Short: "Make a node and print its token, once",
		Long: `Make a node and print the token with which that machine joins (sf node join). The token reads nothing but the registry's key, the
list of revoked versions, and what the receipts of jobs name, by digest; it writes nothing but records of runs. A node that
was removed is let in again, without the keys that it had.`,
		Example: "  sf admin node add gpu-17",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, _, err := a.env.client()
			if err != nil {
				return err
			}
			n, err := c.CreateNode(cmd.Context(), args[0])
			return a.showNodeToken(n, c.Server(), err)
		},
	}
}

func (a app) adminNodeRotate() *cobra.Command {
	return &cobra.Command{
		Use: "rotate NAME", Short: "Give a node another token and end the one that it has", Args: cobra.ExactArgs(1),
		Long: `Give a node another token and end the one that it has, with every grant that was made with it. The node's keys stay. Until it
has joined again with the new token, what it records waits on its disk.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, _, err := a.env.client()
			if err != nil {
				return err
			}
			n, err := c.RotateNode(cmd.Context(), args[0])
			return a.showNodeToken(n, c.Server(), err)
		},
	}
}

// showNodeToken prints a node's new token.
func (a app) showNodeToken(n wire.Node, server string, err error) error {
	if err != nil {
		return err
	}
	if a.opt.json {
		return a.env.writeJSON(n)
	}
	fmt.Fprintf(a.env.Err, "node %s; on it: sf node join %s\n", printable(n.Name), printable(server))
	_, err = fmt.Fprintln(a.env.Out, n.Secret)
	return err
}

func (a app) adminNodeList() *cobra.Command {
	return &cobra.Command{
		Use: "ls", Short: "List the nodes", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, _, err := a.env.client()
			if err != nil {
				return err
			}
			nodes, err := c.Nodes(cmd.Context())
			if err != nil {
				return err
			}
			if a.opt.json {
				return a.env.writeJSON(nodes)
			}
			w := tabwriter.NewWriter(a.env.Out, 0, 4, 2, ' ', 0)
			fmt.Fprintln(w, "NODE\tSINCE\tBY\tKEYS\tNEWEST KEY")
			for _, n := range nodes {
				newest := ""
				if len(n.Keys) > 0 {
					newest = n.Keys[len(n.Keys)-1].ID
				}
				fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\n", printable(n.Name), printable(n.CreatedAt), printable(n.CreatedBy), len(n.Keys), orDash(printable(newest)))
			}
			return w.Flush()
		},
	}
}

func (a app) adminNodeRemove() *cobra.Command {
	return &cobra.Command{
		Use: "rm NAME", Short: "Lock a node out; what it recorded stays", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, _, err := a.env.client()
			if err != nil {
				return err
			}
			return c.DeleteNode(cmd.Context(), args[0])
		},
	}
}
