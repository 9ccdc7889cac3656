package cli

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"

	ocidigest "github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/spf13/cobra"
	"oras.land/oras-go/v2/content/oci"

	"github.com/gatehouse-registry/gatehouse/admission/pack"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/internal/durable"
)

// pluginPack writes a pack as other OCI tools publish it.
func (a app) pluginPack() *cobra.Command {
	var flags checkFlags
	var out, archiveFile string
	cmd := &cobra.Command{
		Use: "pack DIR [-o OUT] [--archive FILE]", Short: "Write a pack as an OCI layout, for oras, skopeo and crane",
		Long: `Check a pack and write its artifact as an OCI image layout, with the version as the tag, so that any OCI tool can
publish it:

  oras cp --from-oci-layout OUT:VERSION HOST/OWNER/NAME:VERSION
  skopeo copy oci:OUT:VERSION docker://HOST/OWNER/NAME:VERSION

With --archive only the tar.gz is written. The same pack always gives the same bytes.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			opt, err := flags.options()
			if err != nil {
				return err
			}
			if out != "" && archiveFile != "" {
				return usagef("-o and --archive exclude each other")
			}
			art, err := buildArtifact(args[0], opt)
			if err != nil {
				return err
			}
			defer art.close()
			return a.writePack(cmd.Context(), art, out, archiveFile)
		},
	}
	cmd.Flags().StringVarP(&out, "output", "o", "", "the folder to make (default NAME-VERSION.oci)")
	cmd.Flags().StringVar(&archiveFile, "archive", "", "write only the archive, to this file")
	flags.add(cmd)
	return cmd
}

func (a app) writePack(ctx context.Context, art *artifact, out, archiveFile string) error {
	made := art.describe("")
	if archiveFile != "" {
		made.Path = archiveFile
		if err := copyFile(art.archive, archiveFile); err != nil {
			return err
		}
	} else {
		if out == "" {
			out = made.Name + "-" + made.Version + ".oci"
		}
		made.Path = out
		if err := writeLayout(ctx, art, out); err != nil {
			return err
		}
	}
	if a.opt.json {
		return a.env.writeJSON(made)
	}
	printDecision(a.env, art.decision)
	return made.print(a.env.Out, "packed")
}

// writeLayout writes an artifact as an OCI image layout in a new folder.
func writeLayout(ctx context.Context, art *artifact, dir string) error {
	stage, err := stageFor(dir)
	if err != nil {
		return err
	}
	defer os.RemoveAll(stage)
	store, err := oci.NewWithContext(ctx, stage)
	if err != nil {
		return err
	}
	layer, err := art.Open()
	if err != nil {
		return err
	}
	defer layer.Close()
	config := descriptor(pack.MediaTypeConfig, digest.FromBytes(art.Config), int64(len(art.Config)))
	manifest := descriptor(ocispec.MediaTypeImageManifest, art.digest, int64(len(art.Manifest)))
	for _, one := range []struct {
		desc    ocispec.Descriptor
		content io.Reader
	}{
		{descriptor(pack.MediaTypeLayer, art.Layer.Digest, art.Layer.Size), layer},
		{config, bytes.NewReader(art.Config)},
		{manifest, bytes.NewReader(art.Manifest)},
	} {
		if err := store.Push(ctx, one.desc, one.content); err != nil {
			return err
		}
	}
	manifest.ArtifactType = art.pack.Manifest.Kind.ArtifactType()
	if err := store.Tag(ctx, manifest, art.pack.Manifest.Version); err != nil {
		return err
	}
	// The store keeps a folder for half-written blobs, which is no part of a layout.
	if err := os.RemoveAll(filepath.Join(stage, "ingest")); err != nil {
		return err
	}
	return moveNew(stage, dir)
}

func descriptor(mediaType string, d digest.Digest, size int64) ocispec.Descriptor {
	return ocispec.Descriptor{MediaType: mediaType, Digest: ocidigest.Digest(d.String()), Size: size}
}

// copyFile puts a copy of a small file in place of what is at the target.
func copyFile(from, to string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return durable.Replace(to, content, 0o644)
}
