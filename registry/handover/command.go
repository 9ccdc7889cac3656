package handover

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"github.com/gatehouse-registry/gatehouse/registry"
)

const (
	refusedExit = 65 // EX_DATAERR of sysexits: the platform will never take the event
	maxOutput   = 4 << 10
	// lingering is how long the output of a command that has ended may stay open.
	lingering = 2 * time.Second
)

// Command delivers by running a program of the administrator's: its arguments are fixed, no shell reads them, and nothing of
// a job is among them. It runs in a folder of its own with the files of a job, gets the Document on its standard input, and of
// the environment the path and what Variables lists. Its whole process group is killed when it takes too long or fails, and when it has
// ended well and something that it started still holds its output: what is tried again leaves nothing running.
type Command struct {
	Args    []string // the program's path and its arguments
	Folder  string   // where folders for runs are made
	Package bool     // put the package's bytes beside it
	Base    string   // the registry's public address
}

// Variables are what a command finds in its environment, besides PATH.
var Variables = []string{"GATEHOUSE_EVENT", "GATEHOUSE_EVENT_ID", "GATEHOUSE_JOB", "GATEHOUSE_TARGET", "GATEHOUSE_TRY"}

// Deliver implements registry.HandoverDeliverer. Exit status 0 is success, 65 refuses the event for good, any other is tried again.
func (c Command) Deliver(ctx context.Context, m registry.HandoverMessage) (err error) {
	body, err := documentOf(m, c.Base).encode()
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp(c.Folder, "handover-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	if err := writeFiles(ctx, folder, m, c.Base, c.Package); err != nil {
		return err
	}
	var said tail
	cmd := exec.CommandContext(ctx, c.Args[0], c.Args[1:]...)
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = folder, bytes.NewReader(body), &said, &said
	values := []string{string(m.Event), m.ID, m.Job.ID, m.Target, strconv.Itoa(m.Try)}
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	for i, name := range Variables {
		cmd.Env = append(cmd.Env, name+"="+values[i])
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return killGroup(cmd.Process.Pid) }
	cmd.WaitDelay = lingering
	if err := cmd.Start(); err != nil {
		return err
	}
	err = cmd.Wait()
	if err != nil {
		if errors.Is(err, exec.ErrWaitDelay) { // it ended well, and something that it started still holds its output
			err = nil
		}
		if kill := killGroup(cmd.Process.Pid); kill != nil && !errors.Is(kill, os.ErrProcessDone) {
			err = errors.Join(err, kill)
		}
	}
	return verdict(ctx, err, said.String())
}

// verdict says what the end of a command means.
func verdict(ctx context.Context, err error, said string) error {
	exit, exited := errors.AsType[*exec.ExitError](err)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("the command took too long and was killed: %.300q", said)
	case exited && exit.ExitCode() == refusedExit:
		return &registry.RefusedHandover{Reason: fmt.Sprintf("the command ended with status %d: %.300q", refusedExit, said)}
	}
	return fmt.Errorf("the command failed: %w: %.300q", err, said)
}

func killGroup(pid int) error {
	err := syscall.Kill(-pid, syscall.SIGKILL)
	if errors.Is(err, syscall.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}

// tail keeps the end of what is written to it.
type tail struct{ bytes.Buffer }

func (t *tail) Write(p []byte) (int, error) {
	n := len(p)
	if len(p) > maxOutput {
		p = p[len(p)-maxOutput:]
	}
	if over := t.Len() + len(p) - maxOutput; over > 0 {
		t.Next(over)
	}
	t.Buffer.Write(p)
	return n, nil
}
