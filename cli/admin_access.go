package cli

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/gatehouse-registry/gatehouse/registry/api/wire"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
)

// robot makes, lists and ends the accounts of programs.
func (a app) robot() *cobra.Command {
	cmd := &cobra.Command{Use: "robot", Short: "Robots: accounts for programs, within scopes and for a time", Args: cobra.NoArgs}
	cmd.AddCommand(a.robotCreate(), a.robotList(), a.robotDelete())
	return cmd
}

func (a app) robotCreate() *cobra.Command {
	var in wire.NewRobot
	var scopes []string
	var ttl time.Duration
	cmd := &cobra.Command{
		Use:   "create NAME --scope PATTERN:ACTIONS --ttl DURATION",
		Short: "Make a robot and print its secret, once",
		Long: `Make a robot of the own account, or of --owner for an administrator. It signs in as OWNER+NAME with the secret that is printed,
and may do what its scopes allow and its owner may. A scope is a pattern of repositories (team/app, team/*, team/**, **) and,
behind a colon, some of pull, push and delete. An administrator's robot that runs jobs reports their states with the action
report, for the jobs of an account (alice/*) or all (**).`,
		Example: "  sf admin robot create ci --scope 'alice/**:pull,push' --ttl 720h",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, _, err := a.env.client()
			if err != nil {
				return err
			}
			in.Name, in.ExpiresIn = args[0], int64(ttl/time.Second)
			if in.Scopes, err = parseScopes(scopes); err != nil {
				return err
			}
			r, err := c.CreateRobot(cmd.Context(), in)
			if err != nil {
				return err
			}
			if a.opt.json {
				return a.env.writeJSON(r)
			}
			fmt.Fprintf(a.env.Err, "robot %s, until %s\n", printable(r.Name), printable(r.ExpiresAt))
			_, err = fmt.Fprintln(a.env.Out, r.Secret)
			return err
		},
	}
	cmd.Flags().StringArrayVar(&scopes, "scope", nil, "PATTERN:ACTIONS; may come more than once")
	cmd.Flags().DurationVar(&ttl, "ttl", 0, "how long it lives, such as 720h")
	cmd.Flags().StringVar(&in.Owner, "owner", "", "whose robot it is; the own account unless named")
	cmd.Flags().StringVar(&in.Description, "description", "", "what it is for")
	return cmd
}

// parseScopes reads PATTERN:ACTIONS.
func parseScopes(texts []string) ([]auth.Scope, error) {
	var scopes []auth.Scope
	for _, text := range texts {
		pattern, actions, ok := strings.Cut(text, ":")
		if !ok {
			return nil, usagef("--scope: %.100q is no PATTERN:ACTIONS, such as alice/**:pull,push", text)
		}
		s := auth.Scope{Repository: pattern}
		for verb := range strings.SplitSeq(actions, ",") {
			s.Actions = append(s.Actions, auth.Verb(verb))
		}
		scopes = append(scopes, s)
	}
	if err := auth.CheckScopes(scopes); err != nil {
		return nil, usagef("%v", err)
	}
	return scopes, nil
}

func (a app) robotList() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use: "ls [OWNER] [--all]", Short: "List robots, of one's own account unless one is named", Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, _, err := a.env.client()
			if err != nil {
				return err
			}
			owner := ""
			if len(args) == 1 {
				owner = args[0]
			}
			robots, err := c.Robots(cmd.Context(), owner, all)
			if err != nil {
				return err
			}
			if a.opt.json {
				return a.env.writeJSON(robots)
			}
			w := tabwriter.NewWriter(a.env.Out, 0, 4, 2, ' ', 0)
			fmt.Fprintln(w, "ROBOT\tEXPIRES\tSCOPES\tDESCRIPTION")
			for _, r := range robots {
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", printable(r.Name), printable(r.ExpiresAt), printable(scopesText(r.Scopes)), orDash(printable(r.Description)))
			}
			return w.Flush()
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "of all accounts")
	return cmd
}

func scopesText(scopes []auth.Scope) string {
	words := make([]string, len(scopes))
	for i, s := range scopes {
		verbs := make([]string, len(s.Actions))
		for j, v := range s.Actions {
			verbs[j] = string(v)
		}
		words[i] = s.Repository + ":" + strings.Join(verbs, ",")
	}
	return strings.Join(words, " ")
}

func (a app) robotDelete() *cobra.Command {
	return &cobra.Command{
		Use: "rm OWNER+NAME", Short: "End a robot and all its tokens", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, _, err := a.env.client()
			if err != nil {
				return err
			}
			if err := c.DeleteRobot(cmd.Context(), args[0]); err != nil {
				return err
			}
			if a.opt.json {
				return a.env.writeJSON(map[string]string{"name": args[0], "state": "deleted"})
			}
			_, err = fmt.Fprintf(a.env.Out, "robot %s is gone\n", printable(args[0]))
			return err
		},
	}
}

// repositoryAccess shows or changes who may read a repository.
func (a app) repositoryAccess() *cobra.Command {
	var private, public bool
	var readers []string
	cmd := &cobra.Command{
		Use:   "repository NAME [--private|--public] [--reader ACCOUNT]",
		Short: "Show or change who may read a repository",
		Long: `Show who may read a repository, or change it. A private repository is read by its owner, the owner's robots, administrators,
auditors and the accounts that --reader lists; to everybody else it does not exist. --reader replaces the list; --reader ''
empties it. A repository that does not exist yet is made, so that it can be private before the first push.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if private && public {
				return usagef("--private and --public say the opposite of each other")
			}
			c, _, err := a.env.client()
			if err != nil {
				return err
			}
			var change wire.RepositoryAccess
			if private || public {
				change.Private = &private
			}
			if cmd.Flags().Changed("reader") {
				list := []string{}
				for _, r := range readers {
					if r != "" {
						list = append(list, r)
					}
				}
				change.Readers = &list
			}
			var now wire.RepositoryAccess
			if change.Private == nil && change.Readers == nil {
				now, err = c.RepositoryAccess(cmd.Context(), args[0])
			} else {
				now, err = c.SetRepositoryAccess(cmd.Context(), args[0], change)
			}
			if err != nil {
				return err
			}
			return a.printAccess(now)
		},
	}
	cmd.Flags().BoolVar(&private, "private", false, "only for its owner and readers")
	cmd.Flags().BoolVar(&public, "public", false, "for every account")
	cmd.Flags().StringSliceVar(&readers, "reader", nil, "accounts that may read it while it is private")
	return cmd
}

func (a app) printAccess(r wire.RepositoryAccess) error {
	if a.opt.json {
		return a.env.writeJSON(r)
	}
	state := "readable by every account"
	if r.Private != nil && *r.Private {
		state = "private"
		if r.Readers != nil && len(*r.Readers) > 0 {
			state += ", read by " + strings.Join(*r.Readers, ", ")
		}
	}
	_, err := fmt.Fprintf(a.env.Out, "%s, of %s: %s\n", printable(r.Name), printable(r.Owner), printable(state))
	return err
}

// namespace gives names to owners.
func (a app) namespace() *cobra.Command {
	cmd := &cobra.Command{Use: "namespace", Short: "Owners of repositories whose name does not begin with theirs", Args: cobra.NoArgs}
	cmd.AddCommand(a.namespaceSet(), a.namespaceList(), a.namespaceDelete())
	return cmd
}

func (a app) namespaceSet() *cobra.Command {
	var n wire.Namespace
	cmd := &cobra.Command{
		Use: "set PATTERN OWNER", Short: "Give the repositories of a pattern (alpine, team/**) to an account", Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, _, err := a.env.client()
			if err != nil {
				return err
			}
			n.Pattern, n.Owner = args[0], args[1]
			set, err := c.SetNamespace(cmd.Context(), n)
			if err != nil {
				return err
			}
			if a.opt.json {
				return a.env.writeJSON(set)
			}
			_, err = fmt.Fprintf(a.env.Out, "%s belongs to %s\n", printable(set.Pattern), printable(set.Owner))
			return err
		},
	}
	cmd.Flags().BoolVar(&n.TakeFromAccount, "take-from-account", false, "also where the names are those of another account, or of all (**)")
	return cmd
}

func (a app) namespaceList() *cobra.Command {
	return &cobra.Command{
		Use: "ls", Short: "List the names that were given to owners", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, _, err := a.env.client()
			if err != nil {
				return err
			}
			list, err := c.Namespaces(cmd.Context())
			if err != nil {
				return err
			}
			if a.opt.json {
				return a.env.writeJSON(list)
			}
			w := tabwriter.NewWriter(a.env.Out, 0, 4, 2, ' ', 0)
			fmt.Fprintln(w, "PATTERN\tOWNER\tSINCE\tBY")
			for _, n := range list {
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", printable(n.Pattern), printable(n.Owner), printable(n.CreatedAt), printable(n.CreatedBy))
			}
			return w.Flush()
		},
	}
}

func (a app) namespaceDelete() *cobra.Command {
	return &cobra.Command{
		Use: "rm PATTERN", Short: "Take the owner off a pattern; repositories that exist keep theirs", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, _, err := a.env.client()
			if err != nil {
				return err
			}
			if err := c.DeleteNamespace(cmd.Context(), args[0]); err != nil {
				return err
			}
			if a.opt.json {
				return a.env.writeJSON(map[string]string{"pattern": args[0], "state": "deleted"})
			}
			_, err = fmt.Fprintf(a.env.Out, "%s has no owner of its own any more\n", printable(args[0]))
			return err
		},
	}
}
