package cli

import (
	"github.com/spf13/pflag"

	"github.com/gatehouse-registry/gatehouse/launchverify"
)

// rootFlags say what the root that a job gets is made of, and whom it keeps out.
type rootFlags struct {
	allow, bind []string
	mountPoint  string
	fromPackage string
}

// privateCopy is the one thing that --allow allows.
const privateCopy = string(launchverify.ModePrivateCopy)

// pinnedPackage is --from-package without a file.
const pinnedPackage = "\x00"

func (f *rootFlags) add(flags *pflag.FlagSet) {
	flags.StringSliceVar(&f.allow, "allow", nil, "private-copy: launch where the node has no namespaces")
	flags.StringSliceVar(&f.bind, "bind", nil, "a further name at the top of the job directory that the job may see")
	flags.StringVar(&f.mountPoint, "mount-point", "", "the empty, root-owned folder at which the job sees its directory (default one that the node has)")
	flags.StringVar(&f.fromPackage, "from-package", "", "make the job directory of the admitted job package, from the cache or the registry, or from `=FILE`")
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
	return nil
}
