package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/gatehouse-registry/gatehouse/testdata"
)

// startTimeout is how long the registry may take to answer.
const startTimeout = 15 * time.Second

// demo is one run: the folder that everything happens in, and what earlier steps found out.
type demo struct {
	ctx     context.Context
	sf, dir string
	env     []string
	server  *exec.Cmd
	ended   chan error   // how the server ended
	log     bytes.Buffer // of the server

	address    string // of the registry
	alice      string // her token
	digests    map[string]string
	protection string // which one the launch had

	steps, checks int
}

func newDemo(ctx context.Context, sf, dir string) *demo {
	d := &demo{ctx: ctx, sf: sf, dir: dir, digests: map[string]string{}}
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "GATEHOUSE_") {
			d.env = append(d.env, kv)
		}
	}
	d.env = append(d.env, "GATEHOUSE_HOME="+d.path("home"), "NO_COLOR=1")
	return d
}

// path is a path in the demo's folder, in which every command runs.
func (d *demo) path(elements ...string) string {
	return filepath.Join(append([]string{d.dir}, elements...)...)
}

func (d *demo) title(text string) {
	d.steps++
	fmt.Printf("\n== %d. %s\n", d.steps, text)
}

// check notes that something was looked at.
func (d *demo) check(holds bool, format string, args ...any) error {
	d.checks++
	if !holds {
		return fmt.Errorf(format, args...)
	}
	return nil
}

// command runs sf, shows what a person would have typed and what came back, and checks the exit code.
func (d *demo) command(wantExit int, args ...string) (output string, err error) {
	fmt.Println("$ sf " + shellWords(args))
	return d.result(wantExit, "", args)
}

// login signs in with the token in a file.
func (d *demo) login(tokenFile, account string) error {
	token, err := os.ReadFile(d.path(tokenFile))
	if err != nil {
		return err
	}
	args := []string{"login", d.address}
	fmt.Println("$ sf " + shellWords(args) + " < " + tokenFile)
	output, err := d.result(0, string(token), args)
	if err != nil {
		return err
	}
	return d.check(strings.Contains(output, "as "+account+" "), "signed in as somebody else than %s", account)
}

// save runs sf and keeps what it prints in a file.
func (d *demo) save(file string, args ...string) (output string, err error) {
	fmt.Println("$ sf " + shellWords(args) + " > " + file)
	output, exit, err := d.quiet("", args...)
	if err != nil {
		return "", err
	}
	if err := d.check(exit == 0, "sf %s: exit %d\n%s", shellWords(args), exit, output); err != nil {
		return "", err
	}
	return output, os.WriteFile(d.path(file), []byte(output), 0o600)
}

// result runs sf, shows its output and checks its exit code.
func (d *demo) result(wantExit int, stdin string, args []string) (output string, err error) {
	output, exit, err := d.quiet(stdin, args...)
	if err != nil {
		return output, err
	}
	for line := range strings.Lines(output) {
		fmt.Print("  " + line)
	}
	if exit != 0 {
		fmt.Printf("  (exit %d)\n", exit)
	}
	return output, d.check(exit == wantExit, "sf %s: exit %d, expected %d", shellWords(args), exit, wantExit)
}

// quiet runs sf and shows nothing. The output is stdout and stderr together.
func (d *demo) quiet(stdin string, args ...string) (output string, exit int, err error) {
	cmd := exec.CommandContext(d.ctx, d.sf, args...)
	cmd.Dir, cmd.Env, cmd.Stdin = d.dir, d.env, strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok && failed.ExitCode() >= 0 {
		return string(out), failed.ExitCode(), nil
	}
	return string(out), 0, err
}

// says runs sf and checks that the output matches each expression.
func (d *demo) says(wantExit int, args []string, expressions ...string) error {
	output, err := d.command(wantExit, args...)
	if err != nil {
		return err
	}
	for _, e := range expressions {
		if err := d.check(regexp.MustCompile(e).MatchString(output), "sf %s: the output does not match %s", shellWords(args), e); err != nil {
			return err
		}
	}
	return nil
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

// shellWords is a command line as a person types it.
func shellWords(args []string) string {
	words := make([]string, len(args))
	for i, a := range args {
		words[i] = a
		if !plainWord.MatchString(a) {
			words[i] = "'" + a + "'"
		}
	}
	return strings.Join(words, " ")
}

// startServer starts sf serve and waits for its address.
func (d *demo) startServer() error {
	args := []string{"serve", "--data", "data", "--listen", "127.0.0.1:0"}
	fmt.Println("$ sf " + shellWords(args) + " &")
	d.server = exec.Command(d.sf, args...)
	d.server.Dir, d.server.Env, d.server.Stderr = d.dir, d.env, &d.log
	if err := d.server.Start(); err != nil {
		d.server = nil
		return err
	}
	d.ended = make(chan error, 1)
	go func() { d.ended <- d.server.Wait() }()
	deadline := time.After(startTimeout)
	for {
		if address, err := os.ReadFile(d.path("data", "address")); err == nil {
			d.address = strings.TrimSpace(string(address))
			return nil
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-d.ctx.Done():
			return d.ctx.Err()
		case err := <-d.ended:
			d.ended <- err
			return fmt.Errorf("sf serve ended at once: %v", err)
		case <-deadline:
			return fmt.Errorf("the registry did not come up in %s", startTimeout)
		}
	}
}

// stopServer ends the registry and waits for it; its log is shown when it did not end well.
func (d *demo) stopServer() error {
	if d.server == nil {
		return nil
	}
	if err := d.server.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	if err := <-d.ended; err != nil {
		return fmt.Errorf("sf serve: %w\n%s", err, d.log.String())
	}
	return nil
}

// unpackPacks writes the repository's own packs below packs/.
func (d *demo) unpackPacks() error {
	packs, err := fs.Sub(testdata.FS, "packs")
	if err != nil {
		return err
	}
	return os.CopyFS(d.path("packs"), packs)
}

// copyPack makes a changed copy of a pack and says so as a person would: change gets the copy's folder.
func (d *demo) copyPack(from, to, how string, change func(dir string) error) error {
	fmt.Printf("$ cp -r packs/%s packs/%s; %s\n", from, to, how)
	if err := os.CopyFS(d.path("packs", to), os.DirFS(d.path("packs", from))); err != nil {
		return err
	}
	return change(d.path("packs", to))
}

// replaceIn changes text in a file. The text must be there.
func replaceIn(path, from, to string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if !strings.Contains(string(content), from) {
		return fmt.Errorf("%s does not hold %q", path, from)
	}
	return os.WriteFile(path, []byte(strings.Replace(string(content), from, to, 1)), 0o644)
}

// show prints a file of the demo's folder.
func (d *demo) show(name string) error {
	content, err := os.ReadFile(d.path(name))
	if err != nil {
		return err
	}
	fmt.Println("$ cat " + name)
	for line := range strings.Lines(string(content)) {
		fmt.Print("  " + line)
	}
	return nil
}

// copyFile copies a file into a folder that need not exist.
func copyFile(from, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
