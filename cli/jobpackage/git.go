package jobpackage

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/gatehouse-registry/gatehouse/admission/limit"
)

// State is what git can say of a project.
type State uint8

// The states.
const (
	NoGit        State = iota // git is not installed
	NoRepository              // the project lies in no repository
	NoCommit                  // git lists its files; there is no commit yet
	Committed                 // and there is one
)

// Lists reports whether git tells which files belong to the project.
func (s State) Lists() bool { return s >= NoCommit }

// gitTime bounds one command of git: a repository on a dead file server must not hang a submission.
const gitTime = 2 * time.Minute

// Inspect asks what git can say of a folder. A repository that git can't read is an error, not the absence of one: without
// its list the files that .gitignore keeps out would be packed.
func Inspect(ctx context.Context, root string) (State, error) {
	if !underGit(root) {
		return NoRepository, nil
	}
	inside, err := git(ctx, root, 4*limit.KiB, "rev-parse", "--is-inside-work-tree")
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return NoGit, nil
	case err != nil:
		return NoRepository, fmt.Errorf("git can't read the repository that %s lies in: %w", root, err)
	case strings.TrimSpace(string(inside)) != "true":
		return NoRepository, nil
	}
	_, err = git(ctx, root, 4*limit.KiB, "rev-parse", "--verify", "--quiet", "HEAD")
	if _, no := errors.AsType[*exec.ExitError](err); no {
		return NoCommit, nil
	}
	return Committed, err
}

// underGit reports whether there is a repository to ask git about.
func underGit(root string) bool {
	if os.Getenv("GIT_DIR") != "" {
		return true
	}
	for dir := root; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, ".git")); err == nil {
			return true
		}
		if dir == filepath.Dir(dir) {
			return false
		}
	}
}

// maxListing bounds what is read of a listing: a hundred thousand long paths fit.
const maxListing = 64 * limit.MiB

// gitNames are the files that git tracks, and those that it would, in the folders that travel.
func gitNames(ctx context.Context, p Project) ([]listed, error) {
	var names []listed
	for _, kind := range []struct {
		args      []string
		untracked bool
	}{{[]string{"--cached"}, false}, {[]string{"--others", "--exclude-standard"}, true}} {
		args := append([]string{"--literal-pathspecs", "ls-files", "-z"}, kind.args...)
		out, err := git(ctx, p.Root, maxListing, append(append(args, "--"), p.folders()...)...)
		if err != nil {
			return nil, fmt.Errorf("git ls-files: %w", err)
		}
		for name := range strings.SplitSeq(string(out), "\x00") {
			// A folder's name alone is what a file of that name in the place of a folder would give.
			if name != "" && p.travels(name) {
				names = append(names, listed{name, kind.untracked})
			}
		}
	}
	return names, nil
}

// travels reports whether a path lies below one of the folders.
func (p Project) travels(path string) bool {
	for _, folder := range p.folders() {
		if strings.HasPrefix(path, folder+"/") {
			return true
		}
	}
	return false
}

// git runs one command in a folder and reads at most max bytes of its answer. It runs nothing that the repository's own
// configuration names, and changes nothing there.
func git(ctx context.Context, root string, max int64, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, gitTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", root, "-c", "core.fsmonitor=false", "-c", "core.quotepath=false"}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_OPTIONAL_LOCKS=0", "LC_ALL=C", "LANGUAGE=C")
	var complaint bytes.Buffer
	cmd.Stderr = &capped{w: &complaint, left: 4 * limit.KiB}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	text, readErr := io.ReadAll(bufio.NewReader(io.LimitReader(out, max+1)))
	if int64(len(text)) > max {
		cancel()
		_ = cmd.Wait() // it was stopped
		return nil, fmt.Errorf("the answer has more than %d MiB", max/limit.MiB)
	}
	switch err := cmd.Wait(); {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("no answer: %w", ctx.Err())
	case err != nil && complaint.Len() > 0:
		return nil, fmt.Errorf("%s: %w", strings.Join(strings.Fields(complaint.String()), " "), err)
	case err != nil:
		return nil, err
	}
	return text, readErr
}

// capped keeps the first bytes of what is written and takes the rest for written.
type capped struct {
	w    io.Writer
	left int
}

func (c *capped) Write(p []byte) (int, error) {
	n := min(len(p), c.left)
	c.left -= n
	if _, err := c.w.Write(p[:n]); err != nil {
		return 0, err
	}
	return len(p), nil
}
