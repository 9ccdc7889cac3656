package cli

import "os"

// elevated reports whether the program has more rights than who started it: it is installed set-uid or set-gid. Such a
// caller could start the launch agent's stage by itself, with a plan of its own and the owner's rights.
func elevated() bool { return os.Getuid() != os.Geteuid() || os.Getgid() != os.Getegid() }
