package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gatehouse-registry/gatehouse/registry/client"
)

// login checks a token and keeps it.
func (a app) login() *cobra.Command {
	var token, document string
	cmd := &cobra.Command{
		Use:   "login SERVER [--token TOKEN | --oidc-token-file FILE]",
		Short: "Sign in at a server with a token",
		Long: `Sign in at a server. The token is checked and kept in the credentials file (mode 0600). Without --token it is read
from GATEHOUSE_TOKEN, else from the first line of standard input, so that it need not stand in a process list.

With --oidc-token-file a program shows the identity document that its platform gave it, and gets a short-lived token of the
robot that the registry's rules name.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			server := strings.TrimRight(args[0], "/")
			secret, err := a.loginSecret(cmd.Context(), server, token, document)
			if err != nil {
				return err
			}
			c, err := client.New(client.Options{Server: server, Token: secret, UserAgent: "gatehouse/" + Version})
			if err != nil {
				return err
			}
			user, err := c.Whoami(cmd.Context())
			if err != nil {
				return err
			}
			s, err := a.env.loadSessions()
			if err != nil {
				return err
			}
			s.Current, s.Servers[server] = server, session{Account: user.Username, Token: secret}
			if err := a.env.saveSessions(s); err != nil {
				return err
			}
			if a.opt.json {
				return a.env.writeJSON(map[string]string{"server": server, "account": user.Username, "role": string(user.Role)})
			}
			_, err = fmt.Fprintf(a.env.Out, "signed in at %s as %s (%s)\n", server, printable(user.Username), printable(string(user.Role)))
			return err
		},
	}
	cmd.Flags().StringVar(&token, "token", "", "the token")
	cmd.Flags().StringVar(&document, "oidc-token-file", "", "a file with the identity document (a JWT) of this program; - is standard input")
	return cmd
}

// loginSecret is the token to sign in with: the one that was given, or the one that an identity document is good for.
func (a app) loginSecret(ctx context.Context, server, token, document string) (string, error) {
	switch {
	case document == "":
		return a.secret(token)
	case token != "":
		return "", usagef("--token and --oidc-token-file are two ways to sign in: choose one")
	}
	text, err := a.readDocument(document)
	if err != nil {
		return "", err
	}
	c, err := client.New(client.Options{Server: server, UserAgent: "gatehouse/" + Version})
	if err != nil {
		return "", err
	}
	got, err := c.ExchangeWorkload(ctx, strings.TrimSpace(string(text)))
	return got.AccessToken, err
}

// maxIdentity bounds what is read of an identity document, in bytes.
const maxIdentity = 64 << 10

func (a app) readDocument(path string) ([]byte, error) {
	if path == "-" {
		return io.ReadAll(io.LimitReader(a.env.In, maxIdentity))
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxIdentity))
}

// secret takes the token from the flag, the environment, or standard input.
func (a app) secret(flag string) (string, error) {
	if flag != "" {
		return flag, nil
	}
	if token := a.env.Vars["GATEHOUSE_TOKEN"]; token != "" {
		return token, nil
	}
	if a.env.Terminal {
		fmt.Fprint(a.env.Err, "token: ")
	}
	line, err := bufio.NewReader(a.env.In).ReadString('\n')
	if token := strings.TrimSpace(line); token != "" {
		return token, nil
	}
	return "", usagef("no token: give --token, GATEHOUSE_TOKEN, or a line on standard input (%v)", err)
}

// logout forgets a sign-in. The token itself lives on until it is revoked.
func (a app) logout() *cobra.Command {
	return &cobra.Command{
		Use: "logout [SERVER]", Short: "Forget the sign-in at a server", Args: cobra.MaximumNArgs(1),
		Long: "Forget the sign-in at a server, the current one when none is named. The token stays valid until it is revoked.",
		RunE: func(_ *cobra.Command, args []string) error {
			s, err := a.env.loadSessions()
			if err != nil {
				return err
			}
			server := s.Current
			if len(args) == 1 {
				server = strings.TrimRight(args[0], "/")
			}
			delete(s.Servers, server)
			if s.Current == server {
				s.Current = ""
			}
			if err := a.env.saveSessions(s); err != nil {
				return err
			}
			if a.opt.json {
				return a.env.writeJSON(map[string]string{"server": server})
			}
			_, err = fmt.Fprintf(a.env.Out, "signed out of %s\n", server)
			return err
		},
	}
}

// whoami shows the account that the token is of.
func (a app) whoami() *cobra.Command {
	return &cobra.Command{
		Use: "whoami", Short: "Show who is signed in", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, _, err := a.env.client()
			if err != nil {
				return err
			}
			user, err := c.Whoami(cmd.Context())
			if err != nil {
				return err
			}
			if a.opt.json {
				return a.env.writeJSON(user)
			}
			_, err = fmt.Fprintf(a.env.Out, "%s (%s) at %s\n", printable(user.Username), printable(string(user.Role)), c.Server())
			return err
		},
	}
}
