package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gatehouse-registry/gatehouse/launchverify/nodecache"
)

// cacheFlags say where the node's cache is and how large it may grow.
type cacheFlags struct{ cache, cacheSize string }

func (f *cacheFlags) add(flags *pflag.FlagSet) {
	f.addDir(flags)
	flags.StringVar(&f.cacheSize, "cache-size", "", "how large the cache may grow, such as 200GiB; 0 is no limit (default $GATEHOUSE_CACHE_SIZE, else 50 GB)")
}

func (f *cacheFlags) addDir(flags *pflag.FlagSet) {
	flags.StringVar(&f.cache, "cache", "", "the node's cache (default $GATEHOUSE_CACHE)")
}

// cacheDir is the node's cache: of the flag, else GATEHOUSE_CACHE, else the user's; root's is below /var.
func (e *Env) cacheDir(flag string) (string, error) {
	switch {
	case flag != "":
		return flag, nil
	case e.Vars["GATEHOUSE_CACHE"] != "":
		return e.Vars["GATEHOUSE_CACHE"], nil
	case os.Geteuid() == 0:
		return "/var/cache/gatehouse", nil
	case e.Vars["XDG_CACHE_HOME"] != "":
		return filepath.Join(e.Vars["XDG_CACHE_HOME"], "gatehouse"), nil
	case e.Vars["HOME"] != "":
		return filepath.Join(e.Vars["HOME"], ".cache", "gatehouse"), nil
	}
	return "", errors.New("no cache folder: set GATEHOUSE_CACHE or name one with --cache")
}

// cacheBytes is how large the cache may grow, as nodecache.Options has it.
func (e *Env) cacheBytes(flag string) (int64, error) {
	from, text := "--cache-size", flag
	if text == "" {
		from, text = "GATEHOUSE_CACHE_SIZE", e.Vars["GATEHOUSE_CACHE_SIZE"]
	}
	if text == "" {
		return nodecache.DefaultMaxBytes, nil
	}
	n, err := parseBytes(text)
	if err != nil {
		return 0, usagef("%s: %w", from, err)
	}
	if n == 0 {
		return -1, nil
	}
	return n, nil
}

// openCache opens the node's cache.
func (e *Env) openCache(f cacheFlags, o nodecache.Options) (*nodecache.Cache, error) {
	dir, err := e.cacheDir(f.cache)
	if err != nil {
		return nil, err
	}
	if o.MaxBytes, err = e.cacheBytes(f.cacheSize); err != nil {
		return nil, err
	}
	return nodecache.Open(dir, o)
}

// cache holds the verbs of the node's cache.
func (a app) cache() *cobra.Command {
	cmd := &cobra.Command{
		Use: "cache", Short: "Look at, fill, verify and empty the node's cache of packs",
		Long: `Look at, fill, verify and empty the node's cache, which launches take their packs from. It lies in --cache DIR, else
GATEHOUSE_CACHE, else below /var/cache for root and below the user's cache folder for others, and may be on a file system
that nodes share. Nothing in it is trusted: every launch hashes what it takes.`,
	}
	cmd.AddCommand(a.cacheList(), a.cacheVerify(), a.cacheCollect(), a.cacheWarm())
	return cmd
}

func (a app) cacheList() *cobra.Command {
	var f cacheFlags
	cmd := &cobra.Command{
		Use: "ls", Short: "List what the cache holds, last used last", Args: cobra.NoArgs,
		Long: "List what the cache holds, what was not used for the longest first: digest, name, bytes on disk, last use by the file server's clock, and who holds it.",
		RunE: func(*cobra.Command, []string) error {
			c, err := a.env.openCache(f, nodecache.Options{})
			if err != nil {
				return err
			}
			defer c.Close()
			if err := c.Usable(); err != nil {
				return err
			}
			all := c.List()
			if a.opt.json {
				return a.env.writeJSON(all)
			}
			t := tabwriter.NewWriter(a.env.Out, 0, 0, 2, ' ', 0)
			fmt.Fprintln(t, "DIGEST\tKIND\tNAME\tBYTES\tUSED\tHELD BY")
			for _, e := range all {
				fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%s\t%s\n", e.Digest, e.Kind, entryName(e), e.Bytes, e.Used.UTC().Format(time.RFC3339), strings.Join(e.Holders, ","))
			}
			return t.Flush()
		},
	}
	f.addDir(cmd.Flags())
	return cmd
}

// entryName is id@version of a tree, "-" of what has none.
func entryName(e nodecache.Info) string {
	if e.ID == "" {
		return "-"
	}
	return printable(e.ID + "@" + e.Version)
}

func (a app) cacheVerify() *cobra.Command {
	var f cacheFlags
	var repair bool
	cmd := &cobra.Command{
		Use: "verify [--repair]", Short: "Hash everything in the cache (exit 7 when something is damaged)", Args: cobra.NoArgs,
		Long: `Hash everything in the cache and name what is damaged (exit 7). With --repair what is damaged is removed, and the next
launch makes it again: of the archive beside it, or fetched.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.env.openCache(f, nodecache.Options{})
			if err != nil {
				return err
			}
			defer c.Close()
			all := []nodecache.Verdict{}
			damaged, err := c.Verify(cmd.Context(), repair, func(v nodecache.Verdict) error {
				all = append(all, v)
				if a.opt.json || v.Problem == "" {
					return nil
				}
				did := ""
				if v.Dropped {
					did = " (removed)"
				}
				_, err := fmt.Fprintf(a.env.Out, "damaged: %s %s %s: %s%s\n", v.Kind, v.Digest, entryName(v.Info), printable(v.Problem), did)
				return err
			})
			if err != nil {
				return err
			}
			if a.opt.json {
				err = a.env.writeJSON(all)
			} else {
				hint := ""
				if damaged > 0 && !repair {
					hint = "; remove it with sf cache verify --repair, the next launch fetches it again"
				}
				_, err = fmt.Fprintf(a.env.Out, "%d entries, %d damaged%s\n", len(all), damaged, hint)
			}
			if err == nil && damaged > 0 {
				return exitStatus{exitVerification}
			}
			return err
		},
	}
	f.addDir(cmd.Flags())
	cmd.Flags().BoolVar(&repair, "repair", false, "remove what is damaged")
	return cmd
}

func (a app) cacheCollect() *cobra.Command {
	var f cacheFlags
	var size string
	var dryRun bool
	cmd := &cobra.Command{
		Use: "gc [--max-size N] [--dry-run]", Short: "Bring the cache down to its size and remove strays", Args: cobra.NoArgs,
		Long: `Remove what was not used for the longest until the cache has at most --max-size bytes (0: everything that nobody holds),
and what killed agents left, of other nodes too. What a running job holds stays.`,
		RunE: func(*cobra.Command, []string) error {
			limit, err := a.env.cacheBytes("")
			if size != "" {
				limit, err = parseBytes(size)
			}
			if err != nil {
				return usageError{err}
			}
			c, err := a.env.openCache(f, nodecache.Options{})
			if err != nil {
				return err
			}
			defer c.Close()
			out, err := c.Collect(limit, dryRun)
			if err != nil {
				return err
			}
			if a.opt.json {
				return a.env.writeJSON(out)
			}
			verb := "removed"
			if dryRun {
				verb = "would remove"
			}
			for _, e := range out.Evicted {
				fmt.Fprintf(a.env.Out, "%s %s %s %s (%d bytes)\n", verb, e.Kind, e.Digest, entryName(e), e.Bytes)
			}
			_, err = fmt.Fprintf(a.env.Out, "%s %d entries of %d bytes and %d strays; %d bytes stay\n", verb, len(out.Evicted), out.Freed, out.Strays, out.Kept)
			return err
		},
	}
	f.addDir(cmd.Flags())
	cmd.Flags().StringVar(&size, "max-size", "", "the size to bring it down to, such as 20GiB (default $GATEHOUSE_CACHE_SIZE, else 50 GB)")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "remove nothing; print what would be removed")
	return cmd
}
