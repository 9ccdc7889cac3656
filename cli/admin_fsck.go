package cli

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/api/wire"
	"github.com/gatehouse-registry/gatehouse/registry/server"
)

// fsckFlags are the flags of sf admin fsck.
type fsckFlags struct {
	repair bool
	from   string
	data   string
}

// fsck checks what a registry holds.
func (a app) fsck() *cobra.Command {
	var f fsckFlags
	cmd := &cobra.Command{
		Use: "fsck [--repair --from URL|DIR] [--data DIR]", Short: "Read everything again, compare it with its digest and its rows, and repair it", Args: cobra.NoArgs,
		Long: `Check on the server, beside its clients, everything that the registry holds: bytes against digests and rows, rows against
each other. Damaged bytes are set aside, wrong counts are mended. With --repair, what is missing or damaged is fetched by
digest from another registry (an address, with USER:PASSWORD@ before the host where it asks for a sign-in) or from a folder
on the server (a data directory, a backup, an OCI layout), and verified.

With --data the stores below a data directory are checked without a server, which must not run.

The exit code is 7 when damage was found that was not repaired.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.repair != (f.from != "") {
				return usagef("--repair and --from go together: --from says where good bytes are fetched from")
			}
			return a.runFsck(cmd.Context(), f)
		},
	}
	cmd.Flags().BoolVar(&f.repair, "repair", false, "fetch what is missing or damaged from --from")
	cmd.Flags().StringVar(&f.from, "from", "", "an http(s) address of a registry, or a folder on the server")
	cmd.Flags().StringVar(&f.data, "data", "", "check this data directory, whose server does not run")
	return cmd
}

func (a app) runFsck(ctx context.Context, f fsckFlags) error {
	findings := []registry.Finding{}
	each := func(found registry.Finding) error {
		if a.opt.json {
			findings = append(findings, found)
			return nil
		}
		_, err := fmt.Fprintln(a.env.Out, findingLine(found))
		return err
	}
	report, err := a.findings(ctx, f, each)
	if err != nil {
		return err
	}
	if a.opt.json {
		err = a.env.writeJSON(struct {
			registry.FsckReport
			Findings []registry.Finding `json:"findings"`
		}{report, findings})
	} else {
		_, err = fmt.Fprintf(a.env.Out, "read %d blobs, %d bytes; %d damaged, %d of them repaired\n", report.Blobs, report.Bytes, report.Damage, report.Repaired)
	}
	if err == nil && !report.Whole() {
		err = exitStatus{exitVerification}
	}
	return err
}

// findings runs the check on the server, or on a data directory.
func (a app) findings(ctx context.Context, f fsckFlags, each func(registry.Finding) error) (registry.FsckReport, error) {
	if f.data != "" {
		c, err := server.LoadConfig(server.Input{Flags: map[string]string{"data": filepath.Clean(f.data)}, Env: a.env.Vars, Prefix: "--"})
		if err != nil {
			return registry.FsckReport{}, usageError{err}
		}
		return server.Fsck(ctx, c, f.from, registry.FsckOptions{Each: each}, slog.New(slog.DiscardHandler))
	}
	c, _, err := a.env.client()
	if err != nil {
		return registry.FsckReport{}, err
	}
	return c.Fsck(ctx, wire.Fsck{From: f.from}, each, nil)
}

// findingLine shows a finding: what it is, who suffers, and what is wrong.
func findingLine(f registry.Finding) string {
	line := f.Kind
	if !f.Digest.IsZero() {
		line += " " + f.Digest.String()
	}
	line += ": " + f.Detail
	if len(f.Holders) > 0 {
		line += " (" + strings.Join(f.Holders, ", ") + ")"
	}
	if f.Repaired {
		line += " – repaired"
	}
	return printable(line)
}

// scrub shows how far the scrub is.
func (a app) scrub() *cobra.Command {
	return &cobra.Command{
		Use: "scrub", Short: "Show how far the server is with reading everything again, and what it found", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, _, err := a.env.client()
			if err != nil {
				return err
			}
			s, err := c.Scrub(cmd.Context())
			if err != nil {
				return err
			}
			if a.opt.json {
				return a.env.writeJSON(s)
			}
			for _, f := range s.Findings {
				fmt.Fprintln(a.env.Out, findingLine(f))
			}
			state := "not begun"
			switch {
			case !s.EndedAt.IsZero():
				state = "ended " + s.EndedAt.Format(stampLayout)
			case !s.StartedAt.IsZero():
				state = "runs since " + s.StartedAt.Format(stampLayout)
			}
			_, err = fmt.Fprintf(a.env.Out, "round %s: read %d blobs, %d bytes; %d damaged\n", state, s.Blobs, s.Bytes, s.Damaged)
			return err
		},
	}
}

// stampLayout is how moments are shown to people.
const stampLayout = "2006-01-02 15:04:05Z07:00"
