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

// restrict takes from an elevated program whatever would let its caller choose where it reads and writes, whom it trusts and
// which proxy sees its token: the process's own variables, all of them, and ours. The job gets its variables as they came.
func (e *Env) restrict() {
	os.Clearenv()
	maps.DeleteFunc(e.Vars, func(name, _ string) bool {
		return strings.HasPrefix(name, "GATEHOUSE_") || strings.HasPrefix(name, "XDG_") || name == "HOME"
	})
	e.Vars["GATEHOUSE_HOME"] = systemHome
	e.Vars["GATEHOUSE_TRUST"] = systemHome + "/trust"
}
