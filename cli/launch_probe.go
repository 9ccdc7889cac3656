package cli

import (
	"context"
	"fmt"

	"github.com/gatehouse-registry/gatehouse/launchverify"
)

// probe says what this node can do for launches. It ends with exit code 3 where one would be refused.
func (a app) probe(ctx context.Context, f launchFlags) error {
	var o launchverify.Options
	if err := f.root(&o); err != nil {
		return err
	}
	dir, err := a.env.cacheDir(f.cache)
	if err != nil {
		return err
	}
	found, err := launchverify.RunProbe(ctx, launchverify.ProbeOptions{
		MountPoint: o.MountPoint, CacheDir: dir, User: o.User, AllowPrivateCopy: o.AllowPrivateCopy,
	})
	if err != nil {
		return launchFailure{err, launchverify.ExitCode(launchverify.Record{}, err)}
	}
	if a.opt.json {
		err = a.env.writeJSON(found)
	} else {
		err = a.printProbe(found)
	}
	if err == nil && found.Mode == "" {
		return exitStatus{exitRefused}
	}
	return err
}

func (a app) printProbe(p launchverify.Probe) error {
	gets := "a launch gets mode " + string(p.Mode)
	if p.Mode == "" {
		gets = "a launch is refused"
	}
	fmt.Fprintf(a.env.Out, "%s on %s, as uid %d\n", gets, printable(p.Kernel), p.User.UID)
	for _, m := range p.Modes {
		detail := printable(m.Why)
		switch {
		case m.Available && m.Root != "":
			detail = fmt.Sprintf("root at %s; processes tracked by %s", printable(m.Root), m.Tracking)
		case m.Available:
			detail = fmt.Sprintf("processes tracked by %s", m.Tracking)
		}
		if m.Available && m.Asked {
			detail += "; only with --allow " + string(m.Mode)
		}
		fmt.Fprintf(a.env.Out, "  %-4s mode %s: %s\n", yesNo(m.Available), m.Mode, detail)
	}
	for _, f := range p.Facts {
		if _, err := fmt.Fprintf(a.env.Out, "  %-4s %s: %s\n", yesNo(f.OK), f.Name, printable(f.Detail)); err != nil {
			return err
		}
	}
	return nil
}

func yesNo(ok bool) string {
	if ok {
		return "ok"
	}
	return "no"
}
