// Package cli is the command `sf`: one file a verb, over the packages that do the work. Results go to stdout, everything
// else to stderr; --json prints a result for programs; exit.go is the only place that maps errors to exit codes.
package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/gatehouse-registry/gatehouse/launchverify"
)

// Version is what the binary calls itself; the build sets it.
var Version = "dev"

// Main runs a command line and returns its exit code.
func Main(args, environ []string, in io.Reader, out, errOut io.Writer) int {
	if elevated() {
		io.WriteString(errOut, "sf: error: sf must not be installed set-uid or set-gid: its caller could steer what it runs with these rights\n")
		return exitError
	}
	if handled, code := launchverify.Stage(args); handled {
		return code
	}
	if len(args) > 0 && args[0] == "launch" {
		collectLate()
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	env := newEnv(environ, in, out, errOut)
	root, opt := newRoot(env, args)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if _, decided := errors.AsType[exitStatus](err); err != nil && !decided && ctx.Err() != nil {
		err = context.Canceled
	}
	report(env, opt.json, err)
	return exitCode(err)
}

// rootOptions are the flags that every command has.
type rootOptions struct{ json bool }

// newRoot builds the command tree, for the server and for launches without the other verbs: those are a part of how long it
// takes to start.
func newRoot(env *Env, args []string) (*cobra.Command, *rootOptions) {
	opt := &rootOptions{}
	root := &cobra.Command{
		Use:   "sf",
		Short: "A content-addressed registry for packs of ML training platforms, with three gates",
		Long: `sf is Gatehouse: it publishes packs to a registry, admits jobs that name them, and launches exactly
those bytes. The same binary is the server (sf serve), the client, and the launch agent (sf launch).`,
		SilenceUsage: true, SilenceErrors: true,
		Args: cobra.NoArgs,
	}
	root.SetIn(env.In)
	root.SetOut(env.Out)
	root.SetErr(env.Err)
	root.PersistentFlags().BoolVar(&opt.json, "json", false, "print the result as JSON")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	a := app{env: env, opt: opt}
	if alone := map[string]func() *cobra.Command{"serve": a.serve, "launch": a.launch}; len(args) > 0 && alone[args[0]] != nil {
		root.AddCommand(alone[args[0]]())
		finish(root)
		return root, opt
	}
	root.AddCommand(
		a.serve(), a.login(), a.logout(), a.whoami(), a.session(), a.passwd(),
		a.digest(), a.check(), a.rules(), a.admission(), a.plugin(), a.initProject(), a.newExperiment(), a.recipe(), a.validate(), a.submit(), a.job(), a.environment(), a.taskset(), a.rubric(), a.launch(), a.cache(), a.nodeVerbs(), a.runs(), a.admin(), a.mirror(), a.version(),
	)
	root.InitDefaultCompletionCmd()
	finish(root)
	return root, opt
}

// finish gives every command the exit codes in its help and turns mistakes in its arguments into usage errors. A command
// that only holds others shows its help.
func finish(c *cobra.Command) {
	if !c.Runnable() {
		c.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		c.DisableFlagsInUseLine = true
	}
	if c.Long == "" {
		c.Long = c.Short
	}
	c.Long += "\n" + exitHelp
	if check := c.Args; check != nil {
		c.Args = func(cmd *cobra.Command, args []string) error {
			if err := check(cmd, args); err != nil {
				return usageError{err}
			}
			return nil
		}
	}
	for _, sub := range c.Commands() {
		finish(sub)
	}
}

// app makes the commands; they share the environment and the root's flags.
type app struct {
	env *Env
	opt *rootOptions
}

// version prints what this binary is.
func (a app) version() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version of this binary", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if a.opt.json {
				return a.env.writeJSON(map[string]string{"version": Version})
			}
			_, err := io.WriteString(a.env.Out, "sf "+Version+"\n")
			return err
		},
	}
}
