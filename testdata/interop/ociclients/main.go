// Command ociclients drives the unmodified OCI clients (oras, crane, regctl, cosign, helm, skopeo, podman) against a fresh
// `sf serve`: sign in, push, pull by tag and digest, copy, list, attach, sign, delete, and what a refusal looks like on each
// client's screen: the message of the rule must stand there. One round goes over plain HTTP with tokens, a short one over TLS
// with an authority of its own, and a short one over TLS with Basic alone. The last line is "N passed, N failed"; the exit code is 0 only when nothing failed.
//
//	go run ./testdata/interop/ociclients -sf bin/sf -bin "$(sh scripts/clients.sh go)"
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/gatehouse-registry/gatehouse/testdata/interop/serving"
)

// client is one of the tools, and what is done with it.
type client struct {
	name string
	run  func(*round) // everything, over plain HTTP
	tls  func(*round) // sign in, push and pull, over TLS
}

var clients = []client{
	{"oras", oras, orasTLS},
	{"crane", crane, craneTLS},
	{"regctl", regctl, regctlTLS},
	{"cosign", cosign, cosignTLS},
	{"helm", helm, helmTLS},
	{"skopeo", skopeo, skopeoTLS},
	{"podman", podman, podmanTLS},
}

// options are the command line.
type options struct {
	sf, bin string
	form    serving.Form
	clients []string
	verbose bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "ociclients:", err)
		os.Exit(1)
	}
}

func parse(args []string) (options, error) {
	var o options
	var names, form string
	f := flag.NewFlagSet("ociclients", flag.ContinueOnError)
	f.StringVar(&o.sf, "sf", "", "path of the sf binary")
	f.StringVar(&o.bin, "bin", "", "folder of the clients; those that are not there are looked for in PATH")
	f.StringVar(&form, "form", "embedded", serving.FormUsage)
	f.StringVar(&names, "clients", "", "names of clients with commas (default: all)")
	f.BoolVar(&o.verbose, "v", false, "print what each client prints")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	var err error
	if o.form, err = serving.ParseForm(form); err != nil {
		return o, err
	}
	if o.sf, err = filepath.Abs(o.sf); err != nil {
		return o, err
	}
	for _, c := range clients {
		if names == "" || slices.Contains(strings.Split(names, ","), c.name) {
			o.clients = append(o.clients, c.name)
		}
	}
	if names != "" && len(o.clients) != len(strings.Split(names, ",")) {
		return o, fmt.Errorf("-clients: %q names a client that is not known", names)
	}
	return o, nil
}

func run(ctx context.Context, args []string) (err error) {
	o, err := parse(args)
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("/tmp", "gh-oci-") // short: podman takes a run folder of at most 50 characters
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	var sum count
	for _, tls := range []bool{false, true} {
		if err := runRound(ctx, o, filepath.Join(work, map[bool]string{false: "http", true: "https"}[tls]), tls, &sum); err != nil {
			return err
		}
	}
	fmt.Printf("%d passed, %d failed\n", sum.passed, sum.failed)
	if sum.failed > 0 {
		return errors.New("not every step passed")
	}
	return nil
}

// runRound starts a registry and lets every client work with it.
func runRound(ctx context.Context, o options, dir string, tls bool, sum *count) (err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	registry, stop, err := serving.StartForm(ctx, o.form, serving.Options{SF: o.sf, Dir: dir, TLS: tls})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	people, err := newPeople(ctx, o.sf, dir, registry)
	if err != nil {
		return err
	}
	if !tls {
		return everyClient(ctx, o, dir, registry, people, sum, func(c client) func(*round) { return c.run })
	}
	short := func(c client) func(*round) { return c.tls }
	if err := everyClient(ctx, o, dir, registry, people, sum, short); err != nil {
		return err
	}
	basic, end, err := registry.OnlyBasic()
	if err != nil {
		return err
	}
	return errors.Join(everyClient(ctx, o, filepath.Join(dir, "basic"), basic, people, sum, short), end())
}

// everyClient lets the clients work with a registry, one after another.
func everyClient(ctx context.Context, o options, dir string, reg *serving.Registry, p people, sum *count, what func(client) func(*round)) error {
	for _, c := range clients {
		if !slices.Contains(o.clients, c.name) {
			continue
		}
		r, err := newRound(ctx, o, c.name, dir, reg, p, sum)
		if err != nil {
			return err
		}
		what(c)(r)
	}
	return nil
}
