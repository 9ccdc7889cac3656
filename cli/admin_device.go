package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gatehouse-registry/gatehouse/registry/api/wire"
)

// device holds what administrators do about sign-ins of devices.
func (a app) device() *cobra.Command {
	cmd := &cobra.Command{Use: "device", Short: "Sign-ins of devices that wait for an approval", Args: cobra.NoArgs}
	cmd.AddCommand(a.deviceApprove())
	return cmd
}

func (a app) deviceApprove() *cobra.Command {
	var in wire.ApproveDevice
	cmd := &cobra.Command{
		Use: "approve CODE --as ACCOUNT", Short: "Sign the device that shows a code in as an account", Args: cobra.ExactArgs(1),
		Long: `Sign the device that shows a code in as an account, for automation where nobody is there to do it at the page. It is
recorded in the audit log. The device can do all that the account may until its session ends.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if in.Account == "" {
				return usagef("--as: name the account")
			}
			c, _, err := a.env.client()
			if err != nil {
				return err
			}
			in.Code = args[0]
			got, err := c.ApproveDevice(cmd.Context(), in)
			if err != nil {
				return err
			}
			if a.opt.json {
				return a.env.writeJSON(got)
			}
			_, err = fmt.Fprintf(a.env.Out, "%s (%s %s, from %s) is signed in as %s\n", printable(got.Device.Name), printable(got.Device.Client), printable(got.Device.Version), printable(got.Remote), printable(got.Account))
			return err
		},
	}
	cmd.Flags().StringVar(&in.Account, "as", "", "the account")
	return cmd
}
