package cli

import (
	"errors"
	"os"
	"path/filepath"
)

// cacheDir is the node's cache: of the flag, else GATEHOUSE_CACHE, else the user's; root's is below /var.
func (e *Env) cacheDir(flag string) (string, error) {
	switch {
	case flag != "":
		return flag, nil
	case e.Vars["GATEHOUSE_CACHE"] != "":
		return e.Vars["GATEHOUSE_CACHE"], nil
	case os.Geteuid() == 0:
		return "/var/cache/gatehouse", nil
	case e.Vars["XDG_CACHE_HOME"] != "":
		return filepath.Join(e.Vars["XDG_CACHE_HOME"], "gatehouse"), nil
	case e.Vars["HOME"] != "":
		return filepath.Join(e.Vars["HOME"], ".cache", "gatehouse"), nil
	}
	return "", errors.New("no cache folder: set GATEHOUSE_CACHE or name one with --cache")
}
