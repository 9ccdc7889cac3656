package project

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"time"
)

// GitFacts are what a job's provenance says of the project's folder.
type GitFacts struct {
	Commit string // abbreviated id of HEAD; "" without git, outside a repository, or before the first commit
	Dirty  bool   // something is changed, added or not tracked
}

// gitTime bounds one command.
const gitTime = time.Minute

// Git asks git about the project's folder, as the clients do. That there is no git, no repository or no commit is no
// error: the facts are empty then, and what that means is the caller's to say (forge refuses, tuneplane records none).
func (p *Project) Git() (GitFacts, error) {
	commit, err := p.git("rev-parse", "--short", "HEAD")
	if err != nil || strings.TrimSpace(commit) == "" {
		return GitFacts{}, ignoreExit(err)
	}
	status, err := p.git("status", "--porcelain")
	if err != nil {
		return GitFacts{}, err
	}
	return GitFacts{strings.TrimSpace(commit), strings.TrimSpace(status) != ""}, nil
}

// ignoreExit forgets that git is not there, or that it answered no.
func ignoreExit(err error) error {
	if _, exited := errors.AsType[*exec.ExitError](err); exited || errors.Is(err, exec.ErrNotFound) {
		return nil
	}
	return err
}

// git runs one command in the project's folder. It takes no lock on the index and starts no monitor of the repository's.
func (p *Project) git(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), gitTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", append([]string{"-c", "core.fsmonitor=false"}, args...)...)
	cmd.Dir = p.Root
	cmd.Env = append(os.Environ(), "GIT_OPTIONAL_LOCKS=0", "LC_ALL=C")
	var out bytes.Buffer
	cmd.Stdout = &out
	err := cmd.Run()
	return out.String(), err
}

// ConfigSHA is the fingerprint of the experiment's config.yaml in a job's provenance: 12 hex digits, "none" without a file.
func (e *Experiment) ConfigSHA() (string, error) {
	src, err := e.Read(ConfigFile)
	if errors.Is(err, fs.ErrNotExist) {
		return "none", nil
	}
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(src)
	return hex.EncodeToString(sum[:])[:12], nil
}
