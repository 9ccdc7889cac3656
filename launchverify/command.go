package launchverify

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// lookPath finds the command as execvp would with the job's own PATH. A path with a slash is taken as it is.
func lookPath(command string, env []string) (string, error) {
	if strings.Contains(command, "/") {
		return command, nil
	}
	path, ok := lookup(env, "PATH")
	if !ok {
		path = "/usr/local/bin:/usr/bin:/bin"
	}
	var refused error
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			continue // what lies in the current directory is the job's, not a command
		}
		file := filepath.Join(dir, command)
		info, err := os.Stat(file)
		switch {
		case err != nil || info.IsDir():
		case info.Mode()&0o111 == 0:
			refused = &fs.PathError{Op: "execute", Path: file, Err: fs.ErrPermission}
		default:
			return file, nil
		}
	}
	if refused != nil {
		return "", refused
	}
	return "", fmt.Errorf("%.200q is not in PATH: %w", command, fs.ErrNotExist)
}
