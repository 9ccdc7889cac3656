package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gatehouse-registry/gatehouse/admission"
	"github.com/gatehouse-registry/gatehouse/admission/name"
	"github.com/gatehouse-registry/gatehouse/admission/pack"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
	"github.com/gatehouse-registry/gatehouse/registry/client"
)

// pluginPublish checks a pack and publishes it.
func (a app) pluginPublish() *cobra.Command {
	var flags checkFlags
	var owner string
	var dry bool
	cmd := &cobra.Command{
		Use: "publish DIR [--owner OWNER] [--dry-run]", Short: "Publish a version of a pack, for good",
		Long: `Check a pack, then publish it as OWNER/NAME:VERSION. The same rules are applied here first and again by the server.
A version never changes: publishing it a second time is a conflict (exit 6) that says whether the bytes are the same.
With --dry-run nothing is sent; when signed in, what the registry holds is taken into account.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			opt, err := flags.options()
			if err != nil {
				return err
			}
			art, err := buildArtifact(args[0], opt)
			if err != nil {
				return err
			}
			defer art.close()
			p, err := a.env.publisher(cmd.Context(), owner)
			if dry && registry.CodeOf(err) == registry.Unauthorized {
				fmt.Fprintln(a.env.Err, "sf: not signed in: checked without the registry")
				return a.printDecision(art.decision)
			}
			if err != nil {
				return err
			}
			d, err := p.gate(cmd.Context(), art, opt.Policy)
			if err != nil {
				return err
			}
			if dry {
				return a.printDecision(d)
			}
			if !d.Allowed {
				return d.Err()
			}
			return a.push(cmd.Context(), p, art, d)
		},
	}
	cmd.Flags().StringVar(&owner, "owner", "", "whose pack it is (default the account; others for administrators)")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "check only")
	flags.add(cmd)
	return cmd
}

// publisher is who publishes, where to, and for which owner.
type publisher struct {
	client  *client.Client
	account string
	who     auth.Principal
	owner   string
}

// publisher asks the server whom the token is of, which the OCI protocol needs for its user name.
func (e *Env) publisher(ctx context.Context, owner string) (publisher, error) {
	c, _, err := e.client()
	if err != nil {
		return publisher{}, err
	}
	user, err := c.Whoami(ctx)
	if err != nil {
		return publisher{}, err
	}
	p := publisher{client: c.As(user.Username), account: user.Username, who: auth.Principal{Account: user.Username, Role: user.Role}, owner: owner}
	if p.owner == "" {
		p.owner = registry.OwnNamespace(user.Username)
	}
	return p, nil
}

// robot reports whether a robot publishes: only the server knows its scopes, and what its owner may.
func (p publisher) robot() bool { return registry.OwnNamespace(p.account) != p.account }

// gate runs gate 1 as the server will, with what it may be asked: the versions of the pack and the owner's pack names.
// Only the server sees the rest, and it decides.
func (p publisher) gate(ctx context.Context, art *artifact, policy rule.Policy) (admission.Decision, error) {
	in := admission.PublishInput{
		Policy: policy, Report: art.report, Pack: art.pack, Owner: p.owner, Principal: p.account,
		MayWrite: p.robot() || p.who.CanIn(auth.WriteContent, p.owner), MayPolicy: p.robot() || p.who.Can(auth.PublishPolicy),
		Tag: art.pack.Manifest.Version, Config: art.Config,
	}
	in.Artifact, _ = pack.ParseArtifact(art.Manifest, policy)
	var err error
	in.Known, err = p.known(ctx, art.pack.Manifest)
	return admission.CheckPublish(in), err
}

func (p publisher) known(ctx context.Context, m *pack.Manifest) (admission.Known, error) {
	var known admission.Known
	rows, err := p.client.Plugins(ctx)
	if err != nil {
		return known, err
	}
	there := false
	for _, row := range rows {
		owner, n, _ := strings.Cut(row.ID, "/")
		if owner != p.owner {
			continue
		}
		known.Names = append(known.Names, n)
		there = there || n == m.Name
	}
	if !there {
		return known, nil
	}
	info, err := p.client.Plugin(ctx, p.owner+"/"+m.Name, "")
	if err != nil && !errors.Is(err, registry.ErrNotFound) {
		return known, err
	}
	for _, v := range info.Versions {
		one := admission.KnownVersion{Version: v.Version, Kind: pack.Kind(info.Kind)}
		if name.Equal(v.Version, m.Version) {
			same, err := p.client.Plugin(ctx, p.owner+"/"+m.Name, v.Version)
			if err != nil {
				return known, err
			}
			if one.Tree, err = digest.Parse(same.TreeDigest); err != nil {
				return known, fmt.Errorf("the server's answer: %w", err)
			}
		}
		known.Versions = append(known.Versions, one)
	}
	return known, nil
}

func (a app) push(ctx context.Context, p publisher, art *artifact, d admission.Decision) error {
	repository, err := name.RepositoryName(p.owner, art.pack.Manifest.Name)
	if err != nil {
		return err
	}
	bar := a.env.transfer("publish", art.Layer.Size)
	got, err := p.client.Push(ctx, repository, art.pack.Manifest.Version, art.Artifact, bar.reader)
	bar.end()
	if err != nil {
		return err
	}
	made := art.describe(p.owner)
	made.Manifest, made.Published = got, true
	made.Reference = p.client.Host() + "/" + repository + ":" + art.pack.Manifest.Version
	if a.opt.json {
		return a.env.writeJSON(made)
	}
	printDecision(a.env, d)
	return made.print(a.env.Out, "published")
}
