package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/gatehouse-registry/gatehouse/registry/client"
)

// loginFlags are the ways to sign in.
type loginFlags struct {
	token, document string
	device, browser bool
}

// login signs in at a server and keeps what it gives.
func (a app) login() *cobra.Command {
	var f loginFlags
	cmd := &cobra.Command{
		Use:   "login SERVER [--browser | --device | --token TOKEN | --oidc-token-file FILE]",
		Short: "Sign in at a server",
		Long: `Sign in at a server. What it gives is kept in the credentials file (mode 0600) and renewed when it is needed.

In a terminal a browser is opened, at whose page you sign in and say yes. Without a display, or with --device, a code is shown
to be typed at a page of the server, in any browser.

A token is taken from --token, else from GATEHOUSE_TOKEN, else, where standard input is no terminal, from its first line, so
that it need not stand in a process list.

With --oidc-token-file a program shows the identity document that its platform gave it, and gets a short-lived token of the
robot that the registry's rules name.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			server := strings.TrimRight(args[0], "/")
			who, err := a.signIn(cmd.Context(), server, f)
			if err != nil {
				return err
			}
			c, err := client.New(client.Options{Server: server, Token: who.Token, UserAgent: "gatehouse/" + Version})
			if err != nil {
				return err
			}
			user, err := c.Whoami(cmd.Context())
			if err != nil {
				return err
			}
			who.Account = user.Username
			err = a.env.changeSessions(func(s *sessions) error {
				s.Current, s.Servers[server] = server, who
				return nil
			})
			if err != nil {
				return err
			}
			if a.opt.json {
				return a.env.writeJSON(map[string]string{"server": server, "account": user.Username, "role": string(user.Role)})
			}
			_, err = fmt.Fprintf(a.env.Out, "signed in at %s as %s (%s)\n", server, printable(user.Username), printable(string(user.Role)))
			return err
		},
	}
	cmd.Flags().StringVar(&f.token, "token", "", "the token")
	cmd.Flags().BoolVar(&f.device, "device", false, "show a code to be typed at a page of the server")
	cmd.Flags().BoolVar(&f.browser, "browser", false, "open a browser on this machine")
	cmd.Flags().StringVar(&f.document, "oidc-token-file", "", "a file with the identity document (a JWT) of this program; - is standard input")
	cmd.MarkFlagsMutuallyExclusive("token", "device", "browser", "oidc-token-file")
	return cmd
}

// signIn signs in the way that the flags say, or that suits where this runs.
func (a app) signIn(ctx context.Context, server string, f loginFlags) (session, error) {
	c, err := client.New(client.Options{Server: server, UserAgent: "gatehouse/" + Version})
	if err != nil {
		return session{}, err
	}
	person := a.env.interactive() && f.token == "" && f.document == "" && a.env.Vars["GATEHOUSE_TOKEN"] == ""
	switch {
	case f.device, person && !f.browser && !a.env.hasDisplay():
		return a.deviceSignIn(ctx, c)
	case f.browser, person:
		return a.browserSignIn(ctx, c)
	case f.document == "":
		secret, err := a.secret(f.token, "; or sign in with --device or --browser")
		return session{Token: secret}, err
	}
	text, err := a.readDocument(f.document)
	if err != nil {
		return session{}, err
	}
	got, err := c.ExchangeWorkload(ctx, strings.TrimSpace(string(text)))
	return session{Token: got.AccessToken}, err
}

// interactive reports whether a person types what the command reads.
func (e *Env) interactive() bool {
	f, ok := e.In.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
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

// secret takes the token from the flag, the environment, or standard input; otherwise says how else one may sign in.
func (a app) secret(flag, otherwise string) (string, error) {
	if flag != "" {
		return flag, nil
	}
	if token := a.env.Vars["GATEHOUSE_TOKEN"]; token != "" {
		return token, nil
	}
	line, err := bufio.NewReader(a.env.In).ReadString('\n')
	if token := strings.TrimSpace(line); token != "" {
		return token, nil
	}
	return "", usagef("no token: give --token, GATEHOUSE_TOKEN, or a line on standard input (%v)%s", err, otherwise)
}

// logout ends a sign-in.
func (a app) logout() *cobra.Command {
	return &cobra.Command{
		Use: "logout [SERVER]", Short: "End the sign-in at a server", Args: cobra.MaximumNArgs(1),
		Long: `End the sign-in at a server, the current one when none is named: the session ends there and is forgotten here. A token
that was given to sf login is only forgotten; it stays valid until it is revoked.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			var server string
			var who session
			err := a.env.changeSessions(func(s *sessions) error {
				if server = s.Current; len(args) == 1 {
					server = strings.TrimRight(args[0], "/")
				}
				who = s.Servers[server]
				delete(s.Servers, server)
				if s.Current == server {
					s.Current = ""
				}
				return nil
			})
			if err != nil {
				return err
			}
			if who.Refresh != "" {
				if err := endSession(cmd.Context(), server, who.Refresh); err != nil {
					return fmt.Errorf("the sign-in is forgotten here, but the session may live on at %s (sf session ls): %w", server, err)
				}
			}
			if a.opt.json {
				return a.env.writeJSON(map[string]string{"server": server})
			}
			_, err = fmt.Fprintf(a.env.Out, "signed out of %s\n", server)
			return err
		},
	}
}

func endSession(ctx context.Context, server, token string) error {
	c, err := client.New(client.Options{Server: server, UserAgent: "gatehouse/" + Version})
	if err != nil {
		return err
	}
	return c.EndSession(ctx, token)
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
