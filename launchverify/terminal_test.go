//go:build linux

package launchverify

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// openTerminal makes a pseudo-terminal.
func openTerminal(t *testing.T) (master, terminal *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { master.Close() })
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { terminal.Close() })
	return master, terminal
}

// atTerminal starts the launch at a terminal, as a job of a shell with job control: a session whose leader is bash, the agent
// in a process group of its own. script is what the shell does with $AGENT.
func (r *rig) atTerminal(o Options, script string) (cmd *exec.Cmd, keyboard *os.File) {
	r.t.Helper()
	agent := r.startCold(o, r.archives(r.t)) // writes what an agent reads
	agent.Process.Kill()
	agent.Wait()
	for _, name := range []string{"up", "got"} {
		os.Remove(filepath.Join(r.base, name))
	}
	master, terminal := openTerminal(r.t)
	go io.Copy(io.Discard, master)
	self, err := os.Executable()
	if err != nil {
		r.t.Fatal(err)
	}
	cmd = exec.Command("bash", "--norc", "-c", "set -m\n"+script)
	cmd.Env = append(os.Environ(), fmt.Sprintf("AGENT=%s %s %s", self, agentVerb, filepath.Join(r.base, "agent.json")), "BASE="+r.base)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, terminal, terminal
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { cmd.Process.Kill() })
	return cmd, master
}

// What is typed at the terminal is the command's: lines, Ctrl-C, Ctrl-Z. Ctrl-Z stops the agent with it, so that the shell has the
// terminal again, and fg lets both go on; afterwards the terminal is the shell's.
func TestTerminal(t *testing.T) {
	for _, how := range trackings(t) {
		for name, c := range map[string]struct {
			job, shell string
			typed      []string // each once the file up has one line more
			want       string   // in got
		}{
			"a line": {`echo >> $BASE/up; read line; echo "$line" > $BASE/got`, `$AGENT; read after; echo "$after" >> $BASE/got`,
				[]string{"typed\nafter\n"}, "typed\nafter"},
			"Ctrl-C": {`trap 'echo int > $BASE/got; exit 5' INT; echo >> $BASE/up; while :; do sleep 0.02; done`, `$AGENT; echo $? >> $BASE/got`,
				[]string{"\x03"}, "int\n5"},
			"Ctrl-Z and fg": {`echo >> $BASE/up; read line; echo "$line" > $BASE/got; exit 4`,
				`$AGENT; echo stopped $? > $BASE/got; echo >> $BASE/up; fg > /dev/null; echo $? >> $BASE/got`,
				[]string{"\x1a", "typed\n"}, "typed\n4"},
			"in the background, then fg": {`echo >> $BASE/up; read line; echo "$line" > $BASE/got; exit 4`,
				`$AGENT & while [ -z "$(jobs -s)" ]; do sleep 0.02; done; echo >> $BASE/up; fg > /dev/null; echo $? >> $BASE/got`,
				[]string{"", "typed\n"}, "typed\n4"},
		} {
			r, o := shell(t, how.mode, c.job)
			o.without = how.without
			cmd, keyboard := r.atTerminal(o, c.shell)
			for i, keys := range c.typed {
				waitLines(t, filepath.Join(r.base, "up"), i+1)
				if _, err := io.WriteString(keyboard, keys); err != nil {
					t.Fatal(err)
				}
			}
			ended := time.AfterFunc(20*time.Second, func() { cmd.Process.Kill() })
			cmd.Wait()
			ended.Stop()
			got, _ := os.ReadFile(filepath.Join(r.base, "got"))
			if string(bytes.TrimSpace(got)) != c.want {
				t.Errorf("%s, %s: %s: got %q, expected %q", how.mode, how.want, name, got, c.want)
			}
		}
	}
}

// waitLines waits until a file has so many lines.
func waitLines(t *testing.T, file string, n int) {
	t.Helper()
	for range 2000 {
		if b, err := os.ReadFile(file); err == nil && bytes.Count(b, []byte("\n")) >= n {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("%s never had %d lines", file, n)
}

// The command's output is its own, byte for byte: as much as it likes, whatever bytes; where nobody reads it any more, or it goes to
// a full device, the command hears of it and nobody else does.
func TestOutputIsUntouched(t *testing.T) {
	eachMode(t, func(t *testing.T, mode Mode) {
		const script = `i=0; while [ $i -lt 3000 ]; do printf 'line %d \377\000\033[31m\r\n' $i; printf x >&2; i=$((i+1)); done; printf 'no newline'`
		want, err := exec.Command("sh", "-c", script).Output()
		if err != nil {
			t.Fatal(err)
		}
		r, o := shell(t, mode, script)
		out, err := os.Create(filepath.Join(r.base, "out"))
		if err != nil {
			t.Fatal(err)
		}
		defer out.Close()
		o.Stdout = out
		if rec, err := r.launch(o); err != nil || rec.ExitCode != 0 {
			t.Fatalf("exit code %d, %v", rec.ExitCode, err)
		}
		got, err := os.ReadFile(out.Name())
		if err != nil || sha256.Sum256(got) != sha256.Sum256(want) {
			t.Errorf("%d bytes came, expected %d, %v", len(got), len(want), err)
		}

		full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer full.Close()
		r, o = shell(t, mode, `cat /etc/hostname 2> /dev/null || exit 9`)
		o.Stdout = full
		if rec, err := r.launch(o); err != nil || rec.ExitCode != 9 {
			t.Errorf("a full device: exit code %d, %v", rec.ExitCode, err)
		}

		read, write, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		read.Close()
		defer write.Close()
		r, o = shell(t, mode, `cat /etc/hostname`)
		o.Stdout = write
		if rec, err := r.launch(o); err != nil || rec.ExitCode != 128+int(syscall.SIGPIPE) {
			t.Errorf("a pipe that nobody reads: exit code %d, %v", rec.ExitCode, err)
		}
	})
}

// Under nohup a hang-up is the business of nobody.
func TestIgnoredHangup(t *testing.T) {
	r, o := shell(t, ModePrivateCopy, `echo up > $BASE/up; while [ ! -e $BASE/go ]; do sleep 0.02; done; exit 3`)
	agent := r.startCold(o, r.archives(t))
	agent.Process.Kill()
	agent.Wait()
	os.Remove(filepath.Join(r.base, "up"))
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("nohup", self, agentVerb, filepath.Join(r.base, "agent.json"))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, filepath.Join(r.base, "up"))
	_, stage := familyOf(cmd.Process.Pid)
	for _, pid := range []int{cmd.Process.Pid, stage, commandOf(stage)} {
		syscall.Kill(pid, syscall.SIGHUP)
	}
	if err := os.WriteFile(filepath.Join(r.base, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 3 {
		t.Errorf("exit code %d", code)
	}
}
