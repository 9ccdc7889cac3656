package cli

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/gatehouse-registry/gatehouse/launchverify"
	"github.com/gatehouse-registry/gatehouse/registry/client"
)

// What --deny-list says.
const (
	denyListRequire = "require"
	denyListPrefer  = "prefer"
)

// denyListFlags say how much a launch needs to know of revoked versions.
type denyListFlags struct{ mode string }

func (f *denyListFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.mode, "deny-list", denyListPrefer, "require: launch only with a list of revoked versions that has not expired; prefer: go on without one, and say so in the record")
}

// denyList fills in the options of a launch. The registry is asked as the node, else as who is signed in; where nobody is, nobody
// is asked.
func (a app) denyList(f denyListFlags, r *reporter, o *launchverify.Options) error {
	switch f.mode {
	case denyListPrefer:
	case denyListRequire:
		o.RequireDenyList = true
	default:
		return usagef("--deny-list: %.40q is neither %s nor %s", f.mode, denyListRequire, denyListPrefer)
	}
	sign := func() (*client.Client, error) {
		c, _, err := a.env.client()
		return c, err
	}
	if r != nil {
		sign = func() (*client.Client, error) { return r.as, nil }
	} else if !a.env.signedIn() {
		return nil
	}
	o.DenyList = func(ctx context.Context, tag string) ([]byte, error) {
		c, err := sign()
		if err != nil {
			return nil, err
		}
		if tag != "" {
			tag = strconv.Quote(tag)
		}
		envelope, _, err := c.DenyList(ctx, tag)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.Server(), err)
		}
		return envelope, nil
	}
	return nil
}

// signedIn reports whether commands have a server to speak to and something to sign in with, without asking it.
func (e *Env) signedIn() bool {
	s, err := e.loadSessions()
	if err != nil {
		return false
	}
	server := e.Vars["GATEHOUSE_SERVER"]
	if server == "" {
		server = s.Current
	}
	return server != "" && (e.Vars["GATEHOUSE_TOKEN"] != "" || s.Servers[server].Token != "")
}
