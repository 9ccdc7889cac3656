// Command withserver starts a fresh `sf serve`, runs a command against it, and ends the server with the command. In the
// command's arguments {server} stands for its address, {token} for the token of account admin and {token-file} for the file that
// holds it.
//
//	go run ./testdata/interop/withserver -sf bin/sf -form embedded -- curl {server}/v2/
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/gatehouse-registry/gatehouse/testdata/interop/serving"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "withserver:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) (err error) {
	sf := flag.String("sf", "", "path of the sf binary")
	name := flag.String("form", string(serving.Embedded), serving.FormUsage)
	flag.Parse()
	form, err := serving.ParseForm(*name)
	if err != nil {
		return err
	}
	if flag.NArg() == 0 {
		return errors.New("name the command to run after --")
	}
	program, err := filepath.Abs(*sf)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "gatehouse-withserver-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	registry, end, err := serving.StartForm(ctx, form, serving.Options{SF: program, Dir: dir})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	token, err := registry.AdminToken()
	if err != nil {
		return err
	}
	fill := strings.NewReplacer("{server}", registry.URL, "{token}", token, "{token-file}", registry.TokenFile)
	args := flag.Args()
	for i := range args {
		args[i] = fill.Replace(args[i])
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return errors.Join(err, fmt.Errorf("the server's log ends with:\n%s", registry.LogTail()))
	}
	return nil
}
