package cli

import (
	"maps"
	"os"
	"strings"
)

// systemHome is where the sign-in of a set-uid launch agent lies.
const systemHome = "/etc/gatehouse"

// elevated reports whether the program has more rights than who started it: it is installed set-uid or set-gid, as a
// node's launch agent may be.
func elevated() bool { return os.Getuid() != os.Geteuid() || os.Getgid() != os.Getegid() }

// restrict takes from the environment of an elevated program whatever would let its caller choose where it reads and
// writes. The job's own environment is not touched.
func (e *Env) restrict() {
	maps.DeleteFunc(e.Vars, func(name, _ string) bool {
		return strings.HasPrefix(name, "GATEHOUSE_") || strings.HasPrefix(name, "XDG_") || name == "HOME"
	})
	e.Vars["GATEHOUSE_HOME"] = systemHome
	e.Vars["GATEHOUSE_TRUST"] = systemHome + "/trust"
}
