// Command demo takes three real packs through all three gates with the sf binary, as a person would on a terminal: a
// registry in a temporary folder, publishing, refusals, a plain OCI pull, submission, launch, a tampered plugin, a disabled
// one. Every step is checked; the exit code is 1 when one does not hold. Nothing but Go and a shell is needed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

func main() {
	sf := flag.String("sf", "bin/sf", "the sf binary")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *sf); err != nil {
		stop()
		fmt.Fprintln(os.Stderr, "\ndemo: this does not hold:", err)
		os.Exit(1)
	}
}

// run does the whole demo in a temporary folder, which is gone when it returns.
func run(ctx context.Context, sf string) (err error) {
	start := time.Now()
	if sf, err = filepath.Abs(sf); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "gatehouse-demo-*")
	if err != nil {
		return err
	}
	d := newDemo(ctx, sf, dir)
	defer func() { err = errors.Join(err, d.stopServer(), os.RemoveAll(dir)) }()
	for _, s := range []struct {
		title string
		do    func(*demo) error
	}{
		{"Start a registry with its data in one folder", startRegistry},
		{"Make an account and sign in", signIn},
		{"Publish an algorithm, a recipe with a template, and a benchmark", publishPacks},
		{"Refused: a recipe pack with helper.py in it", refuseHelper},
		{"Refused: a misspelled entry point", refuseEntrypoint},
		{"Refused: torch.py in the root of a plugin", refuseTorch},
		{"Refused: a version that is published already", refuseSecond},
		{"Pull one by plain OCI and compare the digests", pullPlain},
		{"Submit a job that names the recipe and the plugin", submitJob},
		{"Launch it: gate 3, then the command", launchJob},
		{"Change one byte of the injected plugin: gate 3 refuses", refuseTampered},
		{"Disable the plugin: gate 2 refuses new jobs, the admitted one still launches", refuseDisabled},
	} {
		d.title(s.title)
		if err := s.do(d); err != nil {
			return fmt.Errorf("%s: %w", s.title, err)
		}
	}
	fmt.Printf("\nAll %d steps hold, %d checks, in %.1f s. %s\n", d.steps, d.checks, time.Since(start).Seconds(), d.protection)
	return nil
}
