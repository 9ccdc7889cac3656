package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/gatehouse-registry/gatehouse/launchverify"
)

// rootFlags say what the root that a job gets is made of, and whom it keeps out.
type rootFlags struct {
	allow, bind []string
	mountPoint  string
	fromPackage string
	user        string
	probe       bool
}

// privateCopy is the one thing that --allow allows.
const privateCopy = string(launchverify.ModePrivateCopy)

// pinnedPackage is --from-package without a file, as help shows it; a file of that name is ./(pinned).
const pinnedPackage = "(pinned)"

func (f *rootFlags) add(flags *pflag.FlagSet) {
	flags.StringSliceVar(&f.allow, "allow", nil, "private-copy: launch where the node has no namespaces")
	flags.StringSliceVar(&f.bind, "bind", nil, "a further name at the top of the job directory that the job may see")
	flags.StringVar(&f.user, "user", "", "run the command as this account, NAME or UID[:GID], with its groups (the agent must be root)")
	flags.BoolVar(&f.probe, "probe", false, "launch nothing, and say which modes of protection this node allows")
	flags.StringVar(&f.mountPoint, "mount-point", "", "the empty, root-owned folder at which the job sees its directory (default one that the node has)")
	flags.StringVar(&f.fromPackage, "from-package", "", "make the job directory of the admitted job package, from the cache or the registry, or with =FILE from that `FILE`")
	flags.Lookup("from-package").NoOptDefVal = pinnedPackage
}

// root turns flags into the options of a launch.
func (f rootFlags) root(o *launchverify.Options) error {
	for _, what := range f.allow {
		if what != privateCopy {
			return usagef("--allow: %.40q is not %s", what, privateCopy)
		}
		o.AllowPrivateCopy = true
	}
	o.Binds, o.MountPoint = f.bind, f.mountPoint
	o.FromPackage = f.fromPackage != ""
	if f.fromPackage != pinnedPackage {
		o.Package = f.fromPackage
	}
	if f.user == "" {
		return nil
	}
	user, err := launchverify.LookupUser(f.user)
	if _, wrong := errors.AsType[*launchverify.UsageError](err); wrong {
		return usagef("--user: %w", err)
	}
	o.User = &user
	return err
}

// warnOfRoot says that root runs what is somebody else's to change. It is no refusal: in a container root is who one is, and
// the job directory lies where a user put it.
func (a app) warnOfRoot(f rootFlags, r launchverify.Record) {
	if f.user == "" && r.Started && r.User.UID == 0 && r.JobOwner > 0 && r.Package.IsZero() {
		fmt.Fprintf(a.env.Err, "sf launch: warning: the command runs as root, and the job directory is of uid %d, who decides what lies there: --user %d runs it as its owner\n", r.JobOwner, r.JobOwner)
	}
}
