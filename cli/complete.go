package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// completeTimeout is how long the shell waits for the server's answer.
const completeTimeout = 2 * time.Second

// completeFlag makes the shell offer the values of a flag.
func completeFlag(cmd *cobra.Command, flag string, values []string) {
	completeFlagBy(cmd, flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

// completeFlagBy is completeFlag with values that are found out when the shell asks.
func completeFlagBy(cmd *cobra.Command, flag string, values cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, values); err != nil {
		panic(err) // the flag does not exist: a mistake in the program
	}
}

// completePlugins offers the packs that the account may read, and after the @ the versions of one. Where the server
// can't be asked it offers nothing, without a word.
func (a app) completePlugins(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	const quiet = cobra.ShellCompDirectiveNoFileComp
	if len(args) > 0 {
		return nil, quiet
	}
	c, _, err := a.env.client()
	if err != nil {
		return nil, quiet
	}
	// The command has no context yet when a shell asks for completions.
	ctx, cancel := context.WithTimeout(context.Background(), completeTimeout)
	defer cancel()
	var found []cobra.Completion
	if id, _, versions := strings.Cut(prefix, "@"); versions {
		info, err := c.Plugin(ctx, id, "")
		if err != nil {
			return nil, quiet
		}
		for _, v := range info.Versions {
			found = append(found, id+"@"+v.Version)
		}
	} else {
		rows, err := c.Plugins(ctx)
		if err != nil {
			return nil, quiet
		}
		for _, row := range rows {
			found = append(found, cobra.CompletionWithDesc(row.ID, printable(row.Kind+" "+row.LatestVersion+" "+row.Summary)))
		}
	}
	found = slices.DeleteFunc(found, func(s cobra.Completion) bool { return !strings.HasPrefix(s, prefix) })
	return found, quiet
}
