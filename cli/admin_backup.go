package cli

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/gatehouse-registry/gatehouse/registry/api/wire"
	"github.com/gatehouse-registry/gatehouse/registry/moving"
	"github.com/gatehouse-registry/gatehouse/registry/server"
)

// backup copies a registry of the embedded form into a folder.
func (a app) backup() *cobra.Command {
	var data, config string
	var prune bool
	cmd := &cobra.Command{
		Use: "backup --data DIR OUT", Short: "Copy a registry into a folder, while its server runs", Args: cobra.ExactArgs(1),
		Long: `Back a registry of the embedded form up into the folder OUT, which is made, while its server runs: the metadata as they
are at one moment, every blob that they name, the ledger, the signing key and the configuration. A second backup into the
same folder copies only blobs that are new. What OUT holds is verified and on the disk when the command ends; an
interrupted backup leaves the one before it as it was. OUT holds secrets: only its owner may read it.

Exit code 7 says that the registry itself has lost blobs or holds them damaged; the backup holds everything else.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := dataConfig(data, config)
			if err != nil {
				return err
			}
			p := c.Parts()
			if p.Database == "" || p.Blobs == "" {
				return usagef("%s is no registry of the embedded form: back its database and its bucket up with their own tools", data)
			}
			progress, end := a.follow("backup")
			defer end()
			src := moving.Source{Database: p.Database, Ledger: p.Ledger, Blobs: p.Blobs}
			for _, f := range p.Files {
				if config != "" && f.Path == server.ConfigFile {
					f.At = config
				}
				src.Files = append(src.Files, moving.Extra(f))
			}
			m, err := moving.Backup(cmd.Context(), src, args[0], moving.BackupOptions{Prune: prune, Progress: progress})
			end()
			if err != nil {
				return err
			}
			if err := a.printBackup("backup of", "in "+args[0], m); err != nil || len(m.Lost) == 0 {
				return err
			}
			return exitStatus{exitVerification}
		},
	}
	cmd.Flags().StringVar(&data, "data", "", "the data directory of the registry")
	cmd.Flags().StringVar(&config, "config", "", "its configuration file (default DIR/"+server.ConfigFile+")")
	cmd.Flags().BoolVar(&prune, "prune", false, "remove blobs from OUT that the registry does not name any more")
	return cmd
}

// dataConfig is the configuration of the server of a data directory, without what the environment says of this one.
func dataConfig(data, config string) (server.Config, error) {
	if data == "" {
		return server.Config{}, usagef("--data is required: the data directory of the registry")
	}
	in := server.Input{Flags: map[string]string{"data": data}, Prefix: "--"}
	if config != "" {
		in.Flags["config"] = config
	}
	return server.LoadConfig(in)
}

// follow shows how far a backup, a restore or a move is: with a bar on a terminal, and a line a step elsewhere. end, which may
// be called again, takes the bar away.
func (a app) follow(label string) (p moving.Progress, end func()) {
	bar := a.env.transfer(label, 0)
	return moving.Progress{Log: a.logLine, Found: bar.grow, Moved: func(n int64) { bar.moved(n, false) }}, bar.end
}

// logLine is a line of what happens, where no bar shows it.
func (a app) logLine(line string) {
	if !a.env.Terminal {
		fmt.Fprintln(a.env.Err, "sf:", printable(line))
	}
}

func (a app) printBackup(did, where string, m moving.Manifest) error {
	for _, d := range m.Lost {
		fmt.Fprintf(a.env.Err, "%s blob %s: the registry names it and does not hold it whole\n", a.env.paint(red, "sf: lost:"), d)
	}
	if a.opt.json {
		return a.env.writeJSON(m)
	}
	_, err := fmt.Fprintf(a.env.Out, "%s registry %s %s\n   made     %s\n   blobs    %d, %d bytes\n   small    %d\n   versions %d in the ledger\n   lost     %d\n",
		did, m.RegistryID, where, m.MadeAt.Format("2006-01-02T15:04:05Z07:00"), m.Blobs, m.BlobBytes, m.Small, m.LedgerSeq, len(m.Lost))
	return err
}

// restore makes a data directory of a backup.
func (a app) restore() *cobra.Command {
	var data, blobs, ledger string
	cmd := &cobra.Command{
		Use: "restore OUT --data DIR", Short: "Make a data directory of a backup", Args: cobra.ExactArgs(1),
		Long: `Make a data directory of the backup in OUT. DIR must be empty or absent, or hold an interrupted restore of the same backup,
which then goes on; no server starts in it before it is whole. Every byte is verified (exit 7 when one differs).

Versions that were published after the backup are gone, but must never be published again with other bytes: give the
newest ledger file that is left (DIR/ledger.jsonl of the old directory, or any copy of it) with --ledger. They stay taken.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if data == "" {
				return usagef("--data is required: the directory to restore into")
			}
			p := server.Config{Data: data, Blobs: blobs}.Parts()
			progress, end := a.follow("restore")
			defer end()
			target := moving.Target{Data: p.Data, Database: p.Database, Ledger: p.Ledger, Blobs: p.Blobs, Marker: p.Restore}
			m, err := moving.Restore(cmd.Context(), args[0], target, ledger, progress)
			end()
			if err != nil {
				return err
			}
			a.compareRestored(p)
			return a.printBackup("restored", "into "+data, m)
		},
	}
	cmd.Flags().StringVar(&data, "data", "", "the directory to restore into")
	cmd.Flags().StringVar(&blobs, "blobs", "", "the folder for the bytes, when they lie elsewhere than in the data directory")
	cmd.Flags().StringVar(&ledger, "ledger", "", "a ledger file that may know more versions than the backup")
	return cmd
}

// compareRestored warns when the configuration that was restored looks for things elsewhere than where they are now.
func (a app) compareRestored(p server.Parts) {
	c, err := dataConfig(p.Data, "")
	if err != nil {
		fmt.Fprintf(a.env.Err, "sf: warning: the restored %s has to be mended before a server starts: %v\n", server.ConfigFile, err)
		return
	}
	said := c.Parts()
	warn := func(what, said, is string) {
		if filepath.Clean(said) != filepath.Clean(is) {
			fmt.Fprintf(a.env.Err, "sf: warning: the restored %s looks for %s in %s, restored in %s: change one of them\n", server.ConfigFile, what, said, is)
		}
	}
	warn("the bytes", said.Blobs, p.Blobs)
	warn("the signing key", said.Files[0].At, p.Files[0].At)
}

// readOnly shows or changes whether a registry takes changes.
func (a app) readOnly() *cobra.Command {
	var reason, data string
	cmd := &cobra.Command{
		Use: "read-only [on|off]", Short: "Show whether the registry takes changes, or stop and resume them", Args: cobra.MaximumNArgs(1),
		ValidArgs: []string{"on", "off"},
		Long: `Show or change whether the registry takes changes. While it takes none, everything can be read, and who writes is answered
503 with the reason. No change that began earlier commits after the command has returned. It asks the server; with --data it
changes the metadata in that directory itself, also while no server runs.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			var in *wire.ReadOnly
			if len(args) == 1 {
				if args[0] != "on" && args[0] != "off" {
					return usagef("%q is neither on nor off", args[0])
				}
				in = &wire.ReadOnly{ReadOnly: args[0] == "on", Reason: reason}
			}
			got, err := a.askReadOnly(cmd.Context(), data, in)
			if err != nil {
				return err
			}
			if a.opt.json {
				return a.env.writeJSON(got)
			}
			state := "takes changes"
			if got.ReadOnly {
				state = "is read-only: " + printable(got.Reason)
			}
			_, err = fmt.Fprintf(a.env.Out, "the registry %s\n", state)
			return err
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "what clients are told")
	cmd.Flags().StringVar(&data, "data", "", "the data directory of the registry, instead of asking its server")
	return cmd
}

// askReadOnly changes the state, unless in is nil, and gives it.
func (a app) askReadOnly(ctx context.Context, data string, in *wire.ReadOnly) (wire.ReadOnly, error) {
	if data != "" {
		return readOnlyIn(ctx, data, in)
	}
	c, _, err := a.env.client()
	if err != nil {
		return wire.ReadOnly{}, err
	}
	if in == nil {
		return c.ReadOnly(ctx)
	}
	return c.SetReadOnly(ctx, *in)
}
