package cli

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/gatehouse-registry/gatehouse/registry/api/wire"
)

// session holds what a user does about sign-ins that last.
func (a app) session() *cobra.Command {
	cmd := &cobra.Command{Use: "session", Short: "Sign-ins that last: list them, end them", Args: cobra.NoArgs}
	cmd.AddCommand(a.sessionList(), a.sessionRevoke())
	return cmd
}

func (a app) sessionList() *cobra.Command {
	var account string
	var all bool
	cmd := &cobra.Command{
		Use: "ls [--account NAME | --all]", Short: "List one's sessions; administrators those of others", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, _, err := a.env.client()
			if err != nil {
				return err
			}
			list, err := c.Sessions(cmd.Context(), account, all)
			if err != nil {
				return err
			}
			if a.opt.json {
				return a.env.writeJSON(list)
			}
			t := tabwriter.NewWriter(a.env.Out, 0, 4, 2, ' ', 0)
			fmt.Fprintln(t, "ID\tACCOUNT\tKIND\tDEVICE\tCLIENT\tFROM\tUSED\tEXPIRES\t")
			for _, s := range list {
				current := ""
				if s.Current {
					current = "this one"
				}
				fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", printable(s.ID), printable(s.Account), printable(s.Kind), printable(s.Device.Name),
					printable(s.Device.Client+" "+s.Device.Version), printable(s.Remote), printable(s.UsedAt), printable(s.ExpiresAt), current)
			}
			return t.Flush()
		},
	}
	cmd.Flags().StringVar(&account, "account", "", "of this account (administrators)")
	cmd.Flags().BoolVar(&all, "all", false, "of every account (administrators)")
	cmd.MarkFlagsMutuallyExclusive("account", "all")
	return cmd
}

func (a app) sessionRevoke() *cobra.Command {
	return &cobra.Command{
		Use: "revoke ID", Short: "End a session, with its tokens", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, _, err := a.env.client()
			if err != nil {
				return err
			}
			if err := c.RevokeSession(cmd.Context(), args[0]); err != nil {
				return err
			}
			if a.opt.json {
				return a.env.writeJSON(map[string]string{"id": args[0]})
			}
			_, err = fmt.Fprintf(a.env.Out, "session %s has ended\n", printable(args[0]))
			return err
		},
	}
}

// passwd changes a password.
func (a app) passwd() *cobra.Command {
	var account string
	cmd := &cobra.Command{
		Use: "passwd [--account NAME]", Short: "Change one's password", Args: cobra.NoArgs,
		Long: `Change one's password, or set the first one. Administrators set that of another account with --account. The account's
other sessions end.

The present password, where there is one, and the new one are asked for; without a terminal they are the lines of standard
input, in this order.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, _, err := a.env.client()
			if err != nil {
				return err
			}
			user, err := c.Whoami(cmd.Context())
			if err != nil {
				return err
			}
			in := wire.NewPassword{Username: account}
			lines := bufio.NewReader(a.env.In)
			if account == "" || account == user.Username {
				if user.AuthSource == "password" {
					if in.Old, err = a.password(lines, "present password: "); err != nil {
						return err
					}
				}
			}
			if in.New, err = a.password(lines, "new password: "); err != nil {
				return err
			}
			if a.env.interactive() {
				again, err := a.password(lines, "new password, again: ")
				if err != nil {
					return err
				}
				if again != in.New {
					return usagef("the two new passwords differ")
				}
			}
			if err := c.ChangePassword(cmd.Context(), in); err != nil {
				return err
			}
			name := user.Username
			if account != "" {
				name = account
			}
			if a.opt.json {
				return a.env.writeJSON(map[string]string{"account": name})
			}
			_, err = fmt.Fprintf(a.env.Out, "the password of %s is changed\n", printable(name))
			return err
		},
	}
	cmd.Flags().StringVar(&account, "account", "", "of this account (administrators)")
	return cmd
}

// password reads one without showing it, or a line where no person types.
func (a app) password(lines *bufio.Reader, prompt string) (string, error) {
	if a.env.interactive() {
		fmt.Fprint(a.env.Err, prompt)
		text, err := term.ReadPassword(int(a.env.In.(*os.File).Fd()))
		fmt.Fprintln(a.env.Err)
		return string(text), err
	}
	line, err := lines.ReadString('\n')
	if line = strings.TrimRight(line, "\r\n"); line == "" {
		return "", usagef("%s a line is missing on standard input (%v)", strings.TrimSpace(prompt), err)
	}
	return line, nil
}
