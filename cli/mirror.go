package cli

import (
	"bufio"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"

	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/api/wire"
	"github.com/gatehouse-registry/gatehouse/registry/client"
	"github.com/gatehouse-registry/gatehouse/registry/client/mirror"
)

// mirrorFlags are the flags of sf mirror. Those of a side exist twice.
type mirrorFlags struct {
	src, dst     sideFlags
	repositories []string
	list, owner  string
	options      mirror.Options
}

// sideFlags say how to reach one side, and as whom.
type sideFlags struct {
	plain        bool
	user, secret string // secret: the file of the password
	ca           string
}

// mirror copies content between registries.
func (a app) mirror() *cobra.Command {
	var f mirrorFlags
	cmd := &cobra.Command{
		Use: "mirror SRC DST", Short: "Copy a repository, or a whole registry, with all tags and referrers", Args: cobra.ExactArgs(2),
		Long: `Copy content between registries of any make, byte for byte. SRC and DST are a registry (HOST[:PORT], or with http:// or
https:// before it), one of its repositories (HOST[:PORT]/NAME), or an OCI layout folder (oci:DIR). A whole registry is copied
by its catalogue, or by the repositories that are named.

What the destination has is not copied again, so an interrupted copy is taken up by running it again. Every byte is compared
with its digest; afterwards every tag names the same digest on both sides. Rules of the destination are in force: what it
refuses is reported with its violations, the rest goes on, and the exit code is 3; it is 6 when a tag exists that it
does not move, and 1 when anything else is missing.

Credentials of a side are taken from --src-user and --src-password-file, from GATEHOUSE_SRC_USER and GATEHOUSE_SRC_PASSWORD
(DST likewise), from the sign-in of sf login, or from Docker's configuration file and its credential helpers, in this order.`,
		Example: `  sf mirror old.example.org:5000 https://gatehouse.example.org --owner library
  sf mirror docker.io/library/alpine gatehouse.example.org/library/alpine`,
		RunE: func(cmd *cobra.Command, args []string) error { return a.runMirror(cmd.Context(), args[0], args[1], f) },
	}
	fl := cmd.Flags()
	for _, side := range []struct {
		name string
		*sideFlags
	}{{"src", &f.src}, {"dst", &f.dst}} {
		fl.BoolVar(&side.plain, side.name+"-plain-http", false, "reach "+strings.ToUpper(side.name)+" without TLS (this machine always is)")
		fl.StringVar(&side.user, side.name+"-user", "", "the account at "+strings.ToUpper(side.name))
		fl.StringVar(&side.secret, side.name+"-password-file", "", "the file that holds its password or token")
		fl.StringVar(&side.ca, side.name+"-ca", "", "a PEM file of the authorities that "+strings.ToUpper(side.name)+"'s certificate may be of")
	}
	fl.StringArrayVar(&f.repositories, "repository", nil, "copy this repository of a whole registry (may be repeated)")
	fl.StringVar(&f.list, "repositories", "", "a file of repositories to copy, one a line")
	fl.StringVar(&f.owner, "owner", "", "at DST, map every repository that is not below this owner to it, so that its name stays as it is")
	fl.IntVar(&f.options.Jobs, "jobs", 4, "how many transfers at a time")
	fl.BoolVar(&f.options.DryRun, "dry-run", false, "only say what would be copied")
	return cmd
}

func (a app) runMirror(ctx context.Context, from, to string, f mirrorFlags) error {
	src, err := a.side("SRC", from, f.src)
	if err != nil {
		return err
	}
	dst, err := a.side("DST", to, f.dst)
	if err != nil {
		return err
	}
	opt := f.options
	if opt.Repositories, err = f.named(); err != nil {
		return err
	}
	if f.owner != "" {
		if opt.Admit, err = a.mapNames(ctx, dst, f.owner); err != nil {
			return err
		}
	}
	bar := a.env.transfer("mirror", 0)
	defer bar.end()
	opt.Log, opt.Found, opt.Moved = a.logLine, bar.grow, func(n int64) { bar.moved(n, false) }
	report, err := mirror.Run(ctx, src, dst, opt)
	bar.end()
	if err != nil && !a.opt.json {
		return errors.Join(err, a.printMirror(report, opt.DryRun))
	}
	if err != nil {
		return err
	}
	return errors.Join(a.printMirror(report, opt.DryRun), mirrorStatus(report))
}

// named are the repositories of the flags.
func (f mirrorFlags) named() ([]string, error) {
	names := f.repositories
	if f.list == "" {
		return names, nil
	}
	file, err := os.Open(f.list)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if name := strings.TrimSpace(lines.Text()); name != "" && !strings.HasPrefix(name, "#") {
			names = append(names, name)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", f.list, err)
	}
	if len(names) == 0 {
		return nil, usagef("%s names no repository", f.list)
	}
	return names, nil
}

// side reads one of the arguments with its flags. name is SRC or DST.
func (a app) side(name, text string, f sideFlags) (mirror.Place, error) {
	p, err := mirror.ParsePlace(text, f.plain)
	if err != nil {
		return p, usageError{err}
	}
	p.UserAgent = "gatehouse/" + Version
	if f.ca != "" {
		pem, err := os.ReadFile(f.ca)
		if err != nil {
			return p, err
		}
		p.CAs = x509.NewCertPool()
		if !p.CAs.AppendCertsFromPEM(pem) {
			return p, usagef("%s holds no certificate in PEM", f.ca)
		}
	}
	if p.Base != nil {
		p.Credential, err = a.credential(name, p, f)
	}
	return p, err
}

// credential finds who we are at a registry.
func (a app) credential(name string, p mirror.Place, f sideFlags) (auth.CredentialFunc, error) {
	user, password := f.user, a.env.Vars["GATEHOUSE_"+name+"_PASSWORD"]
	if user == "" {
		user = a.env.Vars["GATEHOUSE_"+name+"_USER"]
	}
	if f.secret != "" {
		text, err := os.ReadFile(f.secret)
		if err != nil {
			return nil, err
		}
		password = strings.TrimSpace(string(text))
	}
	if user != "" || password != "" {
		if user == "" || password == "" {
			return nil, usagef("%s: a user goes with a password: give --%s-user, and --%s-password-file or GATEHOUSE_%s_PASSWORD",
				name, strings.ToLower(name), strings.ToLower(name), name)
		}
		return auth.StaticCredential(p.Base.Host, auth.Credential{Username: user, Password: password}), nil
	}
	s, err := a.env.loadSessions()
	if err != nil {
		return nil, err
	}
	if server := p.Base.String(); s.Servers[server].Token != "" {
		return func(_ context.Context, host string) (auth.Credential, error) {
			if host != p.Base.Host {
				return auth.EmptyCredential, nil
			}
			who, err := a.env.sessionAt(server)
			return auth.Credential{Username: who.Account, Password: who.Token}, err
		}, nil
	}
	store, err := credentials.NewStoreFromDocker(credentials.StoreOptions{})
	if err != nil {
		return nil, fmt.Errorf("the configuration file of Docker: %w", err)
	}
	return credentials.Credential(store), nil
}

// mapNames makes repositories of other owners' names the owner's at the destination, which only an administrator may.
func (a app) mapNames(ctx context.Context, dst mirror.Place, owner string) (func(context.Context, string) error, error) {
	if dst.Base == nil {
		return nil, usagef("--owner is for a registry, not for a folder")
	}
	who, err := dst.Credential(ctx, dst.Base.Host)
	if err != nil {
		return nil, err
	}
	c, err := client.New(client.Options{Server: dst.Base.String(), Token: who.Password, UserAgent: dst.UserAgent, CAs: dst.CAs})
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, repository string) error {
		if registry.Owner(repository) == owner && strings.Contains(repository, "/") {
			return nil
		}
		if _, err := c.SetNamespace(ctx, wire.Namespace{Pattern: repository, Owner: owner}); err != nil {
			return fmt.Errorf("map %s to %s: %w", repository, owner, err)
		}
		return nil
	}, nil
}

// mirrorStatus is the exit code that a report deserves.
func mirrorStatus(r mirror.Report) error {
	switch {
	case len(r.Failed) > 0:
		return exitStatus{exitError}
	case len(r.Refused) > 0:
		return exitStatus{exitRefused}
	case len(r.Conflicts) > 0:
		return exitStatus{exitConflict}
	}
	return nil
}

// printMirror shows what a copy did.
func (a app) printMirror(r mirror.Report, dryRun bool) error {
	if a.opt.json {
		return a.env.writeJSON(r)
	}
	for _, list := range []struct {
		word, color string
		problems    []mirror.Problem
	}{{"not at the source", yellow, r.Sparse}, {"conflict", red, r.Conflicts}, {"refused", red, r.Refused}, {"failed", red, r.Failed}} {
		for _, p := range list.problems {
			if !a.env.Terminal {
				break // each stood there when it was met
			}
			fmt.Fprintf(a.env.Err, "%s %s\n", a.env.paint(list.color, "sf: "+list.word+":"), printable(p.String()))
			if p.Decision != nil {
				printDecision(a.env, *p.Decision)
			}
		}
	}
	did := "copied"
	if dryRun {
		did = "would copy"
	}
	_, err := fmt.Fprintf(a.env.Out, "%s %d manifests and %d blobs (%d bytes); %d blobs mounted, %d things were there\n%d repositories, %d tags the same on both sides, %d refused, %d conflicts, %d failed\n",
		did, r.Manifests, r.Blobs, r.Bytes, r.Mounted, r.Present, r.Repositories, r.Tags, len(r.Refused), len(r.Conflicts), len(r.Failed))
	return err
}
