package cli

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/gatehouse-registry/gatehouse/registry/server"
)

// serve runs the server.
func (a app) serve() *cobra.Command {
	var data, listen, config, public string
	cmd := &cobra.Command{
		Use:   "serve --data DIR [--listen HOST:PORT]",
		Short: "Run the registry with its data in one directory",
		Long: `Run the registry. Everything it keeps lies in the data directory, which it makes on the first start; then it
also makes the account admin and writes its token to DIR/admin-token (mode 0600). OCI clients sign in with the
account's name and a token as the password. Settings come from DIR/gatehouse.yaml, or the file that --config
names. While it runs, DIR/address holds the address at which it answers.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if data == "" {
				return usagef("--data is required: the directory that the registry keeps everything in")
			}
			path, optional := config, false
			if path == "" {
				path, optional = filepath.Join(data, server.ConfigFile), true
			}
			c, err := server.LoadConfig(path, optional)
			if err != nil {
				return err
			}
			c.Data = data
			if listen != "" {
				c.Listen = listen
			}
			if public != "" {
				c.PublicURL = public
			}
			return a.runServer(cmd, c)
		},
	}
	f := cmd.Flags()
	f.StringVar(&data, "data", "", "the data directory")
	f.StringVar(&listen, "listen", "", "the address to listen at (default "+server.DefaultListen+"); port 0 picks a free one")
	f.StringVar(&config, "config", "", "the configuration file (default DIR/"+server.ConfigFile+")")
	f.StringVar(&public, "public-url", "", "the address that is handed out to clients")
	return cmd
}

func (a app) runServer(cmd *cobra.Command, c server.Config) (err error) {
	handler := slog.Handler(slog.NewJSONHandler(a.env.Err, nil))
	if a.env.Terminal {
		handler = slog.NewTextHandler(a.env.Err, nil)
	}
	s, err := server.Open(cmd.Context(), c, Version, slog.New(handler))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if s.Created() {
		fmt.Fprintf(a.env.Err, "sf: first start: the token of account admin is in %s\n", filepath.Join(c.Data, server.AdminTokenFile))
	}
	fmt.Fprintf(a.env.Err, "sf: serving %s at %s\n", c.Data, s.URL())
	return s.Run(cmd.Context())
}
