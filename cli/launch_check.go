package cli

import (
	"fmt"

	"github.com/spf13/pflag"

	"github.com/gatehouse-registry/gatehouse/launchverify"
)

// addVerifyOnlyFlag adds the flag of a launch that ends with gate 3. It is for the prologs of a scheduler, whose
// namespaces end before the job's begin.
func addVerifyOnlyFlag(flags *pflag.FlagSet, into *bool) {
	flags.BoolVar(into, "verify-only", false, "run gate 3 and start nothing: it says what was true at that moment, and protects nothing afterwards")
}

// commandArgs requires a command, or none of a launch that starts nothing.
func commandArgs(none bool, args []string) error {
	switch {
	case none && len(args) > 0:
		return fmt.Errorf("--verify-only and --probe start nothing: leave the command out")
	case !none && len(args) == 0:
		return fmt.Errorf("name the command to start after --")
	}
	return nil
}

// printVerified says what gate 3 found, and what that is worth.
func (a app) printVerified(r launchverify.Record) error {
	if a.opt.json {
		return a.env.writeJSON(r)
	}
	_, err := fmt.Fprintf(a.env.Out, "verified %s: %d plugins and %d recipe packs are what the receipt pins. Nothing was started, and nothing protects these files from now on\n",
		printable(r.JobDir), len(r.Plugins), len(r.Recipes))
	return err
}
