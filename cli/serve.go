package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gatehouse-registry/gatehouse/registry/server"
)

// The values of --check-config.
const (
	checkDocument = "document" // what a bare --check-config means
	checkConnect  = "connect"
)

// serve runs the server.
func (a app) serve() *cobra.Command {
	var check string
	cmd := &cobra.Command{
		Use:   "serve --data DIR [--listen HOST:PORT]",
		Short: "Run the registry",
		Long: `Run the registry. Without --db and --blobs everything it keeps lies in the data directory, which it makes on the
first start; then it also makes the account admin and writes its token to DIR/admin-token (mode 0600). OCI
clients sign in with the account's name and a token as the password. While it runs, DIR/address holds the
address at which it answers.

Every setting is a flag, an environment variable (GATEHOUSE_LISTEN for --listen) and a key of DIR/gatehouse.yaml,
or the file that --config names; a flag wins over a variable, and that over the file. docs/config.md lists them.

The first SIGTERM or interrupt lets requests in flight finish (--drain-timeout); a second one ends at once.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := server.LoadConfig(server.Input{Flags: configFlags(cmd.Flags()), Env: a.env.Vars, Prefix: "--"})
			switch {
			case err != nil:
				return usageError{err}
			case check == "":
				return a.runServer(cmd, c)
			case check != checkDocument && check != checkConnect:
				return usagef("--check-config: %q is neither %s nor %s", check, checkDocument, checkConnect)
			}
			if err := c.Show(a.env.Out); err != nil || check == checkDocument {
				return err
			}
			return server.Probe(cmd.Context(), c)
		},
	}
	f := cmd.Flags()
	f.String("config", "", "the configuration file (default DIR/"+server.ConfigFile+")")
	f.StringVar(&check, "check-config", "", "check the configuration, print it, and end; with =connect also try the database, the store and the key")
	f.Lookup("check-config").NoOptDefVal = checkDocument
	for _, k := range server.Keys() {
		f.String(k.Flag(), "", k.Doc)
		if k.Default != "" && !k.Switch {
			f.Lookup(k.Flag()).Usage += " (default " + k.Default + ")"
		}
		if k.Switch {
			f.Lookup(k.Flag()).NoOptDefVal = "true"
		}
	}
	return cmd
}

// configFlags are the values of the flags that were given, by key.
func configFlags(f *pflag.FlagSet) map[string]string {
	given := map[string]string{}
	if flag := f.Lookup("config"); flag.Changed {
		given["config"] = flag.Value.String()
	}
	for _, k := range server.Keys() {
		if flag := f.Lookup(k.Flag()); flag.Changed {
			given[k.Name] = flag.Value.String()
		}
	}
	return given
}

func (a app) runServer(cmd *cobra.Command, c server.Config) (err error) {
	ctx := cmd.Context()
	// The first signal ended ctx; from then on a signal does what it does by itself.
	defer context.AfterFunc(ctx, func() { signal.Reset(os.Interrupt, syscall.SIGTERM) })()
	defer spareCollections()()
	s, err := server.Open(ctx, c, Version, server.NewLogger(a.env.Err, c, a.env.Terminal))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if s.Created() {
		fmt.Fprintf(a.env.Err, "sf: first start: the token of account admin is in %s\n", filepath.Join(c.Data, server.AdminTokenFile))
	}
	fmt.Fprintf(a.env.Err, "sf: serving %s at %s\n", c.Data, s.URL())
	return s.Run(ctx)
}

const (
	startGarbage = 400             // GOGC while the server starts
	startLength  = 2 * time.Second // and for how long
	// servingGarbage is GOGC from then on. What lives is a few dozen megabytes at most, and a submission makes a fifth of one: with
	// the usual 100 a fifth of the processor would go into collecting it. At rest all that is free is given back (package server).
	servingGarbage = 300
)

// spareCollections lets the heap grow for a moment: what a start leaves is small, and collecting it twice would take a fifth
// of the start. What the environment says of collections counts from the beginning. The function that it gives ends it.
func spareCollections() (end func()) {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return func() {}
	}
	debug.SetGCPercent(startGarbage)
	end = sync.OnceFunc(func() { debug.SetGCPercent(servingGarbage) })
	time.AfterFunc(startLength, end)
	return end
}
