package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/api/wire"
	"github.com/gatehouse-registry/gatehouse/registry/moving"
	"github.com/gatehouse-registry/gatehouse/registry/server"
)

// formFlags name one form of a registry. What is not set stands in the configuration file of its data directory, if any.
type formFlags struct{ data, db, blobs, keys string }

// config is the configuration of a server of that form.
func (f formFlags) config(side string) (server.Config, error) {
	if f.data == "" {
		return server.Config{}, usagef("--%s is required: the data directory of that form, be it small", side)
	}
	in := server.Input{Flags: map[string]string{"data": f.data}, Prefix: "--" + side + "-"}
	for key, value := range map[string]string{"db": f.db, "blobs": f.blobs, "keys": f.keys} {
		if value != "" {
			in.Flags[key] = value
		}
	}
	return server.LoadConfig(in)
}

// migrate moves a registry between forms.
func (a app) migrate() *cobra.Command {
	var from, to formFlags
	opt := moving.MigrateOptions{}
	cmd := &cobra.Command{
		Use: "migrate --from DIR [--from-db URL --from-blobs URL] --to DIR [--to-db URL --to-blobs URL]", Short: "Move a registry between one disk and PostgreSQL + S3",
		Args: cobra.NoArgs,
		Long: `Move a registry from one form to another, in either direction, while its server runs. A form is a data directory, with
--from-db and --from-blobs where its metadata lie in PostgreSQL (postgres://…) and its bytes in S3 (s3://…); what its
gatehouse.yaml says need not be repeated. The target must be empty, and no server may run there.

Blobs go first, verified by digest, then all rows; that is repeated until little is new. Then the source becomes read-only
for a last pass, every row and blob is compared, and the target is ready: the same registry id, the same ledger, the same
key, so that receipts stay valid. The source stays read-only (sf admin read-only off --data DIR undoes that). An interrupted
move is taken up by running it again. Use the sf of the server's own version.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runMigrate(cmd.Context(), from, to, opt) },
	}
	f := cmd.Flags()
	for _, side := range []struct {
		name string
		*formFlags
	}{{"from", &from}, {"to", &to}} {
		f.StringVar(&side.data, side.name, "", "the data directory")
		f.StringVar(&side.db, side.name+"-db", "", "the address of its PostgreSQL database")
		f.StringVar(&side.blobs, side.name+"-blobs", "", "the address of its S3 bucket, or its folder of bytes")
		f.StringVar(&side.keys, side.name+"-keys", "", "the folder of its signing key")
	}
	f.IntVar(&opt.Jobs, "jobs", 4, "how many blobs at a time")
	f.BoolVar(&opt.Reread, "reread", false, "read every blob of the target once more at the end")
	return cmd
}

func (a app) runMigrate(ctx context.Context, from, to formFlags, opt moving.MigrateOptions) (err error) {
	source, err := from.config("from")
	if err != nil {
		return err
	}
	target, err := to.config("to")
	if err != nil {
		return err
	}
	src, err := server.OpenSource(ctx, source)
	if err != nil {
		return fmt.Errorf("from: %w", err)
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	dst, err := server.OpenTarget(ctx, target)
	if err != nil {
		return fmt.Errorf("to: %w", err)
	}
	defer func() { err = errors.Join(err, dst.Close()) }()
	progress, end := a.follow("migrate")
	defer end()
	opt.Progress = progress
	opt.Finish = func(ctx context.Context) error { return src.MoveIdentity(ctx, dst) }
	done, err := moving.Migrate(ctx, moving.Form{Meta: src.Meta, Blobs: src.Blobs}, moving.Form{Meta: dst.Meta, Blobs: dst.Blobs}, opt)
	end()
	if err != nil {
		return err
	}
	if a.opt.json {
		return a.env.writeJSON(done)
	}
	rows := 0
	for _, n := range done.Rows {
		rows += n
	}
	_, err = fmt.Fprintf(a.env.Out, "moved registry %s\n   rows   %d in %d tables, equal on both sides\n   blobs  %d, %d bytes; %d copied by this run\n   small  %d\nthe source is read-only now; start sf serve on the target\n",
		done.RegistryID, rows, len(done.Rows), done.Blobs, done.BlobBytes, done.Copied, done.Small)
	return err
}

// readOnlyIn is read-only on the stores of a data directory.
func readOnlyIn(ctx context.Context, data string, in *wire.ReadOnly) (out wire.ReadOnly, err error) {
	c, err := dataConfig(data, "")
	if err != nil {
		return out, err
	}
	s, err := server.OpenSource(ctx, c)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if in != nil {
		reason := ""
		if in.ReadOnly {
			reason = in.Reason
			if reason == "" {
				reason = wire.DefaultReadOnlyReason
			}
		}
		if err := registry.SetReadOnly(ctx, s.Meta, reason); err != nil {
			return out, err
		}
	}
	out.Reason, err = registry.ReadOnly(ctx, s.Meta)
	out.ReadOnly = out.Reason != ""
	return out, err
}
