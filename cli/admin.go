package cli

import (
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/gatehouse-registry/gatehouse/registry/api/wire"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
)

// admin holds what administrators do.
func (a app) admin() *cobra.Command {
	cmd := &cobra.Command{Use: "admin", Short: "Administer a registry: accounts, tokens, its key, its catalogue", Args: cobra.NoArgs}
	account := &cobra.Command{Use: "account", Short: "Accounts", Args: cobra.NoArgs}
	account.AddCommand(a.accountCreate(), a.accountList(), a.accountDisable(), a.accountQuota())
	token := &cobra.Command{Use: "token", Short: "Tokens", Args: cobra.NoArgs}
	token.AddCommand(a.tokenCreate(), a.tokenList(), a.tokenRevoke())
	key := &cobra.Command{Use: "key", Short: "The key that signs receipts", Args: cobra.NoArgs}
	key.AddCommand(a.keyShow())
	cmd.AddCommand(a.backup(), a.restore(), a.migrate(), a.readOnly())
	cmd.AddCommand(a.device(), a.robot(), a.adminNode(), a.repositoryAccess(), a.namespace())
	cmd.AddCommand(a.gc(), a.fsck(), a.scrub(), a.quota(), a.handover(), a.jobReport())
	cmd.AddCommand(account, token, key, a.catalog())
	return cmd
}

func (a app) accountCreate() *cobra.Command {
	var in wire.NewUser
	var role string
	cmd := &cobra.Command{
		Use: "create NAME [--role ROLE] [--email EMAIL]", Short: "Add an account", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, _, err := a.env.client()
			if err != nil {
				return err
			}
			in.Username, in.Role = args[0], auth.Role(role)
			user, err := c.CreateAccount(cmd.Context(), in)
			if err != nil {
				return err
			}
			if a.opt.json {
				return a.env.writeJSON(user)
			}
			_, err = fmt.Fprintf(a.env.Out, "account %s (%s)\n", user.Username, user.Role)
			return err
		},
	}
	cmd.Flags().StringVar(&role, "role", string(auth.Operator), "admin, operator, auditor or viewer")
	cmd.Flags().StringVar(&in.Email, "email", "", "an address to reach its owner at")
	return cmd
}

func (a app) accountList() *cobra.Command {
	return &cobra.Command{
		Use: "ls", Short: "List accounts", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, _, err := a.env.client()
			if err != nil {
				return err
			}
			users, err := c.Accounts(cmd.Context())
			if err != nil {
				return err
			}
			if a.opt.json {
				return a.env.writeJSON(users)
			}
			t := tabwriter.NewWriter(a.env.Out, 0, 4, 2, ' ', 0)
			fmt.Fprintln(t, "ACCOUNT\tROLE\tSTATE\tEMAIL")
			for _, u := range users {
				state := "active"
				if u.Disabled {
					state = "disabled"
				}
				fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", printable(u.Username), printable(string(u.Role)), state, printable(u.Email))
			}
			return t.Flush()
		},
	}
}

func (a app) accountDisable() *cobra.Command {
	var enable bool
	cmd := &cobra.Command{
		Use: "disable NAME [--undo]", Short: "Lock an account out, or let it in again", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, _, err := a.env.client()
			if err != nil {
				return err
			}
			user, err := c.SetDisabled(cmd.Context(), args[0], !enable)
			if err != nil {
				return err
			}
			if a.opt.json {
				return a.env.writeJSON(user)
			}
			state := "disabled"
			if !user.Disabled {
				state = "active"
			}
			_, err = fmt.Fprintf(a.env.Out, "account %s is %s\n", user.Username, state)
			return err
		},
	}
	cmd.Flags().BoolVar(&enable, "undo", false, "let the account in again")
	return cmd
}

func (a app) tokenCreate() *cobra.Command {
	var in wire.NewToken
	var ttl time.Duration
	cmd := &cobra.Command{
		Use: "create [ACCOUNT] [--label TEXT] [--ttl DURATION]", Short: "Make a token, of one's own account unless one is named", Args: cobra.MaximumNArgs(1),
		Long: "Make a token and print it. It is shown this once; the registry keeps only its hash.",
		RunE: func(cmd *cobra.Command, args []string) error {
			c, _, err := a.env.client()
			if err != nil {
				return err
			}
			if len(args) == 1 {
				in.Account = args[0]
			}
			in.ExpiresIn = int64(ttl / time.Second)
			t, err := c.CreateToken(cmd.Context(), in)
			if err != nil {
				return err
			}
			if a.opt.json {
				return a.env.writeJSON(t)
			}
			_, err = fmt.Fprintln(a.env.Out, t.Secret)
			return err
		},
	}
	cmd.Flags().StringVar(&in.Label, "label", "", "what the token is for")
	cmd.Flags().DurationVar(&ttl, "ttl", 0, "how long it is valid, such as 720h; 0 is for ever")
	return cmd
}

func (a app) tokenList() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use: "ls [ACCOUNT] [--all]", Short: "List tokens, of one's own account unless one is named", Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, who, err := a.env.client()
			if err != nil {
				return err
			}
			account := who.Account
			if len(args) == 1 {
				account = args[0]
			}
			if all {
				account = ""
			}
			tokens, err := c.Tokens(cmd.Context(), account)
			if err != nil {
				return err
			}
			if a.opt.json {
				return a.env.writeJSON(tokens)
			}
			w := tabwriter.NewWriter(a.env.Out, 0, 4, 2, ' ', 0)
			fmt.Fprintln(w, "ID\tACCOUNT\tSTATE\tEXPIRES\tLABEL")
			for _, t := range tokens {
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", printable(t.ID), printable(t.Account), tokenState(t), orDash(printable(t.ExpiresAt)), printable(t.Label))
			}
			return w.Flush()
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "of all accounts")
	return cmd
}

func tokenState(t wire.Token) string {
	if t.Revoked {
		return "revoked"
	}
	return "active"
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func (a app) tokenRevoke() *cobra.Command {
	return &cobra.Command{
		Use: "revoke ID", Short: "End a token", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, _, err := a.env.client()
			if err != nil {
				return err
			}
			if err := c.RevokeToken(cmd.Context(), args[0]); err != nil {
				return err
			}
			if a.opt.json {
				return a.env.writeJSON(map[string]string{"id": args[0], "state": "revoked"})
			}
			_, err = fmt.Fprintf(a.env.Out, "token %s is revoked\n", args[0])
			return err
		},
	}
}

func (a app) keyShow() *cobra.Command {
	return &cobra.Command{
		Use: "show", Short: "Print the public key and the id of the registry, as sf launch --trust reads them", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, _, err := a.env.client()
			if err != nil {
				return err
			}
			text, err := c.Trust(cmd.Context())
			if err != nil {
				return err
			}
			if a.opt.json {
				return a.env.writeJSON(map[string]string{"trust": string(text)})
			}
			_, err = a.env.Out.Write(text)
			return err
		},
	}
}
