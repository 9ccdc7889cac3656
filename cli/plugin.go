package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gatehouse-registry/gatehouse/admission/name"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/api/wire"
	"github.com/gatehouse-registry/gatehouse/registry/client"
)

// plugin holds what is done with packs. The platforms call every pack a plugin on the command line.
func (a app) plugin() *cobra.Command {
	cmd := &cobra.Command{
		Use: "plugin", Short: "Make, check, publish and install packs", Args: cobra.NoArgs,
		Long: `Make, check, publish and install packs: plugins that run in a job, and recipe, benchmark, playbook and prompt packs
that are only read. A pack is named OWNER/NAME, one version of it OWNER/NAME@VERSION; without a version the latest is meant.`,
	}
	check := a.checkPack()
	check.Use = "check DIR|ARCHIVE"
	cmd.AddCommand(
		a.pluginNew(), check, a.pluginPack(), a.pluginPublish(), a.pluginList(), a.pluginInfo(), a.pluginPull(),
		a.pluginInstall(), a.pluginRemove(), a.pluginEnable(), a.pluginDisable(), a.pluginRevoke(),
	)
	return cmd
}

// parseRef reads OWNER/NAME[@VERSION] from the command line.
func parseRef(text string) (name.Ref, error) {
	ref, err := name.VersionedRef(text, "plugin")
	if err != nil {
		return ref, usageError{err}
	}
	return ref, nil
}

// id is the reference without its version.
func id(ref name.Ref) string { return ref.Owner + "/" + ref.Name }

// published is a version as the registry names it.
type published struct {
	wire.Plugin
	repository              string
	manifest, content, tree digest.Digest
}

// ref is OWNER/NAME@VERSION.
func (p published) ref() string { return p.ID + "@" + p.Version }

// find asks the registry for a version. What the answer names must be what was asked for: it becomes paths.
func find(ctx context.Context, c *client.Client, ref name.Ref) (published, error) {
	info, err := c.Plugin(ctx, id(ref), ref.Version)
	if err != nil {
		return published{}, fmt.Errorf("%s: %w", ref, err)
	}
	p := published{Plugin: info}
	if !strings.EqualFold(info.ID, id(ref)) || ref.Version != "" && info.Version != ref.Version || !name.IsSegment(info.Version) {
		return p, registry.Errorf(registry.Internal, "asked for %s, the server answered with %.200q version %.200q", ref, info.ID, info.Version)
	}
	owner, pack, _ := strings.Cut(info.ID, "/")
	if p.repository, err = name.RepositoryName(owner, pack); err != nil {
		return p, err
	}
	for text, into := range map[string]*digest.Digest{info.ManifestDigest: &p.manifest, info.Digest: &p.content, info.TreeDigest: &p.tree} {
		if *into, err = digest.Parse(text); err != nil {
			return p, fmt.Errorf("%s: the server's answer: %w", ref, err)
		}
	}
	return p, nil
}

// pluginEnable lets jobs use versions again.
func (a app) pluginEnable() *cobra.Command {
	return &cobra.Command{
		Use: "enable OWNER/NAME[@VERSION]", Short: "Let jobs use a version again (administrators)", Args: cobra.ExactArgs(1), ValidArgsFunction: a.completePlugins,
		Long: "Let jobs use a version again. Without a version all versions are meant, but for those that were revoked.",
		RunE: func(cmd *cobra.Command, args []string) error {
			ref, err := parseRef(args[0])
			if err != nil {
				return err
			}
			c, _, err := a.env.client()
			if err != nil {
				return err
			}
			out, err := c.SetEnabled(cmd.Context(), id(ref), ref.Version, true, "")
			if err != nil {
				return fmt.Errorf("%s: %w", ref, err)
			}
			if a.opt.json {
				return a.env.writeJSON(out)
			}
			_, err = fmt.Fprintf(a.env.Out, "enabled %s (versions: %d)\n", ref, out.Affected)
			return err
		},
	}
}
