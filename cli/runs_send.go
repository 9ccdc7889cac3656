package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gatehouse-registry/gatehouse/launchverify/runspool"
)

// runsSend sends what this node's launches could not.
func (a app) runsSend() *cobra.Command {
	var state string
	var rejected bool
	cmd := &cobra.Command{
		Use: "send", Short: "Send what this node's launches could not tell the registry", Args: cobra.NoArgs,
		Long: `Send the statements in this node's spool to the registry that it joined, the oldest first. Every launch does that too; a timer
with this command catches up on a node that launches nothing for long. What the registry would not take before is tried
again with --rejected. It fails while anything is left.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			n, err := a.env.node(state)
			if err != nil {
				return err
			}
			spool, err := runspool.Open(n.Spool(), runspool.Limits{})
			if err != nil {
				return err
			}
			c, err := nodeClient(n, 0)
			if err != nil {
				return err
			}
			did, err := spool.Send(cmd.Context(), rejected, func(ctx context.Context, envelope []byte) error {
				return sendRun(ctx, c, envelope)
			})
			if a.opt.json {
				if jsonErr := a.env.writeJSON(map[string]int{"sent": did.Sent, "rejected": did.Rejected, "left": did.Left}); jsonErr != nil {
					return jsonErr
				}
			} else if _, printErr := fmt.Fprintf(a.env.Out, "sent %d, rejected %d, left %d\n", did.Sent, did.Rejected, did.Left); printErr != nil {
				return printErr
			}
			return err
		},
	}
	addNodeState(cmd, &state, "node-state")
	cmd.Flags().BoolVar(&rejected, "rejected", false, "try what the registry would not take before, too")
	return cmd
}
